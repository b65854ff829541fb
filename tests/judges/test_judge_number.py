"""Judge number: what is read, from where, and when two values are equal."""

from __future__ import annotations

from fractions import Fraction

import pytest

from opro.errors import ConfigError
from opro.judges.final_number import FinalNumber
from opro.judges.number import Number
from opro.judges.numbers import NumberReader, spell
from opro.types import Kind, Rollout, Task


def read(text: str, mark: str = ".") -> str | None:
    value = FinalNumber(NumberReader(mark), ["answer"]).read(text)
    return None if value is None else spell(value)


def task(answer: object) -> Task:
    return Task(id="t", fields={"question": "?"}, answer=answer)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,234,567", "1234567"),
        ("1'234'567", "1234567"),
        ("1_000", "1000"),
        ("1\u202f000", "1000"),
        ("1{,}000", "1000"),
        ("1\\,000", "1000"),
        ("10,20", "20"),
        ("€ 45", "45"),
        ("$-5", "-5"),
        ("-$5", "-5"),
        ("−5", "-5"),
        ("10-5", "5"),
        ("5-10 pages", "10"),
        ("823-yard", "823"),
        ("156kgs", "156"),
        ("the 6th", "6"),
        ("x2 and GPT4", None),
        (".5", "0.5"),
        ("so 3...", "3"),
        ("1.5e3", "1500"),
        ("2×10^3", "2000"),
        ("$2 \\times 10^{3}$", "2000"),
        ("3/4", "0.75"),
        ("1/3", "1/3"),
        ("2 1/2", "2.5"),
        ("2½", "2.5"),
        ("\\frac{3}{4}", "0.75"),
        ("1\\frac{1}{2}", "1.5"),
        ("1/0", None),
        ("答案是42。", "42"),
        ("٤٢", "42"),
        ("9" * 400, None),
        ("12%", "12"),
    ],
)
def test_spellings(text: str, number: str | None) -> None:
    assert read(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("#### 18\nThere were 3 hens.", "18"),
        ("#### Step 1\n4 eggs\n#### 2. Next\nso 18", "18"),
        ("The answer is 18. I used 3 steps.", "18"),
        ("The answer is 5. No: the answer is 18. Step 3.", "18"),
        ("The answer is 5 + 13 = 18 eggs", "18"),
        ("The answer is 18, since 5 + 13 = 18 and 2 + 2 = 4", "18"),
        ("The answer to the question is that she has 18 eggs. It took 2 days.", "18"),
        ("Answer:\n\n**18**\n\nbecause 2", "18"),
        ("18 is the correct answer. There were 3 others.", "18"),
        ("The wrong answer is 3. So 18", "18"),
        ("The answer is clear. We add 5 and 13 and get 18", "18"),
        ("So \\boxed{18} after 3 days", "18"),
        ("So \\boxed{x = 18}, 3 days", "18"),
        ("<answer>18</answer> (3 tries)", "18"),
        ('{"answer": 18, "confidence": 3}', "18"),
        ("It's **18** eggs for the 3 of them", "18"),
        ("**Step 1** 5 + 13 gives **18**, in 2 days", "18"),
        ("**5** and **13** make 18", "18"),
        ("**1.** Add 5\n**2.** Add 13\nso 18", "18"),
        ("First 5, then 18\nDone", "18"),
        ("The answer is ten.", "10"),
        ("Twenty-five apples", "25"),
        ("minus seven", "-7"),
        ("The answer is one hundred.", None),
        ("One of them thinks it is none at all", None),
        ("no number here", None),
    ],
)
def test_which_number_is_final(text: str, number: str | None) -> None:
    assert read(text) == number


def test_decimal_comma() -> None:
    assert read("Das macht 1.234,5 Euro", ",") == "1234.5"
    assert read("1.234", ",") == "1234"
    assert read("1.234", ".") == "1.234"


@pytest.mark.parametrize(
    ("target", "reply", "right"),
    [("60", "60%", True), ("60%", "60", True), ("0.6", "60%", False), ("60%", "0.6", False)],
)
def test_percent_is_a_unit(target: str, reply: str, right: bool) -> None:
    assert Number().rate(task(target), Rollout(output=reply)).score == float(right)


def test_tolerance_is_inclusive_and_exact() -> None:
    judge = Number(tolerance=0.1)
    assert judge.rate(task("1"), Rollout(output="1.1")).score == 1.0
    assert judge.rate(task("1"), Rollout(output="1.1000001")).score == 0.0
    assert Number().rate(task("0.3"), Rollout(output="0.30000001")).score == 0.0


def test_own_cues() -> None:
    judge = Number(cues=["total", "Summe"])
    assert judge.rate(task(18), Rollout(output="Die Summe: 18 nach 3 Tagen")).score == 1.0


def test_feedback_shows_a_solutions_number_alone() -> None:
    solution = "She has 5 eggs and buys 13 more.\n#### 1,018"
    verdict = Number().rate(task(solution), Rollout(output="7"))
    assert verdict.feedback == "The answer given was '7'; the expected answer is '1018'."
    assert Number().expected(task("1,000")) == "1,000"


def test_a_target_without_a_number_is_refused() -> None:
    with pytest.raises(ConfigError, match="'east': judge=number needs a number"):
        Number().check(task("east"))


def test_unparsed_names_the_expected_answer() -> None:
    verdict = Number().rate(task(5), Rollout(output="none"))
    assert (verdict.kind, verdict.answer) == (Kind.UNPARSED, None)
    assert "'5'" in verdict.feedback


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1000), "1000"),
        (Fraction(-12345, 10), "-1234.5"),
        (Fraction(1, 3), "1/3"),
        (Fraction(1, 2**40), f"{2.0**-40:.40f}"),
    ],
)
def test_spell(value: Fraction, text: str) -> None:
    assert spell(value) == text
