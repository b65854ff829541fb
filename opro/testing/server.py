"""A loopback OpenAI-compatible chat server that counts: `python -m opro.testing.server`.

It answers `POST …/chat/completions` by rules and faults (see `behaviour`) after a latency, and
tells what it saw: `GET /stats`, `GET /log`. `POST /control` changes it while it runs, with any of
`latency` (seconds), `slots` (served at once; more wait), `over_slots` (`queue`, or `429` for what
is more), `rules`, `faults`, `reset` (true: counts from 0), `log` (how many requests it keeps) and
`refuse` (seconds without a listening socket).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections import deque
from collections.abc import Callable
from typing import Any

from opro.testing import outcomes
from opro.testing.behaviour import Behaviour, FaultRule, ReplyRule
from opro.testing.outcomes import Outcome
from opro.testing.stats import Entry, Stats

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_DRIP_SECONDS = 0.05


class Server:
    """The state that all connections share; lives in one event loop."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.behaviour = Behaviour()
        self.stats = Stats()
        self.latency = 0.0
        self.slots: int | None = None
        self.over_slots = "queue"
        self.port = 0
        self.transports: set[asyncio.Transport] = set()
        self._serving = 0
        self._waiting: deque[Callable[[], None]] = deque()
        self._listener: asyncio.Server | None = None

    async def listen(self, port: int) -> None:
        """Open the listening socket; port 0 takes a free one."""
        make = self.loop.create_server(
            lambda: Connection(self), "127.0.0.1", port, backlog=1024, reuse_address=True
        )
        self._listener = await make
        self.port = self._listener.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Close the socket and all connections."""
        if self._listener is not None:
            self._listener.close()
        for transport in self.transports:
            transport.abort()
        while self.transports:
            await asyncio.sleep(0)

    def control(self, settings: dict[str, Any]) -> None:
        """Change the behaviour. Raises TypeError or ValueError for what isn't known."""
        refuse = settings.pop("refuse", None)
        if settings.pop("reset", False):
            self.stats.reset()
            self.behaviour.reset()
        if "log" in settings:
            self.stats.keep(settings.pop("log"))
        if "rules" in settings:
            self.behaviour.rules = [ReplyRule(**rule) for rule in settings.pop("rules")]
        if "faults" in settings:
            self.behaviour.faults = [FaultRule(**rule) for rule in settings.pop("faults")]
        for name in ("latency", "slots", "over_slots"):
            if name in settings:
                setattr(self, name, settings.pop(name))
        if settings:
            raise ValueError(f"unknown settings: {', '.join(settings)}")
        self._admit_waiting()
        if refuse is not None and self._listener is not None:
            self._listener.close()
            for transport in self.transports:
                self.loop.call_soon(transport.close)  # this answer goes out first
            self.loop.call_later(refuse, lambda: self.loop.create_task(self.listen(self.port)))

    def admit(self, serve: Callable[[], None]) -> bool:
        """Run `serve` when a slot is free; False if it will never be (over_slots=429)."""
        if self.slots is None or self._serving < self.slots:
            self._serving += 1
            serve()
        elif self.over_slots == "429":
            return False
        else:
            self._waiting.append(serve)
        return True

    def release(self) -> None:
        """Give a slot back, to the one that waits longest."""
        self._serving -= 1
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._waiting and (self.slots is None or self._serving < self.slots):
            self._serving += 1
            self._waiting.popleft()()


class Connection(asyncio.Protocol):
    """One client connection: reads requests one after the other and answers them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = b""
        self._transport: asyncio.Transport
        self._entry: Entry | None = None
        self._sha = ""
        self._holds_slot = False
        self._lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.transports.add(transport)
        self._server.stats.connections += 1

    def data_received(self, data: bytes) -> None:
        """Collect a request; a second one waits until the first is answered."""
        self._buffer += data
        if self._entry is None:
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count what the client gave up."""
        self._lost = True
        self._server.transports.discard(self._transport)
        self._finish("gone")

    def _next(self) -> None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head, found = self._buffer[:end], _LENGTH.search(self._buffer, 0, end)
        stop = end + 4 + (int(found[1]) if found else 0)
        if len(self._buffer) < stop:
            return
        body, self._buffer = self._buffer[end + 4 : stop], self._buffer[stop:]
        method, path = head.split(b" ", 2)[:2]
        if method == b"POST" and path.endswith(b"/chat/completions"):
            self._chat(head, body)
        else:
            self._transport.write(_manage(self._server, method, path, body))

    def _chat(self, head: bytes, body: bytes) -> None:
        server = self._server
        self._entry = server.stats.begin(server.loop.time(), head, body)
        try:
            self._sha, outcome = server.behaviour.decide(body)
        except (ValueError, KeyError, TypeError) as error:
            outcome = Outcome(name="unreadable", data=_problem(400, error))

        def serve() -> None:
            self._holds_slot = True
            if server.latency:
                server.loop.call_later(server.latency, self._answer, outcome)
            else:
                self._answer(outcome)

        if not server.admit(serve):
            self._answer(outcomes.fault("429"))

    def _answer(self, outcome: Outcome) -> None:
        if self._lost:
            self._release()
            return
        if outcome.data:
            self._transport.write(outcome.data)
        if outcome.after == "drip":
            self._drip()
        if outcome.after in ("drip", "hang"):
            return  # counted when the client gives up
        if outcome.after == "abort":
            self._transport.abort()
        self._finish(outcome.name)
        if b"\r\nconnection: close" in outcome.data:
            self._transport.close()
        elif self._buffer and outcome.after == "keep":
            self._next()

    def _drip(self) -> None:
        if not self._lost:
            self._transport.write(b" ")
            self._server.loop.call_later(_DRIP_SECONDS, self._drip)

    def _finish(self, outcome: str) -> None:
        entry, self._entry = self._entry, None
        if entry is not None:
            self._server.stats.finish(self._server.loop.time(), entry, self._sha, outcome)
        self._release()

    def _release(self) -> None:
        if self._holds_slot:
            self._holds_slot = False
            self._server.release()


def _manage(server: Server, method: bytes, path: bytes, body: bytes) -> bytes:
    if path.endswith(b"/models"):
        return outcomes.json_answer({"object": "list", "data": [{"id": outcomes.DEFAULT_MODEL}]})
    if path == b"/stats":
        return outcomes.json_answer(server.stats.snapshot())
    if path == b"/log":
        return outcomes.json_answer(server.stats.entries())
    if path == b"/control" and method == b"POST":
        try:
            server.control(json.loads(body))
        except (TypeError, ValueError) as error:
            return _problem(400, error)
        return outcomes.json_answer({})
    return _problem(404, ValueError(f"no such path: {path.decode('latin-1')}"))


def _problem(status: int, error: Exception) -> bytes:
    return outcomes.json_answer({"error": {"message": str(error)}}, status)


async def _main(port: int) -> None:
    server = Server()
    await server.listen(port)
    print(f"http://127.0.0.1:{server.port}", flush=True)
    # Ends with its parent, however that ends: the pipe on standard input closes.
    await server.loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A loopback chat server; ends at stdin's end.")
    parser.add_argument("--port", type=int, default=0, help="0: a free one; printed on stdout")
    asyncio.run(_main(parser.parse_args().port))
