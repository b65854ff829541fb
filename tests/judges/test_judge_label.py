"""Judge label: whole words, cues, and several labels in one output."""

from __future__ import annotations

import pytest

from opro.errors import ConfigError
from opro.judges.label import Label
from opro.types import Kind, Rollout, Task

MOODS = ["positive", "negative", "very negative", "not sure"]


def task(answer: object = "positive", **extra: object) -> Task:
    return Task(id="t", fields={"text": "?"}, answer=answer, extra=extra)


def read(output: str, **settings: object) -> str | None:
    return Label(**{"labels": MOODS, **settings}).rate(task(), Rollout(output=output)).answer


@pytest.mark.parametrize(
    ("output", "label"),
    [
        ("positive", "positive"),
        ("The mood is POSITIVE!", "positive"),
        ("**Positive**", "positive"),
        ("_positive_", "positive"),
        ("これはpositiveです", "positive"),
        ("positively", None),
        ("non-positive", None),
        ("very_positive_one", None),
        ("not positive", None),
        ("It isn't positive", None),
        ("negative", "negative"),
        ("Very  negative.", "very negative"),
        ("very_negative", "very negative"),
        ("very-negative", "very negative"),
        ("I'm not sure", "not sure"),
        ("positive or negative", None),
        ("positive, yes positive", "positive"),
        ("Neither positive nor negative. Label: negative", "negative"),
        ("The answer is positive, not negative.", "positive"),
        ("Label: positive. No: the label is negative.", "negative"),
        ("<category>negative</category> rather than positive", "negative"),
        ('{"label": "positive", "other": "negative"}', "positive"),
        ("Positive is the right label; negative would be harsh", "positive"),
        ("nothing", None),
        ("\u0130 positive", "positive"),
    ],
)
def test_which_label(output: str, label: str | None) -> None:
    assert read(output) == label


@pytest.mark.parametrize(
    ("several", "label"), [("none", None), ("first", "positive"), ("last", "negative")]
)
def test_several_labels(several: str, label: str | None) -> None:
    text = "positive … negative … positive … negative"
    assert read(text, several=several) == label
    assert read("The answer: positive. Or negative?", several=several) == "positive"


def test_last_goes_by_the_last_place() -> None:
    assert read("positive, negative, positive", several="last") == "positive"


def test_own_cues() -> None:
    assert read("Stimmung: negative, kaum positive", cues=["Stimmung"]) == "negative"


def test_labels_without_blanks_between_words() -> None:
    judge = Label(labels=["正面", "负面"])
    assert judge.rate(task("正面"), Rollout(output="答案是正面。")).score == 1.0


def test_labels_of_the_data_set() -> None:
    verdict = Label().rate(task("b c", labels=["a", "b c"]), Rollout(output="B C"))
    assert (verdict.score, verdict.kind) == (1.0, Kind.RIGHT)


def test_labels_learned_from_the_answers() -> None:
    judge = Label()
    tasks = [task(answer) for answer in ("urgent", "Not urgent", "URGENT", None, "")]
    judge.prepare(tasks)
    judge.check(tasks[0])
    verdict = judge.rate(tasks[0], Rollout(output="This is not urgent."))
    assert (verdict.answer, verdict.kind) == ("Not urgent", Kind.WRONG)
    assert judge.rate(tasks[0], Rollout(output="Urgent!")).score == 1.0


def test_set_labels_go_before_learned_ones() -> None:
    judge = Label(labels=MOODS)
    judge.prepare([task("a"), task("b")])
    with pytest.raises(ConfigError, match="none of judge.labels"):
        judge.check(task("a", labels=["a", "b"]))


def test_too_many_answers_are_no_labels() -> None:
    with pytest.raises(ConfigError, match=r"judge\.labels=null: the tasks have 51 different"):
        Label().prepare([task(f"word {number}") for number in range(51)])


def test_the_answer_may_differ_in_case() -> None:
    judge = Label(labels=MOODS)
    judge.check(task("Very Negative"))
    assert judge.rate(task("Very Negative"), Rollout(output="very negative")).score == 1.0


@pytest.mark.parametrize(
    ("judge", "answer", "message"),
    [
        (Label(labels=MOODS), "positve", r"none of judge\.labels .*did you mean 'positive'"),
        (Label(labels=MOODS), "", "answer=''"),
    ],
)
def test_refused_tasks(judge: Label, answer: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        judge.check(task(answer))


@pytest.mark.parametrize("labels", [["a", "A"], ["a_b", "a b"], ["a", " "]])
def test_refused_labels(labels: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"judge\.labels: .* is blank or given twice"):
        Label(labels=labels)


@pytest.mark.parametrize("label", ["C++", "N/A", "5 stars", "a.b*", "(x)", "🙂"])
def test_labels_with_signs(label: str) -> None:
    judge = Label(labels=[label, "other"])
    judge.check(task(label))
    assert judge.rate(task(label), Rollout(output=f"It is {label} here")).score == 1.0
