"""The paper's whole budget at an endpoint without latency: time, memory, cost per call."""

from __future__ import annotations

import argparse
import sqlite3
from contextlib import closing
from pathlib import Path

from opro.testing.handle import in_process
from scripts.benchmarks import process, table
from scripts.benchmarks.load import RULES, Load
from scripts.benchmarks.process import Measured, Sample

PARTS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--percent", type=float, default=100.0, help="of the 200 steps")
    parser.add_argument("--tracker", default="mlflow")


def load_of(percent: float) -> Load:
    """Return the load: 8 candidates on 261 tasks in each of 200 steps, or a part of these."""
    steps = max(1, round(200 * percent / 100))
    return Load(tasks=261, steps=steps, in_flight=64, latency=0.0)


def run(settings: argparse.Namespace, folder: Path) -> None:
    """Print the totals, and for each tenth seconds and CPU per call, the tracker's included."""
    load = load_of(settings.percent)
    load.write(folder)
    with in_process(rules=RULES, log=1) as server:
        overrides = [*load.overrides(server), f"tracker={settings.tracker}"]
        found = process.opro(overrides, folder, server)
    count, seconds = found.server["requests"], found.server["seconds"]
    head = ("requests", "seconds", "whole run", "requests / s", "CPU ms / request", "MB at most")
    row = [count, seconds, found.wall, count / seconds, found.cpu_per_request, found.mb]
    table.show(f"{settings.percent:g}% of the paper's budget", head, [row])
    table.show("by tenths", ("up to", "ms / call", "CPU ms / call"), _tenths(found))
    if settings.tracker == "mlflow":
        print(f"\n  MLflow: {_tracked(folder, load)}")


def _tenths(found: Measured) -> list[list[object]]:
    rows: list[list[object]] = []
    total, last = found.server["requests"], found.samples[0]
    for part in range(1, PARTS + 1):
        now = _at(found.samples, total * part / PARTS)
        calls = now.requests - last.requests
        if calls > 0:
            wall, cpu = now.seconds - last.seconds, now.all_cpu - last.all_cpu
            rows.append([f"{now.requests / total:.0%}", 1000 * wall / calls, 1000 * cpu / calls])
        last = now
    return rows


def _at(samples: tuple[Sample, ...], requests: float) -> Sample:
    return next((one for one in samples if one.requests >= requests), samples[-1])


def _tracked(folder: Path, load: Load) -> str:
    """Return how many of the points that belong into the store are there."""
    query = "select count(*) from metrics where key like ?"
    with closing(sqlite3.connect(folder / "mlruns/mlflow.db")) as store:
        (status,) = store.execute("select status from runs").fetchone()
        (points,) = store.execute(query, ("task/%",)).fetchone()
    return f"{status}, {points:,} of {load.scoring:,} task scores"
