"""Runs a command and measures it: CPU and memory of the process, requests at the server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opro.testing.handle import Loopback

ROOT = Path(__file__).resolve().parents[2]
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One look at a running process.

    Attributes:
        seconds: since its start.
        requests: that the server had seen.
        cpu: seconds, user and system, of the process alone.
        all_cpu: with those of the processes that it started (the tracker's).
        mb: the memory of all these together.
    """

    seconds: float
    requests: int
    cpu: float
    all_cpu: float
    mb: float


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A finished process.

    Attributes:
        status: its exit status.
        wall, cpu: seconds, from start to end, children included.
        server: the server's counts.
        samples: taken on the way, the first one after the first request.
        output: of stdout and stderr.
    """

    status: int
    wall: float
    cpu: float
    server: dict[str, Any]
    samples: tuple[Sample, ...]
    output: str

    @property
    def cpu_per_request(self) -> float:
        """Milliseconds of CPU of the process itself per request, from the first one to the last."""
        first, last = self.samples[0], self.samples[-1]
        return 1000 * (last.cpu - first.cpu) / max(1, last.requests - first.requests)

    @property
    def mb(self) -> float:
        """The most memory, in MB, of the process and those that it started together."""
        return max(one.mb for one in self.samples)


def run(module: str, arguments: list[str], folder: Path, server: Loopback | None) -> Measured:
    """Run `python -m module arguments` in `folder`, watching it from outside."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open(folder / "output.txt", "w+", encoding="utf-8", errors="replace") as output:
        began = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        samples: list[Sample] = []
        ended = threading.Event()
        watch = threading.Thread(target=_watch, args=(process.pid, server, samples, ended))
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        ended.set()
        watch.join()
        output.seek(0)
        text = output.read()
    return Measured(
        status=process.returncode,
        wall=wall,
        cpu=usage.ru_utime + usage.ru_stime,
        server=server.stats() if server is not None else {"requests": 0},
        samples=tuple(samples),
        output=text,
    )


def opro(arguments: list[str], folder: Path, server: Loopback | None) -> Measured:
    """Run `opro.run`; exit this process when it fails, since its figures mean nothing."""
    measured = run("opro.run", arguments, folder, server)
    if measured.status != 0:
        sys.exit(f"opro.run ended with status {measured.status}:\n{measured.output}")
    return measured


def _watch(
    pid: int, server: Loopback | None, samples: list[Sample], ended: threading.Event
) -> None:
    began, pause = time.monotonic(), 0.05
    while server is not None and not ended.wait(pause):
        requests = server.stats()["requests"]
        try:
            sample = _sample(pid, time.monotonic() - began, requests)
        except OSError:
            return
        if requests:
            samples.append(sample)
            pause = 0.5


def _sample(pid: int, seconds: float, requests: int) -> Sample:
    own = _stat(pid)
    found = [path.read_text("utf-8") for path in Path(f"/proc/{pid}/task").glob("*/children")]
    stats = [own, *(_stat(int(child)) for child in " ".join(found).split())]
    return Sample(
        seconds=seconds,
        requests=requests,
        cpu=sum(own[11:13]) / _TICKS,
        all_cpu=(sum(own[13:15]) + sum(sum(one[11:13]) for one in stats)) / _TICKS,
        mb=sum(one[21] for one in stats) * os.sysconf("SC_PAGE_SIZE") / 2**20,
    )


def _stat(pid: int) -> list[int]:
    """Return the numbers of `/proc/<pid>/stat` that follow the state, at their places."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return [0, *map(int, fields[1:])]
