"""The judges of OPRO's authors: their stored normal forms, and how they compare."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from opro.errors import ConfigError
from opro.judges.upstream_bool import UpstreamBool
from opro.judges.upstream_choice import UpstreamChoice
from opro.judges.upstream_match import Choices, matches
from opro.judges.upstream_number import UpstreamNumber
from opro.judges.upstream_text import Form, normalise
from opro.types import Kind, Rollout, Task

FORMS = {
    "text": Form(),
    "number": Form(number=True),
    "number2": Form(number=True, decimals=2),
    "bool": Form(boolean=True),
}
SUN = "Where does the sun rise? (A) west (B) east (C) north (D) south"
TWO = "A (dummy) question. (A) west (B) east west (C) north (D) south\nWhich of (A)(B)(C)(D)?"


def task(answer: object, text: str = "?", **extra: object) -> Task:
    return Task(id="t", fields={"question": text}, answer=answer, extra=extra)


@pytest.mark.parametrize("name", FORMS)
def test_normal_forms_equal_the_stored_ones(shared: Path, name: str) -> None:
    rows = json.loads((shared / "golden" / "normalized_predictions.json").read_text("utf-8"))
    assert len(rows) == 40
    found = {row["prediction"]: normalise(row["prediction"], FORMS[name]) for row in rows}
    assert found == {row["prediction"]: row[name] for row in rows}


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Question: next", ""),
        ("Jibu la Hatua kwa Hatua: 7", "7"),
        ("逐步解答：7问题：8", "7"),
        ("It is 7 this is the solution: because", "it is 7 "),
        ("7'''", "7"),
        ("7'..", "7"),
        ("(x) (y)", "(x) (y)"),
        ("note (see it) says (b)", "(see it)"),
        ("(see\nit) says (b)", "(b)"),
    ],
)
def test_quirks_of_the_text_form(reply: str, text: str) -> None:
    assert normalise(reply, Form()) == text


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("The Answer: 5", ""),
        ("none", "1"),
        ("2.5", "2"),
        ("3.5", "4"),
        ("12 apples and some", "12"),
        ("The answer is some 5 or 6", "5"),
        ("1e999", "inf"),
        ("a1b2\nc3", "2"),
    ],
)
def test_quirks_of_the_number_form(reply: str, number: str) -> None:
    assert normalise(reply, Form(number=True)) == number


@pytest.mark.parametrize(
    ("answer", "reply", "right"),
    [(5, "-5", True), ("1,000", "$1,000", True), (72, "72.4", True), (72, "720", False)],
)
def test_number(answer: object, reply: str, right: bool) -> None:
    assert UpstreamNumber().rate(task(answer), Rollout(output=reply)).score == float(right)


@pytest.mark.parametrize(
    ("answer", "reply", "text", "right"),
    [
        ("(B)", "east", SUN, True),
        ("(B)", "b", SUN, True),
        ("B", "(b)", SUN, True),
        ("(B)", "west", SUN, False),
        ("(B)", "The answer is (A)", SUN, False),
        ("(B)", "It rises in the east", SUN, True),
        ("(A)", "west, not east", SUN, False),
        ("A", "bread", SUN, True),
        ("Monsters, Inc", "Monsters, Inc", SUN, False),
        (") ]", ") ]", "Close: ( [", True),
        (") ]", "(", "Close: ( [", True),
        ("a b c", "sorted: a b c", "Sort: c b a", True),
        ("a b c", "a c b", "Sort: c b a", False),
    ],
)
def test_choice(answer: str, reply: str, text: str, right: bool) -> None:
    judge = UpstreamChoice()
    judge.check(task(answer, text))
    assert judge.rate(task(answer, text), Rollout(output=reply)).score == float(right)


@pytest.mark.parametrize(
    ("answer", "reply", "right"),
    [
        ("B", "east west is reported", True),
        ("A", "east west is reported", False),
        ("A", "west is reported", True),
        ("B", "west is reported", False),
        ("A", ": west", True),
        ("A", ": east", False),
        ("Z", "(z)", False),
    ],
)
def test_the_texts_of_the_choices(answer: str, reply: str, right: bool) -> None:
    choices = Choices.of(TWO)
    assert matches(answer, reply, choices=choices, included=False) is right


def test_choice_takes_the_texts_from_extra_when_the_question_names_none() -> None:
    given = task("B", "Where?", choices=["west", "east"])
    assert UpstreamChoice().rate(given, Rollout(output="east")).score == 1.0
    with pytest.raises(ConfigError, match="answer='C' is none of its 2 choices"):
        UpstreamChoice().check(task("C", "Where?", choices=["west", "east"]))
    with pytest.raises(ConfigError, match="answer='E' is none of its 4 choices"):
        UpstreamChoice().check(task("E", TWO))


@pytest.mark.parametrize(
    ("answer", "reply", "right"),
    [
        ("Yes", ":yes", True),
        ("Yes", "true", True),
        ("Yes", "1", True),
        ("Yes", "false", False),
        ("Invalid", "false", True),
        ("Invalid", "1", False),
        ("valid", "invalid", True),
        ("False", "The answer is 0.", True),
        ("no", "I do not know", True),
    ],
)
def test_bool(answer: str, reply: str, right: bool) -> None:
    assert UpstreamBool().rate(task(answer), Rollout(output=reply)).score == float(right)


@pytest.mark.parametrize(("boxed", "answer"), [(True, "$1,234.50"), (False, "7")])
def test_boxed_is_taken_as_it_is(boxed: bool, answer: str) -> None:
    reply = "So \\boxed{$1,234.50} it is = 7"
    verdict = UpstreamNumber(boxed=boxed).rate(task(7), Rollout(output=reply))
    assert verdict.answer == answer


def test_an_open_box_is_none() -> None:
    verdict = UpstreamNumber(boxed=True).rate(task(7), Rollout(output="\\boxed{7"))
    assert (verdict.score, verdict.answer) == (1.0, "7")


@pytest.mark.parametrize("reply", ["Q: and then?", "...", ":"])
def test_an_empty_normal_form_is_unparsed(reply: str) -> None:
    verdict = UpstreamChoice().rate(task(") ]", "Close: ( ["), Rollout(output=reply))
    assert (verdict.score, verdict.kind) == (0.0, Kind.UNPARSED)


@pytest.mark.parametrize("part", ["(", "'", "a", "1a", "\\boxed{", "9", ".", "(b) (", "seven"])
def test_linear_time(part: str) -> None:
    text = part * (500_000 // len(part)) + "\n(b)"
    start = time.perf_counter()
    for judge in (UpstreamNumber(boxed=True), UpstreamBool(), UpstreamChoice()):
        judge.rate(task("B", SUN), Rollout(output=text))
    assert time.perf_counter() - start < 5.0
