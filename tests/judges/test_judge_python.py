"""Judge python: a user's function, what it may return, and how a broken one is reported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opro.errors import ConfigError, ScoreError
from opro.judges.base import JudgeFailed
from opro.judges.python import Python
from opro.setup.config import build
from opro.types import Kind, Rollout, Task

TASK = Task(id="t", fields={"question": "?"}, answer="5")

CODE = """
import numpy

def number(task, output): return 0.25
def flag(task, output): return output == task.answer
def single(task, output): return numpy.float32(1)
def bit(task, output): return numpy.bool_(True)
def whole(task, output): return {"score": 0.5, "answer": 7, "feedback": "Half.", "kind": "wrong"}
def bare(task, output): return {"score": 1}
def unread(task, output): return {"score": 0, "kind": "unparsed"}
def none(task, output): return None
def text(task, output): return "0.5"
def no_score(task, output): return {"answer": "5"}
def odd_key(task, output): return {"score": 1, "feedbak": "x"}
def odd_kind(task, output): return {"score": 1, "kind": "error"}
def nan(task, output): return float("nan")
def broken(task, output): return 1 / 0
def three(task, output, more): return 1.0
constant = 1.0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("launch")
    (path / "scorers_of_a_user.py").write_text(CODE)
    (path / "scorers_that_fail.py").write_text("raise RuntimeError('two\\nlines')\n")
    before = list(sys.path)
    yield path
    sys.path[:] = before
    sys.modules.pop("scorers_of_a_user", None)


@pytest.fixture
def judge(folder: Path):
    def make(name: str) -> Python:
        return Python(function=f"scorers_of_a_user:{name}", launch_folder=folder)

    return make


@pytest.mark.parametrize(
    ("name", "score", "kind", "answer"),
    [
        ("number", 0.25, Kind.WRONG, "5"),
        ("flag", 1.0, Kind.RIGHT, "5"),
        ("single", 1.0, Kind.RIGHT, "5"),
        ("bit", 1.0, Kind.RIGHT, "5"),
        ("whole", 0.5, Kind.WRONG, "7"),
        ("bare", 1.0, Kind.RIGHT, "5"),
        ("unread", 0.0, Kind.UNPARSED, None),
    ],
)
def test_returns(judge, name: str, score: float, kind: Kind, answer: str | None) -> None:
    verdict = judge(name).rate(TASK, Rollout(output=" 5\n" if name != "flag" else "5"))
    assert (verdict.score, verdict.kind, verdict.answer) == (score, kind, answer)
    assert type(verdict.score) is float


def test_feedback(judge) -> None:
    assert judge("whole").rate(TASK, Rollout(output="6")).feedback == "Half."
    own = judge("number").rate(TASK, Rollout(output="6")).feedback
    assert own == "The scorer gave 0.25; the expected answer is '5'."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", "returned None, not a number"),
        ("text", "returned '0.5', not a number"),
        ("no_score", "not a number or a dict with one"),
        ("odd_key", "unknown key 'feedbak' .did you mean 'feedback'"),
        ("odd_kind", "kind='error' is none of right, wrong"),
    ],
)
def test_a_broken_promise_is_a_score_error(judge, name: str, message: str) -> None:
    with pytest.raises(ScoreError, match=message) as caught:
        judge(name).rate(TASK, Rollout(output="6"))
    assert f"judge.function=scorers_of_a_user:{name}" in str(caught.value)


def test_what_the_function_raises_names_task_and_place(judge) -> None:
    with pytest.raises(JudgeFailed, match="judge: raised ZeroDivisionError on task 't'") as caught:
        judge("broken").rate(TASK, Rollout(output="6"))
    assert "scorers_of_a_user.py" in str(caught.value)


def test_a_score_that_is_no_number_is_left_to_the_rollouts(judge) -> None:
    assert judge("nan").rate(TASK, Rollout(output="6")).score != 0.0


def test_a_blank_output_is_not_handed_over(judge) -> None:
    verdict = judge("broken").rate(TASK, Rollout(output=" "))
    assert (verdict.score, verdict.kind) == (0.0, Kind.NO_RESPONSE)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("scorers_of_a_user", "must be written module:function"),
        ("scorers_of_a_user:", "must be written module:function"),
        (":number", "must be written module:function"),
        ("scorers_of_nobody:number", "can't be imported: ModuleNotFoundError"),
        ("scorers_of_a_user:numbr", "can't be imported: AttributeError"),
        ("scorers_that_fail:number", "can't be imported: RuntimeError: two lines"),
        ("scorers_of_a_user:three", r"must be a function of \(task, output\)"),
        ("scorers_of_a_user:constant", r"must be a function of \(task, output\)"),
    ],
)
def test_refused_in_one_line(folder: Path, function: str, message: str) -> None:
    node = {"_target_": "opro.judges.python.Python", "function": function}
    with pytest.raises(ConfigError, match=message) as caught:
        build(node, "judge", launch_folder=folder)
    assert str(caught.value).startswith(f"judge.function={function}: ")
    assert "\n" not in str(caught.value)


def test_a_users_file_shadows_no_package(folder: Path, judge) -> None:
    judge("number")
    assert sys.path.index(str(folder)) > 0
