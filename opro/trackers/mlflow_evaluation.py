"""An evaluation in MLflow, and instructions fetched from it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opro.errors import ConfigError
from opro.evaluated import Evaluated
from opro.trackers import tables
from opro.trackers.mlflow_client import Client
from opro.trackers.points import UNREADABLE, Point, total_points
from opro.types import Kind

WINNER = "ADAPTER.md"
CONTRASTS = "comparisons.json"
FILES = ("per_task.csv", "result.json")
_MISSING = ("RESOURCE_DOES_NOT_EXIST", "NOT_FOUND", "INVALID_PARAMETER_VALUE")

_INSTRUCTION_COLUMNS = (
    "name", "instruction", "score", "low", "high", "tasks", "right", "wrong", "other", "failed",
    "md5",
)  # fmt: skip
_SCORE_COLUMNS = ("run", "score", "kind", "answer", "split", "task", "name", "repeat")
_CONTRAST_COLUMNS = (
    "pair", "difference", "low", "high", "p", "p (Holm)", "better", "worse", "tasks", "test",
)  # fmt: skip


def log(client: Client, run_id: str, folder: Path, found: Evaluated) -> None:
    """Log means, tables and files; the same points again change nothing that counts."""
    client.log_table(
        run_id, tables.INSTRUCTIONS, _table(_INSTRUCTION_COLUMNS, _instructions(found))
    )
    client.log_table(run_id, tables.SCORES, _table(_SCORE_COLUMNS, _scores(found)))
    if found.contrasts:
        client.log_table(run_id, CONTRASTS, _table(_CONTRAST_COLUMNS, _contrasts(found)))
    client.log_points(run_id, _points(found), int(time.time() * 1000))
    client.set_tags(run_id, {"opro.kind": "evaluation", "opro.split": found.split})
    for name in FILES:
        client.log_path(run_id, folder / name)


def winner_of(client: Client, run_id: str) -> str:
    """Return a run's ADAPTER.md, byte for byte."""
    key = f"instructions: mlflow:{run_id}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            path = client.call("download_artifacts", run_id, WINNER, folder)
            return Path(path).read_bytes().decode("utf-8")
        except OSError:
            raise ConfigError(f"{key}: this run has no {WINNER}: it isn't finished") from None
        except Exception as error:
            if getattr(error, "error_code", "") not in _MISSING:
                raise
            raise ConfigError(f"{key}: {_line(error)}") from None


def prompt(client: Client, name: str) -> str:
    """Return a registered prompt's text; see `Tracker.prompt`."""
    key = f"instructions: prompt:{name}"
    uri = f"prompts:/{name}" if "/" in name or "@" in name else f"prompts:/{name}@latest"
    try:
        found: Any = client.call("load_prompt", uri)
    except Exception as error:
        if getattr(error, "error_code", "") not in _MISSING:
            raise
        raise ConfigError(f"{key}: {_line(error)}") from None
    if found is None or not isinstance(found.template, str):
        raise ConfigError(f"{key}: not a text prompt of this registry")
    return str(found.template)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _name(found: Evaluated, index: int) -> str:
    return f"{index}: {', '.join(found.measured[index].labels)}"[:200]


def _table(columns: tuple[str, ...], rows: Iterator[tuple[Any, ...]]) -> str:
    return tables.table_json(columns, rows)


def _instructions(found: Evaluated) -> Iterator[tuple[Any, ...]]:
    for index, one in enumerate(found.measured):
        low, high = (one.interval.low, one.interval.high) if one.interval else (None, None)
        kinds = one.kinds
        right, wrong, failed = kinds[Kind.RIGHT], kinds[Kind.WRONG], kinds[Kind.ERROR]
        other = kinds.total() - right - wrong - failed
        counts = (len(one.scores), right, wrong, other, failed)
        yield _name(found, index), one.instruction, one.mean, low, high, *counts, one.md5


def _scores(found: Evaluated) -> Iterator[tuple[Any, ...]]:
    rows = [(i, row) for i, one in enumerate(found.measured) for row in one.rows]
    for index, row in rows[: tables.MAX_SCORE_ROWS]:
        name = _name(found, index)
        key = f"{index}.{row.repeat} on {row.split}: {row.task_id}"
        yield key, row.score, row.kind.value, row.answer, row.split, row.task_id, name, row.repeat


def _contrasts(found: Evaluated) -> Iterator[tuple[Any, ...]]:
    for one in found.contrasts:
        test, bounds = one.paired, one.paired.interval
        low, high = (bounds.low, bounds.high) if bounds else (None, None)
        numbers = (test.difference, low, high, test.p_value, one.corrected)
        yield f"{one.second} - {one.first}", *numbers, test.better, test.worse, test.n, test.test


def _points(found: Evaluated) -> list[Point]:
    """Return the metrics; `x` is the instruction's place, since its text names nothing."""
    points = []
    for index, one in enumerate(found.measured):
        kinds = one.kinds
        rated = kinds.total() - kinds[Kind.ERROR]
        unreadable = sum(kinds[kind] for kind in UNREADABLE) / rated if rated else None
        values = {"evaluation/score": one.mean, "evaluation/unreadable_share": unreadable}
        if one.interval is not None:
            values |= {"evaluation/low": one.interval.low, "evaluation/high": one.interval.high}
        points += [Point(name, value, index) for name, value in values.items() if value is not None]
    return points + total_points(found.totals, len(found.measured) - 1)
