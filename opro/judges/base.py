"""What a judge promises."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from opro.errors import CallFailed, OproError
from opro.text import clip
from opro.types import Completion, Kind, Request, Rollout, Task, Verdict

Ask = Callable[[Request], Completion]
"""Asks the judge's model; journaled and metered. Raises CallFailed."""

SHOWN = 200
"""Characters of a given answer that feedback quotes; an output can be a megabyte."""


class JudgeFailed(CallFailed):
    """A judge raised on one output, so that run has no score; its text ends with the traceback."""

    HEAD = "judge: raised "

    @classmethod
    def by(cls, error: Exception, task_id: str) -> JudgeFailed:
        """Return the failure of the run on a task, by what the judge raised."""
        trace = "".join(traceback.format_exception(error))
        what = " ".join(f"{type(error).__name__} on task {task_id!r}: {error}".split())
        return cls("judge", f"{cls.HEAD}{what}\n{trace}")


class Judge(ABC):
    """Rates outputs. Called from many threads at once; must not keep state between calls.

    The rollouts call `rate` once for each run that did not fail. What `judge` raises is no score:
    that run has failed, like one whose endpoint did, and leaves its instruction unscored. Only a
    broken promise (`ScoreError`), or raising on every task of the first instruction, stops the
    search.
    """

    max_calls: int = 0
    """The most model calls of one rating, for the plan and the budget's forecast."""

    needs_llm: bool = False
    """Whether it asks a model (`judge.llm`, which follows `llm` unless set)."""

    def prepare(self, tasks: Sequence[Task]) -> None:
        """Learn what all tasks have in common (a label set); called once, before `check`."""
        return

    def check(self, task: Task) -> None:
        """Raise ConfigError if this judge can never rate `task`; called before any call."""
        return

    def rate(self, task: Task, rollout: Rollout, ask: Ask | None = None) -> Verdict:
        """Rate one run: blank or failed output scores 0 by its kind, all else goes to `judge`.

        A truncated output is still judged: an answer before the cut counts; without one the
        kind stays `truncated`.

        Raises:
            JudgeFailed: `judge` raised something else than one of our errors.
        """
        if rollout.kind in (Kind.REFUSAL, Kind.NO_RESPONSE, Kind.LIMIT):
            reason = rollout.reason or rollout.kind.value
            return self.failed(task, rollout.kind, reason)
        if not rollout.output.strip():
            kind = rollout.kind or Kind.NO_RESPONSE
            return self.failed(task, kind, rollout.reason or "the output is empty")
        try:
            verdict = self.judge(task, rollout, ask)
        except OproError:
            raise
        except Exception as error:
            raise JudgeFailed.by(error, task.id) from error
        if verdict.kind is Kind.UNPARSED and rollout.kind is Kind.TRUNCATED:
            return self.failed(task, Kind.TRUNCATED, rollout.reason)
        return verdict

    @abstractmethod
    def judge(self, task: Task, rollout: Rollout, ask: Ask | None) -> Verdict:
        """Rate `rollout.output`, which is not blank."""

    def expected(self, task: Task) -> str:
        """Return the expected answer as a person would write it, or '' if there is none."""
        return "" if task.answer is None else str(task.answer)

    def failed(self, task: Task, kind: Kind, reason: str) -> Verdict:
        """Return a 0 with a kind other than `wrong`, naming the reason and the expected answer."""
        return Verdict(score=0.0, kind=kind, answer=None, feedback=self._sentence(reason, task))

    def verdict(self, task: Task, answer: str | None, score: float) -> Verdict:
        """Return the verdict for an answer found (or not: unparsed)."""
        if answer is None:
            return self.failed(task, Kind.UNPARSED, "no answer could be read from the output")
        kind = Kind.RIGHT if score >= 1.0 else Kind.WRONG
        text = self._sentence(f"the answer given was {clip(answer, SHOWN)!r}", task)
        return Verdict(score=score, kind=kind, answer=answer, feedback=text)

    def _sentence(self, reason: str, task: Task) -> str:
        expected = self.expected(task)
        tail = f"; the expected answer is {expected!r}" if expected else ""
        return f"{reason[:1].upper()}{reason[1:]}{tail}."
