"""Judge choice: the options of a task, and which of them a reply names."""

from __future__ import annotations

import pytest

from opro.errors import ConfigError
from opro.judges.choice import Choice
from opro.judges.options import options_of
from opro.types import Kind, Rollout, Task

WINDS = ["west", "east", "north", "south east"]


def task(answer: object = "B", text: str = "?", **extra: object) -> Task:
    return Task(id="t", fields={"question": text}, answer=answer, extra=extra)


def read(output: str, letters: str = "ABCDEFGHIJ") -> str | None:
    return Choice(letters=letters).rate(task(), Rollout(output=output)).answer


@pytest.mark.parametrize(
    ("output", "letter"),
    [
        ("\\boxed{B}", "B"),
        ("$\\boxed{\\text{(B)}}$", "B"),
        ("<answer>b</answer>", "B"),
        ('{"answer": "B"}', "B"),
        ("#### B", "B"),
        ("**Final Answer**\n\nB", "B"),
        ("The best option is B", "B"),
        ("The answer is option **B**: east", "B"),
        ('The answer is "C"', "C"),
        ("Answer:D", "D"),
        ("The answer to the question is (b)", "B"),
        ("The answer is b because it is", "B"),
        ("The wrong answer is A. The correct choice is: B", "B"),
        ("The answer is A. No, wait: the answer is B", "B"),
        ("B is the correct answer, not A.", "B"),
        ("(B) is correct. (A) isn't.", "B"),
        ("The answer is I.", "I"),
        ("The answer is I think (B)", "B"),
        ("The answer is I don't know", None),
        ("The answer is a car.", None),
        ("The answer is not B", None),
        ("The answer is A or B", None),
        ("The answer is (A) and (B)", None),
        ("Option B", "B"),
        ("- B", "B"),
        ("答案\n（B）", "B"),
        ("A: (B)", "B"),
        ("Therefore, (B).", "B"),
        ("Therefore B or something.", None),
        ("A cat is a cat. I like it.", None),
        ("B) it rises there", "B"),
        ("B. it rises there", "B"),
        ("(A) no.\n(C) no.\n\n(B)", "B"),
        ("A) west\nB) east\n\nB", "B"),
        ("(A) west: no\n(B) east: yes\n(C) north: no", None),
        ("K", None),
    ],
)
def test_which_letter(output: str, letter: str | None) -> None:
    assert read(output) == letter


@pytest.mark.parametrize(
    ("output", "letter"),
    [
        ("The answer is east.", "B"),
        ("The answer is: **South  East**", "D"),
        ("The answer is eastern", None),
        ("east", "B"),
        ("West.", "A"),
        ("B: east", "B"),
        ("It rises in the east", None),
        ("It isn't (A) west.\n(B) east", "B"),
    ],
)
def test_texts_of_the_choices(output: str, letter: str | None) -> None:
    verdict = Choice().rate(task(choices=WINDS), Rollout(output=output))
    assert verdict.answer == letter


@pytest.mark.parametrize(
    ("output", "letter"), [("The answer is 2.", "A"), ("-2", "B"), (".2", "D")]
)
def test_texts_that_are_numbers(output: str, letter: str) -> None:
    choices = ["2", "-2", "2.5", ".2"]
    assert Choice().rate(task(choices=choices), Rollout(output=output)).answer == letter


@pytest.mark.parametrize("answer", ["B", "b", "(B)", "(b)", "B.", "B)", "east", "EAST"])
def test_spellings_of_the_expected_answer(answer: str) -> None:
    judge = Choice()
    judge.check(task(answer, choices=WINDS))
    assert judge.rate(task(answer, choices=WINDS), Rollout(output="B")).score == 1.0
    verdict = judge.rate(task(answer, choices=WINDS), Rollout(output="A"))
    assert verdict.feedback == "The answer given was 'A'; the expected answer is '(B) east'."


def test_options_from_the_tasks_text() -> None:
    options = options_of(task(text="Where?\nOptions:\n(A) west\n(B) east\n(D) lost"), None)
    assert options is not None
    assert (options.letters, options.texts) == ("AB", ("west", "east"))


def test_an_option_cut_at_commas_is_its_first_part() -> None:
    cut = task("Monsters, Inc", choices=["Shrek", "Monsters", "Inc"])
    Choice().check(cut)
    assert Choice().rate(cut, Rollout(output="(B)")).score == 1.0


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (task("B"), "no options"),
        (task("E", choices=WINDS), "answer='E' is none of the letters ABCD"),
        (task("north east", choices=WINDS), "none of the letters ABCD"),
        (task(None, choices=WINDS), "answer=None"),
    ],
)
def test_refused(broken: Task, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Choice().check(broken)


def test_letters_have_no_gap() -> None:
    with pytest.raises(ConfigError, match=r"judge\.letters=ABD: must run from A"):
        Choice(letters="ABD")


def test_a_task_without_options_is_unparsed_not_a_crash() -> None:
    assert Choice().rate(task(), Rollout(output="B")).kind is Kind.UNPARSED
