"""An endpoint without latency, 64 requests in flight: requests per second, CPU per request."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.benchmarks import compare, table
from scripts.benchmarks.load import Load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--steps", type=int, default=25, help="408 calls each")


def run(settings: argparse.Namespace, folder: Path) -> None:
    """Print requests per second from the first to the last request."""
    load = Load(steps=settings.steps, in_flight=64, latency=0.0)
    rows = []
    for name, measure in (("opro", compare.ours), ("bare openai client", compare.bare)):
        found = measure(load, folder / name.split()[0])
        count, seconds = found.server["requests"], found.server["seconds"]
        rows.append([name, count / seconds, found.cpu_per_request, found.cpu, seconds, count])
    head = ("", "requests / s", "CPU ms / request", "CPU s in all", "seconds", "requests")
    table.show("no latency, 64 in flight", head, rows)
