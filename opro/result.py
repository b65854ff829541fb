"""`result.json`: a run's result for programs (`opro.compare`, `opro.evaluate`)."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from opro.meter import add
from opro.records import Comparison, RunInfo, Scored, Summary, Totals
from opro.types import Evaluation, Usage


def result_of(summary: Summary, info: RunInfo) -> dict[str, Any]:
    """Return the result as JSON: settings, winner, scores by task, totals."""
    return {
        "run_name": info.name,
        "status": "FINISHED",
        "stop_reason": summary.stop_reason,
        "steps": len(summary.steps),
        "params": dict(info.params),
        "tags": dict(info.tags),
        "dataset": {"name": info.dataset.name, "digest": info.dataset.digest},
        "select": summary.select,
        "value": value_of(summary),
        "initial": _scored(summary.initial),
        "winner": _scored(summary.winner),
        "finalists": [
            {**_scored(row.candidate), "validation": row.mean} for row in summary.finalists
        ],
        "scores": {row.split: _comparison(row) for row in summary.comparisons},
        "curve": _curve(summary),
        "totals": _totals(summary.totals),
    }


def value_of(summary: Summary) -> float | None:
    """Return the number that a Hydra sweeper maximizes: what the winner was chosen by."""
    for row in summary.finalists:
        if row.candidate.md5 == summary.winner.md5 and summary.select == "validation":
            return row.mean
    return summary.winner.score


def _scored(scored: Scored) -> dict[str, Any]:
    return {
        "instruction": scored.instruction,
        "md5": scored.md5,
        "step": scored.step,
        "train_score": scored.score,
    }


def _comparison(row: Comparison) -> dict[str, Any]:
    return {"initial": _evaluation(row.initial), "winner": _evaluation(row.winner)}


def _evaluation(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    return {
        "mean": evaluation.mean,
        "n": evaluation.n,
        "scores": {result.task_id: result.score for result in evaluation.results},
    }


def _curve(summary: Summary) -> list[dict[str, Any]]:
    return [
        {
            "step": step.step,
            "best": step.best.score,
            **_spent(spent),
            "candidates": [
                None if one.evaluation is None else one.evaluation.mean for one in step.candidates
            ],
        }
        for step, spent in itertools.zip_longest(summary.steps, summary.spent)
    ]


def _spent(totals: Totals | None) -> dict[str, Any]:
    """Return answers used, tokens and cost up to a step's end; None where unknown."""
    if totals is None:
        return {}
    used = functools.reduce(
        add, totals.by_role.values(), Usage(prompt_tokens=0, completion_tokens=0, usd=0.0)
    )
    tokens = None
    if used.prompt_tokens is not None and used.completion_tokens is not None:
        tokens = used.prompt_tokens + used.completion_tokens
    return {"calls": used.calls, "tokens": tokens, "usd": used.usd}


def _totals(totals: Totals) -> dict[str, Any]:
    return {
        "by_role": {
            role: {
                "calls": usage.calls,
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "usd": usage.usd,
            }
            for role, usage in totals.by_role.items()
        },
        "used": _spent(totals),
        "requests": totals.requests,
        "cache_hits": totals.cache_hits,
        "replayed": totals.replayed,
        "faults": dict(totals.faults),
        "kinds": dict(totals.kinds),
        "models": {role: dict(models) for role, models in totals.models.items()},
        "remarks": dict(totals.remarks),
        "seconds": round(totals.seconds, 3),
    }
