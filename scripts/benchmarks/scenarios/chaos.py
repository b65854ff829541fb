"""Kills a search by SIGKILL at random moments until it completes, and compares what comes out."""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path

from opro.testing.handle import in_process
from scripts.benchmarks import chaos, table

HEAD = ("round", "kills", "requests", "asked again", "in flight at kills", "paid twice", "lost")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--tracker", default="none", help="none, or mlflow (slower)")


def run(settings: argparse.Namespace, folder: Path) -> int:
    """Run the rounds; return 1 when one breaks a promise."""
    began, rng = time.monotonic(), random.Random(settings.seed)
    rounds = []
    with in_process(latency=0.04, rules=chaos.RULES) as server:
        trial = chaos.Trial(server, folder, f"tracker={settings.tracker}")
        trial.reference()
        for number in range(settings.rounds):
            found = trial.round(f"round{number}", rng)
            rounds.append(found)
            for problem in found.problems:
                print(f"round {number}: {problem}", flush=True)
    rows = [[n, *_cells(found)] for n, found in enumerate(rounds)]
    shown = rows if len(rows) <= 10 else []
    total = [sum(row[column] for row in rows) for column in range(1, len(HEAD))]  # type: ignore[misc]
    table.show("chaos", HEAD, [*shown, ["all", *total]])
    failed = sum(bool(found.problems) for found in rounds)
    print(
        f"  {len(rounds) - failed} of {len(rounds)} rounds ended in the same bytes and paid"
        f" nothing twice; {time.monotonic() - began:.0f} s"
    )
    return int(failed > 0)


def _cells(found: chaos.Round) -> list[int]:
    return [
        found.kills,
        found.requests,
        found.repeated,
        found.in_flight,
        found.paid_twice,
        found.lost,
    ]
