"""One run from a resolved configuration: opens its folder, runs the trainer, closes up."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opro import provenance
from opro.assembly import Assembly, assemble
from opro.curve import draw_curve
from opro.errors import ConfigError, Interrupted, OproError
from opro.fingerprint import diff
from opro.journal import Journal
from opro.planning import make_plan
from opro.progress import Progress, summary_lines
from opro.records import RunEnd, RunInfo, Summary
from opro.report import render_run
from opro.result import result_of, value_of
from opro.runfolder import RunFolder
from opro.signals import stopping
from opro.trackers.background import BackgroundTracker
from opro.trainer import Parts, Trainer
from opro.wiring import connect

FLUSH = 120.0
"""Seconds that the tracker gets to finish after the search has."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a run was started and where it keeps its files.

    Attributes:
        launch: the folder that relative paths are relative to.
        folder: the run's own.
        overrides: the command line's, for the record.
        tags: more tags for the tracker (a sweep's).
        secrets: values that came from the environment, each with the text that stands for it.
    """

    launch: Path
    folder: Path
    overrides: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a job hands back: the sweeper's number, and the exit status (3: not all tracked)."""

    value: float | None
    status: int


def run(config: Mapping[str, Any], place: Place) -> Outcome:
    """Run or continue one search, or replay it.

    Raises:
        OproError: the run failed or was refused; what is finished is kept.
    """
    assembly = assemble(config, place.launch)
    folder = RunFolder(place.folder)
    with folder.locked():
        if assembly.settings.resume_mode == "replay":
            from opro.replay import replay  # late: few runs are replays

            return Outcome(value=replay(assembly, config, place), status=0)
        _refuse_finished(folder, assembly)
        with open_journal(assembly, config, place) as journal:
            info = provenance.run_info(assembly, config, place, resumed=journal.resumed)
            return _search(assembly, journal, folder, info)


def open_journal(
    assembly: Assembly, config: Mapping[str, Any], place: Place, *, closed: bool = False
) -> Journal:
    """Open a run's journal, refusing one that other settings or data wrote.

    Raises:
        ConfigError: with the settings that differ.
    """
    fingerprint = provenance.fingerprint(assembly, config, place)
    path = place.folder / "journal.jsonl"
    journal = Journal(path, {"opro_journal": 1, "fingerprint": fingerprint}, closed=closed)
    changed = diff(journal.header.get("fingerprint", {}), fingerprint)
    if changed:
        journal.close()
        raise ConfigError(
            f"trainer.run_name={place.folder.name}: was run with other settings: "
            f"{'; '.join(changed)}; choose another name to run with these"
        )
    return journal


def write_reports(folder: RunFolder, summary: Summary, info: RunInfo) -> None:
    """Write report.md, curve.png and result.json."""
    folder.write("report.md", render_run(summary, info))
    draw_curve(summary, folder.path / "curve.png")
    folder.write_json("result.json", result_of(summary, info))


def _refuse_finished(folder: RunFolder, assembly: Assembly) -> None:
    settings, name = assembly.settings, assembly.settings.run_name
    if settings.resume_mode == "disable" and folder.has("journal.jsonl"):
        raise ConfigError(
            f"trainer.run_name={name}: exists, and trainer.resume_mode=disable; choose another name"
        )
    result = folder.read_json("result.json")
    if not isinstance(result, dict) or result.get("stop_reason") != "epochs":
        return
    if settings.epochs <= int(result.get("steps", 0)):
        raise ConfigError(
            f"trainer.run_name={name}: this run is finished ({result['steps']} steps); give"
            " trainer.epochs more steps to go on, trainer.resume_mode=replay to check it,"
            " or another name"
        )


def _search(assembly: Assembly, journal: Journal, folder: RunFolder, info: RunInfo) -> Outcome:
    folder.write_json("config.json", dict(info.params))
    progress = Progress()
    tracker = BackgroundTracker(assembly.tracker, on_error=progress.note)
    wires = connect(assembly, journal, progress)
    plan = make_plan(assembly)
    parts = Parts(
        assembly=assembly,
        wires=wires,
        journal=journal,
        folder=folder,
        tracker=tracker,
        progress=progress,
    )
    tracker.prepare()
    tracker.on_run_start(info)
    progress.start(info, plan.calls)
    for notice in (*assembly.notices, plan.warning):
        if notice:
            progress.note(notice)
    try:
        with contextlib.closing(wires), stopping(wires.stop):
            summary = Trainer(parts).run()
    except BaseException as error:
        _end_early(parts, error)
        print(f"what is finished is kept; to go on: {info.tags['opro.command']}")
        raise
    return _finish(parts, summary, info)


def _finish(parts: Parts, summary: Summary, info: RunInfo) -> Outcome:
    if summary.stop_reason.startswith("budget"):
        parts.journal.stop(summary.stop_reason)
    write_reports(parts.folder, summary, info)
    end = RunEnd(status="FINISHED", stop_reason=summary.stop_reason, summary=summary)
    parts.tracker.on_run_end(end)
    failures = parts.tracker.close(FLUSH)
    parts.progress.stop()
    for line in summary_lines(summary, info, parts.tracker.where()):
        print(line)
    if summary.stop_reason.startswith("budget"):
        print(f"to go on with a larger budget: {info.tags['opro.command']}")
    if failures:
        print(f"done, but not fully tracked: {failures} calls of the tracker failed")
    return Outcome(value=value_of(summary), status=3 if failures else 0)


def _end_early(parts: Parts, error: BaseException) -> None:
    """Record a failure or a signal wherever people look."""
    killed = isinstance(error, Interrupted | KeyboardInterrupt)
    known = killed or isinstance(error, OproError)
    text = str(error) if known else "".join(traceback.format_exception(error))
    with contextlib.suppress(OproError):
        parts.folder.write("error.txt", f"{text}\n")
    end = RunEnd(
        status="KILLED" if killed else "FAILED",
        stop_reason=f"signal: {text}" if killed else "failed",
        summary=None,
        error=text,
    )
    parts.tracker.on_run_end(end)
    parts.tracker.close(1.0 if killed else FLUSH)
    parts.progress.stop()
