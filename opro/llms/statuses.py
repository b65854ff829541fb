"""From an answer with a status other than 2xx to the fault that it is."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Mapping
from typing import Any

from opro.llms.wire import Answer

_KINDS: Mapping[int, str] = {
    401: "unauthorized",
    402: "insufficient_quota",
    403: "forbidden",
    404: "not_found",
    408: "request_timeout",
    409: "conflict",
    429: "rate_limit",
}
_QUOTA = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}
_OVERFLOW = {"context_length_exceeded", "exceed_context_size_error"}
_TOO_LONG = re.compile(
    r"context (length|size|window)|maximum context|prompt is too long|too many tokens", re.I
)


def error_of(body: bytes) -> dict[str, Any]:
    """Return the error object of a body, with `message` at least; {} if there is none.

    Endpoints put it under `error` (an object or a text), under `detail`, or at the top.
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    for key in ("error", "detail"):
        if isinstance(found, dict) and found.get(key):
            found = found[key]
    if isinstance(found, dict):
        return found
    return {"message": found if isinstance(found, str) else json.dumps(found)}


def kind_of(status: int, error: Mapping[str, Any]) -> str:
    """Return the fault's kind; for 400 also by what the error says."""
    names = {str(error.get("code")), str(error.get("type"))}
    if names & _QUOTA:
        return "insufficient_quota"
    if status in (400, 413, 422):
        if names & _OVERFLOW or _TOO_LONG.search(str(error.get("message", ""))):
            return "context_overflow"
        return "bad_request"
    if status >= 500:
        return "server_error"
    if 300 <= status < 400:
        return "redirected"
    return _KINDS.get(status, "bad_request")


def retry_after(answer: Answer, most: float, now: float | None = None) -> float | None:
    """Return the seconds that the endpoint asks to wait, within 0 and `most`; None if it doesn't.

    Args:
        answer: its `Retry-After` is a number of seconds or an HTTP date; all else is ignored.
        most: the cap in seconds, as absurd values have been seen.
        now: seconds since the epoch, for dates; None is the clock's.
    """
    value = answer.headers.get("Retry-After")
    if value is None:
        return None
    seconds = _seconds(value, time.time() if now is None else now)
    if seconds is None or math.isnan(seconds):
        return None
    return min(max(seconds, 0.0), most)


def _seconds(value: str, now: float) -> float | None:
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return email.utils.parsedate_to_datetime(value).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None


def explain(kind: str, error: Mapping[str, Any], key_env: str | None) -> str:
    """Return what a person can do about it, to be put before the body's start; '' if nothing."""
    if kind in ("unauthorized", "forbidden"):
        if key_env is None:
            return "no key was sent: name its variable in llm.api_key_env"
        return f"the key in {key_env} (llm.api_key_env) isn't accepted"
    if kind == "not_found":
        return "check llm.model and llm.base_url"
    if kind == "insufficient_quota":
        return "the account has nothing left"
    need, available = error.get("n_prompt_tokens"), error.get("n_ctx")
    if kind == "context_overflow" and isinstance(need, int) and isinstance(available, int):
        return f"the prompt needs {need} tokens, {available} are available per slot"
    return ""
