"""An evolver's doors, as the trainer opens them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opro.calls import Calls
from opro.errors import CallFailed, ConfigError
from opro.pool import Pool
from opro.rollouts import Job, Rollouts
from opro.slim import slim
from opro.types import Completion, Dataset, Evaluation, Request, Split, Task

ATTEMPTS = 2
"""A failed optimizer call is tried once more, then dropped."""


class StepContext:
    """What one step may do; see `opro.evolvers.base.Context`."""

    def __init__(
        self, dataset: Dataset, rollouts: Rollouts, optimizer: Calls, pool: Pool, steps: int
    ) -> None:
        self._full = dataset
        self._rollouts = rollouts
        self._optimizer = optimizer
        self._pool = pool
        self._samples: dict[tuple[str, str], int] = {}
        self.step = 0
        self.steps = steps
        self.seen: dict[tuple[str, str], Evaluation] = {}
        self.dataset = replace(dataset, val=_blind(dataset.val), test=_blind(dataset.test))

    def run_agent(
        self,
        instructions: Sequence[str],
        *,
        phase: str,
        split: Split = "train",
        task_ids: Sequence[str] | None = None,
    ) -> list[Evaluation]:
        """Run instructions on tasks for the evolver; the mean alone for validation."""
        if split == "test":
            raise ConfigError("evolver: may not see the test split")
        tasks = self._full.split(split)
        if task_ids is not None:
            wanted = set(task_ids)
            tasks = tuple(task for task in tasks if task.id in wanted)
        found = self.measure(instructions, phase=phase, split=split, tasks=tasks)
        return [replace(one, results=()) for one in found] if split == "val" else found

    def measure(
        self,
        instructions: Sequence[str],
        *,
        phase: str,
        split: Split,
        tasks: tuple[Task, ...] | None = None,
    ) -> list[Evaluation]:
        """Run instructions on a split (or a part) and keep what it gave for the report."""
        whole = self._full.split(split)
        tasks = whole if tasks is None else tasks
        jobs = [
            Job(
                instruction=text,
                tasks=tasks,
                at=(self.step, phase),
                split=split,
                sample=self._sample(text, split),
            )
            for text in instructions
        ]
        found = self._rollouts.evaluate(jobs)
        if len(tasks) == len(whole):
            for one in found:
                if one.mean is not None:
                    self.seen.setdefault((split, one.md5), slim(one))
        return found

    def _sample(self, instruction: str, split: Split) -> int:
        """Number the measurements of one instruction on one split: a re-score is a new sample."""
        key = (split, instruction)
        number = self._samples.get(key, 0)
        self._samples[key] = number + 1
        return number

    def ask(
        self, requests: Sequence[Request], *, phase: str = "optimizer"
    ) -> list[Completion | CallFailed]:
        """Send all requests at once, each failed one once more."""
        replies: dict[int, Completion | CallFailed] = {}
        missing = []
        for index, request in enumerate(requests):
            call = _Call(at=(self.step, phase, index), request=request)
            known = self._recorded(call)
            if known is None:
                missing.append(call)
            else:
                replies[index] = known
        for index, reply in self._pool.each(self._ask_one, missing):
            if isinstance(reply, Exception) and not isinstance(reply, CallFailed):
                self._optimizer.till.stop.request(reply)
            else:
                replies[index] = reply
        self._optimizer.till.stop.check()
        return [replies[index] for index in range(len(requests))]

    def _recorded(self, call: _Call) -> Completion | CallFailed | None:
        """Return how a call ended by the journal; None when it must still be made."""
        failure = None
        for call.attempt in range(1, ATTEMPTS + 1):
            try:
                return self._optimizer.replay((*call.at, call.attempt))
            except CallFailed as error:
                failure = error
        return failure

    def _ask_one(self, call: _Call) -> tuple[int, Completion | Exception]:
        failure: Exception = CallFailed("error", "never asked")
        for attempt in range(call.attempt, ATTEMPTS + 1):
            try:
                return call.at[2], self._optimizer.complete((*call.at, attempt), call.request)
            except CallFailed as error:
                failure = error
            except Exception as error:
                return call.at[2], error
        return call.at[2], failure


@dataclass(kw_only=True)
class _Call:
    """One optimizer call: its step, phase and number, and the attempt to begin with."""

    at: tuple[int, str, int]
    request: Request
    attempt: int = 1


def _blind(tasks: Sequence[Task]) -> tuple[Task, ...]:
    return tuple(Task(id=task.id, fields={}) for task in tasks)
