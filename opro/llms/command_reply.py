"""What a command printed, read as an answer: plain text, or one JSON object with known places."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opro.llms.excerpt import excerpt
from opro.llms.faults import Fault
from opro.types import Completion, Usage


@dataclass(frozen=True, kw_only=True)
class UsagePlaces:
    """Where the usage is in the JSON object that a command prints; dots lead inwards.

    Attributes:
        prompt: of counts that together are the prompt's tokens; none: unknown.
        completion, usd: of the answer's tokens and the cost; None: unknown.
    """

    prompt: Sequence[str]
    completion: str | None
    usd: str | None


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where things are in that object.

    Attributes:
        reply: of the text; None when what is printed is the text itself.
        error: of a value that is true when the call failed; None: none.
    """

    reply: str | None
    error: str | None
    usage: UsagePlaces


def read(text: str, places: Places, program: str) -> Completion:
    """Return the answer; what isn't told stays unknown, never 0.

    Raises:
        Fault: `invalid_json`, `command_failed` (it says so itself) or `null_content`.
    """
    usage = Usage(calls=1)
    if places.reply is not None:
        found = _object(text, program)
        usage = _usage(found, places.usage)
        said = _at(found, places.reply)
        if places.error is not None and _at(found, places.error):
            message = excerpt(said) if isinstance(said, str) else excerpt(text)
            raise Fault("command_failed", f"{program}: {message}", usage=_free(usage))
        text = said if isinstance(said, str) else ""
    if not text.strip():
        raise Fault("null_content", f"{program}: no text in its answer", usage=_free(usage))
    return Completion(text=text.strip("\r\n"), finish_reason="stop", usage=usage)


def said(text: str, places: Places) -> str:
    """Return what a failed program has to say: its JSON's text, or all that it printed."""
    if places.reply is not None:
        with contextlib.suppress(Fault):
            found = _at(_object(text, ""), places.reply)
            return found if isinstance(found, str) else text
    return text


def _object(text: str, program: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Fault("invalid_json", f"{program}: not a JSON object: '{excerpt(text)}'")
    return found


def _at(found: Mapping[str, Any], path: str) -> Any:
    value: Any = found
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _usage(found: Mapping[str, Any], places: UsagePlaces) -> Usage:
    prompts = [_count(_at(found, path)) for path in places.prompt]
    known = [count for count in prompts if count is not None]
    completion = places.completion
    usd: Any = None if places.usd is None else _at(found, places.usd)
    told = isinstance(usd, int | float) and not isinstance(usd, bool) and usd >= 0
    return Usage(
        calls=1,
        prompt_tokens=sum(known) if known and len(known) == len(prompts) else None,
        completion_tokens=None if completion is None else _count(_at(found, completion)),
        usd=float(usd) if told else None,
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _free(usage: Usage) -> Usage:
    return Usage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        usd=usage.usd,
    )
