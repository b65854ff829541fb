"""Evaluations without their texts: a long search keeps hundreds of thousands."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from opro.records import StepRecord
from opro.text import clip
from opro.types import Evaluation, Kind, Rollout, TaskResult, Verdict

_NO_TEXT = Rollout(output="")
MAX_ANSWER = 40
"""Longer answers are dropped; the report only compares short ones (labels, numbers)."""
MAX_REASON = 300
"""Characters kept of why a run failed, of the first line."""


def slim(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with scores, kinds, short answers and why runs failed only."""
    results = tuple(
        TaskResult(
            task_id=result.task_id,
            rollout=_NO_TEXT if result.verdict is not None else _failure(result.rollout.reason),
            verdict=None if result.verdict is None else _shared(result.verdict),
        )
        for result in evaluation.results
    )
    return replace(evaluation, results=results)


def slim_step(record: StepRecord) -> StepRecord:
    """Return the record with scores, kinds and the instructions, without other texts."""
    return replace(
        record,
        current=None if record.current is None else slim(record.current),
        initial=tuple(slim(one) for one in record.initial),
        meta_prompt="",
        candidates=tuple(
            replace(
                one,
                reply=None,
                evaluation=None if one.evaluation is None else slim(one.evaluation),
            )
            for one in record.candidates
        ),
    )


@lru_cache(maxsize=256)
def _failure(reason: str) -> Rollout:
    return Rollout(output="", kind=Kind.ERROR, reason=clip(reason.partition("\n")[0], MAX_REASON))


def _shared(verdict: Verdict) -> Verdict:
    answer = verdict.answer
    short = answer if answer is not None and len(answer) <= MAX_ANSWER else None
    return _verdict(verdict.score, verdict.kind, short)


@lru_cache(maxsize=4096, typed=True)
def _verdict(score: float, kind: Kind, answer: str | None) -> Verdict:
    return Verdict(score=score, kind=kind, answer=answer)
