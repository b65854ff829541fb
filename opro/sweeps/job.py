"""A sweep from one job's side: its log, its note for the parent, its ear for a stop."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from opro.errors import Interrupted, OproError
from opro.job import Outcome, Place
from opro.sweeps.file import JobNote, SweepFile, ask_to_stop, save_job, stop_reason
from opro.sweeps.sharing import Shared
from opro.trackers import process

LOG = "job.log"
LOOK_SECONDS = 0.2
LAST_SECONDS = 6.0
"""After the parent's death, how long a job gets to end before its process does."""


@dataclass(frozen=True, kw_only=True)
class JobPlace:
    """Where a job of a sweep is.

    Attributes:
        here: it runs in the parent's process.
    """

    sweep: SweepFile
    sweep_folder: Path
    folder: Path
    overrides: tuple[str, ...]
    here: bool


def run_job(work: Callable[[], Outcome], place: JobPlace) -> float | None:
    """Do one job's work; whatever becomes of it, the other jobs go on.

    Returns:
        The sweeper's number; None for a job that failed, was killed or wasn't started.

    Raises:
        SystemExit: a signal, in the parent's process: there the whole sweep ends.
    """
    if stop_reason(place.sweep_folder) is not None:
        return None
    note = JobNote(
        name=place.folder.name,
        overrides=place.overrides,
        status="running",
        owner=process.tags(),
    )
    save_job(place.folder, note)
    try:
        with _listening(place), _logged(place):
            note = _ended(work, note)
    except SystemExit:
        save_job(place.folder, replace(note, status="killed", error="signal"))
        raise
    save_job(place.folder, note)
    if note.status == "killed" and place.here:
        ask_to_stop(place.sweep_folder, "signal")
        raise SystemExit(128 + int(getattr(signal, note.error, signal.SIGTERM)))
    if note.status == "failed" and place.sweep.stop_on_failure:
        ask_to_stop(place.sweep_folder, "failure")
    return note.value


def in_sweep(place: Place, sweep: SweepFile) -> Place:
    """Return a run's place with what its sweep adds."""
    return replace(
        place,
        name=place.folder.name,
        command=sweep.command,
        tags={**place.tags, **sweep.tags},
        shared=Shared(at_once=sweep.at_once, servers=sweep.servers, tracker=sweep.tracker),
    )


def _ended(work: Callable[[], Outcome], note: JobNote) -> JobNote:
    try:
        outcome = work()
    except (Interrupted, KeyboardInterrupt) as error:
        return replace(note, status="killed", error=str(error) or "SIGINT")
    except OproError as error:
        print(f"opro: {error}", file=sys.stderr)
        return replace(note, status="failed", error=str(error))
    except Exception as error:
        traceback.print_exc()
        return replace(note, status="failed", error=f"{type(error).__name__}: {error}")
    return replace(
        note,
        status="ok",
        value=outcome.value,
        tracked=outcome.status != 3,
        skipped=outcome.skipped,
    )


@contextlib.contextmanager
def _logged(place: JobPlace) -> Iterator[None]:
    """Let what the job says go to its log; in the parent's process to the terminal, too."""
    with open(place.folder / LOG, "a", encoding="utf-8", errors="backslashreplace") as log:
        out: TextIO = _Both(sys.stdout, log) if place.here else log  # type: ignore[assignment]
        err: TextIO = _Both(sys.stderr, log) if place.here else log  # type: ignore[assignment]
        print(f"overrides: {' '.join(place.overrides)}", file=log, flush=True)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield


class _Both:
    """Writes to two streams, neither of which is treated as a terminal."""

    def __init__(self, *streams: TextIO) -> None:
        self._streams = streams

    def write(self, text: str) -> int:
        for stream in self._streams:
            stream.write(text)
        return len(text)

    def flush(self) -> None:
        for stream in self._streams:
            stream.flush()

    def isatty(self) -> bool:
        return False


@contextlib.contextmanager
def _listening(place: JobPlace) -> Iterator[None]:
    """In a process of its own, end the job when the sweep is stopped or its parent is gone."""
    if place.here:
        yield
        return
    _leave_with(tuple(place.sweep.owner.items()))
    _heed_interrupts(True)
    done = threading.Event()

    def listen() -> None:
        while not done.wait(LOOK_SECONDS):
            if stop_reason(place.sweep_folder) == "signal":
                os.kill(os.getpid(), signal.SIGTERM)
                return

    threading.Thread(target=listen, name="sweep", daemon=True).start()
    _busy.set()
    try:
        yield
    finally:
        _busy.clear()
        done.set()
        _heed_interrupts(False)


def _heed_interrupts(heed: bool) -> None:
    """Die of SIGINT or not: a terminal's Ctrl-C reaches this process, too.

    If it died of it while it waits for its next job, joblib would take that for a crash and end
    the jobs that are at work in other processes, before they could record what they have.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler if heed else signal.SIG_IGN)


_busy = threading.Event()
"""Set while this process is at work on a job."""


@functools.cache
def _leave_with(owner: tuple[tuple[str, str], ...]) -> None:
    """End this process, which works for a sweep, once the sweep's parent is gone."""

    def watch() -> None:
        while not process.is_gone(dict(owner)):
            time.sleep(LOOK_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)  # a job at work records what it has
        end = time.monotonic() + LAST_SECONDS
        while _busy.is_set() and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(LOOK_SECONDS)
        os._exit(143)

    threading.Thread(target=watch, name="parent", daemon=True).start()
