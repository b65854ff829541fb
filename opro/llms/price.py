"""What tokens cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

PER = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars per million tokens; None is unknown, 0.0 is free.

    Discounts for cached prompts are not known here: the figure is then an upper bound.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    prompt: float | None = None
    completion: float | None = None

    def usd(self, prompt_tokens: int | None, completion_tokens: int | None) -> float | None:
        """Return a call's cost; None as soon as a price or a count is unknown."""
        if None in (self.prompt, self.completion, prompt_tokens, completion_tokens):
            return None
        assert self.prompt is not None and self.completion is not None
        assert prompt_tokens is not None and completion_tokens is not None
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / PER
