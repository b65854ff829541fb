"""One load by us and by the bare client, against servers of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opro.testing.handle import in_process
from scripts.benchmarks import process
from scripts.benchmarks.load import RULES, Load
from scripts.benchmarks.process import Measured


def ours(load: Load, folder: Path, *overrides: str, **server: Any) -> Measured:
    """Run the search with journal, judge, MLflow and progress."""
    folder.mkdir(exist_ok=True)
    load.write(folder)
    with in_process(rules=RULES, latency=load.latency, **server) as loopback:
        return process.opro([*load.overrides(loopback), *overrides], folder, loopback)


def bare(load: Load, folder: Path, **server: Any) -> Measured:
    """Make the same calls with the bare client."""
    folder.mkdir(exist_ok=True)
    numbers = [load.tasks, load.candidates, load.steps, load.in_flight]
    with in_process(rules=RULES, latency=load.latency, **server) as loopback:
        arguments = [loopback.base_url, *map(str, numbers)]
        return process.run("scripts.benchmarks.bare", arguments, folder, loopback)


def row(name: str, measured: Measured, ideal: float | None) -> list[object]:
    """Return a row for `HEAD`: seconds are from the first to the last request."""
    seconds = float(measured.server["seconds"])
    return [
        name,
        seconds,
        None if ideal is None else seconds / ideal,
        measured.server["in_flight"]["mean"],
        measured.cpu_per_request,
        measured.cpu,
        measured.server["requests"],
    ]


HEAD = ("", "seconds", "/ ideal", "mean in flight", "CPU ms / request", "CPU s in all", "requests")
