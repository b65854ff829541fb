"""Known troubles with endpoints, each with exactly its input, through whole searches."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from opro.errors import ConfigError, RunError
from opro.testing.handle import Loopback, in_thread
from tests.conftest import Search
from tests.endpoint import OPTIMIZER, RULES, small
from tests.store import points


@pytest.fixture
def server() -> Iterator[Loopback]:
    with in_thread(rules=RULES) as loopback:
        yield loopback


def sent(server: Loopback, *contains: str) -> list[dict[str, object]]:
    """Return the bodies of the requests whose messages hold all the texts."""
    bodies = [entry["json"] for entry in server.log()]
    return [one for one in bodies if all(text in str(one["messages"]) for text in contains)]


def test_llm_client_1_a_cap_spent_on_reasoning_ends_the_run(
    search: Search, server: Loopback
) -> None:
    server.control(faults=[{"kind": "length_empty"}])
    arguments = [*small(server, search.folder), "agent.max_tokens=400"]
    with pytest.raises(
        RunError, match="100% of the answers spent their token limit .* raise agent.max_tokens"
    ):
        search.run(*arguments)
    caps = [body["max_tokens"] for body in sent(server)]
    assert sorted(caps) == [400] * 5 + [1600] * 5  # each once more, with a larger cap
    kinds = [one["verdict"]["kind"] for one in search.entries() if "verdict" in one]
    assert kinds == ["truncated"] * 5
    with pytest.raises(RunError, match="raise agent.max_tokens"):
        search.run(*arguments)  # again: from the journal
    assert server.stats()["requests"] == 10


def test_llm_client_1_one_answer_without_text_is_truncated_and_no_more(
    search: Search, server: Loopback
) -> None:
    server.control(faults=[{"kind": "length_empty", "contains": ["number 3?"]}])
    arguments = [*small(server, search.folder), "agent.max_tokens=400", "trainer.epochs=1"]
    search.run(*arguments, "evolver.params.num_exemplars=0")
    assert search.state()["history"][0]["scores"][3] == 0.0
    assert search.result()["totals"]["kinds"]["truncated"] == 4
    assert search.result()["totals"]["faults"] == {"empty_truncated": 4 * 2}


def test_llm_client_1_an_optimizer_that_only_reasons_ends_the_run(
    search: Search, server: Loopback
) -> None:
    server.control(faults=[{"kind": "length_empty", "contains": [OPTIMIZER]}])
    arguments = [*small(server, search.folder), "trainer.epochs=5", "evolver.params.max_tokens=400"]
    with pytest.raises(RunError, match="in 3 steps in a row.*raise evolver.params.max_tokens"):
        search.run(*arguments)
    assert len(sent(server, OPTIMIZER)) == 3 * 3 * 2


@pytest.mark.parametrize("configured", [False, True])
def test_llm_client_2_an_endpoint_that_refuses_max_tokens_and_temperature(
    search: Search, server: Loopback, configured: bool
) -> None:
    refused = {"no_max_tokens": "max_tokens", "no_temperature": "temperature"}
    server.control(faults=[{"kind": kind, "has": has} for kind, has in refused.items()])
    arguments = [*small(server, search.folder, width=1), "agent.max_tokens=400"]
    arguments += ["evolver.params.temperature=0.7", "agent.temperature=0.7", "trainer.epochs=1"]
    own = ["llm.max_tokens_param=max_completion_tokens", "llm.send_temperature=false"]
    search.run(*arguments, *(own if configured else []))
    totals = search.result()["totals"]
    assert totals["faults"] == ({} if configured else {"unsupported_parameter": 2})
    good = [body for body in sent(server) if "max_tokens" not in body and "temperature" not in body]
    assert len(good) == 5 + 3 + 3 * 5
    assert all(body["max_completion_tokens"] == 400 for body in good if OPTIMIZER not in str(body))
    told = "agent: sent max_completion_tokens in place of max_tokens"
    assert totals["remarks"].get(told) == (None if configured else 20)
    report = (search.path() / "report.md").read_text("utf-8")
    assert ("in place of max" in report) is not configured


BODIES = {
    "choices_null": "no_choices",
    "choices_empty": "no_choices",
    "html": "html",
    "content_null": "null_content",
}


@pytest.mark.parametrize(("asked", "kind"), BODIES.items())
def test_llm_client_4_an_odd_body_is_a_counted_failure(
    search: Search, server: Loopback, asked: str, kind: str
) -> None:
    server.control(faults=[{"kind": asked, "contains": ["number 3?"]}])
    arguments = [*small(server, search.folder), "trainer.epochs=1", "llm.retries=0"]
    search.run(*arguments, "evolver.params.num_exemplars=0")
    assert search.state()["history"][0]["score"] is None
    assert search.result()["totals"]["faults"] == {kind: 4 * 2}
    reasons = {one["reason"] for one in search.entries() if one.get("error") == "run"}
    start = "<html>" if asked == "html" else '"choices"'
    assert len(reasons) == 1 and start in reasons.pop()


def test_llm_client_4_unknown_tokens_are_absent_and_a_refusal_is_an_answer(
    search: Search, server: Loopback
) -> None:
    faults = [{"kind": "usage_missing", "at": [1]}, {"kind": "refusal", "at": [2]}]
    server.control(faults=faults)
    arguments = small(server, search.folder, width=1)
    search.run(*arguments, "trainer.epochs=1", "tracker=mlflow")
    assert points(search, "total/requests") == [(0, 23.0)]
    assert points(search, "total/agent_calls") == [(0, 20.0)]
    for name in ("total/tokens", "total/agent_prompt_tokens", "total/usd"):
        assert points(search, name) == []
    assert points(search, "total/optimizer_prompt_tokens") == [(0, 150.0)]
    assert search.result()["totals"]["kinds"]["refusal"] == 1


def test_llm_client_6_an_endpoint_that_never_answers(search: Search, server: Loopback) -> None:
    server.control(faults=[{"kind": "hang"}])
    arguments = small(server, search.folder, tasks=32, width=32)
    arguments += ["llm.timeout=1", "llm.retries=1", "trainer.max_failed_steps=1"]
    began = time.monotonic()
    with pytest.raises(RunError, match="no whole answer within 1 s"):
        search.run(*arguments)
    # A failed run is run once more: twice (retries + 1) x timeout, and the waits between.
    assert 4.0 < time.monotonic() - began < 4.0 + 2 * 0.25 + 4.0
    assert server.stats()["requests"] == 32 * 2 * 2
    assert server.stats()["in_flight"]["peak"] == 32
    with pytest.raises(ConfigError, match="llm.timeout=null"):
        search.run(*arguments, "llm.timeout=null", name="y")
    assert search.config("llm=openai", "llm.model=m")["llm"]["timeout"] == 120.0


def test_llm_client_7_samples_are_asked_one_by_one(
    search: Search, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = [{"contains": [OPTIMIZER], "text": "<INS>Same.</INS>"}, RULES[1]]
    server.control(rules=rules)
    arguments = [*small(server, search.folder), "trainer.epochs=1", "llm.cache=on"]
    arguments += ["evolver.params.n_candidates=4", "llm.seed=null"]

    def asked(temperature: float, name: str) -> int:
        server.control(reset=True)
        search.run(*arguments, f"evolver.params.temperature={temperature}", name=name)
        found = [entry["body"] for entry in server.log() if OPTIMIZER in entry["body"]]
        assert all(f'"temperature": {temperature}' in body for body in found)
        return len(found)

    assert asked(0.0, "cold") == 4
    assert "a step's candidates may all be the same" in capsys.readouterr().err
    assert asked(1.0, "warm") == 4
    assert "may all be the same" not in capsys.readouterr().err
    assert asked(0.0, "again") == 0  # each sample has an answer of its own in the cache
    statuses = [one["status"] for one in search.state("again")["steps"][0]["candidates"]]
    assert statuses == ["scored", "duplicate", "duplicate", "duplicate"]


def test_llm_client_8_a_context_that_is_too_small_is_met_by_showing_less(
    search: Search, server: Loopback
) -> None:
    texts = [f"Instruction number {n}." for n in range(40)]
    server.control(faults=[{"kind": "context_overflow", "contains": [OPTIMIZER, texts[9]]}])
    search.run(
        *small(server, search.folder, tasks=1),
        "trainer.epochs=1",
        "evolver.params.max_num_instructions=40",
        f"evolver.initial_instructions={json.dumps(texts)}",
    )
    step = search.state()["steps"][0]
    assert step["instructions_shown"] < 40
    left = 40 - step["instructions_shown"]
    assert f"the {left} worst instructions left out: the context is too small" in step["notices"]
    assert [one["status"] for one in step["candidates"]] == ["scored"] * 3


def test_llm_client_8_a_prompt_that_was_cut_without_an_error_is_warned_of(
    search: Search, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "agent: far fewer prompt tokens counted than were sent"
    start = "evolver.initial_instructions=['@start.md']"
    search.write("start.md", "Think about it. " * 200)
    server.control(rules=[RULES[0], {"usage": {"prompt_tokens": 100, "completion_tokens": 2}}])
    search.run(*small(server, search.folder), "trainer.epochs=1", start)
    assert capsys.readouterr().err.count(said) == 1
    assert said in (search.path() / "report.md").read_text("utf-8")
    server.control(rules=[RULES[0], {"usage": {"prompt_tokens": 800, "completion_tokens": 2}}])
    search.run(*small(server, search.folder), "trainer.epochs=1", start, name="whole")
    assert said not in capsys.readouterr().err


def test_llm_client_11_retries_ask_the_same_model_and_another_one_is_told(
    search: Search, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = [{"kind": "429_seconds", "value": "0", "at": list(range(1, 400, 2))}]
    rules = [{**RULES[0], "model": "m-big-2025-01-31"}, {**RULES[1], "model": "m-big"}]
    server.control(faults=odd, rules=rules)
    arguments = [*small(server, search.folder, width=1), "llm.model=m-big", "trainer.epochs=3"]
    search.run(*arguments)
    calls = 5 + 3 * (3 + 3 * 5)
    assert server.stats()["requests"] == 2 * calls
    assert {body["model"] for body in sent(server)} == {"m-big"}
    totals = search.result()["totals"]
    assert totals["models"] == {"agent": {"m-big": calls - 9}, "optimizer": {"m-big-2025-01-31": 9}}
    assert totals["remarks"] == {}
    small_one = {"contains": ["number 3?"], "text": "2", "model": "m-small"}
    server.control(faults=[], rules=[rules[0], small_one, rules[1]])
    capsys.readouterr()
    search.run(*arguments, name="other")
    said = capsys.readouterr().err
    assert said.count("agent: m-big was asked for, the endpoint says m-small answered") == 1
    assert said.count("agent: the endpoint changed its model: m-big, m-small") == 1
    assert search.result("other")["totals"]["models"]["agent"]["m-small"] == 1 + 9


def test_llm_client_11_retries_end(search: Search, server: Loopback) -> None:
    server.control(faults=[{"kind": "429_seconds", "value": "0"}])
    arguments = [*small(server, search.folder), "llm.model=m-big", "llm.retries=2"]
    with pytest.raises(RunError, match="HTTP 429"):
        search.run(*arguments, "trainer.max_failed_steps=1")
    assert server.stats()["requests"] == 5 * 2 * 3
    assert {body["model"] for body in sent(server)} == {"m-big"}
