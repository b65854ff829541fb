"""What the loopback server writes: answers as bytes, good ones and each kind of bad one."""

from __future__ import annotations

import email.utils
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

DEFAULT_TEXT = "The answer is 18."
DEFAULT_MODEL = "loopback-model"
DEFAULT_USAGE: Mapping[str, int] = {"prompt_tokens": 50, "completion_tokens": 8}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Bytes to write, and what happens to the connection then.

    Attributes:
        name: for the counts: `ok` or the fault's kind.
        after: `keep` it, `abort` it (a TCP reset), `hang` for good, `drip` a byte now and then
            for good.
    """

    name: str
    data: bytes = b""
    after: Literal["keep", "abort", "hang", "drip"] = "keep"


def http(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """Return a whole HTTP/1.1 answer."""
    lines = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode("ascii") + body


def chat_body(
    text: str | None,
    *,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    model: str | None = DEFAULT_MODEL,
    usage: Mapping[str, int] | None = DEFAULT_USAGE,
) -> dict[str, Any]:
    """Return a chat completion's body; `usage` None leaves the usage out."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": model}
    return {**body, "choices": [choice], **({} if usage is None else {"usage": dict(usage)})}


def json_answer(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> bytes:
    """Return an HTTP answer with a JSON body."""
    return http(status, json.dumps(body).encode("ascii"), headers)


def _error(
    status: int, message: str, headers: Mapping[str, str] | None = None, **more: Any
) -> bytes:
    return json_answer({"error": {"message": message, **more}}, status, headers)


def _limited(retry_after: str) -> bytes:
    return _error(429, "slow down", {"retry-after": retry_after})


def _date(value: str) -> bytes:
    return _limited(email.utils.formatdate(time.time() + float(value or 1), usegmt=True))


def _overflow(_value: str) -> bytes:
    text = "This model's maximum context length is 512 tokens"
    return _error(400, text, code="context_length_exceeded", n_prompt_tokens=900, n_ctx=512)


def _refused(name: str, message: str) -> bytes:
    return _error(400, message, param=name, code="unsupported_parameter")


def _chat(text: str | None, **more: Any) -> bytes:
    return json_answer(chat_body(text, **more))


_ANSWERS: Mapping[str, Callable[[str], bytes]] = {
    "500": lambda _: _error(500, "internal error"),
    "503": lambda _: _error(503, "overloaded"),
    "429": lambda _: _error(429, "slow down"),
    "429_seconds": lambda value: _limited(value or "1"),
    "429_date": _date,
    "429_absurd": lambda value: _limited(value or "99999999999"),
    "insufficient_quota": lambda _: _error(429, "quota exceeded", code="insufficient_quota"),
    "400": lambda _: _error(400, "bad request"),
    "401": lambda value: _error(401, f"Incorrect API key provided: {value}"),
    "402": lambda _: _error(402, "pay first"),
    "403": lambda value: _error(403, f"not for you, {value}"),
    "404": lambda _: _error(404, "model does not exist"),
    "408": lambda _: _error(408, "request timeout"),
    "409": lambda _: _error(409, "conflict"),
    "301": lambda _: http(301, b"", {"location": "http://127.0.0.1:1/"}),
    "invalid_json": lambda _: http(200, b'{"choices": [{"mess'),
    "json_list": lambda _: json_answer([]),
    "html": lambda _: http(200, b"<html>Log in\x1b[31m</html>", {"content-type": "text/html"}),
    "choices_null": lambda _: json_answer({**chat_body(""), "choices": None}),
    "choices_empty": lambda _: json_answer({**chat_body(""), "choices": []}),
    "content_null": lambda _: _chat(None),
    "content_empty": lambda _: _chat(""),
    "refusal": lambda _: _chat(None, refusal="I can't help with that."),
    "content_filter": lambda _: _chat(None, finish_reason="content_filter"),
    "prompt_filtered": lambda _: _error(400, "filtered", code="content_filter"),
    "length_empty": lambda _: _chat(
        "", finish_reason="length", usage={"prompt_tokens": 50, "completion_tokens": 400}
    ),
    "length_text": lambda _: _chat("The answer", finish_reason="length"),
    "usage_missing": lambda _: _chat(DEFAULT_TEXT, usage=None),
    "context_overflow": _overflow,
    "no_max_tokens": lambda _: _refused(
        "max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    ),
    "no_temperature": lambda _: _refused(
        "temperature", "Unsupported value: 'temperature' does not support 0.7 with this model."
    ),
    "connection_close": lambda _: json_answer(
        chat_body(DEFAULT_TEXT), 200, {"connection": "close"}
    ),
}

_WHOLE = json_answer(chat_body(DEFAULT_TEXT))
_BROKEN: Mapping[str, Outcome] = {
    "reset": Outcome(name="reset", after="abort"),
    "reset_body": Outcome(name="reset_body", data=_WHOLE[:-20], after="abort"),
    "hang": Outcome(name="hang", after="hang"),
    "drip": Outcome(name="drip", data=_WHOLE[:-200], after="drip"),
    "drip_head": Outcome(name="drip_head", data=b"HTTP/1.1 200 OK\r\nx-drip: ", after="drip"),
}

KINDS = (*_ANSWERS, *_BROKEN)
"""The kinds of faults that can be asked for (some are odd but usable answers)."""


def fault(kind: str, value: str = "") -> Outcome:
    """Return the outcome of a kind; `value` is a Retry-After or a text to repeat."""
    if kind in _BROKEN:
        return _BROKEN[kind]
    return Outcome(name=kind, data=_ANSWERS[kind](value))
