"""How the loopback server answers: rules for replies, a plan of faults."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal

from opro.testing import outcomes
from opro.testing.outcomes import Outcome


@dataclass(kw_only=True)
class ReplyRule:
    """The answer to chat requests whose messages hold all texts of `contains`.

    Attributes:
        text: the reply. `$sha` in it becomes 8 hex digits that depend on the request's body
            alone, `$count` how often this body came before. From a list, one is picked.
        pick: from a list by the body's `hash` (each request has its own answer, whatever the
            order) or by its `count` (the last one stays).
    """

    contains: list[str] = field(default_factory=list)
    text: str | list[str] = outcomes.DEFAULT_TEXT
    pick: Literal["hash", "count"] = "hash"
    finish_reason: str = "stop"
    refusal: str | None = None
    model: str = outcomes.DEFAULT_MODEL
    usage: dict[str, int] | None = field(default_factory=lambda: dict(outcomes.DEFAULT_USAGE))

    def reply(self, sha: str, count: int) -> bytes:
        """Return the HTTP answer for a body (by its sha256) that came `count` times before."""
        text = self.text
        if isinstance(text, list):
            index = int(sha[:8], 16) % len(text) if self.pick == "hash" else count
            text = text[min(index, len(text) - 1)]
        text = text.replace("$sha", sha[:8]).replace("$count", str(count))
        body = outcomes.chat_body(
            text,
            finish_reason=self.finish_reason,
            refusal=self.refusal,
            model=self.model,
            usage=self.usage,
        )
        return outcomes.json_answer(body)


@dataclass(kw_only=True)
class FaultRule:
    """When a fault happens: at the requests numbered `at` (from 1), at `every` n-th, or by chance.

    Attributes:
        kind: one of `outcomes.KINDS`.
        value: see `outcomes.fault`.
        rate: the chance, drawn from `seed`, the body and how often it came before, so that the
            order of arrival changes nothing.
        contains: texts that must all occur in the messages.
        has: a field that must be in the request's JSON.
        times: only the first so many.
    """

    kind: str
    value: str = ""
    at: list[int] | None = None
    every: int | None = None
    rate: float | None = None
    seed: int = 0
    contains: list[str] = field(default_factory=list)
    has: str | None = None
    times: int | None = None

    def __post_init__(self) -> None:
        """Refuse a kind that isn't known."""
        if self.kind not in outcomes.KINDS:
            raise ValueError(f"no fault {self.kind!r}; known: {', '.join(outcomes.KINDS)}")

    def due(self, number: int, sha: str, count: int) -> bool:
        """Tell whether request `number` is met by it."""
        if self.at is not None:
            return number in self.at
        if self.every is not None:
            return number % self.every == 0
        if self.rate is not None:
            return random.Random(f"{self.seed}:{sha}:{count}").random() < self.rate
        return True


class Behaviour:
    """Decides each chat request's outcome; remembers which bodies came how often."""

    def __init__(self) -> None:
        self.rules: list[ReplyRule] = []
        self.faults: list[FaultRule] = []
        self._plain = Outcome(name="ok", data=ReplyRule().reply("0" * 16, 0))
        self.reset()

    def reset(self) -> None:
        """Forget all requests."""
        self.number = 0
        self._seen: Counter[str] = Counter()
        self._applied: Counter[int] = Counter()

    def decide(self, body: bytes) -> tuple[str, Outcome]:
        """Return the start of the body's sha256 and what the request gets."""
        sha = hashlib.sha256(body).hexdigest()[:16]  # enough, and there may be 400,000
        self.number += 1
        count = self._seen[sha]
        self._seen[sha] += 1
        if not self.rules and not self.faults:
            return sha, self._plain
        return sha, self._fault(body, sha, count) or self._reply(body, sha, count)

    def _fault(self, body: bytes, sha: str, count: int) -> Outcome | None:
        for index, rule in enumerate(self.faults):
            if rule.times is not None and self._applied[index] >= rule.times:
                continue
            if rule.due(self.number, sha, count) and _matches(rule.contains, body, rule.has):
                self._applied[index] += 1
                return outcomes.fault(rule.kind, rule.value)
        return None

    def _reply(self, body: bytes, sha: str, count: int) -> Outcome:
        for rule in self.rules:
            if _matches(rule.contains, body):
                return Outcome(name="ok", data=rule.reply(sha, count))
        return self._plain


def _matches(contains: list[str], body: bytes, has: str | None = None) -> bool:
    if not contains and has is None:
        return True
    request: dict[str, Any] = json.loads(body)
    text = "\n".join(str(message["content"]) for message in request["messages"])
    return (has is None or has in request) and all(part in text for part in contains)
