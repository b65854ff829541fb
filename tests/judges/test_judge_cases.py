"""The judging cases of the product's list of known troubles, with exactly their inputs."""

from __future__ import annotations

import pytest

from opro.errors import ConfigError
from opro.judges.base import Judge
from opro.judges.choice import Choice
from opro.judges.exact import Exact
from opro.judges.number import Number
from opro.text import strip_think
from opro.types import Kind, Rollout, Task, Verdict


def task(answer: object, **extra: object) -> Task:
    return Task(id="t", fields={"question": "?"}, answer=answer, extra=extra)


def rate(judge: Judge, answer: object, output: str, kind: Kind | None = None) -> Verdict:
    return judge.rate(task(answer), Rollout(output=output, kind=kind, reason="so it ended"))


@pytest.mark.parametrize(
    ("target", "reply"),
    [
        (1000, "$1,000."),
        ("1,000", "$1,000"),
        (29, "$29.00"),
        (-3, "The answer is -3"),
        ("#### -1,234.5", "-1234.5"),
        (42, "42."),
        (42, "**42**"),
        (12, "\\boxed{12}"),
        (12, "$\\boxed{12}$"),
        (60, "4 of the 10 left, so 60%\nDone"),
    ],
)
def test_judging_1_common_spellings_are_right(target: object, reply: str) -> None:
    verdict = rate(Number(), target, reply)
    assert (verdict.score, verdict.kind) == (1.0, Kind.RIGHT)


def test_judging_1_a_sign_counts() -> None:
    verdict = rate(Number(), -3, "3")
    assert (verdict.score, verdict.kind, verdict.answer) == (0.0, Kind.WRONG, "3")


@pytest.mark.parametrize(
    "reply",
    ["So the answer is (B). ", " (B)", "(B)\n", "Correct answer is (B)", "b", "B."],
)
def test_judging_4_decoration_of_the_letter(reply: str) -> None:
    assert rate(Choice(letters="ABCD"), "(B)", reply).score == 1.0


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("The answer is C because I checked.", "C"),
        ("The answer is B because a car moves.", "B"),
        ("Answer: **D**", "D"),
        ("Answer seems to be A.\nAnswer: A", "A"),
        ("The answer is B. Note A is a distractor.", "B"),
    ],
)
def test_judging_5_letters_inside_words(reply: str, letter: str) -> None:
    verdict = rate(Choice(letters="ABCDEFGHIJ"), letter, reply)
    assert (verdict.score, verdict.answer) == (1.0, letter)


@pytest.mark.parametrize("tag", ["think", "reasoning"])
@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<think>(A) looks good.</think>(B)", "B"),
        ("<think>It could be (B), let me see", None),
        ("It could be (A).</think>\n(B)", "B"),
        ("<think>(B), surely.</think>\n", None),
    ],
)
def test_judging_7_thinking_is_no_answer(tag: str, reply: str, answer: str | None) -> None:
    rest = strip_think(reply.replace("think>", f"{tag}>"), [tag])
    kind = None if rest else Kind.UNPARSED
    verdict = rate(Choice(letters="ABCD"), "B", rest or "", kind)
    assert verdict.answer == answer
    assert verdict.kind is (Kind.RIGHT if answer else Kind.UNPARSED)


@pytest.mark.parametrize("judge", [Number(), Exact(), Choice(letters="ABCD")])
@pytest.mark.parametrize("target", ["5", ""])
@pytest.mark.parametrize(
    ("output", "kind", "expected"),
    [
        ("", None, Kind.NO_RESPONSE),
        ("   ", None, Kind.NO_RESPONSE),
        ("", Kind.NO_RESPONSE, Kind.NO_RESPONSE),
        ("I can't help with that.", Kind.REFUSAL, Kind.REFUSAL),
        ("", Kind.TRUNCATED, Kind.TRUNCATED),
    ],
)
def test_judging_8_what_is_not_an_answer(
    judge: Judge, target: str, output: str, kind: Kind | None, expected: Kind
) -> None:
    verdict = rate(judge, target, output, kind)
    assert (verdict.score, verdict.kind) == (0.0, expected)


def test_judging_8_wrong_and_unparsed_differ() -> None:
    assert rate(Number(), "5", "7").kind is Kind.WRONG
    assert rate(Number(), "", "7").kind is Kind.WRONG
    assert rate(Number(), "5", "no idea").kind is Kind.UNPARSED


@pytest.mark.parametrize("judge", [Number(), Exact(), Choice(letters="ABCD")])
@pytest.mark.parametrize("target", ["", "  ", None])
def test_judging_8_a_blank_target_is_refused_before_any_call(judge: Judge, target: object) -> None:
    with pytest.raises(ConfigError, match="task 't': answer=") as caught:
        judge.check(task(target))
    assert "\n" not in str(caught.value)
