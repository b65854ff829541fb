"""A run's door to one model."""

from __future__ import annotations

from dataclasses import replace

from opro.calls import Calls
from opro.errors import RunError
from opro.types import Completion, Position, Request


class Turns:
    """Numbers the calls of one run to one model, so that each has its own position."""

    def __init__(self, calls: Calls | None, at: Position, sample: int, attempt: int) -> None:
        self._calls = calls
        self._at = at
        self._sample = sample
        self._again = attempt - 1
        self._number = 0
        self.last: str | None = None

    def __call__(self, request: Request) -> Completion:
        """Ask; raise as `Calls.complete` does, or RunError where no model is configured."""
        if self._calls is None:
            raise RunError(f"{self._at[-1]}: needs a model, but none is configured")
        self._number += 1
        request = replace(request, sample=request.sample + self._sample, again=self._again)
        completion = self._calls.complete((*self._at, self._number), request)
        self.last = completion.text
        return completion
