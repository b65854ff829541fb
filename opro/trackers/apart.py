"""A tracker in a process of its own: what it imports and does never holds up the search.

MLflow costs some 3 s of CPU to import and to open. Under the lock of the search's own interpreter
those delayed its first requests. The jobs of a sweep share their parent's tracker process.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, cast

from opro.errors import OproError
from opro.evaluated import Evaluated
from opro.records import RunEnd, RunInfo, RunStatus, StepRecord, Totals
from opro.trackers.base import Tracker

LEAVE_SECONDS = 2.0
"""How long the process may take to end by itself, once nobody needs it."""


class TrackingFailed(OproError):
    """What the tracker raised there, as `Type: text`, or that its process is gone."""


class Apart(Tracker):
    """Hands each call to another tracker, in another process, and returns what it returned.

    The process starts with the first call, also with the first after `close`, which ends it, as
    does the end of this process, however that comes about. It isn't in the terminal's process
    group: a Ctrl-C leaves it to log the end.

    Args:
        tracker: can be pickled as long as none of its methods was called.
    """

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._connection: Connection | None = None
        self._address = ""
        self._shared = ""
        self._told = False

    def share(self) -> str:
        """Start the process for the jobs of a sweep as well; return its address."""
        with self._lock:
            try:
                self._connected()
            except (OSError, EOFError) as error:
                raise _gone(error) from None
        return self._address

    def join(self, address: str) -> None:
        """Use the process at `address`, if it can be reached from here."""
        self._shared = address

    def close(self) -> None:
        """End the process; at once if a call hangs in it, or none was made.

        One that was joined is left to its owner.
        """
        at_once = self._lock.locked() or not self._told
        if self._connection is not None and not self._lock.locked():
            self._connection.close()
            self._connection = None
        if self._process is None:
            return
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(0 if at_once else LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._process = None

    def prepare(self) -> None:
        """See `Tracker.prepare`."""
        self._call("prepare")

    def open_sweep(self, name: str, folder: Path, tags: Mapping[str, str]) -> Mapping[str, str]:
        """See `Tracker.open_sweep`."""
        return cast(Mapping[str, str], self._call("open_sweep", name, folder, tags))

    def crown(self, folder: Path) -> None:
        """See `Tracker.crown`."""
        self._call("crown", folder)

    def close_sweep(self, status: RunStatus) -> None:
        """See `Tracker.close_sweep`."""
        self._call("close_sweep", status)

    def on_run_start(self, info: RunInfo) -> None:
        """See `Tracker.on_run_start`."""
        self._call("on_run_start", info)

    def on_step_end(self, record: StepRecord, totals: Totals) -> None:
        """See `Tracker.on_step_end`."""
        self._call("on_step_end", record, totals)

    def on_run_end(self, end: RunEnd) -> None:
        """See `Tracker.on_run_end`."""
        self._call("on_run_end", end)

    def on_evaluation(self, found: Evaluated) -> None:
        """See `Tracker.on_evaluation`."""
        self._call("on_evaluation", found)

    def winner_of(self, run_id: str) -> str:
        """See `Tracker.winner_of`."""
        return cast(str, self._call("winner_of", run_id))

    def prompt(self, name: str) -> str:
        """See `Tracker.prompt`."""
        return cast(str, self._call("prompt", name))

    def where(self) -> str:
        """Return the tracker's own line; it needs no process."""
        return self._tracker.where()

    def _call(self, method: str, *arguments: Any) -> Any:
        """Return what a method returned there.

        Raises:
            OproError: as it was raised there.
            TrackingFailed: for whatever else was, or the process is gone.
        """
        with self._lock:
            try:
                connection = self._connected()
                self._told = True
                connection.send((method, arguments))
                outcome = connection.recv()
            except (OSError, EOFError) as error:
                raise _gone(error) from None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _connected(self) -> Connection:
        if self._connection is None:
            if self._shared:
                with contextlib.suppress(OSError):  # of another machine, or its parent is gone
                    self._connection = Client(self._shared)
            if self._connection is None:
                self._connection = Client(self._start())
            self._connection.send(self._tracker)
        return self._connection

    def _start(self) -> str:
        """Start the process and return its address; one that is gone isn't replaced."""
        if self._process is not None:
            raise EOFError("it couldn't be started before")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "opro.trackers.apart_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # It must find the same modules, however this process came by them.
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._address = self._process.stdout.readline().strip()
        if not self._address:
            raise EOFError("it didn't start")
        return self._address


def placed(tracker: Tracker) -> Tracker:
    """Return a tracker as it is to run: in a process of its own, if it wants one."""
    return Apart(tracker) if tracker.apart else tracker


def _gone(error: Exception) -> TrackingFailed:
    return TrackingFailed(f"the tracker's process is gone ({error!r})")
