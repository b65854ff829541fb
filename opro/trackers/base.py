"""What a tracker promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from opro.errors import ConfigError
from opro.evaluated import Evaluated
from opro.records import RunEnd, RunInfo, RunStatus, StepRecord, Totals


class Tracker(ABC):
    """Keeps what happened in a run; it only observes.

    The trainer calls it from one background thread, in order: `prepare`, `on_run_start`, then
    `on_step_end` per step, `on_run_end` last (always, also after a failure or a signal). What a
    method raises is logged and counted, never passed on to the search; the exit status says that
    a run is done but not fully tracked. Everything tracked also lies in the run's folder.

    Attributes:
        apart: run in a process of its own (see `opro.trackers.apart`), since its imports or its
            work would hold up the search. Such a tracker can be pickled until its first call.
    """

    apart: ClassVar[bool] = False

    def load(self) -> None:
        """Import what the calls need; called when `apart`, while the search gets ready."""
        return

    def prepare(self) -> None:
        """Make the store ready; called once in the parent process before any job starts."""
        return

    def open_sweep(self, name: str, folder: Path, tags: Mapping[str, str]) -> Mapping[str, str]:
        """Open (or reopen) the parent of a sweep's runs; called once, after `prepare`.

        Args:
            name: the sweep's name, for people.
            folder: the sweep's folder, which tells a continued sweep from a new one.
            tags: of the parent.

        Returns:
            The tags that make a run a child of this sweep; each job adds them to `RunInfo.tags`.
        """
        return {}

    def crown(self, folder: Path) -> None:
        """Mark the winner of the run in `folder` as the sweep's best; before `close_sweep`."""
        return

    def close_sweep(self, status: RunStatus) -> None:
        """Close what `open_sweep` opened, after its last job; uploads the sweep's report."""
        return

    @abstractmethod
    def on_run_start(self, info: RunInfo) -> None:
        """Open (or, resumed, reopen) the run and log its params, tags and data set."""

    @abstractmethod
    def on_step_end(self, record: StepRecord, totals: Totals) -> None:
        """Log one step; called again for steps answered from the journal on a resume."""

    @abstractmethod
    def on_run_end(self, end: RunEnd) -> None:
        """Log the result and close the run with its status."""

    def on_evaluation(self, found: Evaluated) -> None:
        """Log an evaluation (`opro.evaluate`); called in place of steps, before `on_run_end`."""
        return

    def winner_of(self, run_id: str) -> str:
        """Return the instruction that a tracked run ended with, byte for byte.

        Raises:
            ConfigError: there is no such run, it has no winner, or this tracker keeps none.
        """
        raise ConfigError(f"instructions: mlflow:{run_id}: only tracker=mlflow keeps runs")

    def prompt(self, name: str) -> str:
        """Return the text of a registered prompt, byte for byte.

        Args:
            name: `NAME` (its latest version), `NAME@alias` or `NAME/version`.

        Raises:
            ConfigError: there is no such prompt, or this tracker keeps none.
        """
        raise ConfigError(f"instructions: prompt:{name}: only tracker=mlflow keeps prompts")

    def where(self) -> str:
        """Return one line that tells a person where to look (the exact UI command), or ''."""
        return ""

    def share(self) -> str:
        """Start what the jobs of a sweep can use together and return its address; '': nothing."""
        return ""

    def join(self, address: str) -> None:
        """Use what the sweep's parent shares at `address`; called before all else."""
        return

    def close(self) -> None:
        """Release what the tracker holds; called after all else, perhaps while a call hangs."""
        return
