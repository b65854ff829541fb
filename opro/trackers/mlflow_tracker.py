"""Runs, metrics, tables and the winner in MLflow."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

from pydantic import Field

from opro.errors import RunError
from opro.evaluated import Evaluated
from opro.records import RunEnd, RunInfo, RunStatus, StepRecord, Summary, Totals
from opro.trackers import mlflow_evaluation, names, points, process, run_file, tables
from opro.trackers.base import Tracker
from opro.trackers.mlflow_champion import crown
from opro.trackers.mlflow_client import Client
from opro.trackers.mlflow_result import ERROR, each, register_winner, result_parts
from opro.trackers.store import resolve

PARENT = "mlflow.parentRunId"
RUN_KEY = "mlflow.opro.run_key"
"""Tags that start with `mlflow.` are for programs: the UI doesn't show them."""

REPORTS = (".md", ".csv", ".json", ".png", ".html")
"""What is taken from a sweep's folder."""


class MLflowTracker(Tracker):
    """One MLflow run per job, with everything that the run's folder holds.

    A continued run goes on in the same MLflow run, without a point logged twice. Steps that
    could not be sent (an outage) are sent at the run's end, or when the same command runs again.

    Args:
        uri: the tracking store; None is `mlruns/mlflow.db` in the launch folder.
        experiment: name of the MLflow experiment.
        register: put the winner into the Prompt Registry, as a new version of
            `opro-<data set>`.
        per_task: log `task/<id>`, each task's score over the instructions.
        launch_folder: where the command was started; None: the current folder.
    """

    apart = True

    def __init__(
        self,
        *,
        uri: str | None = None,
        experiment: Annotated[str, Field(min_length=1, max_length=200)] = "opro",
        register: bool = True,
        per_task: bool = True,
        launch_folder: Path | None = None,
    ) -> None:
        self._store = resolve(uri, launch_folder or Path.cwd())
        self._owner = process.tags()  # of the search: the calls may come in another process
        self._client = Client(self._store, experiment)
        self._register = register
        self._per_task = per_task
        self._info: RunInfo | None = None
        self._sweep: tuple[str, Path] | None = None
        self._restart()

    def _restart(self) -> None:
        self._note: run_file.RunNote | None = None
        self._logged: set[int] = set()
        self._next_step = self._next_number = 0
        self._table = tables.InstructionTable()

    def where(self) -> str:
        """Return the command that shows the store."""
        return self._store.command()

    def load(self) -> None:
        """Import mlflow."""
        self._client.load()

    def close(self) -> None:
        """Close the connections to the store."""
        self._client.close()

    def prepare(self) -> None:
        """Create store and experiment; mark the runs of processes that are gone as KILLED."""
        self._client.open()
        for run in self._client.search("attributes.status = 'RUNNING'"):
            if process.is_gone(run.data.tags) and self._client.runs_on(run.info.run_id):
                why = f"process {run.data.tags[process.PID]} ended without closing this run"
                self._client.set_tags(run.info.run_id, {ERROR: why})
                self._client.call("set_terminated", run.info.run_id, "KILLED")

    # -- a sweep's parent -----------------------------------------------------------------

    def open_sweep(self, name: str, folder: Path, tags: Mapping[str, str]) -> Mapping[str, str]:
        """Open the parent run, or reopen it when the sweep's folder is continued."""
        note = self._open_run(name, folder, tags, search=False)
        self._sweep = (note.run_id, folder)
        return {PARENT: note.run_id}

    def crown(self, folder: Path) -> None:
        """Let the registry's alias `champion` name the winner of the run in `folder`."""
        note = run_file.load(folder, self._store.uri)
        if note is not None and self._sweep is not None:
            crown(self._client, note.run_id, self._sweep[0])

    def close_sweep(self, status: RunStatus) -> None:
        """Upload the sweep's reports and close the parent run."""
        if self._sweep is None:
            return
        run_id, folder = self._sweep
        for file in sorted(folder.glob("*")):
            kind = file.suffix.removeprefix(".")
            if kind in ("md", "csv", "json", "png", "html") and file.name != run_file.NAME:
                self._client.log_path(run_id, file)
        self._client.log_note(run_id, folder / "report.md")
        self._client.call("set_terminated", run_id, status)

    # -- one run --------------------------------------------------------------------------

    def on_run_start(self, info: RunInfo) -> None:
        """Open (or reopen) the run and log its params, tags and data set."""
        self._info = info
        self._restart()
        self._begin()

    def _begin(self) -> tuple[RunInfo, run_file.RunNote]:
        """Return the open run; opens it first if that failed before (the store was down)."""
        if self._info is None:
            raise RunError("the tracker was told of a step before the run's start")
        if self._note is None:
            info = self._info
            note = self._open_run(info.name, info.folder, info.tags, search=info.resumed)
            history = self._client.call("get_metric_history", note.run_id, points.MARK)
            self._logged = {point.step for point in history}
            self._log_settings(note.run_id, info)
            self._note = note
        return self._info, self._note

    def _open_run(
        self, name: str, folder: Path, tags: Mapping[str, str], *, search: bool
    ) -> run_file.RunNote:
        """Return the folder's run, RUNNING and with its tags set; create it if need be."""
        store, folder_key = run_file.store_hash(self._store.uri), run_file.store_hash(str(folder))
        wanted = {**tags, **self._owner, RUN_KEY: folder_key, "opro.folder": str(folder)}
        wanted.setdefault("mlflow.source.name", "opro")
        note = run_file.load(folder, self._store.uri)
        if note is None and search:  # the note was lost; the run perhaps not
            found = self._client.search(f"tags.`{RUN_KEY}` = '{folder_key}'")
            note = run_file.RunNote(run_id=found[0].info.run_id, store=store) if found else None
        run = None if note is None else self._client.active(note.run_id)
        if note is not None and run is not None:
            self._client.set_tags(note.run_id, wanted)
            self._client.call("update_run", note.run_id, "RUNNING")
            if ERROR in run.data.tags:  # of the part that this one continues
                self._client.call("delete_tag", note.run_id, ERROR)
        else:
            run_id = self._client.create(name, {k: names.clip(v) for k, v in wanted.items()})
            note = run_file.RunNote(run_id=run_id, store=store)
        run_file.save(folder, note)
        return note

    def _log_settings(self, run_id: str, info: RunInfo) -> None:
        run = self._client.call("get_run", run_id)
        new, changed = {}, {}
        for name, value in info.params.items():
            key, (shown, whole) = names.key(name), names.param(name, value)
            old = run.data.params.get(key)
            if old is None:
                new[key] = shown
                if whole is not None:
                    self._client.log_text(run_id, names.param_file(name), whole)
            elif old != shown:  # a param can't be changed, and a continued run may differ in some
                changed[f"opro.changed.{key}"] = shown
        self._client.log_params(run_id, new)
        self._client.set_tags(run_id, {**changed, "opro.data_digest": info.dataset.digest})
        if not run.inputs.dataset_inputs:
            self._client.log_dataset(run_id, info.dataset)
            for i, text in enumerate(info.initial_instructions):
                self._client.log_text(run_id, f"initial/{i}.md", text)

    def on_step_end(self, record: StepRecord, totals: Totals) -> None:
        """Log one step, unless it is in the store already."""
        _, note = self._begin()
        if self._log_step(record, totals):
            self._client.log_table(note.run_id, tables.INSTRUCTIONS, self._table.text())

    def _log_step(self, record: StepRecord, totals: Totals | None) -> bool:
        """Log a step, if its turn has come and the store hasn't got it; return whether."""
        if record.step != self._next_step:
            return False  # one before it is missing: all are gone through at the end
        first, new = self._next_number, record.step not in self._logged
        if new:
            self._send_step(record, first, totals)
            self._logged.add(record.step)
        self._table.add(record)
        self._next_step, self._next_number = record.step + 1, first + points.width(record)
        return new

    def _send_step(self, record: StepRecord, first: int, totals: Totals | None) -> None:
        """Send a step whole, in an order in which the last write marks it as logged."""
        info, note = self._begin()
        note = self._stamp(info.folder, note, record.step)
        # In this order, too, MLflow's UI lists a run's metrics: tasks, the many, not at the top.
        self._client.log_points(note.run_id, points.step_points(record, first), note.time_ms)
        if self._per_task:
            tasks = points.task_points(record, first)
            self._client.log_points(note.run_id, tasks, note.time_ms)
        name = f"output/step_{record.step:03d}"
        self._client.log_path(note.run_id, info.folder / name, name)
        self._client.log_points(note.run_id, points.last_points(record, totals), note.time_ms)

    def _stamp(self, folder: Path, note: run_file.RunNote, step: int) -> run_file.RunNote:
        """Return the note with the step's time; a step begun before keeps the one it had."""
        if note.step != step:
            note = replace(note, step=step, time_ms=int(time.time() * 1000))
            run_file.save(folder, note)
            self._note = note
        return note

    # -- an evaluation --------------------------------------------------------------------

    def on_evaluation(self, found: Evaluated) -> None:
        """Log means, tables and files of an evaluation."""
        info, note = self._begin()
        mlflow_evaluation.log(self._client, note.run_id, info.folder, found)

    def winner_of(self, run_id: str) -> str:
        """Return the instruction that a tracked run ended with."""
        return mlflow_evaluation.winner_of(self._client, run_id)

    def prompt(self, name: str) -> str:
        """Return the text of a registered prompt."""
        return mlflow_evaluation.prompt(self._client, name)

    def on_run_end(self, end: RunEnd) -> None:
        """Log the result and close the run, also when a part of that fails."""
        info, note = self._begin()
        close = partial(self._client.call, "set_terminated", note.run_id, end.status)
        parts = result_parts(self._client, note.run_id, info, end)
        if end.summary is not None:
            parts.insert(1, partial(self._catch_up, note.run_id, end.summary))
            if self._register and end.status == "FINISHED":
                winner = partial(register_winner, self._client, note.run_id, info, end.summary)
                parts.append(winner)
        # After a signal there may be a second left, so then the status goes first.
        parts = [*parts, close] if end.status == "FINISHED" else [close, *parts]
        errors = each(parts)
        if errors:
            raise errors[0]

    def _catch_up(self, run_id: str, summary: Summary) -> None:
        """Log the steps that never arrived or could not be sent."""
        self._next_step = self._next_number = 0
        self._table = tables.InstructionTable()
        for record, totals in zip_longest(summary.steps, summary.spent[: len(summary.steps)]):
            self._log_step(record, totals)
        self._client.log_table(run_id, tables.INSTRUCTIONS, self._table.text())
