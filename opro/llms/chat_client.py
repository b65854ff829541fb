"""The chat-completions protocol over HTTP, as all backends with an endpoint speak it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from opro.llms.dialect import CapName, Dialect, Form
from opro.llms.excerpt import excerpt
from opro.llms.faults import Fault
from opro.llms.price import Price
from opro.llms.replies import read_reply
from opro.llms.route import find_route
from opro.llms.statuses import error_of, explain, kind_of, retry_after
from opro.llms.wire import Answer, Wire
from opro.types import Completion, Request, Usage

AGAIN = 1_000_003
"""Added to the seed of a request that is made once more, which should not fare alike."""


LONG_PROMPT, MOST_PER_TOKEN = 2000, 16
"""Characters of a prompt that is worth a look, and of a token, which in any text has about 4."""


@dataclass(frozen=True, kw_only=True)
class ChatSettings:
    """What a client needs to know of its endpoint.

    Attributes:
        base_url: checked, without a slash at its end.
        headers: sent with each request; values of secret ones are also in `secrets`.
        secrets: cut out of every message.
        key_env: the name of the key's variable, for messages; None if no key is sent.
        seed: None sends none; else each request is sent with `seed` + its sample's number, so
            that samples of one prompt differ and can still be had again.
        timeout, max_retry_after: seconds.
    """

    base_url: str
    model: str
    headers: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    key_env: str | None = None
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    max_tokens_param: CapName = "max_tokens"
    send_temperature: bool = True
    price: Price = field(default_factory=Price)
    timeout: float = 120.0
    max_retry_after: float = 60.0
    max_in_flight: int = 32


class ChatClient:
    """Sends requests to one endpoint; one attempt per call. Thread-safe."""

    def __init__(self, settings: ChatSettings) -> None:
        self._settings = settings
        self._name = f"{settings.base_url}, model {settings.model!r}"
        form = Form(cap=settings.max_tokens_param, temperature=settings.send_temperature)
        self._dialect = Dialect(form)
        headers = {"Content-Type": "application/json", "User-Agent": "opro", **settings.headers}
        self._wire = Wire(
            find_route(settings.base_url + "/chat/completions"),
            self._name,
            headers,
            timeout=settings.timeout,
            keep=settings.max_in_flight,
        )

    def send(self, request: Request) -> Completion:
        """Send `request` once. Raises Fault for anything but a usable answer."""
        form = self._dialect.form
        # ASCII JSON carries any text, lone surrogates too, exactly.
        answer = self._wire.post(json.dumps(self._body(request, form)).encode("ascii"))
        if not 200 <= answer.status < 300:
            return self._refused(answer, form)
        try:
            completion = read_reply(answer, self._settings.price, self._describe)
        except Fault as fault:
            # Without a cap of ours there is nothing to enlarge: the cut answer is the answer.
            if fault.completion is None or request.max_tokens is not None:
                raise
            completion = fault.completion
        notes = (*self._dialect.notes(form), *_cut_prompt(request, completion))
        return replace(completion, notes=notes) if notes else completion

    def close(self) -> None:
        """Drop all connections; a `send` under way ends with the fault `closed`."""
        self._wire.close()

    def _body(self, request: Request, form: Form) -> dict[str, Any]:
        messages = [{"role": m.role, "content": m.content} for m in request.messages]
        body: dict[str, Any] = {"model": self._settings.model, "messages": messages}
        if request.temperature is not None and form.temperature:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body[form.cap] = request.max_tokens
        if self._settings.seed is not None:
            body["seed"] = self._settings.seed + request.sample + AGAIN * request.again
        body.update(self._settings.extra_body)
        return body

    def _refused(self, answer: Answer, form: Form) -> Completion:
        """Return the completion of a filtered prompt; raise the fault of any other status."""
        error = error_of(answer.body)
        kind = kind_of(answer.status, error)
        if kind == "bad_request" and error.get("code") == "content_filter":
            why = excerpt(str(error.get("message", "")), self._settings.secrets)
            return Completion(
                text="",
                finish_reason="content_filter",
                refusal=why,
                usage=Usage(calls=1),
                seconds=answer.seconds,
            )
        if kind == "bad_request" and self._dialect.learn(form, error):
            kind = "unsupported_parameter"
        hint = explain(kind, error, self._settings.key_env)
        what = f"HTTP {answer.status}" + (f": {hint}" if hint else "")
        # Endpoints like to repeat a part of a key that they refuse.
        body = b"" if kind == "unauthorized" else answer.body
        wait = retry_after(answer, self._settings.max_retry_after)
        raise Fault(kind, self._describe(what, body), retry_after=wait)

    def _describe(self, what: str, body: bytes) -> str:
        start = excerpt(body, self._settings.secrets)
        return f"{self._name}: {what}" + (f": {start}" if start else "")


def _cut_prompt(request: Request, completion: Completion) -> tuple[str, ...]:
    """Return a note when the endpoint counted far fewer tokens than the prompt must have.

    Some servers (Ollama by default) drop what exceeds their context without an error.
    """
    counted = completion.usage.prompt_tokens
    length = sum(len(message.content) for message in request.messages)
    if counted is None or length < max(LONG_PROMPT, MOST_PER_TOKEN * counted + 1):
        return ()
    return ("far fewer prompt tokens counted than were sent: is the prompt cut to the context?",)
