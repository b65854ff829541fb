"""A search against an endpoint that answers after 200 ms: time, slots in use, CPU per request."""

from __future__ import annotations

import argparse
from pathlib import Path

from opro.testing.handle import in_process
from scripts.benchmarks import compare, process, table
from scripts.benchmarks.load import RULES, Load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--rounds", type=int, default=1, help="measure so often, in turns")


def run(settings: argparse.Namespace, folder: Path) -> None:
    """50 tasks, 8 candidates, 3 steps, 32 in flight: 44 waves of 200 ms at best."""
    load = Load()
    for number in range(settings.rounds):
        rows = [
            ["ideal", load.ideal, 1.0, load.calls * load.latency / load.ideal, 0.0, 0.0, load.calls]
        ]
        mine, scoring = _ours(load, folder / f"ours{number}")
        rows.append(compare.row("opro", mine, load.ideal))
        bare = compare.bare(load, folder / f"bare{number}")
        rows.append(compare.row("bare openai client", bare, load.ideal))
        table.show(f"search of {load.calls:,} calls, 200 ms each", compare.HEAD, rows)
        print(f"  mean in flight while scoring: {scoring:.2f} of {load.in_flight}")


def _ours(load: Load, folder: Path) -> tuple[process.Measured, float]:
    folder.mkdir()
    load.write(folder)
    with in_process(rules=RULES, latency=load.latency) as loopback:
        measured = process.opro(load.overrides(loopback), folder, loopback)
        return measured, _while_scoring(loopback.log())


def _while_scoring(log: list[dict[str, object]]) -> float:
    """Return the mean number of scoring requests in flight, outside the optimizer's calls."""
    times = {True: [], False: []}  # type: ignore[var-annotated]
    for entry in log:
        optimizing = "Your task is to generate" in str(entry["body"])
        times[optimizing].append((entry["begin"], entry["end"]))
    rest = max(end for _, end in times[False]) - min(begin for begin, _ in times[False])
    reach: float = 0.0
    for begin, end in sorted(times[True]):
        rest -= max(0.0, end - max(begin, reach))
        reach = max(reach, end)
    return float(sum(end - begin for begin, end in times[False]) / rest)
