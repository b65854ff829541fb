"""No tracking: the run's folder is all there is."""

from __future__ import annotations

from opro.records import RunEnd, RunInfo, StepRecord, Totals
from opro.trackers.base import Tracker


class NoTracker(Tracker):
    """Keeps nothing, imports nothing, touches no store."""

    def on_run_start(self, info: RunInfo) -> None:
        """Do nothing."""

    def on_step_end(self, record: StepRecord, totals: Totals) -> None:
        """Do nothing."""

    def on_run_end(self, end: RunEnd) -> None:
        """Do nothing."""
