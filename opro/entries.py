"""A model's answer and an agent's run as JSON: what journal and shared cache keep of them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from opro.types import Completion, Kind, Rollout, Usage, Verdict


def to_entry(completion: Completion) -> dict[str, Any]:
    """Return an answer's entry; defaults are left out, since there are hundreds of thousands."""
    usage = completion.usage
    entry: dict[str, Any] = {
        "text": completion.text,
        "finish": completion.finish_reason,
        "model": completion.model,
        "tokens": [usage.prompt_tokens, usage.completion_tokens],
        "seconds": round(completion.seconds, 4),
    }
    if usage.usd is not None:
        entry["usd"] = usage.usd
    if completion.refusal is not None:
        entry["refusal"] = completion.refusal
    if completion.attempts != 1:
        entry["attempts"] = completion.attempts
    if completion.cached:
        entry["cached"] = True
    if completion.notes:
        entry["notes"] = list(completion.notes)
    return entry


def from_entry(entry: Mapping[str, Any]) -> Completion:
    """Return the answer that an entry holds."""
    prompt, completion = entry["tokens"]
    return Completion(
        text=entry["text"],
        finish_reason=entry["finish"],
        refusal=entry.get("refusal"),
        model=entry["model"],
        usage=Usage(
            calls=1, prompt_tokens=prompt, completion_tokens=completion, usd=entry.get("usd")
        ),
        seconds=entry["seconds"],
        attempts=entry.get("attempts", 1),
        cached=entry.get("cached", False),
        notes=tuple(entry.get("notes", ())),
    )


def run_entry(rollout: Rollout, verdict: Verdict | None, last: str | None) -> dict[str, Any]:
    """Return a run's journal entry; an output equal to the last turn's text isn't repeated."""
    entry: dict[str, Any] = {}
    if verdict is None:
        entry["error"] = "run"  # first, so that the journal's loader sees a failure at once
    if rollout.output != last:
        entry["output"] = rollout.output
    if rollout.kind is not None:
        entry["kind"] = rollout.kind.value
    for name in ("reason", "score", "trajectory"):
        value = getattr(rollout, name)
        if value not in ("", None, ()):
            entry[name] = value
    if verdict is not None:
        entry["verdict"] = {
            "score": verdict.score,
            "kind": verdict.kind.value,
            "answer": verdict.answer,
            "feedback": verdict.feedback,
        }
    return entry


def run_of(entry: Mapping[str, Any], last: str) -> tuple[Rollout, Verdict | None]:
    """Return what `run_entry` kept; `last` is the run's last model answer."""
    kind: str | None = entry.get("kind")
    rollout = Rollout(
        output=entry.get("output", last),
        kind=None if kind is None else Kind(kind),
        reason=entry.get("reason", ""),
        score=entry.get("score"),
        trajectory=tuple(entry.get("trajectory", ())),
    )
    found: Mapping[str, Any] | None = entry.get("verdict")
    if found is None:
        return rollout, None
    return rollout, _verdict(found["score"], found["kind"], found["answer"], found["feedback"])


@lru_cache(maxsize=4096, typed=True)  # a long journal repeats the same few
def _verdict(score: float, kind: str, answer: str | None, feedback: str) -> Verdict:
    return Verdict(score=score, kind=Kind(kind), answer=answer, feedback=feedback)
