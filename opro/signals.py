"""Ctrl-C and SIGTERM: no new request, a short grace for those in flight, then out."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from opro.errors import Interrupted
from opro.stop import Stop

GRACE = 1.5
"""Seconds that requests in flight get to come home and be recorded."""

SAME_SECONDS = 1.0
"""A signal so soon after the first says the same: from the terminal, and from a sweep's parent."""


@contextlib.contextmanager
def stopping(stop: Stop) -> Iterator[None]:
    """While inside, the first signal asks the run to stop; a second one, or the grace, ends it.

    Outside the main thread nothing is installed: there Python delivers no signals.

    Raises:
        Interrupted: from the block, when the grace is over.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    first: list[float] = []

    def asked(number: int, frame: FrameType | None) -> None:
        error = Interrupted(signal.Signals(number).name)
        if isinstance(stop.error, Interrupted):
            if first and time.monotonic() - first[0] < SAME_SECONDS:
                return
            raise error
        first.append(time.monotonic())
        stop.request(error)
        signal.setitimer(signal.ITIMER_REAL, GRACE)

    def over(number: int, frame: FrameType | None) -> None:
        stop.check()

    wanted = {signal.SIGINT: asked, signal.SIGTERM: asked, signal.SIGALRM: over}
    before = {number: signal.signal(number, handler) for number, handler in wanted.items()}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
