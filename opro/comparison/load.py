"""Reads the jobs of a sweep from its folder: what each ended with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opro.errors import ConfigError
from opro.sweeps.file import JobNote, SweepFile, load_jobs, load_sweep
from opro.types import Split

SPLITS: tuple[Split, ...] = ("train", "val", "test")


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """A job with what its folder holds of it.

    Attributes:
        note: where it stands.
        result: its `result.json`; empty for a job without one (it failed, or is at work).
    """

    note: JobNote
    result: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The job's name."""
        return self.note.name

    @property
    def winner(self) -> str | None:
        """The instruction it chose."""
        found = self.result.get("winner")
        return None if found is None else str(found["instruction"])

    @property
    def md5(self) -> str:
        """The winner's md5; '' without one."""
        return str(self.result.get("winner", {}).get("md5", ""))

    def scores(self, split: Split) -> dict[str, float]:
        """Return the winner's scores on a split by task id, without runs that failed."""
        found = self.result.get("scores", {}).get(split) or {}
        tasks = (found.get("winner") or {}).get("scores") or {}
        return {task: float(score) for task, score in tasks.items() if score is not None}

    def mean(self, split: Split) -> float | None:
        """Return the winner's mean on a split; None where it wasn't measured."""
        found = self.result.get("scores", {}).get(split) or {}
        mean = (found.get("winner") or {}).get("mean")
        if mean is None and split == "val":
            mean = next(
                (one["validation"] for one in self._finalists() if one["md5"] == self.md5), None
            )
        return None if mean is None else float(mean)

    def used(self, what: str) -> float | None:
        """Return `calls`, `tokens` or `usd` of the whole run; None: unknown."""
        found = self.result.get("totals", {}).get("used", {}).get(what)
        return None if found is None else float(found)

    def total(self, what: str) -> float:
        """Return `requests`, `cache_hits` or `seconds`."""
        return float(self.result.get("totals", {}).get(what, 0))

    def curve(self, x: str) -> list[tuple[float, float]]:
        """Return the best training score so far over `calls`, `tokens` or `usd` used."""
        points = self.result.get("curve", [])
        known = [(one.get(x), one["best"]) for one in points]
        return [(float(a), float(b)) for a, b in known if a is not None and b is not None]

    def _finalists(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.result.get("finalists", [])
        return found

    def value_of(self, key: str) -> str | None:
        """Return the value that an override gave a key; None: it wasn't overridden."""
        pairs = (one.partition("=") for one in self.note.overrides)
        return next((value for name, _, value in pairs if name == key), None)


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """All jobs of a sweep, in the natural order of their names (4 before 16)."""

    sweep: SweepFile
    folder: Path
    jobs: tuple[JobResult, ...]

    @property
    def done(self) -> list[JobResult]:
        """The jobs that ended with a winner."""
        return [job for job in self.jobs if job.winner is not None]


def load(folder: Path) -> Jobs:
    """Return the jobs of the sweep in a folder.

    Raises:
        ConfigError: there is no sweep.
    """
    sweep = load_sweep(folder)
    if sweep is None:
        raise ConfigError(f"{folder}: there is no sweep here (no sweep.json)")
    notes = sorted(load_jobs(folder).values(), key=lambda note: _natural(note.name))
    jobs = tuple(JobResult(note=note, result=_result(folder / note.name)) for note in notes)
    return Jobs(sweep=sweep, folder=folder, jobs=jobs)


def best_of(jobs: Jobs) -> tuple[JobResult, Split] | None:
    """Return the best job and the split on which it is: the test split has no say.

    The split is validation when every finished job's winner was measured there, else training.
    Of equal jobs it is the one that used fewer calls, then the first.
    """
    done = jobs.done
    if not done:
        return None
    split: Split = "val" if all(job.mean("val") is not None for job in done) else "train"
    ranked = [job for job in done if job.mean(split) is not None]
    if not ranked:
        return None
    best = max(ranked, key=lambda job: (job.mean(split) or 0.0, -(job.used("calls") or 0.0)))
    return best, split


def _result(folder: Path) -> Mapping[str, Any]:
    try:
        found = json.loads((folder / "result.json").read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _natural(name: str) -> list[tuple[int, float, str]]:
    parts = re.findall(r"\d+(?:\.\d+)?|\D+", name)
    return [(0, float(p), "") if p[0].isdigit() else (1, 0.0, p) for p in parts]
