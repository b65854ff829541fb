"""Tracking beside the search: a slow or broken tracker costs it neither time nor scores."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from opro.evaluated import Evaluated
from opro.records import RunEnd, RunInfo, StepRecord, Totals
from opro.trackers.apart import TrackingFailed
from opro.trackers.base import Tracker

log = logging.getLogger(__name__)


class BackgroundTracker(Tracker):
    """Calls another tracker from one thread of its own, in the order of the calls.

    Methods return at once. What the other tracker raises is logged and counted. A step that finds
    the queue full is dropped and counted, too; start and end are never dropped.

    Args:
        tracker: the one that does the work.
        on_error: called with one line for the first failure, from the tracker's thread.
        limit: calls that may wait.
    """

    def __init__(
        self,
        tracker: Tracker,
        on_error: Callable[[str], None] = lambda line: None,
        limit: int = 10_000,
    ) -> None:
        self._tracker = tracker
        self._on_error = on_error
        self._limit = limit
        self._waiting: deque[tuple[str, Callable[[], None]]] = deque()
        self._wake = threading.Condition()
        self._closing = self._busy = False
        self._failed = 0
        self._thread: threading.Thread | None = None

    def prepare(self) -> None:
        """Queue the tracker's `prepare`."""
        self._put("prepare", self._tracker.prepare)

    def on_run_start(self, info: RunInfo) -> None:
        """Queue the tracker's `on_run_start`."""
        self._put("on_run_start", partial(self._tracker.on_run_start, info))

    def on_step_end(self, record: StepRecord, totals: Totals) -> None:
        """Queue the tracker's `on_step_end`, or drop the step when too many calls wait."""
        if len(self._waiting) >= self._limit:
            self._note("on_step_end", RuntimeError(f"step {record.step} dropped: tracking is slow"))
            return
        self._put("on_step_end", partial(self._tracker.on_step_end, record, totals))

    def on_evaluation(self, found: Evaluated) -> None:
        """Queue the tracker's `on_evaluation`."""
        self._put("on_evaluation", partial(self._tracker.on_evaluation, found))

    def on_run_end(self, end: RunEnd) -> None:
        """Queue the tracker's `on_run_end`."""
        self._put("on_run_end", partial(self._tracker.on_run_end, end))

    def where(self) -> str:
        """Return the tracker's own line, at once."""
        return self._tracker.where()

    def finish(self, timeout: float) -> int:
        """Wait for the queued calls, end the thread and close the tracker.

        Args:
            timeout: seconds to wait; calls not finished by then are given up.

        Returns:
            How many calls failed, were dropped or given up; 0: everything is tracked.
        """
        end = time.monotonic() + timeout
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join(max(0.0, end - time.monotonic()))
        with self._wake:
            left = len(self._waiting) + self._busy
            self._waiting.clear()
        if left:
            late = TimeoutError(f"{left} tracking calls not finished after {timeout:g} s")
            self._note("finish", late, count=left)
        failed = self._failed
        self._tracker.close()  # what still hangs fails now, and is counted already
        return failed

    def _put(self, name: str, call: Callable[[], None]) -> None:
        with self._wake:
            self._waiting.append((name, call))
            self._wake.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="tracker", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: bool(self._waiting) or self._closing)
                if not self._waiting:
                    return
                name, call = self._waiting.popleft()
                self._busy = True
            try:
                call()
            except Exception as error:  # whatever it is, the search goes on
                self._note(name, error)
            finally:
                self._busy = False

    def _note(self, name: str, error: Exception, count: int = 1) -> None:
        with self._wake:
            first = self._failed == 0
            self._failed += count
        kind = "" if isinstance(error, TrackingFailed) else f"{type(error).__name__}: "
        text = " ".join(f"{kind}{error}".split())[:300]
        log.info("tracker.%s failed: %s", name, text)
        log.debug("tracker.%s failed", name, exc_info=error)
        if first:
            self._on_error(f"tracking failed in {name} (the run goes on): {text}")
