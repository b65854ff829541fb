"""Known troubles of resuming, budgets and broken scorers, each with exactly its input."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

import pytest

from opro.errors import ConfigError, RunError, ScoreError
from opro.testing.handle import Loopback, in_thread
from tests.conftest import Search
from tests.endpoint import OPTIMIZER, RULES, command_line, small
from tests.store import query, tags
from tests.test_search import WRONG, optimizer, script


@pytest.fixture
def server() -> Iterator[Loopback]:
    with in_thread(rules=RULES) as loopback:
        yield loopback


STEP = 3 + 3 * 5
"""Requests of a step of `small`."""


@pytest.mark.parametrize("rescore", [False, True])
def test_resume_1_finished_steps_cost_nothing_and_a_broken_one_its_rest(
    search: Search, server: Loopback, rescore: bool
) -> None:
    arguments = [*small(server, search.folder), "trainer.epochs=5"]
    arguments.append(f"trainer.rescore={rescore}")
    search.run(*arguments, name="whole")
    total = 5 + 5 * STEP + (4 * 5 if rescore else 0)
    assert server.stats()["requests"] == total
    server.control(reset=True)
    after_3 = 5 + 3 * STEP + (2 * 5 if rescore else 0)
    sent = []
    for bound in (after_3, after_3 + STEP // 2, 100_000):
        search.run(*arguments, f"trainer.budget.calls={bound}")
        sent.append(server.stats()["requests"])
    assert sent == [after_3, after_3 + STEP // 2, total]
    assert server.stats()["repeats"] == 0 or rescore
    for file in ("state/opro.json", "report.md", "ADAPTER.md"):
        whole = (search.path("whole") / file).read_bytes()
        assert (search.path() / file).read_bytes() == whole
    calls = {name: search.result(name)["totals"]["used"]["calls"] for name in ("whole", "x")}
    assert calls == {"whole": total, "x": total}


@pytest.mark.parametrize(("role", "contains"), [("agent", ["number"]), ("optimizer", [OPTIMIZER])])
def test_resume_3_an_endpoint_that_always_fails_ends_the_run_as_failed(
    search: Search, server: Loopback, role: str, contains: list[str]
) -> None:
    server.control(faults=[{"kind": "500", "contains": contains}])
    arguments = [*small(server, search.folder), "llm.retries=0", "trainer.epochs=9"]
    done = command_line(search.folder, [*arguments, "trainer.run_name=x"])
    said = done.stderr.decode()
    assert done.returncode == 1
    assert re.search(f"in 3 steps in a row .*last cause: .*{role}: .*HTTP 500", said)
    assert "Traceback" not in said
    assert query(search.folder, "select status from runs") == [("FAILED",)]
    assert "HTTP 500" in tags(search)["opro.error"]
    assert not (search.path() / "result.json").exists()


@pytest.mark.parametrize(("calls", "steps", "few"), [(8, 0, True), (1000, 29, False)])
def test_budget_1_what_a_budget_affords_and_why_a_run_ended(
    search: Search,
    server: Loopback,
    capsys: pytest.CaptureFixture[str],
    calls: int,
    steps: int,
    few: bool,
) -> None:
    arguments = [*small(server, search.folder, tasks=6), "trainer.rescore=true"]
    arguments += ["evolver.params.n_candidates=4", f"trainer.budget.calls={calls}"]
    search.run(*arguments)
    shown = capsys.readouterr()
    forecast = f"trainer.budget.calls={calls} affords {steps} steps: 6 calls score the initial"
    assert f"{forecast} instructions, each step takes up to {4 + 4 * 6 + 6}\n" in shown.err
    assert (f"warning: {forecast}" in shown.err) == few
    ended = "budget: trainer.budget.calls=8 is used up" if few else "epochs"
    assert f"Stopped after {0 if few else 2} steps: {ended}" in shown.out
    assert search.result()["stop_reason"] == ended


PAST = [f"Way {n} of 200." for n in range(200)]


@pytest.mark.parametrize(
    ("threshold", "shown"),
    [
        (0.3, 20),  # between scores
        (0.5, 20),  # equal to one: at the threshold is shown
        (0.6, 8),
        (0.75, 8),
        (0.9, 0),  # above all
    ],
)
def test_budget_3_a_meta_prompt_holds_what_its_limits_allow(
    search: Search, capsys: pytest.CaptureFixture[str], threshold: float, shown: int
) -> None:
    tasks = [{"q": f"question {n}.", "answer": "1"} for n in range(4)]
    search.write("tasks.jsonl", "\n".join(map(json.dumps, tasks)))
    points = [3 if n % 25 == 7 else n % 3 for n in range(200)]  # of 4: 0.75 for 8 of them
    rules: list[dict[str, object]] = [optimizer("<INS>New</INS>")]
    for text, right_ones in zip(PAST, points, strict=True):
        answers = [{"contains": [text, f"question {n}."], "reply": "1"} for n in range(right_ones)]
        rules += answers
    search.run(
        "data=jsonl",
        "data.path=tasks.jsonl",
        "judge=number",
        *script(search, *rules, WRONG),
        "trainer.epochs=1",
        "trainer.compare=[]",
        "evolver.params.select=train",
        "evolver.params.n_candidates=1",
        "evolver.params.max_num_instructions=20",
        f"evolver.params.score_threshold={threshold}",
        f"evolver.initial_instructions={json.dumps(PAST)}",
    )
    ranked = sorted(zip(points, PAST, strict=True), key=lambda pair: pair[0])[-20:]
    kept = [(text, n * 25) for n, text in ranked if n / 4 >= threshold]
    assert len(kept) == shown
    text = (search.path() / "output/step_000/meta_prompt.md").read_text("utf-8")
    found = re.findall(r"\ntext:\n(.+)\nscore:\n(\d+)\n", text)
    assert found == [(instruction, str(score)) for instruction, score in kept]
    notice = "no instruction reaches score_threshold; none is shown"
    assert (notice in capsys.readouterr().err) == (shown == 0)


def test_budget_3_a_threshold_off_the_scale_is_refused(search: Search, server: Loopback) -> None:
    arguments = small(server, search.folder)
    with pytest.raises(ConfigError, match="score_threshold=30: input should be less than or equal"):
        search.run(*arguments, "evolver.params.score_threshold=30")
    assert server.stats()["requests"] == 0


SCORERS = """
def every(task, output):
    return task.answer + 1

def one(task, output):
    if task.id == "t3":
        return len(None)
    return float(output == task.answer)
"""


def scored(search: Search, function: str, *overrides: str) -> list[str]:
    """Return the settings of a search on ten tasks that a function of the user's rates."""
    rows = [{"id": f"t{n}", "question": f"number {n}?", "answer": "2"} for n in range(10)]
    search.write("tasks.jsonl", "\n".join(map(json.dumps, rows)))
    search.write(f"scorers_of_{function}.py", SCORERS)
    return [
        "data=jsonl",
        "data.path=tasks.jsonl",
        "data.id_field=id",
        "judge=python",
        f"judge.function=scorers_of_{function}:{function}",
        *script(search, {**optimizer(), "reply": "<INS>New way</INS>"}, {"reply": "2"}),
        "evolver.params.select=train",
        "evolver.params.n_candidates=1",
        *overrides,
    ]


def test_ux_1_a_scorer_that_raises_on_every_task_stops_at_the_start(search: Search) -> None:
    arguments = scored(search, "every")
    with pytest.raises(
        ScoreError, match="the judge failed on every task.*raised TypeError"
    ) as error:
        search.run(*arguments)
    assert "Traceback" in str(error.value) and "scorers_of_every.py" in str(error.value)
    assert not any("optimizer" in entry["at"] for entry in search.entries() if "at" in entry)
    asked = sum("text" in entry for entry in search.entries())
    # Mended, it goes on: the answers are there, and rated anew.
    search.write("scorers_of_every.py", SCORERS.replace("task.answer + 1", "1.0"))
    del sys.modules["scorers_of_every"]
    search.run(*arguments, "trainer.epochs=1")
    assert search.state()["history"][0]["score"] == 1.0
    answers = [entry for entry in search.entries() if "text" in entry]
    assert len(answers) == asked + 1 + 10


def test_ux_1_a_scorer_that_raises_on_one_task_leaves_that_run_without_a_score(
    search: Search,
) -> None:
    with pytest.raises(
        RunError, match="in 3 steps in a row .* no instruction could be scored: judge"
    ):
        search.run(*scored(search, "one"))
    history = search.state()["history"]
    assert [score is None for score in history[0]["scores"]] == [n == 3 for n in range(10)]
    assert history[0]["score"] is None
    search.run(*scored(search, "one"), "trainer.epochs=1", name="report")
    text = (search.path("report") / "report.md").read_text("utf-8")
    assert "judge: raised TypeError on task" in text and "t3" in text
    assert "Traceback" not in text
    again = [e for e in search.entries("report") if "t3" in e["at"] and 2 in e["at"][-2:]]
    assert again == []  # the agent isn't paid twice for a scorer's fault


def test_ux_1_a_task_that_times_out_for_one_candidate_only(
    search: Search, server: Loopback
) -> None:
    server.control(rules=[{"contains": [OPTIMIZER], "text": ["<INS>A.</INS>", "<INS>B.</INS>"],
                           "pick": "count"}, {"contains": [], "text": "2"}])  # fmt: skip
    server.control(faults=[{"kind": "hang", "contains": ["B.", "number 3?"]}])
    search.run(
        *small(server, search.folder, width=1),
        "llm.seed=null",
        "llm.timeout=0.5",
        "llm.retries=0",
        "trainer.epochs=1",
        "evolver.params.n_candidates=2",
        "evolver.params.num_exemplars=0",
    )
    state = search.state()
    assert state["task_ids"] == [f"t{n}" for n in range(5)]
    by_text = {one["instruction"]: one for one in state["history"]}
    assert by_text["A."]["score"] == 1.0
    assert by_text["B."]["scores"] == [1.0, 1.0, 1.0, None, 1.0]
    assert by_text["B."]["score"] is None  # never compared by the other tasks' mean
    text = (search.path() / "report.md").read_text("utf-8")
    assert "unscored: t3" in text and "no whole answer within 0.5 s" in text
