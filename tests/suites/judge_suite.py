"""What every judge must do; one function for one promise, each given a sample of the judge.

A judge that needs no settings and rates answers as plain text, numbers or letters needs nothing
here: a sample that fits is found by itself. Others get an entry in `SAMPLES`.
"""

from __future__ import annotations

import inspect
import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from opro.errors import ConfigError
from opro.judges.base import Ask, Judge
from opro.setup.config import build
from opro.types import Completion, Kind, Request, Rollout, Task, Verdict

BLANKS = ("", "   ", "\n\t\r\n", "\u00a0\u2003")
HOSTILE = (
    "\x00",
    "a\x00b 5 (B)",
    "\ud800 5 \udfff",
    "\u202eevitisop si rewsna eht\u202c",
    "مرحبا الجواب هو ٥",
    "😀👩‍👩‍👧‍👦🏳️‍🌈",
    "<script>alert('5')</script><b>(B)</b>",
    "${oc.env:HOME} {0} {output} %s %(x)s $(id) `id`",
    '{"answer": "5", "a": [1, 2',
    "'; DROP TABLE runs; --",
    "\u0130 \u017f \ufb01 \u2168 ² ½ ٣ Ⅷ",
    "((((" * 50,
    "1/0 0/0 1e999 -inf nan 1e-999",
    "9" * 5000,
    "\\boxed{" * 50,
)
LARGE = "".join(
    (part * (80_000 // len(part)))
    for part in (
        *("9", "1,000,", "answer: ", "the answer to ", "(A ", "**1 ", "\\boxed{", "####", "- "),
        *(" ", "\n", "(", "A.\n", "positive "),
    )
)
SECONDS = 8.0
"""For a megabyte: far above what is needed, far below what a quadratic pattern takes."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A task with a right and a wrong rollout, and the settings that the judge can't do without."""

    task: Task
    right: Rollout
    wrong: Rollout
    settings: dict[str, Any] = field(default_factory=dict)
    ask: Ask | None = None


def equal(task: Task, output: str) -> float:
    """Rate for judge=python."""
    return float(output == task.answer)


def grade(request: Request) -> Completion:
    """Rate for judge=llm, as a model would."""
    right = "<output>\n5\n</output>" in request.messages[-1].content
    return Completion(text=f"Seen.\nVERDICT: {'right' if right else 'wrong'}")


def _plain(answer: str, wrong: str, **extra: Any) -> Sample:
    return Sample(
        task=Task(id="t", fields={"question": "Which?"}, answer=answer, extra=extra),
        right=Rollout(output=answer),
        wrong=Rollout(output=wrong),
    )


GENERIC = (
    _plain("5", "7"),
    _plain("B", "C", choices=["west", "east", "north", "south"]),
    _plain("positive", "negative", labels=["positive", "negative"]),
)
_ENTRY = {"question": "Legs of a dog?", "answer": "4", "metadata": {"total_legs": 4}}
SAMPLES = {
    "label": GENERIC[2],
    "upstream_bool": _plain("True", "False"),
    "upstream_choice": GENERIC[1],
    "upstream_bbh": _plain("5", "7", task="object_counting"),
    "python": replace(GENERIC[0], settings={"function": "tests.suites.judge_suite:equal"}),
    "llm": replace(GENERIC[0], ask=grade),
    "environment": Sample(
        task=Task(id="t", fields={"question": "Mend it."}),
        right=Rollout(output="done", score=1.0),
        wrong=Rollout(output="done", score=0.0, reason="check exited with 1"),
    ),
    "reasoning_gym": _plain("4", "5", dataset="leg_counting", entry=_ENTRY),
}


def from_yaml(path: Path, /, **settings: Any) -> Judge:
    """Build the judge of one YAML file, checked as a run's configuration is."""
    node = OmegaConf.to_container(OmegaConf.load(path))
    judge = build({**node, **settings}, "judge")
    assert isinstance(judge, Judge)
    return judge


def sample_of(path: Path) -> tuple[Judge, Sample]:
    """Return the judge of one YAML file with a sample that it accepts."""
    for sample in (SAMPLES[path.stem],) if path.stem in SAMPLES else GENERIC:
        judge = from_yaml(path, **sample.settings)
        try:
            judge.prepare((sample.task,))
            judge.check(sample.task)
        except ConfigError:
            continue
        return judge, sample
    raise AssertionError(f"no sample fits {path.name}: add one to tests/suites/judge_suite.py")


def check_yaml(path: Path, judge: Judge) -> None:
    """Hold that the file shows every setting, each line or block with a comment."""
    node = OmegaConf.to_container(OmegaConf.load(path))
    arguments = dict(inspect.signature(type(judge)).parameters)
    arguments.pop("launch_folder", None)  # given by the run, not by the configuration
    assert set(node) - {"_target_"} == set(arguments)
    assert all(argument.kind is argument.KEYWORD_ONLY for argument in arguments.values())
    lines = path.read_text("utf-8").splitlines()
    keys = [line for line in lines if line[:1].isalpha() or line.startswith("_")]
    for line in keys:
        before = lines[lines.index(line) - 1]
        assert "#" in line or before.startswith("#"), line


def check_right_and_wrong(judge: Judge, sample: Sample) -> None:
    """Hold that a right answer scores 1, a wrong one 0 with feedback that names the right one."""
    right = judge.rate(sample.task, sample.right, sample.ask)
    assert (right.score, right.kind) == (1.0, Kind.RIGHT)
    assert right.answer
    wrong = judge.rate(sample.task, sample.wrong, sample.ask)
    assert (wrong.score, wrong.kind) == (0.0, Kind.WRONG)
    assert wrong.feedback
    assert judge.expected(sample.task) in wrong.feedback
    check_verdict(right), check_verdict(wrong)


def check_blank(judge: Judge, sample: Sample) -> None:
    """Hold that a blank output never scores 1, whatever the expected answer is."""
    for answer in (sample.task.answer, "", "  ", None):
        task = replace(sample.task, answer=answer)
        for blank in BLANKS:
            verdict = judge.rate(task, Rollout(output=blank), sample.ask)
            assert (verdict.score, verdict.kind) == (0.0, Kind.NO_RESPONSE)
            assert verdict.answer is None and verdict.feedback
        check_verdict(judge.rate(task, Rollout(output="7"), sample.ask))


def check_ends(judge: Judge, sample: Sample) -> None:
    """Hold that an agent's own end keeps kind and reason, and that a cut answer still counts."""
    for kind in (Kind.REFUSAL, Kind.NO_RESPONSE, Kind.LIMIT):
        ended = Rollout(output=sample.right.output, kind=kind, reason="because it so happened")
        verdict = judge.rate(sample.task, ended, sample.ask)
        assert (verdict.score, verdict.kind) == (0.0, kind)
        assert "so happened" in verdict.feedback
    cut = replace(sample.right, kind=Kind.TRUNCATED)
    assert judge.rate(sample.task, cut, sample.ask).score == 1.0
    nothing = Rollout(output="", kind=Kind.UNPARSED, reason="the thinking block was never closed")
    assert judge.rate(sample.task, nothing, sample.ask).kind is Kind.UNPARSED


def check_hostile(judge: Judge, sample: Sample) -> None:
    """Hold that no text makes a judge fail, hang or leave its range."""
    for text in HOSTILE:
        check_verdict(judge.rate(sample.task, Rollout(output=text), sample.ask))
        for task in (replace(sample.task, answer=text), replace(sample.task, answer=0)):
            check_verdict(judge.rate(task, Rollout(output=text), sample.ask))
    start = time.perf_counter()
    verdict = judge.rate(sample.task, Rollout(output=LARGE), sample.ask)
    assert time.perf_counter() - start < SECONDS
    check_verdict(verdict)
    assert len(verdict.feedback) < 10_000


def check_threads(judge: Judge, sample: Sample) -> None:
    """Hold that ratings depend on nothing but their arguments, from many threads at once."""
    rollouts = [sample.right, sample.wrong, *(Rollout(output=text) for text in HOSTILE)] * 3

    def rate(rollout: Rollout) -> Verdict:
        return judge.rate(sample.task, rollout, sample.ask)

    before = {name: repr(value) for name, value in vars(judge).items()}
    alone = [rate(rollout) for rollout in rollouts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(rate, rollouts)) == alone
    assert list(map(rate, reversed(rollouts))) == alone[::-1]
    assert {name: repr(value) for name, value in vars(judge).items()} == before


def check_verdict(verdict: Verdict) -> None:
    """Hold what opro.types promises of any verdict."""
    assert isinstance(verdict.score, float) and math.isfinite(verdict.score)
    assert 0.0 <= verdict.score <= 1.0
    assert verdict.kind in set(Kind) - {Kind.ERROR}
    assert (verdict.kind is Kind.RIGHT) == (verdict.score == 1.0)
    assert verdict.answer is None or isinstance(verdict.answer, str)
    assert verdict.kind is not Kind.UNPARSED or verdict.score == 0.0
    verdict.feedback.encode("utf-8")  # a lone surrogate is shown as an escape
    assert verdict.feedback
