"""Why a model call got no usable answer, and what follows: the one stated table.

The contract with the caller (`opro.calls`), which alone decides on another attempt:

- `rule.retry`: send the same request again, up to the endpoint's `retries`, after
  `fault.retry_after` seconds when given, else after a wait of its own.
- `rule.larger_cap`: send it again at most once, with `max_tokens` times `LARGER_CAP`. If that
  fails alike, `fault.completion` (empty text, finish reason `length`) is the answer.
- `rule.fatal`: stop the run.
- else the call has failed.

Refusals, filtered and truncated answers with text are answers, not faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opro.types import Completion, Usage

LARGER_CAP = 4
"""By what `max_tokens` grows for the one retry of an answer that was cut before any text."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What follows a fault.

    Attributes:
        retry: the same call is sent again (up to the endpoint's `retries`, after a wait).
        fatal: the run stops at once; no other call could fare better.
        larger_cap: the retry, at most one, has a larger `max_tokens`.
        means: for people; the documentation's table is made from it.
    """

    retry: bool
    fatal: bool
    means: str
    larger_cap: bool = False


def _again(means: str) -> Rule:
    return Rule(retry=True, fatal=False, means=means)


def _fails(means: str) -> Rule:
    return Rule(retry=False, fatal=False, means=means)


def _stops(means: str) -> Rule:
    return Rule(retry=False, fatal=True, means=means)


TABLE: Mapping[str, Rule] = {
    "no_connection": _again("the connection is refused, or name, TLS or proxy fail"),
    "timeout": _again("no whole answer within `timeout` seconds"),
    "reset": _again("the connection broke before the answer was whole"),
    "rate_limit": _again("429; Retry-After is honoured up to `max_retry_after`"),
    "request_timeout": _again("408"),
    "conflict": _again("409"),
    "server_error": _again("any status from 500"),
    "invalid_json": _again("200 with something that is not a JSON object"),
    "html": _again("200 with a web page, as gateways and captive portals send"),
    "no_choices": _again("200 with `choices` null, empty or without a message"),
    "null_content": _again("200 with neither text nor a refusal in the message"),
    "command_failed": _again("llm=command: the program ended with an error or left no answer"),
    "unsupported_parameter": _again(
        "400 for max_tokens or temperature; sent again in the endpoint's way"
    ),
    "empty_truncated": Rule(
        retry=True,
        fatal=False,
        larger_cap=True,
        means="the token limit was spent before any text; once more with a larger limit",
    ),
    "context_overflow": _fails("the prompt is longer than the model's context"),
    "bad_request": _fails("400 or another status from 400 that has no row here"),
    "closed": _fails("the run is ending, so nothing was sent or the answer was given up"),
    "insufficient_quota": _stops("402, or 429 whose body says that the account is empty"),
    "unauthorized": _stops("401: the key is missing or not accepted"),
    "forbidden": _stops("403: the key may not use this model or endpoint"),
    "not_found": _stops("404: no such model, or a wrong `base_url`"),
    "command_missing": _stops("llm=command: the program can't be started"),
    "redirected": _stops("3xx: `base_url` should name the place it points to"),
}


class Fault(Exception):  # noqa: N818 - not each is an error
    """One attempt without a usable answer.

    Attributes:
        kind: a key of `TABLE`.
        message: one line with the endpoint and the start of the body; never a key.
        retry_after: seconds that the endpoint asked to wait, already capped; or None.
        usage: what the endpoint charged all the same (with 0 calls), when it told.
        completion: the answer that stands when a larger cap doesn't help; else None.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retry_after: float | None = None,
        usage: Usage | None = None,
        completion: Completion | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after
        self.usage = usage
        self.completion = completion

    @property
    def rule(self) -> Rule:
        """The table's row for this kind."""
        return TABLE[self.kind]
