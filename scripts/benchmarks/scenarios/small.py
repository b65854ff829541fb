"""A sweep of 8 small jobs with the joblib launcher: what it costs beside the jobs' own work."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.benchmarks import compare, table
from scripts.benchmarks.load import Load

JOBS = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--at-once", type=int, default=4, help="jobs at the same time")


def run(settings: argparse.Namespace, folder: Path) -> None:
    """Print the command's seconds and those of the jobs' requests, if one came after the other."""
    load = Load(tasks=8, candidates=2, steps=2, in_flight=8, latency=0.05)
    seeds = ",".join(map(str, range(JOBS)))
    found = compare.ours(
        load,
        folder / "sweep",
        *("-m", "hydra/launcher=joblib", f"hydra.launcher.n_jobs={settings.at_once}"),
        *(f"evolver.params.seed={seeds}", f"llm.max_in_flight={8 * settings.at_once}"),
    )
    work = JOBS * load.ideal
    rows = [["sweep of 8 small jobs", found.wall, work, found.wall - work, 10.0]]
    table.show("small", ("", "seconds", "sum of their work", "over it", "goal"), rows)
