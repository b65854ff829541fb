"""What `state/opro.json` holds of an OPRO search."""

from __future__ import annotations

import json
from typing import Any

from opro.evolvers.history import History
from opro.records import Candidate, Scored, StepRecord
from opro.types import Evaluation


class State:
    """Collects history and steps as JSON lines, so that writing them again costs a join only."""

    def __init__(self) -> None:
        self._history: list[str] = []
        self._steps: list[str] = []
        self._task_ids: list[str] = []

    def add(self, record: StepRecord, history: History) -> None:
        """Add a finished step and what joined the history in it."""
        if record.initial:
            self._task_ids = [result.task_id for result in record.initial[0].results]
        for index in range(len(self._history), len(history.all)):
            self._history.append(json.dumps(_entry(history, index)))
        self._steps.append(json.dumps(_step(record)))

    def document(self, best: Scored | None) -> str:
        """Return the whole state as JSON, one line per instruction and per step.

        `history[i].scores` are in the order of `task_ids`; null is a run that failed twice.
        """
        history, steps = ",\n".join(self._history), ",\n".join(self._steps)
        return (
            f'{{"best": {json.dumps(None if best is None else best.md5)},\n'
            f'"task_ids": {json.dumps(self._task_ids)},\n'
            f'"history": [\n{history}\n],\n'
            f'"steps": [\n{steps}\n]}}\n'
        )


def _entry(history: History, index: int) -> dict[str, Any]:
    entry = history.all[index]
    return {
        "step": entry.step,
        "score": entry.score,
        "md5": entry.md5,
        "instruction": entry.instruction,
        "scores": list(history.scores(index)),
    }


def _step(record: StepRecord) -> dict[str, Any]:
    return {
        "step": record.step,
        "current": None if record.current is None else _evaluation(record.current),
        "exemplar_ids": list(record.exemplar_ids),
        "instructions_shown": record.shown,
        "temperature": record.temperature,
        "candidates": [_candidate(candidate) for candidate in record.candidates],
        "best": {"md5": record.best.md5, "score": record.best.score},
        "evaluated": dict(record.evaluated),
        "notices": list(record.notices),
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "index": candidate.index,
        "status": candidate.status,
        "reason": candidate.reason,
        "md5": candidate.md5,
        "instruction": candidate.instruction,
        "score": None if candidate.evaluation is None else candidate.evaluation.mean,
    }


def _evaluation(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "md5": evaluation.md5,
        "mean": evaluation.mean,
        "scores": [result.score for result in evaluation.results],
        "failed": list(evaluation.failed),
    }
