"""One running container: commands with limits, files, its end."""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from opro.agents.box import ContainerFailed, OutOfMemory
from opro.agents.docker_engine import Engine

End = Literal["exit", "seconds", "output"]
SLICE = 0.2
"""Seconds between looks at the clock while a command prints nothing."""
SETTLE = 5.0
"""Seconds that killed processes and a dying container get to be gone."""
WRITING = 60.0
"""Seconds for one batch of a task's files."""
CHUNK = 90_000
"""Bytes of a file in one argument, whose limit is 128 KiB, base64 included."""
MAX_SCRIPT = 100_000
"""Bytes of a script, for the same reason."""
_WRITE = (
    'while [ $# -gt 0 ]; do case "$1" in */*) mkdir -p "${1%/*}";; esac;'
    ' printf %s "$2" | base64 -d >> "$1" || exit 1; shift 2; done'
)
_EVENTS = {
    "memory": ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events"),
    "pids": ("/sys/fs/cgroup/pids/pids.events", "/sys/fs/cgroup/pids.events"),
}
_COUNTERS = {"memory": "oom_kill", "pids": "max"}


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command did.

    Attributes:
        end: `exit` on its own, or the limit that it was killed for.
        code: its exit code; None when it was killed for a limit.
        output: both streams in order of arrival, at most a little more than was allowed.
    """

    end: End
    code: int | None
    output: bytes
    seconds: float


class Container:
    """A started container; `name` is its id at the daemon."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name

    def shell(self, script: str, seconds: float, max_bytes: int) -> Ran:
        """Run a script with `sh` in /work, killing all that is left of it at a limit."""
        return self.run(["/bin/sh", "-c", script], seconds, max_bytes)

    def run(self, argv: Sequence[str], seconds: float, max_bytes: int) -> Ran:
        """Run one command.

        Raises:
            OutOfMemory, ContainerFailed: the container has ended, or the daemon is away.
        """
        began = time.monotonic()
        with self._explained():
            made, stream = self.engine.exec(self.name, argv)
            with _Output(stream) as output:
                end = self._watch(made, output, began + seconds, max_bytes)
            code = self._settle(made, end)
        spent = time.monotonic() - began
        return Ran(
            end=end,
            code=code if end == "exit" else None,
            output=bytes(output.data[:max_bytes]),
            seconds=round(spent, 3),
        )

    def write(self, files: Mapping[str, str]) -> None:
        """Write text files under /work, whose root file system may be read-only.

        Docker's own copying reaches no tmpfs, so the bytes travel as arguments.
        """
        pairs: list[str] = []
        for path, text in files.items():
            data = text.encode("utf-8", "replace")
            for start in range(0, max(len(data), 1), CHUNK):
                part = base64.b64encode(data[start : start + CHUNK]).decode("ascii")
                pairs += [f"./{path}", part]
        for start in range(0, len(pairs), 10):
            argv = ["/bin/sh", "-c", _WRITE, "sh", *pairs[start : start + 10]]
            ran = self.run(argv, WRITING, 10_000)
            if ran.code != 0:
                text = ran.output.decode("utf-8", "replace").strip()
                raise ContainerFailed(f"the task's files can't be written: {text}")

    def kill_all(self) -> None:
        """End every process in the container but its first."""
        with self._explained():
            self._kill_all()

    def events(self, limit: Literal["memory", "pids"]) -> int:
        """Return how often the kernel enforced a limit here; 0 when it doesn't tell."""
        ran = self.run(["/bin/cat", *_EVENTS[limit]], SETTLE, 10_000)
        for line in ran.output.decode("utf-8", "replace").splitlines():
            name, _, count = line.partition(" ")
            if name == _COUNTERS[limit] and count.isdecimal():
                return int(count)
        return 0

    def _watch(self, made: str, output: _Output, deadline: float, max_bytes: int) -> End:
        """Read until the command has ended or must; return why."""
        while True:
            if len(output.data) > max_bytes:
                return "output"
            left = deadline - time.monotonic()
            if left <= 0:
                return "seconds"
            # A process left in the background may hold the stream open after its parent's end.
            if output.read(min(SLICE, left)) == "idle":
                if not self.engine.exec_state(made)["Running"]:
                    return "exit"
            elif output.closed:
                return "exit" if self._wait(made, deadline) else "seconds"

    def _wait(self, made: str, deadline: float) -> bool:
        """Wait for a command that has closed its output; tell whether it ended in time."""
        pause = 0.002
        while self.engine.exec_state(made)["Running"]:
            if time.monotonic() >= deadline:
                return False
            time.sleep(pause)
            pause = min(2 * pause, SLICE)
        return True

    def _kill_all(self) -> None:
        made, stream = self.engine.exec(self.name, ["/bin/sh", "-c", "kill -9 -1"])
        with _Output(stream):
            if not self._wait(made, time.monotonic() + SETTLE):
                raise ContainerFailed("the processes of a command can't be killed")

    def _settle(self, made: str, end: End) -> int | None:
        if end != "exit":
            self._kill_all()
            if not self._wait(made, time.monotonic() + SETTLE):
                raise ContainerFailed("a command can't be killed")
        code: int | None = self.engine.exec_state(made)["ExitCode"]
        # With its container every command dies of signal 9, as if it alone had been killed.
        if code in (None, 137) and end == "exit" and self._ended(1.0):
            raise ContainerFailed("the container has ended")
        return code

    def _ended(self, patience: float) -> bool:
        """Tell whether the container has ended; a killed one takes a moment to say so."""
        until = time.monotonic() + patience
        while self.engine.state(self.name)["Running"]:
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        return True

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn a failure inside into what became of the container, when it has ended."""
        try:
            yield
        except ContainerFailed as error:
            if not self._ended(SETTLE):
                raise
            state = self.engine.state(self.name)
            if state.get("OOMKilled"):
                raise OutOfMemory from error
            raise ContainerFailed(
                f"the container was ended from outside (exit code {state.get('ExitCode')})"
            ) from error


class _Output:
    """The multiplexed output of one command: frames of 8 bytes of header and a payload."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._socket = getattr(stream, "_sock", stream)
        self._raw = bytearray(_read_ahead(stream, self._socket))
        self.data = bytearray()
        self.closed = False
        self._unpack()

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *exc: object) -> None:
        # The client keeps the response, whose end closes the stream and its connection.
        getattr(self._stream, "_response", self._stream).close()

    def read(self, seconds: float) -> Literal["data", "idle", "end"]:
        """Take what arrives within `seconds`."""
        self._socket.settimeout(max(seconds, 0.001))
        try:
            part = self._socket.recv(65536)
        except TimeoutError:
            return "idle"
        except OSError as error:
            raise ContainerFailed(f"the command's output broke off: {error}") from error
        self._raw += part
        self._unpack()
        self.closed = not part
        return "data" if part else "end"

    def _unpack(self) -> None:
        start = 0
        while len(self._raw) >= start + 8:
            size = int.from_bytes(self._raw[start + 4 : start + 8], "big")
            if len(self._raw) < start + 8 + size:
                break
            self.data += self._raw[start + 8 : start + 8 + size]
            start += 8 + size
        del self._raw[:start]


def _read_ahead(stream: Any, socket: Any) -> bytes:
    """Return what the HTTP client has taken from the socket beyond the headers, if anything."""
    try:
        buffered = stream._response.raw._fp.fp
        socket.settimeout(0)
        return buffered.read1(65536) or b""
    except (AttributeError, OSError):
        return b""
