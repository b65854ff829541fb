"""A run's records in MLflow's table format, which its UI shows and compares across runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from opro.records import StepRecord, Summary
from opro.types import Evaluation, Kind

INSTRUCTIONS = "instructions.json"
SCORES = "per_task_scores.json"

MAX_SCORE_ROWS = 20_000
"""Rows of the per-task table; a browser can't show more. The state file has all."""

_INSTRUCTION_COLUMNS = (
    "rank", "instruction", "score", "step", "reply", "status", "reason", "right", "wrong", "other",
    "failed", "md5",
)  # fmt: skip
_SCORE_COLUMNS = (
    "instruction on task",
    "score",
    "kind",
    "answer",
    "split",
    "task",
    "instruction",
    "step",
)
# The UI compares runs by the first column, which is why it is unique in both tables, and shows
# the second one first.


_Row = tuple[str | None, float | None, tuple[Any, ...]]


def table_json(columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> str:
    """Return MLflow's table format: a JSON object of `columns` and `data`."""
    return json.dumps({"columns": list(columns), "data": list(rows)})


class InstructionTable:
    """One row for each initial instruction and each reply, the best first; grows step by step."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []

    def add(self, record: StepRecord) -> None:
        """Add a step's rows."""
        for i, evaluation in enumerate(record.initial):
            status = "unscored" if evaluation.mean is None else "scored"
            rest = (-1, i, status, "", *_kind_counts(evaluation), evaluation.md5)
            self._rows.append((evaluation.instruction, evaluation.mean, rest))
        for c in record.candidates:
            mean = c.evaluation.mean if c.evaluation else None
            counts = _kind_counts(c.evaluation)
            rest = (record.step, c.index, c.status, c.reason, *counts, c.md5)
            self._rows.append((c.instruction, mean, rest))

    def text(self) -> str:
        """Return the whole table; equal scores rank in the order in which they came."""
        ranked = sorted(self._rows, key=lambda row: (row[1] is None, -(row[1] or 0.0)))
        rows = [
            (rank if mean is not None else None, instruction, mean, *rest)
            for rank, (instruction, mean, rest) in enumerate(ranked, start=1)
        ]
        return table_json(_INSTRUCTION_COLUMNS, rows)


def _kind_counts(evaluation: Evaluation | None) -> tuple[int | None, ...]:
    if evaluation is None:
        return (None, None, None, None)
    kinds = Counter(result.kind for result in evaluation.results)
    right, wrong, error = kinds[Kind.RIGHT], kinds[Kind.WRONG], kinds[Kind.ERROR]
    return (right, wrong, kinds.total() - right - wrong - error, error)


def scores_table(summary: Summary) -> tuple[str, str]:
    """Return the per-task table and a note on what was left out ('' when nothing was).

    The winner's and the initial instruction's rows come first and are named so, which gives runs
    of a sweep rows to compare; then the other instructions, the best first.
    """
    named = [
        (comparison.split, name, evaluation)
        for comparison in summary.comparisons
        for name, evaluation in (("winner", comparison.winner), ("initial", comparison.initial))
        if evaluation is not None
    ]
    steps = {scored.md5: scored.step for scored in summary.history}
    rows = [row for split, name, e in named for row in _score_rows(split, name, steps, e)]
    shown = {e.md5 for split, _, e in named if split == "train"}
    others = [e for e in _ranked(summary) if e.md5 not in shown]
    left_out = 0
    for evaluation in others:
        if len(rows) + len(evaluation.results) > MAX_SCORE_ROWS:
            left_out += 1
            continue
        rows.extend(_score_rows("train", evaluation.md5[:8], steps, evaluation))
    note = f"{left_out:,} instructions left out; state/opro.json has all" if left_out else ""
    return table_json(_SCORE_COLUMNS, rows), note


def _ranked(summary: Summary) -> list[Evaluation]:
    found = [e for record in summary.steps for e in record.initial]
    found += [c.evaluation for r in summary.steps for c in r.candidates if c.evaluation]
    return sorted(found, key=lambda e: (e.mean is None, -(e.mean or 0.0)))


def _score_rows(
    split: str, name: str, steps: dict[str, int], evaluation: Evaluation
) -> Iterable[tuple[Any, ...]]:
    step = steps.get(evaluation.md5)
    for result in evaluation.results:
        answer = result.verdict.answer if result.verdict else None
        key = f"{name} on {split}: {result.task_id}"
        yield key, result.score, result.kind.value, answer, split, result.task_id, name, step
