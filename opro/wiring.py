"""Connects a run's parts: who asks whom, through which counters."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from opro.agents.base import Agent
from opro.budget import Budget
from opro.calls import Cache, Calls, Gate, Till
from opro.context import StepContext
from opro.journal import Journal
from opro.llms.base import LLM
from opro.meter import Meter
from opro.pool import Pool
from opro.progress import Progress
from opro.records import RunInfo
from opro.rollouts import Crew, Rollouts
from opro.setup.assembly import Assembly, Scoring
from opro.stop import Stop


class Doors:
    """The ways to an assembly's models and to scoring; nothing is sent or started yet.

    Args:
        scoring: the parts.
        info: says what the run is called.
        journal: of the run.
        on_answer: called with the role after each answer.
        cache: answers shared with other runs; None: none.
    """

    def __init__(
        self,
        scoring: Scoring,
        info: RunInfo,
        journal: Journal,
        on_answer: Callable[[str], None],
        cache: Cache | None = None,
    ) -> None:
        self.meter = Meter(on_answer=on_answer)
        self.stop = Stop()
        self.pool = Pool(scoring.settings.concurrency)
        self._till = Till(
            journal=journal,
            budget=Budget(scoring.settings.budget),
            meter=self.meter,
            stop=self.stop,
            cache=cache,
        )
        self._gates = {id(llm): Gate(llm) for llm in scoring.llms}
        self._agent = _agent(scoring)
        crew = Crew(
            agent=self._agent,
            judge=scoring.judge,
            agent_calls=self.calls(scoring.agent_llm, "agent"),
            judge_calls=self.calls(scoring.judge_llm, "judge"),
            run_name=info.name,
            sweep=info.sweep,
        )
        self.rollouts = Rollouts(crew, self.pool, self._till)

    def calls(self, llm: LLM | None, role: str) -> Calls | None:
        """Return the door to one of the assembly's models in a role; None for no model."""
        return None if llm is None else Calls(self._gates[id(llm)], role, self._till)

    def close(self) -> None:
        """Release what the agent holds, and end the models that were started."""
        with contextlib.ExitStack() as stack:
            stack.callback(self.pool.close)
            for gate in self._gates.values():
                stack.callback(gate.close)
            self._agent.close()


def _agent(scoring: Scoring) -> Agent:
    if scoring.settings.backend == "threads":
        return scoring.agent
    from opro.remote import RemoteAgent  # late: few runs need it

    return RemoteAgent(scoring.agent, scoring.agent_spec, scoring.settings)


@dataclass(frozen=True, kw_only=True)
class Wires:
    """The connected parts of one run."""

    context: StepContext
    meter: Meter
    stop: Stop
    doors: Doors

    def close(self) -> None:
        """End the models that were started."""
        self.doors.close()


def connect(
    assembly: Assembly,
    info: RunInfo,
    journal: Journal,
    progress: Progress,
    cache: Cache | None = None,
) -> Wires:
    """Return the parts of one run, connected; nothing is sent or started yet."""
    doors = Doors(assembly, info, journal, progress.call_done, cache)
    optimizer = doors.calls(assembly.optimizer, "optimizer")
    assert optimizer is not None  # an assembly has one
    context = StepContext(
        assembly.dataset, doors.rollouts, optimizer, doors.pool, assembly.settings.epochs
    )
    return Wires(context=context, meter=doors.meter, stop=doors.stop, doors=doors)
