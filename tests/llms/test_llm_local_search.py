"""Known troubles with a local model, each with its input, through whole searches and sweeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from opro.testing.handle import in_process
from tests.conftest import Search
from tests.sweeps import Sandbox

SMALL = ["trainer.epochs=1", "evolver.params.select=train", "trainer.compare=[]"]


def local(search: Search, weights: Path, tasks: int) -> list[str]:
    """Write tasks and return the settings of a search whose only model is the small one."""
    rows = [{"id": f"t{n}", "question": f"Spell the number {n}."} for n in range(tasks)]
    for n, row in enumerate(rows):
        row["answer"] = str(n)
    search.write("tasks.jsonl", "\n".join(map(json.dumps, rows)))
    return [
        "llm=llamacpp",
        f"llm.model_path={weights}",
        "llm.cache=off",
        "data=jsonl",
        "data.path=tasks.jsonl",
        "data.id_field=id",
        "judge=number",
        "agent.max_tokens=6",
        "evolver.params.max_tokens=12",
        "evolver.params.n_candidates=1",
        *SMALL,
    ]


def rollouts(search: Search, name: str) -> list[dict[str, Any]]:
    """Return the answers that the first instruction got."""
    found = [entry for entry in search.entries(name) if "text" in entry]
    return [entry for entry in found if entry["at"][1] == "rollouts"]


def test_llm_client_10_four_workers_ask_one_model_in_this_process(
    search: Search, real_weights: Path
) -> None:
    arguments = local(search, real_weights, 8)
    for width in (4, 1):
        own = [f"trainer.concurrency={width}", "llm.slots=4", "llm.n_ctx_per_slot=512"]
        search.run(*arguments, *own, name=f"w{width}")
    four, one = ({e["md5"]: e for e in search.state(n)["history"]} for n in ("w4", "w1"))
    start = next(iter(one))
    assert four[start]["scores"] == one[start]["scores"]
    answers = [
        {json.dumps(entry["at"]): entry["text"] for entry in rollouts(search, name)}
        for name in ("w4", "w1")
    ]
    assert answers[0] == answers[1] and len(answers[0]) == 8


def test_llm_client_8_forty_instructions_in_a_context_of_512_tokens(
    search: Search, real_weights: Path
) -> None:
    texts = [f"Instruction {n}: read the question with care, then answer." for n in range(40)]
    search.run(
        *local(search, real_weights, 1),
        "llm.slots=4",
        "llm.n_ctx_per_slot=512",
        "evolver.params.max_num_instructions=40",
        f"evolver.initial_instructions={json.dumps(texts)}",
    )
    step = search.state()["steps"][0]
    left = 40 - step["instructions_shown"]
    assert 0 < left < 40
    assert f"the {left} worst instructions left out: the context is too small" in step["notices"]
    assert step["candidates"][0]["status"] != "failed"
    failed = [e["message"] for e in search.entries() if e.get("error") == "context_overflow"]
    assert failed and all("512 are available per slot" in text for text in failed)


SCORER = """
import logging
logging.basicConfig(filename="scorer.log", level=logging.INFO)
pool = open("scorer.log", "a")  # what no process could be sent
rate = lambda task, output: (logging.info("rated"), float(task.answer in output))[1]
"""


def test_sweep_4_workers_build_their_own_clients_models_and_scorers(
    tmp_path: Path, real_weights: Path
) -> None:
    (tmp_path / "scorer.py").write_text(SCORER)
    with in_process() as server:
        sandbox = Sandbox(tmp_path, server)
        done = sandbox.sweep(
            "hydra/launcher=joblib",
            "evolver.params.n_candidates=1,2",
            "judge=python",
            "judge.function=scorer:rate",
            "llm@agent.llm=llamacpp",
            f"agent.llm.model_path={real_weights}",
            "agent.llm.slots=2",
            "agent.max_tokens=4",
            "trainer.epochs=1",
            "evolver.params.select=train",
        )
        assert done.status == 0 and "2 of 2 jobs ok" in done, done.text
        assert 1 <= sandbox.requests() <= 1 + 2
    # The local model was started once, by the parent, and all jobs used it.
    assert len(json.loads((sandbox.path() / "sweep.json").read_text())["servers"]) == 1
    assert "rated" in (tmp_path / "scorer.log").read_text()
