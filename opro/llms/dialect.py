"""Which parameters an endpoint takes, as configured and as learned from its refusals."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

CapName = Literal["max_tokens", "max_completion_tokens"]

_OTHER: Mapping[CapName, CapName] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
}
_REFUSES = re.compile(
    r"unsupported|not.support|unrecogni[sz]ed|unknown|not permitted|not allowed|unexpected|extra",
    re.IGNORECASE,
)


@dataclass(frozen=True, kw_only=True)
class Form:
    """How a request is put.

    Attributes:
        cap: the name under which `max_tokens` is sent.
        temperature: whether a temperature is sent at all.
    """

    cap: CapName
    temperature: bool


class Dialect:
    """Starts with the configured form and keeps what it learns. Thread-safe."""

    def __init__(self, configured: Form) -> None:
        self._configured = configured
        self._lock = threading.Lock()
        self.form = configured

    def learn(self, sent: Form, error: Mapping[str, Any]) -> bool:
        """Take in a 400; return whether the same request would now be put differently.

        Args:
            sent: the form of the refused request; other threads may have learned since.
            error: the body's error object, with `message` and perhaps `param` and `code`.
        """
        changes: dict[str, Any] = {}
        if _refused("temperature", error) and sent.temperature:
            changes["temperature"] = False
        # The configured name is given up once; if both are refused, the refusal stands.
        if _refused(sent.cap, error) and sent.cap == self._configured.cap:
            changes["cap"] = _OTHER[sent.cap]
        with self._lock:
            self.form = replace(self.form, **changes)
        return bool(changes)

    def notes(self, sent: Form) -> tuple[str, ...]:
        """Return what was adapted in a request put as `sent`, for the record."""
        if sent is self._configured:
            return ()
        notes = []
        if sent.cap != self._configured.cap:
            notes.append(f"sent {sent.cap} in place of {self._configured.cap}")
        if sent.temperature != self._configured.temperature:
            notes.append("left temperature out, which the endpoint refuses")
        return tuple(notes)


def _refused(name: str, error: Mapping[str, Any]) -> bool:
    """Tell whether a parameter is refused as such; `max_tokens is too large` isn't that."""
    message = str(error.get("message", ""))
    named = error.get("param") == name or re.search(rf"\b{name}\b", message) is not None
    return named and _REFUSES.search(f"{error.get('code', '')} {message}") is not None
