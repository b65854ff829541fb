"""Runs one scenario by name: `python -m scripts.benchmarks.main search`; none lists them."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

from scripts.benchmarks import machine

SCENARIOS = Path(__file__).with_name("scenarios")


def names() -> list[str]:
    """Return the scenarios: the modules of the folder beside this one."""
    return sorted(path.stem for path in SCENARIOS.glob("[!_]*.py"))


def main(arguments: list[str]) -> int:
    """Run the scenario that the first argument names, in a folder of its own."""
    known = names()
    if not arguments or arguments[0] not in known:
        for name in known:
            print(f"{name:<12}{(_module(name).__doc__ or '').splitlines()[0]}")
        return 2 if arguments and not arguments[0].startswith("-") else 0
    scenario = _module(arguments[0])
    parser = argparse.ArgumentParser(
        prog=f"scripts/bench {arguments[0]}", description=scenario.__doc__
    )
    scenario.add_arguments(parser)
    settings = parser.parse_args(arguments[1:])
    print(machine.describe())
    with tempfile.TemporaryDirectory(prefix="opro-bench-") as folder:
        return int(scenario.run(settings, Path(folder)) or 0)


def _module(name: str):  # type: ignore[no-untyped-def]
    return importlib.import_module(f"scripts.benchmarks.scenarios.{name}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
