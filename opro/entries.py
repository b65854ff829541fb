"""An answer as JSON: what the journal keeps of it, and the shared cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opro.types import Completion, Usage


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
