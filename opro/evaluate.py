"""Entry point: `python -m opro.evaluate`, given instructions on given tasks, without a search."""

from __future__ import annotations

import sys

from opro import run


def main() -> int:
    """Run the command line and return its exit status; see `opro.run.main`."""
    return run.main(run.evaluate)


if __name__ == "__main__":
    sys.exit(main())
