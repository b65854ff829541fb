"""A gateway before a tracking server, which is out of order for a while."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OWN = ("host", "connection")
"""Headers of one connection; the others are passed on."""


@dataclass
class Outage:
    """When the gateway answers 500, and how often it did."""

    until: float | None = None
    refused: int = 0


@contextmanager
def gateway(target: str, due: Callable[[], bool], seconds: float) -> Iterator[tuple[str, Outage]]:
    """Pass requests on to `target`; answer 500 for some seconds, from when `due` is true."""
    state = Outage()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if state.until is None and due():
                state.until = time.monotonic() + seconds
            if state.until is not None and time.monotonic() < state.until:
                state.refused += 1
                return self.answer(500, b"{}", "application/json")
            return self.pass_on(body)

        def pass_on(self, body: bytes) -> None:
            kept = {name: value for name, value in self.headers.items() if name.lower() not in OWN}
            address = target + self.path
            request = urllib.request.Request(address, body or None, kept, method=self.command)
            try:
                found = urllib.request.urlopen(request, timeout=60)
            except urllib.error.HTTPError as error:
                found = error
            with found:
                self.answer(found.status, found.read(), found.headers.get("content-type", ""))

        def answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.handle_any)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        threading.Thread(target=httpd.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_address[1]}", state
        httpd.shutdown()
