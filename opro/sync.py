"""Entry point: `python -m opro.sync [NAME]` sends what a tracker did not get; asks no model.

A run is a function of its journal, so it is run again from it, with the network closed and the
tracker on. What the store already holds isn't sent twice.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from opro.comparison import best_folder
from opro.ending import FLUSH, UNTRACKED
from opro.errors import ConfigError, OproError
from opro.job import Place, open_journal
from opro.plain import plain
from opro.progress import Progress
from opro.provenance import run_info
from opro.records import RunEnd, RunInfo
from opro.runfolder import RunFolder
from opro.setup.assembly import Assembly, assemble
from opro.setup.composed import plain_config, secrets_of
from opro.sweeps.file import SweepFile, load_jobs, load_sweep, save_sweep
from opro.trackers.background import BackgroundTracker
from opro.trackers.base import Tracker
from opro.trainer import Parts, Trainer
from opro.wiring import connect

RUNS, SWEEPS = Path("mlruns/runs"), Path("mlruns/sweeps")


def main(arguments: Sequence[str] | None = None) -> int:
    """Send and return the exit status: 0 all is sent, 3 not all, 2 there is no such run."""
    parser = argparse.ArgumentParser(
        prog="opro.sync", description="Sends what a tracker did not get; asks no model."
    )
    parser.add_argument("name", nargs="?", help="a run or a sweep; none: all under mlruns/")
    name = parser.parse_args(arguments).name
    try:
        runs, sweeps = _wanted(name)
        sent = [_attempt(folder, _sync_sweep) for folder in sweeps]
        sent += [_attempt(folder, _sync_run) for folder in runs]
    except OproError as error:
        print(f"opro: {error}", file=sys.stderr)
        return 2
    if not sent:
        print("everything is tracked")
    return 0 if all(sent) else 3


def _wanted(name: str | None) -> tuple[list[Path], list[Path]]:
    """Return the folders of runs and of sweeps that aren't fully tracked."""
    if name is not None and not any((base / name).is_dir() for base in (RUNS, SWEEPS)):
        raise ConfigError(f"{name}: there is no such run or sweep under mlruns/")
    pattern = name or "*"
    runs = sorted(path.parent for path in RUNS.glob(f"{pattern}/{UNTRACKED}"))
    marked = {path.parent for path in SWEEPS.glob(f"{pattern}/{UNTRACKED}")}
    marked |= {path.parent.parent for path in SWEEPS.glob(f"{pattern}/*/{UNTRACKED}")}
    return runs, sorted(marked)


def _attempt(folder: Path, work: Any) -> bool:
    """Do one piece of work and say how it went; the others are tried anyway."""
    try:
        sent: bool = work(folder.absolute())
    except Exception as error:  # the tracker's own, whatever it is
        print(f"{folder}: {plain(f'{type(error).__name__}: {error}', 300)}", file=sys.stderr)
        return False
    print(f"{folder}: {'sent' if sent else 'not fully sent'}")
    return sent


def _sync_run(folder: Path, tags: Mapping[str, str] | None = None) -> bool:
    """Send one run; return whether all of it arrived."""
    again = _load(folder, tags or {})
    files = RunFolder(folder)
    with files.locked(), tempfile.TemporaryDirectory() as scratch, open(os.devnull, "w") as quiet:
        journal = open_journal(again.assembly, again.config, again.place, closed=True)
        progress = Progress(stream=quiet)
        tracker = BackgroundTracker(again.assembly.tracker, on_error=_say)
        tracker.prepare()
        tracker.on_run_start(again.info)
        parts = Parts(
            assembly=again.assembly,
            wires=connect(again.assembly, again.info, journal, progress),
            journal=journal,
            folder=RunFolder(Path(scratch)),
            tracker=tracker,
            progress=progress,
        )
        with journal, contextlib.closing(parts.wires):
            end = _run_again(parts, files)
        tracker.on_run_end(end)
        sent = tracker.finish(FLUSH) == 0
    if sent:
        (folder / UNTRACKED).unlink(missing_ok=True)
    return sent


def _sync_sweep(folder: Path) -> bool:
    """Send a sweep's parent, when it is missing, and those of its jobs that aren't sent."""
    sweep = load_sweep(folder)
    if sweep is None:
        raise ConfigError(f"{folder}: there is no sweep.json")
    names = [name for name in load_jobs(folder) if (folder / name / "run.json").exists()]
    orphaned = (folder / UNTRACKED).exists()
    if not orphaned:
        return all(
            [_sync_run(folder / name) for name in names if (folder / name / UNTRACKED).exists()]
        )
    if not names:
        raise ConfigError(f"{folder}: no job has been started")
    with contextlib.closing(_load(folder / names[0], {}).assembly.tracker) as tracker:
        return _sync_parent(folder, sweep, names, tracker)


def _sync_parent(folder: Path, sweep: SweepFile, names: list[str], tracker: Tracker) -> bool:
    tracker.prepare()
    about = {"opro.sweep": sweep.name, "opro.kind": "sweep", "opro.command": sweep.command}
    tags = {"opro.sweep": sweep.name, **tracker.open_sweep(sweep.name, folder, about)}
    save_sweep(folder, replace(sweep, tags=tags))
    sent = all([_sync_run(folder / name, tags) for name in names])
    best = best_folder(folder)
    if best is not None:
        tracker.crown(best)
    good = all(note.status == "ok" for note in load_jobs(folder).values())
    tracker.close_sweep("FINISHED" if good else "FAILED")
    if sent:
        (folder / UNTRACKED).unlink(missing_ok=True)
    return sent


@dataclass(frozen=True, kw_only=True)
class _Again:
    """A run put together once more from its folder."""

    assembly: Assembly
    config: Mapping[str, Any]
    place: Place
    info: RunInfo


def _load(folder: Path, tags: Mapping[str, str]) -> _Again:
    record = RunFolder(folder).read_json("run.json")
    if not isinstance(record, dict):
        raise ConfigError(f"{folder}: there is no run.json to make the run again from")
    composed = OmegaConf.create(record["config"])
    assert isinstance(composed, DictConfig)
    config = plain_config(composed)
    place = Place(
        launch=Path(record["launch"]),
        folder=folder,
        overrides=tuple(record["overrides"]),
        tags={**record["tags"], **tags},
        name=record["name"],
        command=record["command"],
        secrets=secrets_of(composed),
    )
    assembly = assemble(config, place.launch)
    info = run_info(assembly, config, place, resumed=True)
    return _Again(assembly=assembly, config=config, place=place, info=info)


def _run_again(parts: Parts, files: RunFolder) -> RunEnd:
    """Run from the journal; one that ended early ends as it did then."""
    try:
        summary = Trainer(parts).run()
    except OproError:
        error = "ended early"
        with contextlib.suppress(OSError):
            error = (files.path / "error.txt").read_text("utf-8").strip()
        killed = error.startswith("SIG")
        return RunEnd(
            status="KILLED" if killed else "FAILED",
            stop_reason=f"signal: {error}" if killed else "failed",
            summary=None,
            error=error,
        )
    return RunEnd(status="FINISHED", stop_reason=summary.stop_reason, summary=summary)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
