"""One run from a resolved configuration: opens its folder, runs the trainer, closes up."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opro import provenance
from opro.cache import AnswerCache
from opro.ending import FLUSH, UNTRACKED, close_tracker, end_early, journal_of
from opro.errors import ConfigError
from opro.journal import Journal
from opro.progress import Progress, summary_lines
from opro.records import RunEnd, RunInfo, Summary
from opro.reports.curve import draw_curve
from opro.reports.run import render_run
from opro.result import result_of, value_of
from opro.runfolder import RunFolder
from opro.setup.assembly import Assembly, assemble
from opro.setup.planning import make_plan
from opro.signals import stopping
from opro.sweeps.sharing import Shared, take_part
from opro.trackers.background import BackgroundTracker
from opro.trainer import Parts, Trainer
from opro.wiring import connect

COLLECT_EVERY = 50_000
"""New objects, of those that may be part of a cycle, before Python looks for cycles; 700 else."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a run was started and where it keeps its files.

    Attributes:
        launch: the folder that relative paths are relative to.
        folder: the run's own.
        overrides: the command line's, for the record.
        tags: more tags for the tracker (a sweep's).
        name: the run's, for people; '' is `trainer.run_name`.
        command: continues the run; '' is made from `overrides`.
        shared: this job's part of its models; None outside a sweep. In a sweep a finished run
            is skipped, where elsewhere it is refused.
        secrets: values that came from the environment, each with the text that stands for it.
    """

    launch: Path
    folder: Path
    overrides: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    command: str = ""
    shared: Shared | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a job hands back.

    Attributes:
        value: the sweeper's number.
        status: the exit status (3: not all tracked).
        skipped: the run was finished before.
    """

    value: float | None
    status: int
    skipped: bool = False


def run(config: Mapping[str, Any], place: Place) -> Outcome:
    """Run or continue one search, or replay it.

    Raises:
        OproError: the run failed or was refused; what is finished is kept.
    """
    assembly = assemble(config, place.launch)
    shared = place.shared or Shared()
    take_part(assembly.llms, shared)
    assembly.tracker.join(shared.tracker)
    folder = RunFolder(place.folder)
    with folder.locked():
        if assembly.settings.resume_mode == "replay":
            from opro.replay import replay  # late: few runs are replays

            return Outcome(value=replay(assembly, config, place), status=0)
        _refuse_existing(folder, assembly)
        done = _finished(folder, assembly)
        if done is not None and place.shared is None:
            raise ConfigError(
                f"trainer.run_name={place.folder.name}: this run is finished ({done['steps']}"
                " steps); give trainer.epochs more steps to go on, trainer.resume_mode=replay to"
                " check it, or another name"
            )
        with open_journal(assembly, config, place) as journal:
            if done is not None and not folder.has(UNTRACKED):
                return Outcome(value=done["value"], status=0, skipped=True)
            info = provenance.run_info(assembly, config, place, resumed=journal.resumed)
            folder.write_json("run.json", provenance.record(config, place))
            folder.write(UNTRACKED, "")
            return _search(assembly, journal, folder, info, place.launch)


def open_journal(
    assembly: Assembly, config: Mapping[str, Any], place: Place, *, closed: bool = False
) -> Journal:
    """Open a run's journal, refusing one that other settings or data wrote.

    Raises:
        ConfigError: with the settings that differ.
    """
    fingerprint = provenance.fingerprint(assembly, config, place)
    return journal_of(place.folder, fingerprint, closed=closed)


def write_reports(folder: RunFolder, summary: Summary, info: RunInfo) -> None:
    """Write report.md, curve.png and result.json."""
    folder.write("report.md", render_run(summary, info))
    draw_curve(summary, folder.path / "curve.png")
    folder.write_json("result.json", result_of(summary, info))


def _refuse_existing(folder: RunFolder, assembly: Assembly) -> None:
    if assembly.settings.resume_mode == "disable" and folder.has("journal.jsonl"):
        raise ConfigError(
            f"trainer.run_name={folder.path.name}: exists, and trainer.resume_mode=disable;"
            " choose another name"
        )


def _finished(folder: RunFolder, assembly: Assembly) -> dict[str, Any] | None:
    """Return the result of a run whose steps are all done; None for others."""
    result = folder.read_json("result.json")
    if not isinstance(result, dict) or result.get("stop_reason") != "epochs":
        return None
    return result if assembly.settings.epochs <= int(result.get("steps", 0)) else None


def _search(
    assembly: Assembly, journal: Journal, folder: RunFolder, info: RunInfo, launch: Path
) -> Outcome:
    folder.write_json("config.json", dict(info.params))
    progress = Progress()
    tracker = BackgroundTracker(assembly.tracker, on_error=progress.note)
    cache = _cache(assembly, launch, progress)
    wires = connect(assembly, info, journal, progress, cache)
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
    progress.start(info, plan.calls, steps=assembly.settings.epochs)
    for notice in (*assembly.notices, plan.warning):
        if notice:
            progress.note(notice)
    try:
        with _closing(cache), contextlib.closing(wires), stopping(wires.stop), _rare_collections():
            summary = Trainer(parts).run()
    except BaseException as error:
        end_early(parts, error)
        print(f"what is finished is kept; to go on: {info.tags['opro.command']}")
        raise
    return _finish(parts, summary, info)


def _cache(assembly: Assembly, launch: Path, progress: Progress) -> AnswerCache | None:
    if not any(llm.cache for llm in assembly.llms):
        return None
    return AnswerCache(launch / "mlruns" / "cache", progress.note)


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    """Let Python look for garbage cycles less often: a search keeps many records, none in a cycle.

    Going through them took a tenth of a long run's CPU.
    """
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_EVERY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _closing(cache: AnswerCache | None) -> contextlib.AbstractContextManager[object]:
    return contextlib.nullcontext() if cache is None else contextlib.closing(cache)


def _finish(parts: Parts, summary: Summary, info: RunInfo) -> Outcome:
    if summary.stop_reason.startswith("budget"):
        parts.journal.stop(summary.stop_reason)
    write_reports(parts.folder, summary, info)
    end = RunEnd(status="FINISHED", stop_reason=summary.stop_reason, summary=summary)
    parts.tracker.on_run_end(end)
    failures = close_tracker(parts, FLUSH)
    parts.progress.stop()
    for line in summary_lines(summary, info, parts.tracker.where()):
        print(line)
    if summary.stop_reason.startswith("budget"):
        print(f"to go on with a larger budget: {info.tags['opro.command']}")
    if failures:
        print(
            f"done, but not fully tracked: {failures} calls of the tracker failed; to send what"
            f" is missing: python -m opro.sync {parts.assembly.settings.run_name}"
        )
    return Outcome(value=value_of(summary), status=3 if failures else 0)
