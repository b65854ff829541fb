"""What the jobs of a sweep and their parent tell each other: small files in the sweep's folder.

Files work for every launcher whose jobs see the folder, on this machine or on a cluster's file
system, and they outlive a kill.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, TypeVar

from opro.errors import ConfigError
from opro.runfolder import RunFolder
from opro.trackers import process

SWEEP, JOB, STOP = "sweep.json", "job.json", "stop.json"
T = TypeVar("T")
JobStatus = Literal["running", "ok", "failed", "killed"]


@dataclass(frozen=True, kw_only=True)
class SweepFile:
    """`sweep.json`: what a job needs to know of its sweep.

    Attributes:
        name: `trainer.run_name`.
        command: continues the sweep.
        swept: the keys that name the jobs.
        base: the settings that all jobs have in common, as in a run's fingerprint.
        tags: make a job's run a child of the sweep's.
        at_once: how many jobs may run at the same time; they share each model's limit.
        servers: addresses of models that the parent runs for all, by `opro.sweeps.sharing.key_of`.
        tracker: the address of what the parent's tracker shares; '' for nothing.
        owner: names the parent's process, see `opro.trackers.process`.
        stop_on_failure: `trainer.stop_sweep_on_failure`.
    """

    name: str
    command: str = ""
    swept: Sequence[str] = ()
    base: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    at_once: int = 1
    servers: Mapping[str, str] = field(default_factory=dict)
    tracker: str = ""
    owner: Mapping[str, str] = field(default_factory=dict)
    stop_on_failure: bool = False


@dataclass(frozen=True, kw_only=True)
class JobNote:
    """`job.json`: where a job stands.

    Attributes:
        name: of the job, which is its folder's.
        value: the sweeper's number.
        error: one line, for `failed` and `killed`.
        tracked: False when the tracker didn't get everything.
        skipped: it was finished before, so nothing was done.
        owner: names the job's process.
    """

    name: str
    overrides: Sequence[str]
    status: JobStatus
    value: float | None = None
    error: str = ""
    tracked: bool = True
    skipped: bool = False
    owner: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        """Tell whether its process is at work (as far as this machine can see)."""
        return self.status == "running" and not process.is_gone(self.owner)


def save_sweep(folder: Path, sweep: SweepFile) -> None:
    """Write `sweep.json`."""
    RunFolder(folder).write_json(SWEEP, asdict(sweep))


def load_sweep(folder: Path) -> SweepFile | None:
    """Return the folder's sweep; None when there is none."""
    return _load(folder / SWEEP, SweepFile)


def started_sweep(folder: Path) -> SweepFile:
    """Return the folder's sweep; raise ConfigError when there is none."""
    sweep = load_sweep(folder)
    if sweep is None:
        raise ConfigError(f"{folder}: there is no {SWEEP}; start sweeps with opro.run -m")
    return sweep


def save_job(folder: Path, note: JobNote) -> None:
    """Write `job.json`."""
    RunFolder(folder).write_json(JOB, asdict(note))


def load_jobs(folder: Path) -> dict[str, JobNote]:
    """Return the notes of a sweep's jobs, by name, in the order of their names."""
    found = {path.parent.name: _load(path, JobNote) for path in sorted(folder.glob(f"*/{JOB}"))}
    return {name: note for name, note in found.items() if note is not None}


def ask_to_stop(folder: Path, why: Literal["signal", "failure"]) -> None:
    """Let no further job of the sweep start; `signal`: those at work end, too."""
    RunFolder(folder).write_json(STOP, {"why": why})


def stop_reason(folder: Path) -> str | None:
    """Return why no further job may start; None: they may."""
    try:
        return str(json.loads((folder / STOP).read_text("utf-8"))["why"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def allow_start(folder: Path) -> None:
    """Take back what `ask_to_stop` left."""
    (folder / STOP).unlink(missing_ok=True)


def _load(path: Path, kind: type[T]) -> T | None:
    try:
        found = json.loads(path.read_text("utf-8"))
        names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
        return kind(**{key: value for key, value in found.items() if key in names})
    except (OSError, ValueError, TypeError, AttributeError):
        return None
