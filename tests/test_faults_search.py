"""Faults of an endpoint, met by whole searches: counted, retried or not, never a score."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from opro.errors import FatalEndpointError, RunError
from opro.llms.faults import TABLE
from opro.testing.handle import Loopback, in_thread
from tests.conftest import ROOT, Search
from tests.endpoint import CALLS, OPTIMIZER, RULES, small

RETRIED = {
    "500": "server_error",
    "503": "server_error",
    "429": "rate_limit",
    "429_seconds": "rate_limit",
    "408": "request_timeout",
    "409": "conflict",
    "reset": "reset",
    "reset_body": "reset",
    "hang": "timeout",
    "invalid_json": "invalid_json",
    "json_list": "invalid_json",
    "html": "html",
    "choices_null": "no_choices",
    "choices_empty": "no_choices",
    "content_null": "null_content",
}
"""What the server does, and the kind in the table; each is over when asked again."""

FATAL = {
    "401": "unauthorized",
    "402": "insufficient_quota",
    "insufficient_quota": "insufficient_quota",
    "403": "forbidden",
    "404": "not_found",
    "301": "redirected",
}
FAILED = {"400": "bad_request", "context_overflow": "context_overflow"}
ELSEWHERE = {"no_connection", "empty_truncated", "unsupported_parameter", "closed"}
ELSEWHERE |= {"command_failed", "command_missing"}
"""Tested in tests/llms, in `test_an_endpoint_that_is_away` here, and in test_signals."""


@pytest.fixture
def server() -> Iterator[Loopback]:
    with in_thread(rules=RULES) as loopback:
        yield loopback


def clean(search: Search, server: Loopback, *more: str, **options: int) -> list[str]:
    """Run the search without faults, as `clean`, and return its settings."""
    arguments = [*small(server, search.folder, **options), *more]
    search.run(*arguments, name="clean")
    server.control(reset=True)
    return arguments


def same(search: Search, name: str = "x") -> None:
    for file in ("state/opro.json", "ADAPTER.md"):
        assert (search.path(name) / file).read_bytes() == (search.path("clean") / file).read_bytes()


def test_the_table_has_no_kind_without_a_test() -> None:
    assert {*RETRIED.values(), *FATAL.values(), *FAILED.values(), *ELSEWHERE} == {*TABLE}


def test_a_third_of_all_answers_failing_changes_nothing(search: Search, server: Loopback) -> None:
    arguments = clean(search, server, tasks=12, width=16)
    rate = 1 - 0.68 ** (1 / len(RETRIED))
    faults = [{"kind": kind, "rate": rate, "seed": 100 + n} for n, kind in enumerate(RETRIED)]
    server.control(faults=[{**fault, "value": "0"} for fault in faults])
    search.run(*arguments, "llm.retries=12", "llm.timeout=1")
    same(search)
    totals, outcomes = search.result()["totals"], server.stats()["outcomes"]
    expected: dict[str, int] = {}
    for outcome, count in outcomes.items():
        kind = "timeout" if outcome == "gone" else RETRIED.get(outcome)
        if kind is not None:
            expected[kind] = expected.get(kind, 0) + count
    assert totals["faults"] == expected
    answers = sum(role["calls"] for role in totals["by_role"].values())
    assert answers == outcomes["ok"] == 12 + 2 * (3 + 3 * 12)
    assert totals["requests"] == answers + sum(expected.values())
    assert 0.25 < sum(expected.values()) / totals["requests"] < 0.35
    assert set(expected) == set(RETRIED.values())


@pytest.mark.parametrize(("asked", "kind"), FAILED.items())
def test_a_call_that_fails_twice_leaves_its_instruction_unscored(
    search: Search, server: Loopback, asked: str, kind: str
) -> None:
    # The instruction stands in later meta-prompts, but there without that task.
    arguments = clean(search, server, "trainer.epochs=1", "evolver.params.num_exemplars=0")
    first = search.state("clean")["history"][1]["instruction"]
    server.control(faults=[{"kind": asked, "contains": [first, "number 3?"]}])
    search.run(*arguments)
    entry = search.state()["history"][1]
    assert entry["score"] is None
    assert [score is None for score in entry["scores"]] == [False, False, False, True, False]
    assert search.result()["totals"]["faults"] == {kind: 2}
    assert search.result()["totals"]["kinds"]["error"] == 1


@pytest.mark.parametrize(
    ("asked", "kind", "role"),
    [*((*pair, "agent") for pair in FATAL.items()), ("401", "unauthorized", "optimizer")],
)
def test_a_refusal_for_good_stops_the_run_at_once(
    search: Search,
    server: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    kind: str,
    role: str,
) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-key-that-must-not-be-shown")
    arguments = [*small(server, search.folder, width=2), "llm.api_key_env=SOME_KEY"]
    contains = [OPTIMIZER] if role == "optimizer" else []
    fault: dict[str, Any] = {"kind": asked, "value": "sk-key-that-must-not-be-shown"}
    server.control(faults=[{**fault, "contains": contains}])
    with pytest.raises(FatalEndpointError) as caught:
        search.run(*arguments)
    text = str(caught.value)
    assert text.startswith(f"{role} ({kind}): {server.base_url}")
    assert "\n" not in text and "sk-key" not in text
    assert ("SOME_KEY" in text) == (asked in ("401", "403"))
    assert server.stats()["requests"] <= (2 if role == "agent" else 7)
    assert "sk-key" not in (search.path() / "error.txt").read_text("utf-8")
    server.control(faults=[])
    search.run(*arguments)  # mended, it goes on
    assert search.result()["stop_reason"] == "epochs"


def test_an_endpoint_that_is_away_for_a_while(search: Search, server: Loopback) -> None:
    arguments = clean(search, server)
    server.control(refuse=0.6)
    search.run(*arguments, "llm.retries=10")
    same(search)
    assert set(search.result()["totals"]["faults"]) <= {"no_connection", "reset"}
    assert server.stats()["outcomes"]["ok"] == CALLS


def test_steps_that_all_fail_end_the_run_and_a_good_one_resets_the_count(
    search: Search, server: Loopback
) -> None:
    arguments = [*small(server, search.folder, tasks=2, width=1), "llm.retries=0"]
    arguments += ["evolver.params.n_candidates=1", "trainer.epochs=4", "trainer.max_failed_steps=2"]
    # 1 and 2 score the start; each step asks the optimizer, twice when that fails.
    server.control(faults=[{"kind": "500", "at": [3, 4, 8, 9]}])
    search.run(*arguments, name="mixed")
    steps = search.state("mixed")["steps"]
    assert [step["candidates"][0]["status"] for step in steps] == [
        *("failed", "scored", "failed", "scored")
    ]
    server.control(reset=True, faults=[{"kind": "500", "contains": [OPTIMIZER]}])
    with pytest.raises(RunError, match="nothing could be scored in 2 steps in a row.*HTTP 500"):
        search.run(*arguments)
    assert server.stats()["requests"] == 2 + 2 * 2
    server.control(faults=[])
    search.run(*arguments)  # what failed in those steps is asked again, and nothing else
    assert server.stats()["requests"] == 6 + 4 * (1 + 2)
    assert [step["candidates"][0]["status"] for step in search.state()["steps"]] == ["scored"] * 4


def test_odd_answers_are_wrong_answers_and_no_faults(search: Search, server: Loopback) -> None:
    arguments = small(server, search.folder, tasks=6, width=1)
    odd = ["refusal", "content_filter", "content_empty", "length_text", "usage_missing"]
    server.control(faults=[{"kind": kind, "at": [n]} for n, kind in enumerate(odd, start=1)])
    search.run(*arguments, "trainer.epochs=1")
    totals = search.result()["totals"]
    assert totals["faults"] == {}
    kinds = totals["kinds"]
    assert (kinds["refusal"], kinds["no_response"], kinds["truncated"]) == (2, 1, 1)
    assert totals["by_role"]["agent"]["prompt_tokens"] is None  # one didn't tell, so unknown
    assert json.loads((search.path() / "result.json").read_text())["status"] == "FINISHED"


def test_the_documentation_holds_the_table() -> None:
    text = (ROOT / "docs/reliability.md").read_text("utf-8")
    for kind, rule in TABLE.items():
        follows = "sent again" if rule.retry else "the call has failed"
        if rule.larger_cap:
            follows = "once more, with a larger limit"
        if rule.fatal:
            follows = "the run stops"
        assert f"\n| `{kind}` | {rule.means} | {follows} |\n" in text
