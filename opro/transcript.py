"""Runs of agents that act, turn by turn: all of a step's as JSON lines, one of them to be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from opro.plain import fence
from opro.records import StepRecord
from opro.reports import markdown as md
from opro.types import Evaluation, TaskResult

FILE = "trajectories.jsonl"
"""The name of a step's file."""
SHOWN = 2000
"""Characters of each text in the report; the file has what the agent kept."""
_TEXTS = (("reply", "The model"), ("command", "Run"), ("told", "Came back"), ("errors", "Errors"))

_TIMES = (("reply_seconds", "reply"), ("seconds", "command"))


def trajectories(record: StepRecord) -> str:
    """Return all trajectories of a step, one JSON line for each run; '' when there are none."""
    return "".join(
        json.dumps(
            {
                "md5": evaluation.md5,
                "task": result.task_id,
                "score": result.score,
                "kind": result.kind.value,
                "reason": result.rollout.reason,
                "trajectory": list(result.rollout.trajectory),
            }
        )
        + "\n"
        for evaluation in _evaluations(record)
        for result in evaluation.results
        if result.rollout.trajectory
    )


def one_run(record: StepRecord) -> list[str]:
    """Return the parts of a report that show one run of the step; none without trajectories.

    Shown is the first run that wasn't right of the step's best candidate, else its first one:
    there an instruction can still gain.
    """
    found = _chosen(record)
    if found is None:
        return []
    evaluation, result = found
    score = "no score" if result.score is None else f"score {result.score:.3f}"
    head = f"Task {md.ids((result.task_id,))}, {result.kind.value}, {score}, under the instruction"
    parts = ["## One run, turn by turn", f"{head} of md5 {evaluation.md5[:8]}."]
    for number, step in enumerate(result.rollout.trajectory, start=1):
        parts += _turn(number, step)
    return [*parts, f"All runs of this step are in {FILE} beside this file."]


def _chosen(record: StepRecord) -> tuple[Evaluation, TaskResult] | None:
    acted = [
        (evaluation, [one for one in evaluation.results if one.rollout.trajectory])
        for evaluation in _evaluations(record)
    ]
    acted = [(evaluation, results) for evaluation, results in acted if results]
    if not acted:
        return None
    best, results = max(acted, key=lambda pair: -1.0 if pair[0].mean is None else pair[0].mean)
    return best, next((one for one in results if one.score != 1.0), results[0])


def _evaluations(record: StepRecord) -> Iterator[Evaluation]:
    """Yield the candidates' evaluations, then the rollouts of the current instruction."""
    for candidate in record.candidates:
        if candidate.evaluation is not None:
            yield candidate.evaluation
    yield from record.initial
    if record.current is not None and record.current not in record.initial:
        yield record.current


def _turn(number: int, step: Mapping[str, Any]) -> list[str]:
    if "check" in step:
        head = f"**The check** {step['check']} after {step.get('seconds', 0):g} s."
    else:
        head = f"**Turn {number}**{_measured(step)}"
    parts = [head]
    for name, title in _TEXTS:
        text = str(step.get(name) or "")
        if text.strip():
            parts += [f"{title}:", fence(text, SHOWN, FILE)]
    return parts


def _measured(step: Mapping[str, Any]) -> str:
    known = [f"{what} {step[name]:g} s" for name, what in _TIMES if name in step]
    tokens = [count for count in step.get("tokens", ()) if count is not None]
    if tokens:
        known.append(f"{sum(tokens):,} tokens")
    return f" ({', '.join(known)})" if known else ""
