"""A sweep of four searches: sharing 32 slots, and with 128 slots, by the joblib launcher."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.benchmarks import compare, table
from scripts.benchmarks.load import Load

JOBS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options: none."""


def run(settings: argparse.Namespace, folder: Path) -> None:
    """Print seconds from the first to the last request of all jobs, and of the whole command."""
    load = Load()
    rows = []
    for slots in (load.in_flight, JOBS * load.in_flight):
        ideal = max(load.ideal, JOBS * load.calls * load.latency / slots)
        seeds = ",".join(map(str, range(JOBS)))
        found = compare.ours(
            load,
            folder / str(slots),
            *("-m", "hydra/launcher=joblib", f"hydra.launcher.n_jobs={JOBS}"),
            *(f"llm.max_in_flight={slots}", f"evolver.params.seed={seeds}"),
        )
        seconds, mean = found.server["seconds"], found.server["in_flight"]["mean"]
        count = found.server["requests"]
        rows.append([f"{slots} slots", ideal, seconds, seconds / ideal, mean, found.wall, count])
    head = ("", "ideal", "seconds", "/ ideal", "mean in flight", "whole command", "requests")
    table.show(f"sweep of {JOBS} searches of {load.calls:,} calls, 200 ms each", head, rows)
