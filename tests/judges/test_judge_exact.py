"""Judge exact: what counts as the same text."""

from __future__ import annotations

import pytest

from opro.judges.exact import Exact
from opro.types import Rollout, Task


@pytest.mark.parametrize(
    ("settings", "answer", "output", "right"),
    [
        ({}, "east", " east\n", True),
        ({}, "east", "East", False),
        ({}, "caf\u00e9", "cafe\u0301", True),
        ({}, "a b", "a  b", False),
        ({}, 5, "5", True),
        ({}, "None", "None", True),
        ({}, "007", "7", False),
        ({"ignore_case": True}, "Straße", "STRASSE", True),
        ({"squeeze": True}, "a b", "a\n\n b", True),
        ({"strip": False}, "east", "east ", False),
        ({"strip": False}, "east", "east", True),
    ],
)
def test_equal(settings: dict, answer: object, output: str, right: bool) -> None:
    task = Task(id="t", fields={"q": "?"}, answer=answer)
    assert Exact(**settings).rate(task, Rollout(output=output)).score == float(right)


def test_feedback_quotes_a_long_output_in_part() -> None:
    task = Task(id="t", fields={"q": "?"}, answer="east")
    verdict = Exact().rate(task, Rollout(output="x" * 10_000))
    assert "'east'" in verdict.feedback
    assert len(verdict.feedback) < 300
    assert verdict.answer == "x" * 10_000
