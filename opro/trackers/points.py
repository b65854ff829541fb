"""A run's records as metric points: name, value and x."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import NamedTuple

from opro.records import StepRecord, Summary, Totals
from opro.trackers.names import key
from opro.types import Evaluation, Kind

MARK = "step_counts/n_candidates"
"""In every step's last batch: a step that has this point is logged completely."""

UNREADABLE = (Kind.UNPARSED, Kind.NO_RESPONSE, Kind.TRUNCATED, Kind.REFUSAL)


class Point(NamedTuple):
    """One point of a metric; `x` is the step, or the candidate's running number."""

    name: str
    value: float
    x: int


def evaluations(record: StepRecord, first: int) -> Iterator[tuple[int, Evaluation]]:
    """Yield (running number, evaluation) of what the step scored; the initial ones come first.

    Args:
        record: the step.
        first: the number of the step's first instruction in the run.
    """
    yield from enumerate(record.initial, start=first)
    for candidate in record.candidates:
        if candidate.evaluation is not None:
            yield first + len(record.initial) + candidate.index, candidate.evaluation


def width(record: StepRecord) -> int:
    """Return how many running numbers the step takes."""
    return len(record.initial) + len(record.candidates)


def task_points(record: StepRecord, first: int) -> list[Point]:
    """Return `task/<id>`: each task's score under each instruction."""
    return [
        Point(f"task/{key(result.task_id)}", result.score, number)
        for number, evaluation in evaluations(record, first)
        for result in evaluation.results
        if result.score is not None
    ]


def step_points(record: StepRecord, first: int) -> list[Point]:
    """Return the step's metrics and `candidate/score`; unknown values have no point.

    The same step gives the same points in every process, so that they can be sent once more.
    """
    found = list(evaluations(record, first))
    means = [e.mean for number, e in found[len(record.initial) :] if e.mean is not None]
    values: dict[str, float | None] = {
        "step/best": record.best.score,
        "step/mean": fmean(means) if means else None,
        "step/max": max(means, default=None),
        "step/rescore": record.current.mean if record.current and record.step > 0 else None,
        "step/unreadable_share": _unreadable_share([e for _, e in found]),
        "step/shown": record.shown,
        **_side_values(record.evaluated),
        **_counts(record),
    }
    points = _known(values, record.step)
    points += [Point("candidate/score", e.mean, n) for n, e in found if e.mean is not None]
    return points


def _side_values(evaluated: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return mean and max of what was scored on the side: `step/val/mean`, …; not one by one."""
    groups: dict[str, list[float]] = {}
    for name, mean in evaluated.items():
        if mean is not None:
            groups.setdefault(f"step/{name.rsplit('/', 1)[0]}", []).append(mean)
    values: dict[str, float | None] = {}
    for name, means in groups.items():
        values[f"{name}/mean"], values[f"{name}/max"] = fmean(means), max(means)
    return values


def _known(values: Mapping[str, float | None], x: int) -> list[Point]:
    return [Point(name, value, x) for name, value in values.items() if value is not None]


def _counts(record: StepRecord) -> dict[str, float]:
    return {
        "step_counts/n_unique": record.count("scored", "unscored"),
        "step_counts/n_scored": record.count("scored"),
        "step_counts/n_unscored": record.count("unscored"),
        "step_counts/n_duplicate": record.count("duplicate"),
        "step_counts/n_skipped": record.count("skipped"),
        "step_counts/n_failed": record.count("failed"),
    }


def _unreadable_share(found: list[Evaluation]) -> float | None:
    kinds = [r.kind for e in found for r in e.results if r.kind is not Kind.ERROR]
    return sum(kind in UNREADABLE for kind in kinds) / len(kinds) if kinds else None


def last_points(record: StepRecord, totals: Totals | None) -> list[Point]:
    """Return the mark and what the run consumed up to the step (None: not known any more)."""
    mark = Point(MARK, len(record.candidates), record.step)
    return [mark, *(_known(_totals(totals), record.step) if totals else [])]


def total_points(totals: Totals, x: int) -> list[Point]:
    """Return what was consumed so far."""
    return _known(_totals(totals), x)


def _totals(totals: Totals) -> dict[str, float | None]:
    values: dict[str, float | None] = {
        "total/requests": totals.requests,
        "total/cache_hits": totals.cache_hits,
        "total/replayed": totals.replayed,
        "total/faults": sum(totals.faults.values()),
        "total/seconds": totals.seconds,
    }
    for role, usage in totals.by_role.items():
        values[f"total/{role}_calls"] = usage.calls
        values[f"total/{role}_prompt_tokens"] = usage.prompt_tokens
        values[f"total/{role}_completion_tokens"] = usage.completion_tokens
        values[f"total/{role}_usd"] = usage.usd
    every = totals.by_role.values()
    values["total/calls"] = sum(usage.calls for usage in every)
    values["total/tokens"] = _sum(
        [t for u in every for t in (u.prompt_tokens, u.completion_tokens)]
    )
    values["total/usd"] = _sum([usage.usd for usage in every])
    return values


def _sum(parts: list[int | None] | list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None


def result_points(summary: Summary) -> list[Point]:
    """Return the run's result: `<split>/score`, `…/score_initial`, `…/gain`."""
    x = len(summary.steps)
    values: dict[str, float | None] = {
        "train/score": summary.winner.score,
        "train/score_initial": summary.initial.score,
    }
    for finalist in summary.finalists:
        if finalist.candidate.md5 == summary.winner.md5:
            values["val/score"] = finalist.mean
    for comparison in summary.comparisons:
        first, second = comparison.initial, comparison.winner
        if second is not None and second.mean is not None:
            values[f"{comparison.split}/score"] = second.mean
        if first is not None and first.mean is not None:
            values[f"{comparison.split}/score_initial"] = first.mean
    for split in ("train", "val", "test"):
        now, before = values.get(f"{split}/score"), values.get(f"{split}/score_initial")
        if now is not None and before is not None:
            values[f"{split}/gain"] = now - before
    values["train/winner_step"] = summary.winner.step
    return _known(values, x)
