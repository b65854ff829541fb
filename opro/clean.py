"""Removes what runs left behind when they were killed: `python -m opro.clean`.

A run takes its containers, commands and scratch folders with it, also after Ctrl-C. Only a kill -9
or a power cut leaves some. Found are this project's containers by their label, and this user's
scratch folders by their name; removed are those whose process is gone, with the processes that
still work in such a folder. Nothing else is ever touched.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence

from opro import owner
from opro.agents.box import ContainerFailed, Found
from opro.agents.docker_engine import Engine
from opro.processes import end_of_folder, remove_folder, scratch_folders


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 1 when the daemon could not be asked."""
    parser = argparse.ArgumentParser(prog="python -m opro.clean", description=__doc__.split(":")[0])
    parser.add_argument(
        "--all", action="store_true", help="those of processes that still run or run elsewhere, too"
    )
    parser.add_argument("--run", metavar="NAME", help="only containers of this run or job")
    parser.add_argument("--sweep", metavar="NAME", help="only containers of this sweep's jobs")
    options = parser.parse_args(arguments)
    named = {"opro.run": options.run, "opro.sweep": options.sweep}
    wanted = {label: name for label, name in named.items() if name is not None}
    folders = 0 if wanted else _folders(options.all)
    try:
        with Engine() as engine:
            containers = _containers(engine, options.all, wanted)
    except ImportError:
        containers = 0  # without the package no run of ours can have made one
    except ContainerFailed as error:
        print(f"opro: containers can't be looked for: {error}", file=sys.stderr)
        return 1
    print(f"removed {containers} containers and {folders} scratch folders")
    return 0


def _containers(engine: Engine, everything: bool, wanted: Mapping[str, str]) -> int:
    removed = 0
    for found in engine.ours():
        if not wanted.items() <= found.labels.items():
            continue
        why = "" if everything else _kept(found)
        if why:
            print(f"kept container {_named(found)}: {why}")
        elif engine.remove(found.id):
            print(f"removed container {_named(found)}")
            removed += 1
    return removed


def _kept(found: Found) -> str:
    """Return why a container must stay, or ''."""
    made_by = owner.read(found.labels.get("opro.owner", ""))
    if made_by is None:
        return "nothing says who made it (--all removes it)"
    if not made_by.here:
        return f"made on {made_by.host} (--all removes it)"
    return f"its process {made_by.pid} still runs" if made_by.alive else ""


def _named(found: Found) -> str:
    names = {name: found.labels.get(f"opro.{name}", "") for name in ("sweep", "run", "task")}
    told = [f"{name} {text!r}" for name, text in names.items() if text or name != "sweep"]
    return f"{found.id[:12]} ({', '.join(told)})"


def _folders(everything: bool) -> int:
    removed = 0
    for path, made_by in scratch_folders():
        if made_by.alive and not everything:
            print(f"kept {path}: its process {made_by.pid} still runs")
            continue
        ended = end_of_folder(path)
        remove_folder(path)
        print(f"removed {path}{f' and ended {ended} processes' if ended else ''}")
        removed += 1
    return removed


if __name__ == "__main__":
    sys.exit(main())
