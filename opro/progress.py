"""What a person sees while a run goes on: a live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TextIO

from opro.plain import plain
from opro.records import RunInfo, StepRecord, Summary, Totals
from opro.reports import markdown as md
from opro.reports.result import sure
from opro.types import Usage

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

__all__ = ["Progress", "plain", "summary_lines"]

REDRAWS_PER_SECOND = 4
QUIET_SECONDS = 30.0
"""Without a terminal, the least time between two lines within a step."""

WINDOW_SECONDS = 60.0
"""The time left is guessed from the calls of so long a time."""


class Progress:
    """Shows how far a run is. `call_done` may be called from many threads, thousands of times.

    Args:
        stream: where to write; None is stderr.
        live: redraw one line in place; None: if the stream is a terminal. Jobs that share a
            terminal must not.
        label: written before each line, to tell such jobs apart.
        clock: seconds, for tests.
    """

    def __init__(
        self,
        *,
        stream: TextIO | None = None,
        live: bool | None = None,
        label: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_live = self._stream.isatty() if live is None else live
        self._label = f"[{plain(label, 40)}] " if label else ""
        self._clock = clock
        self._lock = threading.Lock()
        self._live: Live | None = None
        self._done = self._planned = 0
        self._steps: int | None = None
        self._step = 0
        self._best: float | None = None
        self._totals: Totals | None = None
        self._seen: deque[tuple[float, int]] = deque()
        self._next_line = 0.0

    def start(self, info: RunInfo, planned_calls: int, *, steps: int | None = None) -> None:
        """Say what is going to happen and begin to show it.

        Args:
            info: of the run.
            planned_calls: model calls of the whole run, as far as known; 0: unknown.
            steps: of the whole run; None: unknown; 0: it has none.
        """
        self._planned, self._steps = planned_calls, steps
        data = info.dataset
        sizes = ", ".join(
            f"{len(tasks):,} {name}"
            for name, tasks in (("train", data.train), ("val", data.val), ("test", data.test))
        )
        verb = "continues" if info.resumed else "starts"
        plan = f"; at most {planned_calls:,} model calls" if planned_calls else ""
        self._print(f"{info.name} {verb}: {data.name} ({sizes} tasks){plan}; folder {info.folder}")
        self._next_line = self._clock() + QUIET_SECONDS
        if self._is_live:
            self._begin_live()

    def call_done(self, role: str) -> None:
        """Count one answer."""
        with self._lock:
            self._done += 1
            if self._is_live or self._clock() < self._next_line:
                return
            self._next_line = self._clock() + QUIET_SECONDS
        self._print(self._status())

    def step_done(self, record: StepRecord, totals: Totals) -> None:
        """Write the line that stays of a finished step."""
        old = self._best
        self._best, self._totals = record.best.score, totals
        self._step = record.step + 1  # the one that begins now
        if self._steps is not None:
            self._step = min(self._step, self._steps - 1)
        self._next_line = self._clock() + QUIET_SECONDS
        self._print(_step_line(record, old, self._of_steps(record.step), totals))

    def note(self, text: str) -> None:
        """Write a notice or warning; may hold text of models or servers."""
        self._print(plain(text, 500))

    def stop(self) -> None:
        """End the live line; may be called at any time, more than once."""
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(OSError, ValueError):
                live.stop()

    def _begin_live(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream, highlight=False, markup=False, emoji=False)
        self._live = Live(
            get_renderable=self._render,
            console=console,
            refresh_per_second=REDRAWS_PER_SECOND,
            transient=True,
        )
        self._live.start()

    def _render(self) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        row = Table.grid(padding=(0, 1))
        total = max(self._planned, self._done) or None
        bar = ProgressBar(total=total, completed=self._done, width=24)
        row.add_row(bar, Text(self._status(), overflow="ellipsis", no_wrap=True))
        return row

    def _status(self) -> str:
        parts = [] if self._steps == 0 else [f"step {self._of_steps(self._step)}"]
        left = f"/{self._planned:,}" if self._planned >= self._done else ""
        parts.append(f"{self._done:,}{left} calls")
        if self._best is not None:
            parts.append(f"best {self._best:.3f}")
        if self._totals is not None:
            parts += _spent(self._totals)
        seconds = self._seconds_left()
        if seconds is not None:
            parts.append(f"{duration(seconds)} left")
        return " · ".join(parts)

    def _of_steps(self, step: int) -> str:
        """Return a step's number, from 0 as everywhere, and how far that is."""
        return f"{step}" if self._steps is None else f"{step} ({step + 1} of {self._steps})"

    def _seconds_left(self) -> float | None:
        now = self._clock()
        self._seen.append((now, self._done))
        while self._seen[0][0] < now - WINDOW_SECONDS and len(self._seen) > 2:
            self._seen.popleft()
        then, done = self._seen[0]
        if self._done == done or now <= then or self._planned <= self._done:
            return None
        return (self._planned - self._done) * (now - then) / (self._done - done)

    def _print(self, line: str) -> None:
        text = self._label + plain(line, 600)
        with contextlib.suppress(OSError, ValueError):  # a closed pipe is no reason to stop
            if self._live is None:
                self._stream.write(text + "\n")
                self._stream.flush()
            else:
                self._live.console.print(text, soft_wrap=True)


def _step_line(record: StepRecord, old: float | None, step: str, totals: Totals) -> str:
    means = [c.evaluation.mean for c in record.candidates if c.evaluation]
    known = [mean for mean in means if mean is not None]
    best = md.score(record.best.score)
    if record.best.step == record.step:
        best += " (new)"
    if old is None and record.initial and record.initial[0].mean is not None:
        best += f", initial {record.initial[0].mean:.3f}"
    parts = [f"step {step}: best {best}"]
    if known:
        parts.append(
            f"{len(known)} scored, mean {sum(known) / len(known):.3f}, max {max(known):.3f}"
        )
    for status in ("duplicate", "skipped", "unscored", "failed"):
        n = record.count(status)
        if n:
            parts.append(f"{n} {status}")
    return " · ".join([*parts, *_spent(totals), duration(totals.seconds)])


def _spent(totals: Totals) -> list[str]:
    tokens, usd = _tokens(totals.by_role.values()), _usd(totals.by_role.values())
    parts = [] if tokens is None else [f"{tokens:,} tokens"]
    return parts if usd is None else [*parts, md.usd(usd)]


def _tokens(usages: Iterable[Usage]) -> int | None:
    counts = [n for usage in usages for n in (usage.prompt_tokens, usage.completion_tokens)]
    known = [n for n in counts if n is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _usd(usages: Iterable[Usage]) -> float | None:
    costs = [usage.usd for usage in usages]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def duration(seconds: float) -> str:
    """Return a length of time for people: `12 s`, `3 min`, `2 h 05 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def summary_lines(summary: Summary, info: RunInfo, ui_command: str) -> list[str]:
    """Return the last lines of a run: the winner, its scores, and where everything is.

    Args:
        summary: the run's result.
        info: of the run.
        ui_command: what opens the tracker's pages; '' without one.
    """
    winner, totals = summary.winner, summary.totals
    calls = sum(usage.calls for usage in totals.by_role.values())
    tokens, usd = _tokens(totals.by_role.values()), _usd(totals.by_role.values())
    spent = f"{calls:,} answers, {md.count(tokens)} tokens, cost {md.usd(usd)}"
    steps = md.amount(len(summary.steps), "step")
    lines = [
        f"Stopped after {steps}: {plain(summary.stop_reason, 200)} ({spent}, "
        f"{duration(totals.seconds)})",
        f"Chosen ({md.origin(winner)}, md5 {winner.md5[:8]}): {plain(winner.instruction, 200)}",
        *(f"  {line}" for line in sure(summary)),
        f"Instruction: {info.folder / 'ADAPTER.md'}",
        f"Report:      {info.folder / 'report.md'}",
    ]
    return [*lines, f"Tracked:     {ui_command}"] if ui_command else lines
