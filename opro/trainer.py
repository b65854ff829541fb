"""Runs the steps of one search and keeps the record."""

from __future__ import annotations

from dataclasses import dataclass

from opro import health, template, transcript
from opro.errors import BudgetExceeded, RunError
from opro.evolvers.base import Choice
from opro.journal import Journal
from opro.progress import Progress
from opro.records import Comparison, Scored, StepRecord, Summary, Totals
from opro.reports.run import render_step
from opro.runfolder import RunFolder
from opro.setup.assembly import Assembly
from opro.slim import slim_step
from opro.text import md5_of
from opro.trackers.background import BackgroundTracker
from opro.types import Evaluation, Split
from opro.wiring import Wires


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a trainer works with; put together by `opro.job`."""

    assembly: Assembly
    wires: Wires
    journal: Journal
    folder: RunFolder
    tracker: BackgroundTracker
    progress: Progress


class Trainer:
    """One run: rollouts of the current instruction, then the evolver's step, until the end."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._settings = parts.assembly.settings
        self._dataset = parts.assembly.dataset
        self._evolver = parts.assembly.evolver
        self._context = parts.wires.context
        self._stop = parts.wires.stop
        self._steps: list[StepRecord] = []
        self._spent: list[Totals] = []
        self._remarks = health.Remarks()

    def run(self) -> Summary:
        """Run all steps and return the result.

        Raises:
            RunError: the run can't go on; what is finished is in the journal.
            Interrupted: a signal; likewise.
        """
        parts = self._parts
        reason = self._loop()
        choice = self._finalize()
        comparisons = self._compare(choice.winner)
        if isinstance(self._stop.error, BudgetExceeded):
            reason = f"budget: {self._stop.error}"
        summary = Summary(
            initial=self._initial(),
            winner=choice.winner,
            select=choice.select,
            finalists=choice.finalists,
            comparisons=comparisons,
            history=self._evolver.history,
            steps=tuple(self._steps),
            stop_reason=reason,
            totals=parts.wires.meter.totals(),
            spent=tuple(self._spent),
        )
        parts.folder.write(template.FILE_NAME, choice.winner.instruction)
        return summary

    def _loop(self) -> str:
        """Run the steps; return why they ended."""
        parts, settings = self._parts, self._settings
        failed = 0
        for step in range(settings.epochs):
            self._context.step = step
            try:
                record = self._step(step)
            except BudgetExceeded as error:
                return f"budget: {error}"
            self._keep(record)
            self._spent.append(parts.wires.meter.totals())
            if isinstance(self._stop.error, BudgetExceeded):
                return f"budget: {self._stop.error}"
            parts.tracker.on_step_end(self._steps[-1], parts.wires.meter.totals())
            parts.progress.step_done(record, parts.wires.meter.totals())
            parts.journal.sync()
            cause = health.cause_of_failure(record)
            failed = failed + 1 if cause else 0
            if failed >= settings.max_failed_steps:
                parts.journal.stop("failed steps", void_errors_from=step - failed + 1)
                raise RunError(
                    f"nothing could be scored in {failed} steps in a row"
                    f" (trainer.max_failed_steps); last cause: {cause}"
                )
            limit = settings.stop_at_score
            if limit is not None and (record.best.score or 0.0) >= limit:
                return f"training score {record.best.score:g} reached trainer.stop_at_score"
        return "epochs"

    def _step(self, step: int) -> StepRecord:
        rollouts: list[Evaluation] = []
        if step == 0 or self._settings.rescore:
            texts = self._evolver.rollout_instructions(step)
            rollouts = self._context.measure(texts, phase="rollouts", split="train")
            if any(one.cut for one in rollouts):
                self._stop.check()
            for warning in health.warnings(rollouts):
                self._parts.progress.note(warning)
            error = health.hopeless(rollouts) if step == 0 else None
            if error is not None:
                self._parts.journal.stop("hopeless start", void_errors_from=0)
                raise error
        return self._evolver.step(self._context, rollouts)

    def _keep(self, record: StepRecord) -> None:
        """Write a step's files; keep the record itself without its texts."""
        parts, name = self._parts, f"output/step_{record.step:03d}"
        parts.folder.write(f"{name}/meta_prompt.md", record.meta_prompt)
        replies = [
            {
                "index": one.index,
                "status": one.status,
                "reason": one.reason,
                "instruction": one.instruction,
                "reply": one.reply,
            }
            for one in record.candidates
        ]
        parts.folder.write_json(f"{name}/replies.json", replies)
        acted = transcript.trajectories(record)
        if acted:
            parts.folder.write(f"{name}/{transcript.FILE}", acted)
        parts.folder.write(f"{name}/report.md", render_step(record))
        parts.folder.write(f"state/{self._evolver.name}.json", self._evolver.state())
        parts.folder.write(template.FILE_NAME, record.best.instruction)
        for notice in (*record.notices, *self._remarks.fresh(parts.wires.meter.totals())):
            parts.progress.note(f"step {record.step}: {notice}")
        self._steps.append(slim_step(record))

    def _finalize(self) -> Choice:
        self._context.step = -1  # positions of the end don't depend on how many steps there were
        if not self._evolver.history:
            return Choice(winner=self._initial(), select="none (the budget ended before a score)")
        return self._evolver.finalize(self._context)

    def _initial(self) -> Scored:
        history = self._evolver.history
        if history:
            return history[0]
        text = self._evolver.initial_instructions[0]
        return Scored(instruction=text, md5=md5_of(text), step=-1, score=None)

    def _compare(self, winner: Scored) -> tuple[Comparison, ...]:
        """Measure the initial instruction and the winner on what `trainer.compare` names."""
        initial = self._initial()
        texts = list(dict.fromkeys((initial.instruction, winner.instruction)))
        for split in self._settings.compare:
            missing = [text for text in texts if (split, md5_of(text)) not in self._seen]
            if self._dataset.split(split) and missing and self._stop.error is None:
                self._context.measure(missing, phase="compare", split=split)
        names: tuple[Split, ...] = ("train", "val", "test")
        return tuple(
            Comparison(
                split=split,
                initial=self._seen.get((split, initial.md5)),
                winner=self._seen.get((split, winner.md5)),
            )
            for split in names
            if self._dataset.split(split)
        )

    @property
    def _seen(self) -> dict[tuple[str, str], Evaluation]:
        return self._context.seen
