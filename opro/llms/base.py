"""What a language model promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator

from opro.llms.price import Price
from opro.types import Completion, Request

_WORDS = {"on": True, "off": False}
Switch = Annotated[bool, BeforeValidator(lambda value: _WORDS.get(str(value), value))]
"""true or false, or (a word to Hydra, unlike to YAML) on or off."""


class LLM(ABC):
    """One model behind one endpoint. Called from many threads at once, up to `max_in_flight`.

    `send` makes exactly one attempt; retries, budget, journal and cache are `opro.calls`' work,
    so that every request on the wire is counted there. It raises `opro.llms.faults.Fault`
    for every attempt without a usable answer.
    """

    model: str = ""
    max_in_flight: int = 32
    retries: int = 4
    price: Price = Price()
    tells_cost: bool = False
    """Whether each answer comes with its cost, so that `price` isn't needed to know it."""
    cache: bool = False

    def check(self) -> None:
        """Raise ConfigError if this can't work (no key, no file); sends nothing."""
        return

    def start(self) -> None:
        """Start what must run beside us (a local server). Called once before the first `send`."""
        return

    def share(self) -> str | None:
        """Start what several processes can use and return its address; None: nothing to share.

        Called instead of `start`, by the parent of a sweep, which closes it after the last job.
        """
        return None

    def join(self, address: str) -> None:
        """Use what another process shares; called before `start`."""
        return

    def close(self) -> None:
        """End what `start` started and drop connections; `send` in other threads fails soon."""
        return

    @abstractmethod
    def send(self, request: Request) -> Completion:
        """Send one request once and return the answer; `usage.usd` by the configured prices."""

    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """Return every setting that can change an answer, free of secrets.

        Part of the run's fingerprint and of the cache's key.
        """
