"""From a 2xx body to a completion, or to the fault that it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from opro.llms.faults import Fault
from opro.llms.price import Price
from opro.llms.wire import Answer
from opro.types import Completion, Usage

Describe = Callable[[str, bytes], str]
"""Makes a fault's one line from what is wrong and the body."""


def read_reply(answer: Answer, price: Price, describe: Describe) -> Completion:
    """Return the answer's completion; absent usage stays None.

    A refusal and a filtered answer are completions. So is an answer cut by its limit; without
    any text it is a fault `empty_truncated` that carries the completion.

    Raises:
        Fault: `html`, `invalid_json`, `no_choices`, `null_content` or `empty_truncated`.
    """
    body = _object(answer.body)
    usage = _usage(body or {}, price)

    def fail(kind: str, what: str, completion: Completion | None = None) -> NoReturn:
        text = describe(what, answer.body)
        raise Fault(kind, text, usage=replace(usage, calls=0), completion=completion)

    if body is None:
        if answer.body.lstrip()[:1] == b"<":
            fail("html", "a web page in place of JSON")
        fail("invalid_json", "not a JSON object")
    choice = _first(body.get("choices"))
    message = choice.get("message")
    if not isinstance(message, Mapping):
        fail("no_choices", "no choice with a message")
    content, refusal = _text(message.get("content")), _text(message.get("refusal"))
    finish = _text(choice.get("finish_reason"))
    if content is None and not refusal and finish not in ("length", "content_filter"):
        fail("null_content", "no text in the message")
    completion = Completion(
        text=content or "",
        finish_reason=finish,
        refusal=refusal or None,
        model=_text(body.get("model")),
        usage=usage,
        seconds=answer.seconds,
    )
    if finish == "length" and not completion.text and not refusal:
        what = "the token limit was reached before any text (raise max_tokens)"
        fail("empty_truncated", what, completion)
    return completion


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _first(choices: Any) -> Mapping[str, Any]:
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        return choices[0]
    return {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _usage(body: Mapping[str, Any], price: Price) -> Usage:
    found = body.get("usage")
    counts = found if isinstance(found, Mapping) else {}
    prompt, completion = (
        _count(counts.get("prompt_tokens")),
        _count(counts.get("completion_tokens")),
    )
    usd = price.usd(prompt, completion)
    return Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, usd=usd)


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
