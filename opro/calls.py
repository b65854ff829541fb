"""The one door to a model: journal, cache, budget, limit, retries, counts."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from opro.budget import Budget
from opro.errors import BudgetExceeded, CallFailed, FatalEndpointError, RunError
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
    """Answers shared between jobs and runs."""

    def get(self, llm: LLM, request: Request) -> Completion | None:
        """Return the stored answer to an equal request, or None."""

    def put(self, llm: LLM, request: Request, completion: Completion) -> None:
        """Store an answer."""


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
        if self.till.journal.has(at):
            return self.replay(at)
        try:
            completion = self._cached(request) or self._live(request)
        except CallFailed as error:
            self.till.journal.put(at, {"error": error.kind, "message": str(error)})
            raise
        self.till.journal.put(at, _entry(completion))
        self.till.meter.answer(self.role, completion, replayed=False)
        return completion

    def replay(self, at: Position) -> Completion:
        """Return the journal's answer at a position, counted as when it was given.

        Raises:
            CallFailed: as it was recorded.
        """
        entry = self.till.journal.get(at)
        if entry is None:
            raise RunError(f"the journal has no answer at {at}")
        if "error" in entry:
            raise CallFailed(entry["error"], entry["message"])
        completion = _completion(entry)
        attempts = 0 if completion.cached else completion.attempts
        self.till.budget.replay(completion.usage, attempts)
        self.till.meter.answer(self.role, completion, replayed=True)
        return completion

    def _cached(self, request: Request) -> Completion | None:
        return None if self.till.cache is None else self.till.cache.get(self.llm, request)

    def _live(self, request: Request) -> Completion:
        """Send until there is an answer, a fault that isn't retried, or no retry left."""
        attempt, enlarged = 0, False
        while True:
            attempt += 1
            try:
                completion = self._send(request)
            except Fault as fault:
                self._count(fault)
                if fault.rule.larger_cap and fault.completion is not None:
                    if enlarged or request.max_tokens is None:
                        return self._answered(fault.completion, attempt, request)
                    enlarged = True
                    request = replace(request, max_tokens=request.max_tokens * LARGER_CAP)
                    continue
                if fault.rule.fatal:
                    self._fatal(fault)
                if not fault.rule.retry or attempt > self.llm.retries:
                    raise CallFailed(fault.kind, f"{self.role}: {fault.message}") from None
                self.till.stop.wait(self._delay(fault, attempt))
                continue
            self.till.budget.charge(completion.usage)
            return self._answered(completion, attempt, request)

    def _answered(self, completion: Completion, attempt: int, request: Request) -> Completion:
        completion = replace(completion, attempts=attempt)
        if self.till.cache is not None:
            self.till.cache.put(self.llm, request, completion)
        return completion

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


def _entry(completion: Completion) -> dict[str, Any]:
    """Return a journal entry; defaults are left out, since there are hundreds of thousands."""
    usage = completion.usage
    entry: dict[str, Any] = {
        "text": completion.text,
        "finish": completion.finish_reason,
        "model": completion.model,
        "tokens": [usage.prompt_tokens, usage.completion_tokens],
        "seconds": round(completion.seconds, 4),
    }
    if usage.usd is not None:
        entry["usd"] = usage.usd
    if completion.refusal is not None:
        entry["refusal"] = completion.refusal
    if completion.attempts != 1:
        entry["attempts"] = completion.attempts
    if completion.cached:
        entry["cached"] = True
    if completion.notes:
        entry["notes"] = list(completion.notes)
    return entry


def _completion(entry: Mapping[str, Any]) -> Completion:
    prompt, completion = entry["tokens"]
    return Completion(
        text=entry["text"],
        finish_reason=entry["finish"],
        refusal=entry.get("refusal"),
        model=entry["model"],
        usage=Usage(
            calls=1, prompt_tokens=prompt, completion_tokens=completion, usd=entry.get("usd")
        ),
        seconds=entry["seconds"],
        attempts=entry.get("attempts", 1),
        cached=entry.get("cached", False),
        notes=tuple(entry.get("notes", ())),
    )
