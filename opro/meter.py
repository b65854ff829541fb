"""Counts what a run asks and gets; feeds progress, metrics and reports."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from opro.records import Totals
from opro.types import Completion, Kind, Usage


class Meter:
    """Thread-safe counters of one run.

    Args:
        on_answer: called with the role after each answer (live progress).
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        on_answer: Callable[[str], None] = lambda role: None,
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self._on_answer = on_answer
        self._roles: dict[str, Usage] = {}
        self._faults: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._models: dict[str, Counter[str]] = {}
        self._remarks: Counter[str] = Counter()
        self._requests = self._cache_hits = self._replayed = 0

    def request(self) -> None:
        """Count one request sent."""
        with self._lock:
            self._requests += 1

    def fault(self, kind: str) -> None:
        """Count one attempt without a usable answer."""
        with self._lock:
            self._faults[kind] += 1

    def answer(self, role: str, completion: Completion, *, replayed: bool, asked: str = "") -> None:
        """Count one answer that the run uses, whoever gave it.

        Args:
            role: who asked.
            completion: the answer.
            replayed: it was taken from the run's journal.
            asked: the model that was asked for; '' for whichever.
        """
        with self._lock:
            for note in completion.notes:
                self._remarks[f"{role}: {note}"] += 1
            if completion.model:
                self._note_model(role, completion.model, asked)
            self._roles[role] = add(self._roles.get(role), completion.usage)
            self._replayed += replayed
            self._cache_hits += completion.cached and not replayed
        self._on_answer(role)

    def _note_model(self, role: str, model: str, asked: str) -> None:
        """Count the model that answered; remark on one that isn't known by the name asked for.

        A version behind the name (`m-2025-01-31`) or an owner before it is no other model.
        """
        models = self._models.setdefault(role, Counter())
        models[model] += 1
        if asked and asked not in model and model not in asked:
            self._remarks[f"{role}: {asked} was asked for, the endpoint says {model} answered"] += 1

    def run(self, kind: Kind) -> None:
        """Count one scored (or failed) run of the agent."""
        with self._lock:
            self._kinds[kind.value] += 1

    def totals(self) -> Totals:
        """Return the counts so far."""
        with self._lock:
            return Totals(
                by_role=dict(sorted(self._roles.items())),
                requests=self._requests,
                cache_hits=self._cache_hits,
                replayed=self._replayed,
                faults=dict(sorted(self._faults.items())),
                kinds=dict(sorted(self._kinds.items())),
                seconds=self._clock() - self._began,
                models={role: dict(sorted(n.items())) for role, n in sorted(self._models.items())},
                remarks={**dict(sorted(self._remarks.items())), **self._changes()},
            )

    def _changes(self) -> dict[str, int]:
        """Return a remark on each role whose answers came from several models."""
        return {
            f"{role}: the endpoint changed its model: {', '.join(sorted(models))}": len(models)
            for role, models in sorted(self._models.items())
            if len(models) > 1
        }


def add(total: Usage | None, one: Usage) -> Usage:
    """Return the sum of two usages; a part unknown in either is unknown in the sum."""
    if total is None:
        return one
    return Usage(
        calls=total.calls + one.calls,
        prompt_tokens=_sum(total.prompt_tokens, one.prompt_tokens),
        completion_tokens=_sum(total.completion_tokens, one.completion_tokens),
        # On a grid of 1e-12 dollars a sum doesn't depend on the order of its terms.
        usd=None if total.usd is None or one.usd is None else round(total.usd + one.usd, 12),
    )


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
