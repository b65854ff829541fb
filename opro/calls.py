"""The one door to a model: journal, cache, budget, limit, retries, counts."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, replace
from typing import Protocol

from opro.budget import Budget
from opro.entries import from_entry, to_entry
from opro.errors import BudgetExceeded, CallFailed, FatalEndpointError, Interrupted
from opro.journal import Journal
from opro.llms.base import LLM
from opro.llms.faults import LARGER_CAP, Fault
from opro.meter import Meter
from opro.stop import Stop
from opro.types import Completion, Position, Request, Usage

FIRST_WAIT = 0.25
"""Seconds before the first retry when the endpoint names none; doubles up to `LONGEST_WAIT`."""
LONGEST_WAIT = 20.0


class Cache(Protocol):
    """Answers shared between jobs and runs; see `opro.cache`."""

    def key(self, llm: LLM, request: Request) -> bytes | None:
        """Return what names the request; None: it isn't to be answered from the cache."""

    def get(self, key: bytes, stop: Stop) -> Completion | None:
        """Return the stored answer; None: it is the caller's to ask, and then to `put`."""

    def put(self, key: bytes, completion: Completion | None) -> None:
        """Store an answer, or None when there was none."""


@dataclass(frozen=True, kw_only=True)
class Till:
    """What all calls of a run share.

    Attributes:
        cache: None when off.
    """

    journal: Journal
    budget: Budget
    meter: Meter
    stop: Stop
    cache: Cache | None = None


class Gate:
    """The way to one model, shared by its roles: starts it at need, holds its limit."""

    def __init__(self, llm: LLM) -> None:
        self.llm = llm
        self.slots = threading.BoundedSemaphore(llm.max_in_flight)
        self._lock = threading.Lock()
        self._started = False

    def start(self) -> None:
        """Start the model before its first request; a run answered from its journal needs none."""
        with self._lock:
            if not self._started:
                self.llm.start()
                self._started = True

    def close(self) -> None:
        """End what was started."""
        self.llm.close()


class Calls:
    """One model in one role (`optimizer`, `agent`, `judge`). Thread-safe."""

    def __init__(self, gate: Gate, role: str, till: Till) -> None:
        self.llm = gate.llm
        self.role = role
        self.till = till
        self._gate = gate

    def complete(self, at: Position, request: Request) -> Completion:
        """Return the answer at a position: from the journal, the cache, or the endpoint.

        Raises:
            CallFailed: no usable answer, retries included (journaled, so a resume agrees).
            FatalEndpointError, BudgetExceeded, Interrupted: the run must end; not journaled.
        """
        completion = self.replay(at)
        if completion is not None:
            return completion
        try:
            completion = self._ask(request)
        except CallFailed as error:
            entry = {"error": error.kind, "message": str(error), "attempts": error.attempts}
            self.till.journal.put(at, entry)
            raise
        self.till.journal.put(at, to_entry(completion))
        self.till.meter.answer(self.role, completion, replayed=False, asked=self.llm.model)
        return completion

    def replay(self, at: Position) -> Completion | None:
        """Return the journal's answer at a position, counted as when it was given; None: none.

        Raises:
            CallFailed: as it was recorded.
        """
        entry = self.till.journal.get(at)
        if entry is None:
            return None
        if "error" in entry:
            attempts = entry.get("attempts", 0)
            self.till.budget.replay(Usage(), attempts)
            raise CallFailed(entry["error"], entry["message"], attempts)
        completion = from_entry(entry)
        if completion.cached:
            self.till.budget.replay(Usage(), 0)
        else:
            self.till.budget.replay(completion.usage, completion.attempts)
        self.till.meter.answer(self.role, completion, replayed=True, asked=self.llm.model)
        return completion

    def _ask(self, request: Request) -> Completion:
        """Return the cache's answer, or the endpoint's, which the cache then gets."""
        cache = self.till.cache
        key = None if cache is None else cache.key(self.llm, request)
        if cache is None or key is None:
            return self._live(request)
        completion = cache.get(key, self.till.stop)
        if completion is not None:
            return completion
        try:
            completion = self._live(request)
        finally:
            cache.put(key, completion)
        return completion

    def _live(self, request: Request) -> Completion:
        """Send until there is an answer, a fault that isn't retried, or no retry left."""
        attempt, asked = 0, request
        while True:
            attempt += 1
            try:
                completion = self._send(request)
            except Fault as fault:
                if fault.kind == "closed":  # by us, since the run is ending: not an answer
                    self.till.stop.check()
                    raise Interrupted(fault.message) from None
                self._count(fault)
                if fault.rule.larger_cap and fault.completion is not None:
                    if request is not asked or asked.max_tokens is None:
                        return replace(fault.completion, attempts=attempt)
                    request = replace(asked, max_tokens=asked.max_tokens * LARGER_CAP)
                    continue
                if fault.rule.fatal:
                    self._fatal(fault)
                if not fault.rule.retry or attempt > self.llm.retries:
                    text = f"{self.role}: {fault.message}"
                    raise CallFailed(fault.kind, text, attempt) from None
                self.till.stop.wait(self._delay(fault, attempt))
                continue
            self.till.budget.charge(completion.usage)
            if request is not asked:
                note = f"max_tokens {request.max_tokens}: {asked.max_tokens} left no text"
                completion = replace(completion, notes=(*completion.notes, note))
            return replace(completion, attempts=attempt)

    def _send(self, request: Request) -> Completion:
        self.till.journal.check_open()
        with self._gate.slots:
            self.till.stop.check()
            self._gate.start()
            try:
                self.till.budget.reserve()
            except BudgetExceeded as error:
                self.till.stop.request(error)
                raise
            self.till.meter.request()
            return self.llm.send(request)

    def _count(self, fault: Fault) -> None:
        self.till.meter.fault(fault.kind)
        self.till.budget.charge(fault.usage)

    def _fatal(self, fault: Fault) -> None:
        error = FatalEndpointError(f"{self.role} ({fault.kind}): {fault.message}")
        self.till.stop.request(error)
        raise error

    def _delay(self, fault: Fault, attempt: int) -> float:
        if fault.retry_after is not None:
            return fault.retry_after
        longest: float = min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT)
        # Jitter keeps the retries of one outage apart; it can't change any result.
        return longest * random.Random().uniform(0.5, 1.0)
