"""The one flag that ends a run early, and the reason it carries."""

from __future__ import annotations

import threading


class Stop:
    """Set once, by whoever finds that the run must end; seen before each new request."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self.error: BaseException | None = None

    def request(self, error: BaseException) -> None:
        """Let no new request start. The first reason stays."""
        with self._lock:
            if self.error is None:
                self.error = error
        self._event.set()

    def check(self) -> None:
        """Raise the reason if the run must end."""
        if self.error is not None:
            raise self.error

    def wait(self, seconds: float) -> None:
        """Sleep, but wake and raise the reason as soon as the run must end."""
        self._event.wait(seconds)
        self.check()
