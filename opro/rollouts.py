"""The single door to scoring: many (instruction, task) pairs in one pool."""

from __future__ import annotations

import itertools
import math
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace

from opro.agents.base import Agent, Session
from opro.calls import Calls, Till
from opro.entries import run_entry, run_of
from opro.errors import BudgetExceeded, CallFailed, OproError, RunError, ScoreError
from opro.judges.base import Judge, JudgeFailed
from opro.pool import Pool
from opro.text import md5_of
from opro.turns import Turns
from opro.types import (
    Evaluation,
    Kind,
    Position,
    Rollout,
    Task,
    TaskResult,
    Verdict,
)

ATTEMPTS = 2
"""A run that fails for infrastructure is run once more; then its instruction is unscored."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One instruction to run on tasks.

    Attributes:
        at: the position that its runs lie under, e.g. `(3, "candidates")`.
        split: the tasks' split, for the position.
        sample: the number of this measurement of the same pairs: 0 for the first, 1 for the
            first re-score, …; equal requests of one sample may share an answer.
    """

    instruction: str
    tasks: tuple[Task, ...]
    at: Position
    split: str
    sample: int = 0


@dataclass(kw_only=True, slots=True)
class _Pair:
    job: int
    index: int
    task: Task
    instruction: str
    at: Position
    sample: int
    attempt: int = 1


@dataclass(frozen=True, kw_only=True)
class Crew:
    """Who does the runs, with the models' calls; run_name and sweep are for its sessions."""

    agent: Agent
    judge: Judge
    agent_calls: Calls | None
    judge_calls: Calls | None
    run_name: str
    sweep: str


class Rollouts:
    """Runs and judges pairs; every run is journaled under its position. Not re-entrant.

    Pairs lie instruction by instruction, so equal prefixes reach the endpoint together; results
    come back in the order asked, whatever the order of arrival.
    """

    def __init__(self, crew: Crew, pool: Pool, till: Till) -> None:
        self.crew = crew
        self.pool = pool
        self.till = till

    def evaluate(self, jobs: Sequence[Job]) -> list[Evaluation]:
        """Run all jobs' pairs in one pool and return one evaluation per job, in their order.

        When the budget is spent on the way, what isn't whole is returned as `cut`.

        Raises:
            Interrupted, FatalEndpointError, ScoreError, RunError: the run must end; the finished
                runs are in the journal.
        """
        md5s = [md5_of(job.instruction) for job in jobs]
        pairs = [
            _Pair(
                job=number,
                index=index,
                task=task,
                instruction=job.instruction,
                at=(*job.at, md5s[number], job.split, task.id),
                sample=job.sample,
            )
            for number, job in enumerate(jobs)
            for index, task in enumerate(job.tasks)
        ]
        found: list[list[TaskResult | None]] = [[None] * len(job.tasks) for job in jobs]
        missing = []
        for pair in pairs:
            left, result = self._recorded(pair)
            if result is None:
                missing.append(left)
            else:
                found[pair.job][pair.index] = result
        for pair, result in self.pool.each(self._run, missing):
            found[pair.job][pair.index] = result
        if not isinstance(self.till.stop.error, BudgetExceeded):
            self.till.stop.check()
        return [_evaluation(job, row) for job, row in zip(jobs, found, strict=True)]

    def _recorded(self, pair: _Pair) -> tuple[_Pair, TaskResult | None]:
        """Return a finished pair's result from the journal, or the pair as it must still run."""
        for attempt in range(1, ATTEMPTS + 1):
            at = (*pair.at, attempt)
            entry = self.till.journal.get((*at, "run"))
            if entry is None:
                return pair if attempt == 1 else replace(pair, attempt=attempt), None
            rollout, verdict = run_of(entry, self._count_turns(at))
            if _is_final(rollout, verdict):
                break
        return pair, self._result(pair, rollout, verdict)

    def _count_turns(self, at: Position) -> str:
        """Count the calls of a finished run from the journal; return the last turn's text."""
        text = ""
        for calls, name in ((self.crew.agent_calls, "turn"), (self.crew.judge_calls, "judge")):
            if calls is None:
                continue
            for number in itertools.count(1):
                try:
                    completion = calls.replay((*at, name, number))
                except CallFailed:
                    break
                if completion is None:
                    break
                if name == "turn":
                    text = completion.text
        return text

    def _run(self, pair: _Pair) -> tuple[_Pair, TaskResult | None]:
        """Run one pair, once more after an infrastructure failure; never raises."""
        try:
            for attempt in range(pair.attempt, ATTEMPTS + 1):
                rollout, verdict = self._attempt(pair, attempt)
                if _is_final(rollout, verdict):
                    break
            return pair, self._result(pair, rollout, verdict)
        except Exception as error:
            self.till.stop.request(_explained(error, pair))
            return pair, None

    def _attempt(self, pair: _Pair, attempt: int) -> tuple[Rollout, Verdict | None]:
        at = (*pair.at, attempt)
        self.till.stop.check()
        self.till.journal.check_open()
        turns = Turns(self.crew.agent_calls, (*at, "turn"), pair.sample, attempt)
        crew = self.crew
        session = Session(
            ask=turns, position=at, run_name=crew.run_name, sweep=crew.sweep, attempt=attempt
        )
        verdict: Verdict | None = None
        try:
            rollout = crew.agent.run(pair.instruction, pair.task, session)
            if rollout.kind is not Kind.ERROR:
                verdict = self._judge(pair, rollout, attempt)
        except CallFailed as error:
            rollout = Rollout(output="", kind=Kind.ERROR, reason=str(error))
        self.till.journal.put((*at, "run"), run_entry(rollout, verdict, turns.last))
        return rollout, verdict

    def _judge(self, pair: _Pair, rollout: Rollout, attempt: int) -> Verdict:
        at = (*pair.at, attempt, "judge")
        ask = Turns(self.crew.judge_calls, at, pair.sample, attempt)
        try:
            verdict = self.crew.judge.rate(pair.task, rollout, ask)
        except OproError:
            raise
        except Exception as error:
            trace = "".join(traceback.format_exception(error))
            raise ScoreError(
                f"judge: raised {type(error).__name__} on task {pair.task.id!r}: {error}\n{trace}"
            ) from error
        score = verdict.score
        if (
            isinstance(score, bool)
            or not isinstance(score, int | float)
            or not (math.isfinite(score) and 0.0 <= score <= 1.0)
        ):
            raise ScoreError(
                f"judge: score {score!r} on task {pair.task.id!r} is not a number in [0, 1]"
            )
        return verdict

    def _result(self, pair: _Pair, rollout: Rollout, verdict: Verdict | None) -> TaskResult:
        result = TaskResult(task_id=pair.task.id, rollout=rollout, verdict=verdict)
        self.till.meter.run(result.kind)
        return result


def _is_final(rollout: Rollout, verdict: Verdict | None) -> bool:
    """Whether a second attempt is no use: there is a verdict, or the judge's own code raised."""
    return verdict is not None or rollout.reason.startswith(JudgeFailed.HEAD)


def _explained(error: Exception, pair: _Pair) -> Exception:
    if isinstance(error, OproError):
        return error
    trace = "".join(traceback.format_exception(error))
    return RunError(
        f"agent: raised {type(error).__name__} on task {pair.task.id!r}: {error}\n{trace}"
    )


def _evaluation(job: Job, row: Sequence[TaskResult | None]) -> Evaluation:
    results = tuple(result for result in row if result is not None)
    failed = tuple(result.task_id for result in results if result.score is None)
    scores = [result.score for result in results if result.score is not None]
    whole = len(scores) == len(row) > 0
    return Evaluation(
        instruction=job.instruction,
        md5=md5_of(job.instruction),
        results=results,
        mean=math.fsum(scores) / len(scores) if whole else None,
        n=len(results),
        failed=failed,
        cut=len(results) < len(row),
    )
