"""What a search and an evaluation share: how their journal is opened and how they end."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from opro.errors import ConfigError, Interrupted, OproError
from opro.fingerprint import diff
from opro.journal import Journal
from opro.progress import Progress
from opro.records import RunEnd
from opro.runfolder import RunFolder
from opro.trackers.background import BackgroundTracker

UNTRACKED = "untracked"
"""A file of the run's folder: the tracker didn't get everything; `opro.sync` sends it."""

FLUSH = 120.0
"""Seconds that the tracker gets to finish after the search has."""


def journal_of(folder: Path, fingerprint: Mapping[str, Any], *, closed: bool = False) -> Journal:
    """Open a folder's journal, refusing one with another fingerprint.

    Raises:
        ConfigError: with the settings that differ.
    """
    header = {"opro_journal": 1, "fingerprint": fingerprint}
    journal = Journal(folder / "journal.jsonl", header, closed=closed)
    changed = diff(journal.header.get("fingerprint", {}), fingerprint)
    if changed:
        journal.close()
        raise ConfigError(
            f"trainer.run_name={folder.name}: was run with other settings: "
            f"{'; '.join(changed)}; choose another name to run with these"
        )
    return journal


class Watched(Protocol):
    """What people look at while something runs, and afterwards."""

    @property
    def folder(self) -> RunFolder:
        """Where its files lie."""

    @property
    def tracker(self) -> BackgroundTracker:
        """What logs it."""

    @property
    def progress(self) -> Progress:
        """What shows it."""


def end_early(parts: Watched, error: BaseException) -> None:
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
    close_tracker(parts, 2.5 if killed else FLUSH)
    parts.progress.stop()


def close_tracker(parts: Watched, timeout: float) -> int:
    """Wait for the tracker; return how many of its calls failed."""
    failures = parts.tracker.finish(timeout)
    if not failures:
        (parts.folder.path / UNTRACKED).unlink(missing_ok=True)
    return failures
