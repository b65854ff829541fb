"""Seconds until --help is there, and until a run's first request on a fresh store."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median

from opro.testing.handle import in_process
from scripts.benchmarks import process, table
from scripts.benchmarks.load import RULES, Load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many")


def run(settings: argparse.Namespace, folder: Path) -> None:
    """Print the medians."""
    helps, firsts = [], []
    for number in range(settings.rounds):
        here = folder / str(number)
        here.mkdir()
        helps.append(process.opro(["--help"], here, None).wall)
        firsts.append(_first_request(here))
    rows = [
        ["opro.run --help", median(helps), 0.6],
        ["first request, fresh MLflow store", median(firsts), 4.0],
    ]
    table.show("start", ("", "seconds", "goal"), rows)


def _first_request(folder: Path) -> float:
    load = Load(tasks=4, candidates=1, steps=1, in_flight=4)
    load.write(folder)
    with in_process(rules=RULES) as server:
        began = time.monotonic()  # the server's clock, too: one per machine
        process.opro(load.overrides(server), folder, server)
        return float(server.log()[0]["begin"]) - began
