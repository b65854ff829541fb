"""What a sweep is going to run, checked before anything is made."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opro.errors import ConfigError
from opro.fingerprint import diff
from opro.llms.base import LLM
from opro.sweeps.file import SweepFile, load_jobs, load_sweep
from opro.trackers.base import Tracker

STRAY_SECONDS = 8.0
"""How long the jobs of a killed sweep get to notice that, and to end."""


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """One job, as its configuration was checked.

    Attributes:
        fingerprint: every setting that can change a score, flat.
    """

    name: str
    overrides: tuple[str, ...]
    fingerprint: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SweepPlan:
    """A sweep before its first job.

    Attributes:
        jobs: empty when the sweeper draws them one after the other.
        swept: keys that name the jobs, those of earlier starts first.
        settings: of one job, for the drawn ones.
        at_once: the most jobs that the launcher runs at the same time.
        llms: the distinct models of all jobs.
    """

    name: str
    folder: Path
    command: str
    jobs: tuple[PlannedJob, ...]
    swept: tuple[str, ...]
    settings: Mapping[str, Any]
    launcher: str
    at_once: int
    stop_on_failure: bool
    tracker: Tracker
    llms: tuple[LLM, ...]


def known_keys(folder: Path, swept: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that name the jobs of a sweep, so that a grid which grows keeps its names."""
    before = load_sweep(folder)
    return tuple(dict.fromkeys([*(before.swept if before else ()), *swept]))


def base_of(plan: SweepPlan) -> dict[str, Any]:
    """Return the settings in which no two jobs differ."""
    if not plan.jobs:
        drawn = {key.lstrip("+") for key in plan.swept}
        return {key: value for key, value in plan.settings.items() if key not in drawn}
    first, *others = [job.fingerprint for job in plan.jobs]
    missing = object()
    return {
        key: value
        for key, value in first.items()
        if all(other.get(key, missing) == value for other in others)
    }


def check_sweep(plan: SweepPlan) -> dict[str, Any]:
    """Raise ConfigError if the jobs clash with each other or with an earlier start of the sweep.

    Returns:
        The settings that all jobs, those of earlier starts too, have in common.
    """
    twice = [name for name, count in Counter(job.name for job in plan.jobs).items() if count > 1]
    if twice:
        raise ConfigError(f"hydra.sweeper: the job {twice[0]} occurs twice in this sweep")
    for job in plan.jobs:
        _check_journal(plan, job)
    base = base_of(plan)
    before = load_sweep(plan.folder)
    if before is None:
        return base
    _wait_for_strays(plan.folder, plan.name)
    _check_base(plan, before, base)
    return {key: value for key, value in before.base.items() if base.get(key) == value}


def _check_base(plan: SweepPlan, before: SweepFile, base: Mapping[str, Any]) -> None:
    """A setting that all jobs shared, and that they share now with another value, was changed."""
    drawn = {key.lstrip("+") for key in plan.swept}
    both = [key for key in before.base if key in base and key not in drawn]
    changed = diff({k: before.base[k] for k in both}, {k: base[k] for k in both})
    if changed:
        raise _refused(plan.name, changed)


def _check_journal(plan: SweepPlan, job: PlannedJob) -> None:
    path = plan.folder / job.name / "journal.jsonl"
    try:
        with open(path, encoding="utf-8") as file:
            header = json.loads(file.readline())
    except (OSError, ValueError):
        return  # a new job, or one that the job itself will refuse
    changed = diff(header.get("fingerprint", {}), job.fingerprint)
    if changed:
        raise _refused(f"{plan.name} (job {job.name})", changed)


def _refused(what: str, changed: Sequence[str]) -> ConfigError:
    return ConfigError(
        f"trainer.run_name={what}: was run with other settings: {'; '.join(changed)};"
        " choose another name for a sweep with these"
    )


def _wait_for_strays(folder: Path, name: str) -> None:
    """Let the jobs of a parent that was killed end; they notice it by themselves."""
    end = time.monotonic() + STRAY_SECONDS
    while True:
        running = [note for note in load_jobs(folder).values() if note.is_running]
        if not running:
            return
        if time.monotonic() > end:
            who = ", ".join(note.name for note in running[:3])
            raise ConfigError(f"trainer.run_name={name}: its jobs are still at work: {who}")
        time.sleep(0.1)
