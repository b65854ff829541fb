"""One evaluation from a resolved configuration: given instructions on given tasks, no search."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from opro import provenance
from opro.ending import FLUSH, close_tracker, end_early, journal_of
from opro.errors import BudgetExceeded, ConfigError, RunError
from opro.evaluated import Evaluated, contrasts, measure
from opro.job import Outcome, Place
from opro.journal import Journal
from opro.progress import Progress
from opro.records import RunEnd, RunInfo
from opro.references import Finder
from opro.reports import evaluation as report
from opro.rollouts import Job
from opro.runfolder import RunFolder
from opro.settings import EvaluationSettings
from opro.setup.assembly import Scoring, check_top, scoring_parts
from opro.setup.config import build
from opro.signals import stopping
from opro.sweeps.sharing import Shared, take_part
from opro.trackers.background import BackgroundTracker
from opro.types import Split
from opro.wiring import Doors

ROLES = ("data", "llm", "agent", "judge", "trainer", "tracker")
OWN = ("instructions", "split", "repeats")
OTHERS = ("seed", "template", "plan")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What is to be measured.

    Attributes:
        texts: the labels of each distinct instruction, in the order given.
        splits: those with tasks.
    """

    scoring: Scoring
    texts: Mapping[str, tuple[str, ...]]
    splits: tuple[Split, ...]
    split: str
    repeats: int

    @property
    def tasks(self) -> int:
        """How many tasks the splits have together."""
        return sum(len(self.scoring.dataset.split(split)) for split in self.splits)

    @property
    def calls(self) -> int:
        """The most model calls that it takes, retries aside."""
        agent, judge = self.scoring.agent, self.scoring.judge
        asked = self.scoring.agent_llm is not None
        each = (agent.max_calls if asked else 0) + judge.max_calls
        return len(self.texts) * self.tasks * self.repeats * each

    def plan(self) -> str:
        """Return what it would take, in one line."""
        runs = len(self.texts) * self.tasks * self.repeats
        note = "" if self.scoring.tasks_known else " (data.path=null: by the published sizes)"
        return (
            f"{len(self.texts)} instructions × {self.tasks:,} tasks of {self.split} × "
            f"{self.repeats} repeats = {runs:,} runs, up to {self.calls:,} model calls{note}"
        )


@dataclass(frozen=True, kw_only=True)
class _Parts:
    doors: Doors
    journal: Journal
    folder: RunFolder
    tracker: BackgroundTracker
    progress: Progress


def prepare(config: Mapping[str, Any], launch: Path) -> Evaluation:
    """Build and check all parts and find the instructions; no model is asked.

    Raises:
        ConfigError: one line, for the first thing that can't work.
    """
    check_top(config, ROLES, (*OWN, *OTHERS))
    wanted = _settings({key: config[key] for key in OWN if key in config})
    scoring, _ = scoring_parts(config, launch)
    names: tuple[Split, ...] = get_args(Split)
    splits = tuple(one for one in names if wanted.split in (one, "all"))
    splits = tuple(one for one in splits if scoring.dataset.split(one))
    if not splits:
        raise ConfigError(
            f"split={wanted.split}: {scoring.dataset.name} has no such tasks; see"
            f" data.{wanted.split}, or choose another split"
        )
    texts: dict[str, tuple[str, ...]] = {}
    with contextlib.closing(scoring.tracker) as tracker:  # for now: this may be a check only
        for one in Finder(launch, tracker).find(wanted.instructions):
            texts[one.text] = (*texts.get(one.text, ()), one.label)
    return Evaluation(
        scoring=scoring, texts=texts, splits=splits, split=wanted.split, repeats=wanted.repeats
    )


def run(config: Mapping[str, Any], place: Place) -> Outcome:
    """Evaluate, or continue an evaluation: what its journal holds isn't asked again.

    Raises:
        OproError: it failed or was refused; what is finished is kept.
    """
    evaluation = prepare(config, place.launch)
    if config.get("plan"):  # only in a multirun: elsewhere it has been printed before
        print(evaluation.plan())
        return Outcome(value=None, status=0)
    scoring = evaluation.scoring
    take_part(scoring.llms, place.shared or Shared())
    command = place.command or provenance.command(scoring, place, "opro.evaluate")
    place = replace(place, command=command)
    folder = RunFolder(place.folder)
    with folder.locked():
        fingerprint = provenance.scoring_fingerprint(scoring, config, place)
        with journal_of(place.folder, fingerprint) as journal:
            texts = tuple(evaluation.texts)
            info = provenance.scoring_info(scoring, config, place, texts, resumed=journal.resumed)
            return _run(evaluation, journal, folder, info)


def _settings(given: Mapping[str, Any]) -> EvaluationSettings:
    try:
        found: EvaluationSettings = build(
            {"_target_": "opro.settings.EvaluationSettings", **given}, ""
        )
    except ConfigError as error:
        raise ConfigError(str(error).removeprefix(".")) from None
    return found


def _run(evaluation: Evaluation, journal: Journal, folder: RunFolder, info: RunInfo) -> Outcome:
    folder.write_json("config.json", dict(info.params))
    progress = Progress()
    tracker = BackgroundTracker(evaluation.scoring.tracker, on_error=progress.note)
    parts = _Parts(
        doors=Doors(evaluation.scoring, info, journal, progress.call_done),
        journal=journal,
        folder=folder,
        tracker=tracker,
        progress=progress,
    )
    tracker.prepare()
    tracker.on_run_start(info)
    progress.start(info, evaluation.calls, steps=0)
    try:
        with contextlib.closing(parts.doors), stopping(parts.doors.stop):
            found = _evaluate(evaluation, parts)
        _write(parts, found, info)
        _close_journal(parts, found)
    except BaseException as error:
        end_early(parts, error)
        print(f"what is finished is kept; to go on: {info.tags['opro.command']}")
        raise
    return _finish(parts, found, info)


def _evaluate(evaluation: Evaluation, parts: _Parts) -> Evaluated:
    """Run every instruction on every task, in one pool; each repeat is a sample of its own.

    The answers that runs share (`llm.cache`) play no part: a measurement isn't served another's.
    """
    whole = evaluation.scoring.dataset
    repeats = range(evaluation.repeats)
    jobs = [
        Job(
            instruction=text,
            tasks=whole.split(split),
            at=(repeat, "evaluate"),
            split=split,
            sample=repeat,
        )
        for text in evaluation.texts
        for repeat in repeats
        for split in evaluation.splits
    ]
    results = iter(parts.doors.rollouts.evaluate(jobs))
    measured = tuple(
        measure(
            labels,
            [(repeat, split, next(results)) for repeat in repeats for split in evaluation.splits],
            evaluation.tasks,
        )
        for labels in evaluation.texts.values()
    )
    error = parts.doors.stop.error
    return Evaluated(
        split=evaluation.split,
        tasks=evaluation.tasks,
        repeats=evaluation.repeats,
        measured=measured,
        contrasts=contrasts(measured),
        totals=parts.doors.meter.totals(),
        stop_reason=f"budget: {error}" if isinstance(error, BudgetExceeded) else "done",
    )


def _write(parts: _Parts, found: Evaluated, info: RunInfo) -> None:
    parts.folder.write("report.md", report.render(found, info))
    parts.folder.write("per_task.csv", report.csv_of(found))
    parts.folder.write_json("result.json", report.json_of(found, info))
    parts.tracker.on_evaluation(found)


def _close_journal(parts: _Parts, found: Evaluated) -> None:
    """Let runs that failed twice be asked again when the evaluation is continued.

    Raises:
        RunError: nothing could be scored at all.
    """
    failed = [row for one in found.measured for row in one.rows if row.score is None]
    if failed or found.stop_reason != "done":
        parts.journal.stop(found.stop_reason, void_errors_from=0 if failed else None)
    if failed and not any(one.scores for one in found.measured):
        raise RunError(f"no run could be scored; last cause: {failed[-1].reason}")


def _finish(parts: _Parts, found: Evaluated, info: RunInfo) -> Outcome:
    parts.tracker.on_run_end(RunEnd(status="FINISHED", stop_reason=found.stop_reason, summary=None))
    failures = close_tracker(parts, FLUSH)
    parts.progress.stop()
    for line in (*report.lines(found), f"Report: {parts.folder.path / 'report.md'}"):
        print(line)
    if parts.tracker.where():
        print(f"MLflow: {parts.tracker.where()}")
    if any(one.mean is None for one in found.measured):
        why = "some runs failed twice" if found.stop_reason == "done" else found.stop_reason
        print(f"not whole ({why}); to go on: {info.tags['opro.command']}")
    if failures:
        print(f"done, but not fully tracked: {failures} calls of the tracker failed; to send all")
        print(f"of it again, which asks no model: {info.tags['opro.command']}")
    means = [one.mean for one in found.measured if one.mean is not None]
    return Outcome(value=max(means, default=None), status=3 if failures else 0)
