"""Commands of others run as process groups: with limits, without a shell, and with an end.

A command gets a scratch folder whose name says which process of ours made it, and knows that
folder by a variable of its environment. Whatever the command started can be found by it, even what
left its process group; `opro.clean` finds what a kill -9 of us left behind in the same way.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from opro import owner

MARK = "OPRO_SCRATCH"
"""The variable that names the scratch folder in the environment of a command."""
GRACE = 1.0
"""Seconds between asking a command to end (SIGTERM) and ending it (SIGKILL)."""
_NAME = re.compile(r"opro-(?P<pid>\d+)-(?P<began>[\w-]*)-[^-]+")

End = Literal["exit", "seconds", "output", "closed"]


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command to be run.

    Attributes:
        argv: the program and its arguments.
        scratch: its scratch folder; `folder` below it is where it runs.
        env: its whole environment but for MARK.
        stdin: what it reads; b'' for nothing.
        seconds, max_bytes: its limits; the bytes are those of both its outputs.
    """

    argv: Sequence[str]
    scratch: Path
    env: Mapping[str, str]
    stdin: bytes
    seconds: float
    max_bytes: int

    @property
    def folder(self) -> Path:
        """The folder that it runs in."""
        return self.scratch / "work"


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended.

    Attributes:
        end: `exit` on its own, the limit that it was killed for, or `closed` with the run.
        code: its exit code, minus the number of the signal that killed it; None when we did.
    """

    end: End
    code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float


class Processes:
    """Runs commands from many threads; `close` ends them all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, tuple[subprocess.Popen[bytes], Path]] = {}
        self._known = self._closed = False

    def run(self, command: Command) -> Ended:
        """Run a command and end all that it started.

        Raises:
            OSError: it can't be started.
        """
        began = time.monotonic()
        out, err = bytearray(), bytearray()
        (command.scratch / "stdin").write_bytes(command.stdin)
        with open(command.scratch / "stdin", "rb") as stdin, self._started(command, stdin) as popen:
            end = _watch(popen, (out, err), began + command.seconds, command.max_bytes)
            code = popen.poll()
        if self._closed:
            end = "closed"
        return Ended(
            end=end,
            code=code if end == "exit" else None,
            stdout=bytes(out[: command.max_bytes]),
            stderr=bytes(err[: command.max_bytes]),
            seconds=round(time.monotonic() - began, 3),
        )

    def close(self) -> None:
        """End all commands; one that is started later ends at once."""
        atexit.unregister(self.close)
        with self._lock:
            self._closed = True
            left = list(self._running.values())
        for popen, _ in left:
            _signal(popen, signal.SIGTERM)
        for popen, scratch in left:
            _end(popen, scratch)

    @contextlib.contextmanager
    def _started(self, command: Command, stdin: IO[bytes]) -> Iterator[subprocess.Popen[bytes]]:
        popen = subprocess.Popen(
            command.argv,
            cwd=command.folder,
            env={**command.env, MARK: str(command.scratch)},
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        with self._lock:
            if not self._known:
                atexit.register(self.close)  # for whoever ends without calling it
            self._known = True
            self._running[popen.pid] = popen, command.scratch
        try:
            if self._closed:
                _signal(popen, signal.SIGKILL)
            yield popen
        finally:
            _end(popen, command.scratch)
            with self._lock:
                del self._running[popen.pid]
            for stream in (popen.stdout, popen.stderr):
                if stream is not None:
                    stream.close()


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder that only we can read, with an empty `work` in it; remove it at the end."""
    me = owner.myself()
    path = Path(tempfile.mkdtemp(prefix=f"opro-{me.pid}-{me.began}-"))
    # A worker's thread may be stopped with the process before it comes to the end of this block.
    remove = functools.partial(remove_folder, path)
    atexit.register(remove)
    try:
        (path / "work").mkdir()
        yield path
    finally:
        remove_folder(path)
        atexit.unregister(remove)


def scratch_folders() -> list[tuple[Path, owner.Owner]]:
    """Return the scratch folders of this user in the folder for temporary files."""
    found = []
    host = owner.myself().host
    for path in sorted(Path(tempfile.gettempdir()).glob("opro-*")):
        match = _NAME.fullmatch(path.name)
        with contextlib.suppress(OSError):
            if match is not None and path.lstat().st_uid == os.getuid() and path.is_dir():
                made_by = owner.Owner(host=host, pid=int(match["pid"]), began=match["began"])
                found.append((path, made_by))
    return found


def end_of_folder(scratch: Path) -> int:
    """Kill every process that knows a scratch folder by MARK; return how many there were."""
    wanted = f"{MARK}={scratch}".encode()
    ended = 0
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in environ.read_bytes().split(b"\0"):
                os.kill(int(environ.parent.name), signal.SIGKILL)
                ended += 1
    return ended


def remove_folder(path: Path) -> None:
    """Remove a folder, also where parts of it were made read-only; what can't go, stays."""
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        for folder, _, _ in os.walk(path):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(path, ignore_errors=True)


def _watch(
    popen: subprocess.Popen[bytes],
    sinks: tuple[bytearray, bytearray],
    deadline: float,
    max_bytes: int,
) -> End:
    """Read both outputs until the command has ended or must; return why."""
    with selectors.DefaultSelector() as selector:
        for stream, sink in zip((popen.stdout, popen.stderr), sinks, strict=True):
            assert stream is not None  # both are pipes
            selector.register(stream, selectors.EVENT_READ, sink)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return "seconds"
            ended = popen.poll() is not None
            ready = selector.select(0 if ended else min(left, 0.05))
            if ended and not ready:
                return "exit"  # the pipes are held by something that it left behind
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                key.data.extend(data)
                if not data:
                    selector.unregister(key.fileobj)
            if sum(map(len, sinks)) > max_bytes:
                return "output"
    try:
        popen.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return "seconds"
    return "exit"


def _end(popen: subprocess.Popen[bytes], scratch: Path) -> None:
    """End the whole process group, and what left it but still knows the scratch folder."""
    if popen.poll() is None:
        _signal(popen, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(GRACE)
    _signal(popen, signal.SIGKILL)
    popen.wait()
    for _ in range(20):  # until none is left: one may have begun another just before its end
        if not end_of_folder(scratch):
            return
        time.sleep(0.01)


def _signal(popen: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(popen.pid, number)
