"""Judge reasoning_gym: the data set's own scorer."""

from __future__ import annotations

import subprocess
import sys

import pytest

from opro.errors import ConfigError
from opro.judges.reasoning_gym import ReasoningGym
from opro.types import Kind, Rollout, Task

gym = pytest.importorskip("reasoning_gym")

NAMES = ("leg_counting", "basic_arithmetic", "spell_backward", "prime_factorization", "countdown")


def task(name: str, **extra: object) -> Task:
    entry = gym.create_dataset(name, size=1, seed=3)[0]
    extra = {"dataset": name, "entry": entry, **extra}
    return Task(id=f"{name}-0", fields={"question": entry["question"]}, extra=extra)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["{}", " {}\n", "So it is <answer>\n{}</answer>. Done"])
def test_the_entrys_answer_is_right(name: str, form: str) -> None:
    judge = ReasoningGym()
    given = task(name)
    judge.check(given)
    answer = given.extra["entry"]["answer"]
    verdict = judge.rate(given, Rollout(output=form.replace("{}", answer)))
    assert (verdict.score, verdict.kind, verdict.answer) == (1.0, Kind.RIGHT, answer)


def test_partial_credit_is_not_right() -> None:
    given = task("spell_backward")
    verdict = ReasoningGym().rate(given, Rollout(output=given.extra["entry"]["answer"][:-1]))
    assert 0.0 <= verdict.score < 1.0
    assert verdict.kind is Kind.WRONG
    assert repr(given.extra["entry"]["answer"]) in verdict.feedback


def test_the_last_complete_pair_of_tags_counts() -> None:
    given = task("leg_counting")
    right = given.extra["entry"]["answer"]
    output = f"<answer>0</answer> no: <answer>{right}</answer> <answer>1"
    assert ReasoningGym().rate(given, Rollout(output=output)).score == 1.0
    assert ReasoningGym(answer_tag=None).rate(given, Rollout(output=right)).score == 1.0
    assert ReasoningGym(answer_tag=None).rate(given, Rollout(output=output)).score < 1.0


def test_a_scorer_that_raises_on_an_answer_finds_none() -> None:
    verdict = ReasoningGym().rate(task("prime_factorization"), Rollout(output="no idea"))
    assert (verdict.score, verdict.kind) == (0.0, Kind.UNPARSED)
    assert "ValueError" in verdict.feedback


def test_parameters_of_the_data_set_reach_the_scorer() -> None:
    entry = gym.create_dataset("puzzle24", size=1, seed=3)[0]
    given = Task(id="p", fields={"q": "?"}, extra={"dataset": "puzzle24", "entry": entry})
    small = Task(id="p", fields={"q": "?"}, extra={**given.extra, "params": {"max_value": 4}})
    output = Rollout(output="(8 - 4) * (7 - 1)")
    assert ReasoningGym().rate(given, output).score == 1.0
    assert ReasoningGym().rate(small, output).score < 1.0


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({}, r"no extra\['dataset'\]"),
        ({"dataset": "leg_counting"}, r"no extra\['entry'\]"),
        ({"dataset": "leg_countin", "entry": {}}, "did you mean 'leg_counting'"),
        (
            {"dataset": "prime_factorization", "entry": {"answer": "x"}},
            "can't score its own answer",
        ),
    ],
)
def test_refused(extra: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ReasoningGym().check(Task(id="t", fields={"q": "?"}, extra=extra))


def test_the_package_is_imported_late_and_its_absence_told() -> None:
    code = (
        "import sys\n"
        "from opro.judges.reasoning_gym import ReasoningGym\n"
        "from opro.types import Task\n"
        "assert 'reasoning_gym' not in sys.modules\n"
        "sys.modules['reasoning_gym'] = None\n"
        "extra = {'dataset': 'leg_counting', 'entry': {}}\n"
        "ReasoningGym().check(Task(id='t', fields={}, extra=extra))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ConfigError" in done.stderr
    assert "pip install reasoning-gym" in done.stderr
