"""Connects a run's parts: who asks whom, through which counters."""

from __future__ import annotations

from dataclasses import dataclass, field

from opro.assembly import Assembly
from opro.budget import Budget
from opro.calls import Calls, Gate, Till
from opro.context import StepContext
from opro.journal import Journal
from opro.llms.base import LLM
from opro.meter import Meter
from opro.pool import Pool
from opro.progress import Progress
from opro.rollouts import Crew, Rollouts
from opro.stop import Stop


@dataclass(frozen=True, kw_only=True)
class Wires:
    """The connected parts of one run.

    Attributes:
        gates: one per distinct model; closed at the end.
    """

    context: StepContext
    meter: Meter
    stop: Stop
    gates: list[Gate] = field(default_factory=list)

    def close(self) -> None:
        """End the models that were started."""
        for gate in self.gates:
            gate.close()


def connect(assembly: Assembly, journal: Journal, progress: Progress) -> Wires:
    """Return the parts of one run, connected; nothing is sent or started yet."""
    meter = Meter(on_answer=progress.call_done)
    stop = Stop()
    till = Till(journal=journal, budget=Budget(assembly.settings.budget), meter=meter, stop=stop)
    gates = {id(llm): Gate(llm) for llm in assembly.llms}

    def calls(llm: LLM | None, role: str) -> Calls | None:
        return None if llm is None else Calls(gates[id(llm)], role, till)

    pool = Pool(assembly.settings.concurrency)
    crew = Crew(
        agent=assembly.agent,
        judge=assembly.judge,
        agent_calls=calls(assembly.agent_llm, "agent"),
        judge_calls=calls(assembly.judge_llm, "judge"),
        run_name=assembly.settings.run_name,
    )
    context = StepContext(
        assembly.dataset,
        Rollouts(crew, pool, till),
        Calls(gates[id(assembly.optimizer)], "optimizer", till),
        pool,
        assembly.settings.epochs,
    )
    return Wires(context=context, meter=meter, stop=stop, gates=list(gates.values()))
