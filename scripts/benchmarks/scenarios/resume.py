"""The paper's run, done but for its last step, started again: seconds to the first new request."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from opro.testing.handle import in_process
from scripts.benchmarks import process, table
from scripts.benchmarks.load import RULES
from scripts.benchmarks.scenarios.paper import load_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--percent", type=float, default=100.0, help="of the 200 steps")
    parser.add_argument("--tracker", default="mlflow")


def run(settings: argparse.Namespace, folder: Path) -> None:
    """Run all steps but one, then all, and print what the second start took."""
    load = load_of(settings.percent)
    load.write(folder)
    with in_process(rules=RULES, log=1) as server:
        overrides = [*load.overrides(server), f"tracker={settings.tracker}", "trainer.run_name=x"]
        process.opro([*overrides, f"trainer.epochs={load.steps - 1}"], folder, server)
        journaled = server.stats()["requests"]
        server.control(reset=True, log=load.calls)
        began = time.monotonic()  # the server's clock, too: one per machine
        process.opro(overrides, folder, server)
        first = float(server.log()[0]["begin"]) - began
        fresh = server.stats()["requests"]
    head = ("answers in the journal", "seconds to the first request", "new requests")
    table.show("resume", head, [[journaled, first, fresh]])
