"""Who writes a run: enough to see later that the process is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path

HOST, PID, BORN = "mlflow.opro.host", "mlflow.opro.pid", "mlflow.opro.pid_born"


def tags() -> dict[str, str]:
    """Return the tags that name this process."""
    return {HOST: socket.gethostname(), PID: str(os.getpid()), BORN: _born(os.getpid())}


def is_gone(written: Mapping[str, str]) -> bool:
    """Return True when the tags name a process of this host that runs no more."""
    pid = written.get(PID, "")
    if written.get(HOST) != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return written.get(BORN, "") != _born(int(pid))  # the number was given to another process


def terminate(written: Mapping[str, str]) -> None:
    """Send SIGTERM to the process that the tags name, if it is on this host and runs."""
    pid = written.get(PID, "")
    if written.get(HOST) == socket.gethostname() and pid.isdigit() and not is_gone(written):
        with contextlib.suppress(OSError):
            os.kill(int(pid), signal.SIGTERM)


def _born(pid: int) -> str:
    """Return when a process started, in the kernel's ticks; '' where that can't be read.

    A dead process that nobody has waited for is as good as gone: '' as well.
    """
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    except (OSError, IndexError):
        return ""
