"""Entry point: `python -m opro.compare NAME` compares the jobs of a sweep."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from opro.comparison import publish
from opro.errors import OproError


def main(arguments: Sequence[str] | None = None) -> int:
    """Write and print the comparison; return the exit status (2: there is no such sweep)."""
    parser = argparse.ArgumentParser(
        prog="opro.compare", description="Compares the jobs of a sweep; asks no model."
    )
    parser.add_argument("name", help="the sweep: its trainer.run_name, or its folder")
    given = parser.parse_args(arguments).name
    named = Path("mlruns/sweeps") / given
    try:
        print(publish(named if named.is_dir() else Path(given)))
    except OproError as error:
        print(f"opro: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
