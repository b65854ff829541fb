"""What a run may spend, checked before each request."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from opro.errors import BudgetExceeded
from opro.types import Usage

Limit = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Limits:
    """Upper bounds of one run, its resumes included; None is no bound.

    Attributes:
        usd: needs a price on every endpoint; an unknown cost is refused, never taken as 0.
        tokens: prompt plus completion tokens, as the endpoints report them.
        hours: wall time of one start of the run.
        calls: requests on the wire, retries included.
    """

    usd: Limit | None = None
    tokens: Annotated[int, Field(ge=1)] | None = None
    hours: Limit | None = None
    calls: Annotated[int, Field(ge=1)] | None = None


class Budget:
    """Counts requests and what they cost against `Limits`. Thread-safe.

    `calls` is reserved before sending, so it is never overshot. Tokens and cost are known only
    with the answer: they can be overshot by what is in flight when the bound is met. Unknown is
    not 0: an answer that doesn't tell counts as much as the dearest before it, and where none
    has told, the run ends.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self.calls = 0
        self.tokens = 0
        self.usd = 0.0
        self._most: dict[str, float] = {}
        self._untold: set[str] = set()

    def reserve(self) -> None:
        """Take one request out of the budget, just before it is sent.

        Raises:
            BudgetExceeded: naming the bound; nothing was taken.
        """
        with self._lock:
            spent = self._spent()
            if spent is not None:
                raise BudgetExceeded(f"trainer.budget.{spent}")
            self.calls += 1

    def charge(self, usage: Usage | None) -> None:
        """Add what an answer (or a fault that told its usage) cost."""
        if usage is None:
            return
        with self._lock:
            self._charge(usage)

    def replay(self, usage: Usage, attempts: int) -> None:
        """Add what an earlier part of this run spent on an answer now taken from its journal."""
        with self._lock:
            self.calls += attempts
            self._charge(usage)

    def _charge(self, usage: Usage) -> None:
        self.tokens += int(self._known("tokens", _tokens(usage), usage))
        self.usd += self._known("usd", usage.usd, usage)

    def _known(self, name: str, value: float | None, usage: Usage) -> float:
        if value is not None:
            if value > self._most.get(name, -1.0):
                self._most[name] = value
            return value
        if usage.calls and name not in self._most:
            self._untold.add(name)
        return self._most.get(name, 0.0) if usage.calls else 0.0

    def _spent(self) -> str | None:
        limits = self.limits
        for name in sorted(self._untold):
            bound = getattr(limits, name)
            if bound is not None:
                return f"{name}={bound:g} can't be kept: the answers don't tell theirs"
        hours = (self._clock() - self._began) / 3600
        if limits.calls is not None and self.calls >= limits.calls:
            return f"calls={limits.calls} is used up"
        if limits.tokens is not None and self.tokens >= limits.tokens:
            return f"tokens={limits.tokens} is used up"
        if limits.usd is not None and self.usd >= limits.usd:
            return f"usd={limits.usd:g} is used up"
        if limits.hours is not None and hours >= limits.hours:
            return f"hours={limits.hours:g} is used up"
        return None


def _tokens(usage: Usage) -> int | None:
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if prompt is None and completion is None:
        return None
    return (prompt or 0) + (completion or 0)
