"""The process that runs trackers for others: `python -m opro.trackers.apart_server`.

It prints the address that it listens at and serves until its standard input ends and the last
one that it serves has left. The address is a socket in a folder that only its user can enter.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import tempfile
import threading
from multiprocessing.connection import Connection, Listener
from typing import Any

from opro.errors import ConfigError, RunError
from opro.trackers.apart import TrackingFailed
from opro.trackers.base import Tracker

LONGEST_FOLDER = 70
"""Bytes of a folder for temporary files in which a socket can be: its path may have 107."""


def main() -> None:
    """Serve until nobody is left to be served.

    A signal that reaches it, too, as when a batch system ends a job, leaves it to log the end.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if len(os.fsencode(tempfile.gettempdir())) > LONGEST_FOLDER:
        tempfile.tempdir = "/tmp"
    listener = Listener()
    print(listener.address, flush=True)
    os.dup2(2, 1)  # from here on whatever prints, prints for people
    serving: list[threading.Thread] = []
    threading.Thread(target=_accept, args=(listener, serving), daemon=True).start()
    sys.stdin.read()  # until the process that started this one closes it, or is gone
    for thread in serving:
        thread.join()


def _accept(listener: Listener, serving: list[threading.Thread]) -> None:
    while True:
        thread = threading.Thread(target=_serve, args=(listener.accept(),), daemon=True)
        thread.start()
        serving.append(thread)


def _serve(connection: Connection) -> None:
    """Serve one tracker: make each call that comes, and answer with what came of it."""
    with connection, contextlib.suppress(OSError, EOFError):  # the other side has left
        tracker: Tracker = connection.recv()
        with contextlib.closing(tracker):
            failure = _outcome(tracker, "load", ())
            while True:
                method, arguments = connection.recv()
                connection.send(failure or _outcome(tracker, method, arguments))


def _outcome(tracker: Tracker, method: str, arguments: tuple[Any, ...]) -> Any:
    try:
        return getattr(tracker, method)(*arguments)
    except (ConfigError, RunError) as error:
        return error
    except Exception as error:  # may be of a package that the other side hasn't imported
        return TrackingFailed(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
    gc.freeze()  # or the interpreter looks through all that was imported, for most of a second
