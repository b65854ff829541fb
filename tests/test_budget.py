"""Budgets of whole searches: what is bounded is not overshot, and the end is a clean one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from opro.budget import Budget, Limits
from opro.errors import BudgetExceeded, ConfigError
from opro.testing.handle import Loopback, in_thread
from opro.types import Usage
from tests.conftest import Search
from tests.endpoint import CALLS, RULES, small

TOKENS = 58
"""Of each answer of the loopback server: 50 and 8."""

PRICE = ["llm.price.prompt=1000", "llm.price.completion=1000"]
"""US dollars per million, so an answer costs 0.058."""

AGENT = ["llm@agent.llm=openai", "agent.llm.model=m", "agent.llm.api_key_env=null"]
"""An acting model of its own, without a price."""


@pytest.fixture
def server() -> Iterator[Loopback]:
    with in_thread(rules=RULES) as loopback:
        yield loopback


def test_calls_are_never_overshot_by_requests_under_way_or_retries(
    search: Search, server: Loopback
) -> None:
    server.control(latency=0.02, faults=[{"kind": "429_seconds", "value": "0", "every": 4}])
    search.run(*small(server, search.folder, width=8), "trainer.budget.calls=10")
    assert server.stats()["requests"] == 10
    result = search.result()
    assert result["totals"]["requests"] == 10
    assert result["stop_reason"] == "budget: trainer.budget.calls=10 is used up"
    assert result["select"] == "train"
    history = search.state()["history"]
    assert history[0]["score"] is not None  # the start was scored whole: 5 tasks
    assert all(entry["score"] is None for entry in history[1:])  # half a score is none
    assert result["winner"]["step"] == -1


def test_a_start_cut_by_the_budget_has_no_score(search: Search, server: Loopback) -> None:
    search.run(*small(server, search.folder), "trainer.budget.calls=3")
    assert server.stats()["requests"] == 3
    assert search.result()["winner"]["train_score"] is None
    assert search.result()["select"] == "none (the budget ended before a score)"
    assert (search.path() / "ADAPTER.md").read_text("utf-8") == "Let's solve the problem."


def test_a_budget_bounds_all_starts_of_a_run_together(search: Search, server: Loopback) -> None:
    arguments = small(server, search.folder)
    server.control(faults=[{"kind": "400", "at": [2]}])  # a call that failed counts, too
    search.run(*arguments, "trainer.budget.calls=10")
    search.run(*arguments, "trainer.budget.calls=10")
    assert server.stats()["requests"] == 10
    search.run(*arguments, "trainer.budget.calls=15")
    assert server.stats()["requests"] == 15
    search.run(*arguments)
    assert server.stats()["requests"] == CALLS + 1


@pytest.mark.parametrize(
    ("bound", "limit", "each"),
    [("tokens", 1000, TOKENS), ("usd", 1.0, 0.058)],
)
def test_tokens_and_cost_are_overshot_by_what_is_in_flight_at_most(
    search: Search, server: Loopback, bound: str, limit: float, each: float
) -> None:
    width = 4
    server.control(latency=0.01)
    arguments = small(server, search.folder, width=width)
    search.run(*arguments, *PRICE, f"trainer.budget.{bound}={limit:g}")
    spent = server.stats()["requests"] * each
    assert limit <= spent < limit + width * each
    reason = f"budget: trainer.budget.{bound}={limit:g} is used up"
    assert search.result()["stop_reason"] == reason
    roles = search.result()["totals"]["by_role"].values()
    total = sum(
        role["prompt_tokens"] + role["completion_tokens"] if bound == "tokens" else role["usd"]
        for role in roles
    )
    assert total == pytest.approx(spent)


def test_hours_end_a_run(search: Search, server: Loopback) -> None:
    server.control(latency=0.05)
    search.run(*small(server, search.folder, width=2), "trainer.budget.hours=0.0001")
    assert search.result()["stop_reason"] == "budget: trainer.budget.hours=0.0001 is used up"
    assert 0 < server.stats()["requests"] < CALLS


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ([], "llm.price"),
        (["llm.price.prompt=1"], "llm.price"),
        ([*PRICE, *AGENT], "agent.llm.price"),
    ],
)
def test_a_bound_on_an_unknown_cost_is_refused(
    search: Search, server: Loopback, change: list[str], key: str
) -> None:
    message = rf"^{key}: trainer.budget.usd=1 needs the price of each model"
    with pytest.raises(ConfigError, match=message):
        search.run(*small(server, search.folder), *change, "trainer.budget.usd=1")
    assert server.stats()["requests"] == 0
    assert not (search.folder / "mlruns").exists()


def test_an_endpoint_that_tells_no_tokens_is_not_taken_for_free(
    search: Search, server: Loopback
) -> None:
    arguments = small(server, search.folder, width=2)
    server.control(faults=[{"kind": "usage_missing"}])
    search.run(*arguments, "trainer.budget.tokens=100000")
    reason = "budget: trainer.budget.tokens=100000 can't be kept: the answers don't tell theirs"
    assert search.result()["stop_reason"] == reason
    assert server.stats()["requests"] <= 2
    assert search.result()["totals"]["by_role"]["agent"]["prompt_tokens"] is None


def test_an_answer_that_does_not_tell_counts_as_the_dearest_before() -> None:
    budget = Budget(Limits(tokens=100))
    budget.charge(Usage(calls=1, prompt_tokens=30, completion_tokens=10))
    budget.charge(Usage(calls=1, prompt_tokens=5, completion_tokens=5))
    budget.charge(Usage(calls=1))
    budget.reserve()
    budget.charge(Usage(calls=1))
    with pytest.raises(BudgetExceeded, match="tokens=100 is used up"):
        budget.reserve()


@pytest.mark.parametrize(
    ("calls", "steps", "warned"),
    [(8, 0, True), (40, 1, True), (41, 2, False), (1000, 55, False)],
)
def test_what_a_budget_affords_is_said_and_less_than_two_steps_warned_of(
    search: Search,
    server: Loopback,
    capsys: pytest.CaptureFixture[str],
    calls: int,
    steps: int,
    warned: bool,
) -> None:
    search.run(*small(server, search.folder), f"trainer.budget.calls={calls}")
    shown = capsys.readouterr().err
    assert (
        f"trainer.budget.calls={calls} affords {steps} steps: 5 calls score the initial"
        " instructions, each step takes up to 18\n"
    ) in shown
    assert ("warning: trainer.budget.calls" in shown) == warned


def test_the_end_says_why_and_how_to_go_on(
    search: Search, server: Loopback, capsys: pytest.CaptureFixture[str]
) -> None:
    search.run(*small(server, search.folder), "trainer.budget.calls=30")
    out = capsys.readouterr().out
    reason = "trainer.budget.calls=30 is used up"
    assert f"Stopped after 2 steps: budget: {reason}" in out
    assert "to go on with a larger budget: python -m opro.run llm=openai" in out
    assert "trainer.run_name=x" in out
    assert reason in (search.path() / "report.md").read_text("utf-8")


def test_a_perfect_training_score_can_end_a_run(search: Search, server: Loopback) -> None:
    rules: list[dict[str, Any]] = [RULES[0], {"contains": [], "text": "2"}]
    server.control(rules=rules)
    search.run(*small(server, search.folder), "trainer.stop_at_score=1.0")
    assert search.result()["stop_reason"] == "training score 1 reached trainer.stop_at_score"
    assert len(search.state()["steps"]) == 1
