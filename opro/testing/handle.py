"""Starts loopback servers and talks to them, the same way whether beside us or in a thread."""

from __future__ import annotations

import asyncio
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from opro.testing.server import Server


class Loopback:
    """A running server.

    Attributes:
        url: without a path; `base_url` is what an llm takes.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.base_url = f"{url}/v1"

    def stats(self) -> dict[str, Any]:
        """Return the counts, see `Stats.snapshot`."""
        found: dict[str, Any] = self._call("GET", "/stats")
        return found

    def log(self) -> list[dict[str, Any]]:
        """Return the requests in the order of arrival; each body parsed under `json`."""
        entries: list[dict[str, Any]] = self._call("GET", "/log")
        for entry in entries:
            entry["json"] = json.loads(entry["body"].encode("latin-1"))
        return entries

    def control(self, **settings: Any) -> None:
        """Change the behaviour, see `opro.testing.server`. Raises ValueError if refused."""
        self._call("POST", "/control", settings)

    def _call(self, method: str, path: str, body: object = None) -> Any:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            connection.request(method, path, json.dumps(body).encode("ascii"))
            response = connection.getresponse()
            found = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise ValueError(found["error"]["message"])
        return found


@contextmanager
def in_thread(**settings: Any) -> Iterator[Loopback]:
    """Run a server in a thread of this process; `settings` as for `control`."""
    started: queue.Queue[tuple[Server, asyncio.Event]] = queue.Queue()

    async def serve() -> None:
        server, stop = Server(), asyncio.Event()
        await server.listen(0)
        started.put((server, stop))
        await stop.wait()
        await server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="loopback", daemon=True)
    thread.start()
    server, stop = started.get(timeout=10)
    try:
        yield _configured(f"http://127.0.0.1:{server.port}", settings)
    finally:
        server.loop.call_soon_threadsafe(stop.set)
        thread.join()


@contextmanager
def in_process(port: int = 0, **settings: Any) -> Iterator[Loopback]:
    """Run a server in a process of its own, for measurements; it ends with this process."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "opro.testing.server", "--port", str(port)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root) as process:
        assert process.stdout is not None
        try:
            yield _configured(process.stdout.readline().strip(), settings)
        finally:
            process.kill()


def _configured(url: str, settings: dict[str, Any]) -> Loopback:
    server = Loopback(url)
    if settings:
        server.control(**settings)
    return server
