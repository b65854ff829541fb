"""The same search at an endpoint whose every 50th answer is an HTTP 500."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.benchmarks import compare, table
from scripts.benchmarks.load import Load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options: none."""


def run(settings: argparse.Namespace, folder: Path) -> None:
    """Print both clients' figures beside the best schedule without faults."""
    load, faults = Load(), [{"kind": "500", "every": 50}]
    mine = compare.ours(load, folder / "ours", faults=faults)
    bare = compare.bare(load, folder / "bare", faults=faults)
    rows = [
        ["ideal without faults", load.ideal, 1.0, None, 0.0, 0.0, load.calls],
        compare.row("opro", mine, load.ideal),
        compare.row("bare openai client", bare, load.ideal),
    ]
    table.show("search, every 50th answer an HTTP 500", compare.HEAD, rows)
