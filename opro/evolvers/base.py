"""What an evolver promises, and what it may do in a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from opro.errors import CallFailed
from opro.records import Scored, StepRecord, Validation
from opro.types import Completion, Dataset, Evaluation, Request, Split


class Context(Protocol):
    """An evolver's doors: everything that costs or isn't deterministic goes through here.

    Attributes:
        step: the number of the step, 0, 1, …; -1 in `finalize`.
        steps: how many steps the run has (`trainer.epochs`).
    """

    step: int
    steps: int

    @property
    def dataset(self) -> Dataset:
        """The run's data; validation and test tasks without fields or answers."""

    def run_agent(
        self,
        instructions: Sequence[str],
        *,
        phase: str,
        split: Split = "train",
        task_ids: Sequence[str] | None = None,
    ) -> list[Evaluation]:
        """Run every instruction on every task in one pool, and return them in order.

        Args:
            instructions: distinct texts.
            phase: names this use within the step; the same pairs may not run twice in a phase.
            split: `train` gives per-task results, `val` the mean alone; `test` is refused.
            task_ids: a part of the split; None is all of it.

        Raises:
            BudgetExceeded, Interrupted, RunError: let them pass; what is finished is kept.
        """

    def ask(
        self, requests: Sequence[Request], *, phase: str = "optimizer"
    ) -> list[Completion | CallFailed]:
        """Send all requests to the optimizer model at once; each failed one once more.

        The result has one item per request, in order; the CallFailed of the second failure
        stands for a call that failed.
        """


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What `finalize` hands back."""

    winner: Scored
    select: str
    finalists: tuple[Validation, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlannedCalls:
    """An upper bound of the calls for one purpose.

    Attributes:
        purpose: for people, e.g. `score new instructions`.
        role: `optimizer`, or `agent` for runs of the acting agent.
        count: optimizer calls, or runs of the agent.
    """

    purpose: str
    role: str
    count: int


class Evolver(ABC):
    """Searches for a better instruction.

    The trainer calls `setup` once before any call; then for each step runs `rollout_instructions`
    on the training tasks and gives the evaluations to `step`; `finalize` at the end, also after a
    spent budget. State lives in the evolver and is rebuilt by running the algorithm again from
    the start, answered from the journal: no method may depend on anything but its arguments,
    the context's answers and the evolver's own seed.
    """

    @abstractmethod
    def setup(self, dataset: Dataset, *, step_size: int, steps: int) -> tuple[str, ...]:
        """Check that this search can work and return notices for the user.

        Raises:
            ConfigError: one line, before any call.
        """

    name: str
    """Names the file of its state, `state/<name>.json`."""

    @property
    @abstractmethod
    def initial_instructions(self) -> tuple[str, ...]:
        """The instructions that the search starts from; at least one."""

    @abstractmethod
    def plan(self, dataset: Dataset, *, steps: int, rescore: bool) -> list[PlannedCalls]:
        """Return an upper bound of the calls, by purpose, the trainer's rollouts included."""

    @abstractmethod
    def rollout_instructions(self, step: int) -> tuple[str, ...]:
        """Return what the trainer rolls out before this step: all initial ones at step 0."""

    @abstractmethod
    def step(self, ctx: Context, rollouts: Sequence[Evaluation]) -> StepRecord:
        """Make and score new instructions; `rollouts` is empty where the pass was skipped."""

    @abstractmethod
    def finalize(self, ctx: Context) -> Choice:
        """Return the winner. Must not raise for a spent budget: fall back and say so."""

    @property
    @abstractmethod
    def history(self) -> tuple[Scored, ...]:
        """Every instruction that joined, in order; unscored ones with score None."""

    @abstractmethod
    def state(self) -> str:
        """Return `state/<name>.json`: JSON, the same bytes for the same journal."""
