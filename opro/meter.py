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
        self._requests = self._cache_hits = self._replayed = 0

    def request(self) -> None:
        """Count one request sent."""
        with self._lock:
            self._requests += 1

    def fault(self, kind: str) -> None:
        """Count one attempt without a usable answer."""
        with self._lock:
            self._faults[kind] += 1

    def answer(self, role: str, completion: Completion, *, replayed: bool) -> None:
        """Count one answer that the run uses, whoever gave it."""
        with self._lock:
            self._roles[role] = add(self._roles.get(role), completion.usage)
            self._replayed += replayed
            self._cache_hits += completion.cached and not replayed
        self._on_answer(role)

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
            )


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
