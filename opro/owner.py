"""Which process made something that must not outlive it: a container, a scratch folder.

A process id alone is not enough, since ids are used again: with the time that the process began,
it names one process of one machine.
"""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Owner:
    """One process of one machine.

    Attributes:
        host: the machine's name.
        pid: its process id there.
        began: when it began, in the machine's own terms; '' when unknown.
    """

    host: str
    pid: int
    began: str

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}:{self.began}"

    @property
    def here(self) -> bool:
        """Whether it is (or was) a process of this machine, so that `alive` can tell."""
        return self.host == socket.gethostname()

    @property
    def alive(self) -> bool:
        """Whether it still runs; only meaningful where `here`."""
        return _began(self.pid) == self.began and bool(self.began)


def myself() -> Owner:
    """Return this process."""
    return Owner(host=socket.gethostname(), pid=os.getpid(), began=_began(os.getpid()))


def read(text: str) -> Owner | None:
    """Return the owner that `str(owner)` wrote, or None for any other text."""
    host, _, rest = text.partition(":")
    pid, _, began = rest.partition(":")
    return Owner(host=host, pid=int(pid), began=began) if pid.isdecimal() else None


def _began(pid: int) -> str:
    """Return when a process began; '' when there is none or it has ended."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        # The second field, the command, may hold blanks and brackets itself.
        state, *fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if state in ("Z", "X") else fields[18]
    except OSError:
        return "" if Path("/proc/self/stat").exists() else _asked(pid)


def _asked(pid: int) -> str:
    """Return the same from `ps`, where there is no /proc; without colons or blanks."""
    command = ["ps", "-o", "lstart=", "-p", str(pid)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return "-".join(done.stdout.replace(":", "-").split())
