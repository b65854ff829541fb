"""A sweep from its parent's side: what comes before the first job and after the last."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType

from opro.comparison import best_folder, publish
from opro.ending import UNTRACKED
from opro.errors import ConfigError, OproError
from opro.plain import plain
from opro.records import RunStatus
from opro.runfolder import RunFolder
from opro.sweeps.file import (
    JobNote,
    SweepFile,
    allow_start,
    ask_to_stop,
    load_jobs,
    load_sweep,
    save_sweep,
)
from opro.sweeps.names import swept_text
from opro.sweeps.plan import SweepPlan, check_sweep
from opro.sweeps.sharing import key_of
from opro.sweeps.table import job_line, job_table
from opro.trackers import process

LOOK_SECONDS = 0.25
SIGNAL_GRACE = 5.0
"""Seconds that jobs in other processes get after a signal to record what they have."""
CLOSE_SECONDS = 120.0
CLOSE_SECONDS_KILLED = 2.5


class Sweep:
    """One start of a sweep, from `open` to `close`; lives in the parent process only.

    Args:
        plan: already checked.
    """

    def __init__(self, plan: SweepPlan) -> None:
        self.plan = plan
        self.folder = plan.folder
        self._tracked = True
        self._shared = ""
        self._signal: int | None = None
        self._stack = contextlib.ExitStack()
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._over = threading.Event()
        self._known: dict[str, JobNote] = {}

    def open(self) -> None:
        """Prepare all that the jobs share, and say what is going to run.

        Raises:
            ConfigError: another process runs this sweep, or it was run with other settings.
        """
        plan = self.plan
        base = check_sweep(plan)
        self._stack.enter_context(RunFolder(self.folder).locked())
        allow_start(self.folder)
        before = load_sweep(self.folder)
        self._known = load_jobs(self.folder)
        self._announce(before)
        sweep = SweepFile(
            name=plan.name,
            command=plan.command,
            swept=plan.swept,
            base=base,
            tags=self._open_tracker(),
            tracker=self._shared,
            at_once=plan.at_once,
            owner=process.tags(),
            stop_on_failure=plan.stop_on_failure,
        )
        save_sweep(self.folder, replace(sweep, servers=self._start_servers()))
        self._catch_signals()
        # A killed process's semaphores are swept up by joblib's helper, which would say so.
        kept = os.environ.get("PYTHONWARNINGS")
        quiet = "ignore:resource_tracker:UserWarning"
        os.environ["PYTHONWARNINGS"] = f"{kept},{quiet}" if kept else quiet
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray phones home unless told not to
        threading.Thread(target=self._watch, name="sweep", daemon=True).start()

    def tell(self) -> None:
        """Print a line for each job that has ended since the last call."""
        with self._lock:
            for name, note in load_jobs(self.folder).items():
                ours = name not in self._known or note != self._known[name]
                if ours and note.status != "running" and name not in self._told:
                    self._told.add(name)
                    number = f"{len(self._told)}/{len(self.plan.jobs) or '?'}"
                    line = job_line(note, self.plan.swept)
                    print(f"[{number}] {line}", file=sys.stderr, flush=True)

    def close(self, status: int) -> int:
        """End what was opened, compare the jobs, and return the exit status of the whole.

        Args:
            status: what else went wrong (130, 143: a signal); 0: nothing.
        """
        self._over.set()
        self.tell()
        notes = self._notes()
        if self._signal is not None:
            status = 128 + self._signal
        killed = status in (130, 143)
        failed = any(note.status != "ok" for note in notes) or len(notes) < len(self.plan.jobs)
        status = status or (1 if failed else 0)
        for llm in self.plan.llms:
            llm.close()
        run_status: RunStatus = "KILLED" if killed else "FAILED" if status in (1, 2) else "FINISHED"
        self._publish(notes, run_status)
        if status == 0 and not (self._tracked and all(note.tracked for note in notes)):
            status = 3
        (self.folder / UNTRACKED).unlink(missing_ok=True)
        if not self._tracked:
            RunFolder(self.folder).write(UNTRACKED, "")
        if status == 3 or not self._tracked:
            print(
                "done, but not fully tracked; to send what is missing: "
                f"python -m opro.sync {self.plan.name}"
            )
        if status not in (0, 3):
            print(f"what is finished is kept; to go on: {self.plan.command}")
        self._stack.close()
        return status

    def _announce(self, before: SweepFile | None) -> None:
        plan = self.plan
        over = swept_text([job.overrides for job in plan.jobs], plan.swept)
        count = f"{len(plan.jobs)} jobs" if plan.jobs else "jobs drawn by the sweeper"
        verb = "starts" if before is None else "continues"
        width = "one at a time" if plan.at_once == 1 else f"{plan.at_once} at once"
        print(f"sweep {plan.name} {verb}: {count} over {over}", file=sys.stderr)
        print(f"launcher {plan.launcher}, {width}; folder {plan.folder}", file=sys.stderr)
        done = sum(note.status == "ok" for note in self._known.values())
        if done:
            print(f"{done} jobs are finished already", file=sys.stderr)
        sys.stderr.flush()

    def _open_tracker(self) -> dict[str, str]:
        plan, tags = self.plan, {"opro.sweep": self.plan.name}
        about = {
            "opro.kind": "sweep",
            "opro.command": plan.command,
            "opro.swept": ", ".join(plan.swept),
        }
        try:
            self._shared = plan.tracker.share()
            plan.tracker.prepare()
            return {**tags, **plan.tracker.open_sweep(plan.name, self.folder, {**tags, **about})}
        except ConfigError:
            raise
        except Exception as error:  # whatever it is, the sweep goes on
            self._tracked = False
            text = plain(f"{type(error).__name__}: {error}", 300)
            print(f"tracking failed (the sweep goes on): {text}", file=sys.stderr)
            return tags

    def _start_servers(self) -> dict[str, str]:
        """Start once what several jobs can use, if any job has still to run."""
        done = {name for name, note in self._known.items() if note.status == "ok"}
        if self.plan.jobs and all(job.name in done for job in self.plan.jobs):
            return {}  # should one need it after all, it starts its own
        addresses = {key_of(llm): llm.share() for llm in self.plan.llms}
        return {key: address for key, address in addresses.items() if address is not None}

    def _catch_signals(self) -> None:
        before = {n: signal.signal(n, self._on_signal) for n in (signal.SIGINT, signal.SIGTERM)}
        self._stack.callback(lambda: [signal.signal(n, old) for n, old in before.items()])

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """Ask the jobs in other processes to end, wait for them, then unwind the launcher."""
        again = self._signal is not None
        self._signal = number
        ask_to_stop(self.folder, "signal")
        for note in self._others():
            process.terminate(note.owner)  # at once, if it is on this machine
        end = time.monotonic() + (0.0 if again else SIGNAL_GRACE)
        while time.monotonic() < end and self._others():
            time.sleep(0.05)
        raise SystemExit(128 + number)

    def _others(self) -> list[JobNote]:
        """Return the notes of jobs at work in other processes."""
        here = process.tags()
        return [note for note in self._notes() if note.is_running and note.owner != here]

    def _watch(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            with contextlib.suppress(OSError):
                self.tell()

    def _notes(self) -> list[JobNote]:
        """Return the notes of this start's jobs (of all, when the sweeper draws them)."""
        found = load_jobs(self.folder)
        names = [job.name for job in self.plan.jobs] or list(found)
        return [found[name] for name in names if name in found]

    def _publish(self, notes: list[JobNote], status: RunStatus) -> None:
        """Write and print the comparison and hand it to the tracker, in bounded time."""
        killed = status == "KILLED"
        names = [job.name for job in self.plan.jobs] or [note.name for note in notes]
        print(job_table(notes, names, self.plan.swept))
        if not killed:
            with _reported("comparing the jobs"):
                print(publish(self.folder))
        self._bounded(lambda: self._close_tracker(status), killed)
        self.plan.tracker.close()

    def _close_tracker(self, status: RunStatus) -> None:
        best = None if status == "KILLED" else best_folder(self.folder)
        if best is not None:
            self.plan.tracker.crown(best)
        self.plan.tracker.close_sweep(status)

    def _bounded(self, work: Callable[[], None], killed: bool) -> None:
        """Do the tracker's last work; one that hangs or fails must not keep the user."""
        done = threading.Event()

        def run() -> None:
            try:
                work()
                done.set()
            except Exception as error:
                print(f"tracking failed: {plain(str(error), 300)}", file=sys.stderr)

        if not self._tracked:
            return
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(CLOSE_SECONDS_KILLED if killed else CLOSE_SECONDS)
        self._tracked = done.is_set()


@contextlib.contextmanager
def _reported(what: str) -> Iterator[None]:
    try:
        yield
    except (OproError, OSError, ValueError) as error:
        print(f"{what} failed: {plain(str(error), 300)}", file=sys.stderr)
