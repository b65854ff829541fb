"""What the loopback server counts."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True)
class Entry:
    """One chat request of the log; raw, as it is read seldom and written often."""

    number: int
    head: bytes
    body: bytes
    begin: float
    end: float | None = None
    outcome: str = ""


class Stats:
    """Counts of chat requests. `now` is always seconds of one monotonic clock."""

    def __init__(self) -> None:
        self.log: deque[Entry] = deque(maxlen=100_000)
        self.connections = 0
        self.current = 0
        self.reset()

    def reset(self) -> None:
        """Start again from 0, but for what is in flight."""
        self.requests = 0
        self.outcomes: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()
        self.peak = self.current
        self.connections = 0
        self.first: float | None = None
        self.last = 0.0
        self._area = 0.0
        self._changed = 0.0
        self.log.clear()

    def keep(self, entries: int) -> None:
        """Keep only the last so many requests in the log."""
        self.log = deque(self.log, maxlen=entries)

    def begin(self, now: float, head: bytes, body: bytes) -> Entry:
        """Count a request that has arrived."""
        self._advance(now)
        self.requests += 1
        self.current += 1
        self.peak = max(self.peak, self.current)
        entry = Entry(number=self.requests, head=head, body=body, begin=now)
        self.log.append(entry)
        return entry

    def finish(self, now: float, entry: Entry, sha: str, outcome: str) -> None:
        """Count a request that is answered, broken or given up by the client."""
        self._advance(now)
        self.current -= 1
        entry.end, entry.outcome = now, outcome
        self.outcomes[outcome] += 1
        if outcome == "ok":
            self.finished[sha] += 1

    def snapshot(self) -> dict[str, Any]:
        """Return all counts.

        `in_flight.mean` is over the time from the first request to the last change. `repeats`
        counts answered requests whose very body had been answered before.
        """
        seconds = self.last - self.first if self.first is not None else 0.0
        in_flight = {"current": self.current, "peak": self.peak}
        return {
            "requests": self.requests,
            "outcomes": dict(self.outcomes),
            "in_flight": {**in_flight, "mean": self._area / seconds if seconds else 0.0},
            "connections": self.connections,
            "seconds": seconds,
            "repeats": sum(self.finished.values()) - len(self.finished),
        }

    def entries(self) -> list[dict[str, Any]]:
        """Return the log's requests as JSON can hold them; the key is only told to be there."""
        return [_entry(entry) for entry in self.log]

    def _advance(self, now: float) -> None:
        if self.first is None:
            self.first = self._changed = now
        self._area += self.current * (now - self._changed)
        self._changed = self.last = now


def _entry(entry: Entry) -> dict[str, Any]:
    lines = entry.head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    authorized = headers.pop("authorization", None) is not None
    return {
        "number": entry.number,
        "line": lines[0],
        "headers": headers,
        "authorized": authorized,
        "body": entry.body.decode("latin-1"),
        "begin": entry.begin,
        "end": entry.end,
        "outcome": entry.outcome,
    }
