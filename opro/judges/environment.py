"""Judge `environment`: the score that the run's own environment gave, e.g. a container's check.

Rule: the rollout's `score` is the score and its `reason` the feedback, also when the output is
blank (an agent that edits files may print nothing). A run that a limit ended was checked all the
same: it is right when its check says so, else it stays a limit with the check's score. A run whose
environment reported no score is unparsed: 0.
"""

from __future__ import annotations

from opro.judges.base import Ask, Judge
from opro.types import Kind, Rollout, Task, Verdict


class Environment(Judge):
    """Reports a rollout's own score."""

    def __init__(self) -> None:
        """Take no settings; without this, `object.__init__` would seem to take any."""

    def rate(self, task: Task, rollout: Rollout, ask: Ask | None = None) -> Verdict:
        """Rate one run; a run that reached its check is rated by it, whatever it printed."""
        if rollout.score is not None and rollout.kind in (None, Kind.TRUNCATED, Kind.LIMIT):
            return self.judge(task, rollout, ask)
        return super().rate(task, rollout, ask)

    def judge(self, task: Task, rollout: Rollout, ask: Ask | None) -> Verdict:
        """Report the score of the run's environment."""
        if rollout.score is None:
            return self.failed(task, Kind.UNPARSED, "the run's environment reported no score")
        reason = rollout.reason.strip().rstrip(".")
        text = self._sentence(reason or f"the task's own check gave {rollout.score:g}", task)
        short = Kind.LIMIT if rollout.kind is Kind.LIMIT else Kind.WRONG
        return Verdict(
            score=float(rollout.score),
            kind=Kind.RIGHT if rollout.score >= 1.0 else short,
            answer=rollout.output.strip() or None,
            feedback=text,
        )
