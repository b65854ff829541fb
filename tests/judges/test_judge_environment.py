"""Judge environment: a run's own score."""

from __future__ import annotations

import pytest

from opro.judges.environment import Environment
from opro.types import Kind, Rollout, Task

TASK = Task(id="t", fields={"question": "Mend it."})


@pytest.mark.parametrize("output", ["done", ""])
@pytest.mark.parametrize(
    ("score", "kind"), [(1.0, Kind.RIGHT), (0.5, Kind.WRONG), (0.0, Kind.WRONG)]
)
def test_the_score_counts_whatever_was_printed(output: str, score: float, kind: Kind) -> None:
    verdict = Environment().rate(TASK, Rollout(output=output, score=score, reason="check: 2 of 4."))
    assert (verdict.score, verdict.kind) == (score, kind)
    assert verdict.feedback == "Check: 2 of 4."
    assert verdict.answer == (output or None)


def test_no_score_is_unparsed() -> None:
    verdict = Environment().rate(TASK, Rollout(output="done"))
    assert (verdict.score, verdict.kind) == (0.0, Kind.UNPARSED)
    assert "no score" in verdict.feedback


@pytest.mark.parametrize(
    ("score", "rated", "kind"),
    [
        (None, 0.0, Kind.LIMIT),
        (0.0, 0.0, Kind.LIMIT),
        (0.5, 0.5, Kind.LIMIT),
        (1.0, 1.0, Kind.RIGHT),
    ],
)
def test_a_limit_is_rated_by_the_check_or_0(score: float, rated: float, kind: Kind) -> None:
    run = Rollout(output="done", score=score, kind=Kind.LIMIT, reason="30 seconds are over")
    verdict = Environment().rate(TASK, run)
    assert (verdict.score, verdict.kind) == (rated, kind)
    assert verdict.feedback == "30 seconds are over."


def test_feedback_without_a_reason() -> None:
    assert Environment().rate(TASK, Rollout(output="x", score=0.0)).feedback == (
        "The task's own check gave 0."
    )
