"""What an agent promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from opro.types import Completion, Position, Request, Rollout, Task

Ask = Callable[[Request], Completion]


@dataclass(frozen=True, kw_only=True)
class Session:
    """One run's doors to the world.

    Attributes:
        ask: asks the acting model; journaled by turn and metered. Raises CallFailed.
        position: where in the run this is; unique for each attempt.
        run_name, sweep: the names of the run (as the tracker shows it) and of its sweep ('' for
            none), for labels.
        attempt: 1, or 2 after an infrastructure failure.
    """

    ask: Ask
    position: Position
    run_name: str = ""
    sweep: str = ""
    attempt: int = 1


class Agent(ABC):
    """Acts on one task under one instruction. Called from many threads at once.

    The rollouts call `run` for each (instruction, task) pair; what it returns is journaled and
    then judged. A failure of the infrastructure (endpoint, daemon, container) is returned as a
    rollout of kind ERROR with its reason: it is run once more. A `CallFailed` that leaves `run`
    is taken as exactly that. Any other exception is a bug and stops the run.
    """

    max_calls: int = 1
    """The most model calls of one run, for the plan and the budget's forecast."""

    needs_llm: bool = True
    """Whether it asks the acting model at all."""

    def check(self, tasks: tuple[Task, ...]) -> None:
        """Raise ConfigError if the tasks can't be run (missing image, wrong field); no cost."""
        return

    @abstractmethod
    def run(self, instruction: str, task: Task, session: Session) -> Rollout:
        """Run `task` under `instruction` and return what came out."""

    def close(self) -> None:
        """Release what the agent holds; called once, also after Ctrl-C."""
        return
