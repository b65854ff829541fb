"""How many calls an OPRO search makes when nothing is skipped."""

from __future__ import annotations

from opro.evolvers.base import PlannedCalls
from opro.evolvers.params import OPROParams
from opro.types import Dataset


def plan(
    params: OPROParams, initial: int, dataset: Dataset, *, steps: int, rescore: bool
) -> list[PlannedCalls]:
    """Return the calls by purpose, in the order in which they first happen."""
    train, val = len(dataset.train), len(dataset.val)
    new = params.n_candidates * steps
    evaluated = -(-steps // params.eval_every) * params.n_candidates if params.eval_every else 0
    finalists = min(params.top_k, initial + new) if params.select == "validation" else 0
    rows = [
        PlannedCalls(purpose="write new instructions", role="optimizer", count=new),
        _runs("score the initial instructions", initial * train),
        _runs("score new instructions", new * train),
        _runs("re-score the best", (steps - 1) * train if rescore else 0),
        _runs("score on the exemplars", _on_exemplars(params, initial, train, steps)),
        _runs("periodic validation", evaluated * val),
        _runs("validate the top_k", finalists * val),
    ]
    return [row for row in rows if row.count > 0]


def _runs(purpose: str, count: int) -> PlannedCalls:
    return PlannedCalls(purpose=purpose, role="agent", count=count)


def _on_exemplars(params: OPROParams, initial: int, train: int, steps: int) -> int:
    new = params.n_candidates * steps if params.exemplar_scores in ("new", "both") else 0
    old = sum(initial + params.n_candidates * step for step in range(steps))
    if params.exemplar_scores not in ("old", "both"):
        old = 0
    return min(params.num_exemplars, train) * (new + old)
