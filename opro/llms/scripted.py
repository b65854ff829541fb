"""Replays written answers, so that a run needs no model: for tests, demonstrations, replays."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pydantic
import yaml  # type: ignore[import-untyped]

from opro.errors import ConfigError, RunError
from opro.llms.base import LLM, Switch
from opro.llms.excerpt import excerpt
from opro.llms.faults import TABLE, Fault
from opro.llms.price import Price
from opro.types import Completion, Request, Usage


@dataclass(frozen=True, kw_only=True)
class ScriptRule:
    """One written answer, for every request that holds all the texts in `contains`.

    Attributes:
        contains: texts that must occur in the messages (joined by line breaks); none: always.
        reply: the answer. From a list, the entry with the request's `ordinal` (its `sample`,
            where it has none) is taken: never by the order of arrival.
        fault: this fault is raised in place of a reply.
        times: only for the first so many attempts of each equal request; later ones go on to
            the next rule.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    contains: str | list[str] = field(default_factory=list)
    reply: str | list[str] | None = None
    finish_reason: str = "stop"
    refusal: str | None = None
    model: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    fault: str | None = None
    times: int | None = None

    def matches(self, text: str) -> bool:
        """Tell whether all texts occur in `text`."""
        wanted = [self.contains] if isinstance(self.contains, str) else self.contains
        return all(part in text for part in wanted)


class ScriptedLLM(LLM):
    """Answers by the first rule that matches; a prompt without one stops the run.

    Deterministic whatever the order of threads: what a request gets depends on the request, and
    with `times` on how often this very request was sent.

    Args:
        rules: tried in order.
        path: a YAML or JSON file with the list of rules, instead.
        model: the name reported, where a rule has none.
        price: as for a real endpoint.
        seconds: how long each answer takes.
        retries, max_in_flight, cache: as for a real endpoint.
    """

    def __init__(
        self,
        *,
        rules: list[ScriptRule] | None = None,
        path: str | None = None,
        model: str = "scripted",
        price: Price | None = None,
        seconds: Annotated[float, pydantic.Field(ge=0)] = 0.0,
        retries: Annotated[int, pydantic.Field(ge=0, le=100)] = 4,
        max_in_flight: Annotated[int, pydantic.Field(ge=1, le=4096)] = 32,
        cache: Switch = False,
    ) -> None:
        if (rules is None) == (path is None):
            raise ConfigError("give one of llm.rules and llm.path, not both or none")
        self.model = model
        self.price = price or Price()
        self.retries = retries
        self.max_in_flight = max_in_flight
        self.cache = cache
        self._rules = _read(Path(path)) if path is not None else rules or []
        self._seconds = seconds
        self._attempts: Counter[tuple[int, Request]] = Counter()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        for index, rule in enumerate(self._rules):
            _check(rule, f"rule {index} of {path or 'llm.rules'}")

    def close(self) -> None:
        """End waiting sends."""
        self._closed.set()

    def send(self, request: Request) -> Completion:
        """Return the answer of the first rule that matches.

        Raises:
            Fault: the rule says so.
            RunError: no rule matches, or its list of replies is too short.
        """
        if self._closed.wait(self._seconds) if self._seconds else self._closed.is_set():
            raise Fault("closed", "llm=scripted: closed")
        text = "\n".join(message.content for message in request.messages)
        for index, rule in enumerate(self._rules):
            if rule.matches(text) and self._has_times_left(index, rule, request):
                return self._answer(index, rule, request)
        raise RunError(f"llm=scripted: no rule matches the prompt that begins '{excerpt(text)}'")

    def identity(self) -> Mapping[str, Any]:
        """Return the model's name and the rules' sha256."""
        rules = json.dumps([asdict(rule) for rule in self._rules], sort_keys=True)
        return {"model": self.model, "rules": hashlib.sha256(rules.encode("ascii")).hexdigest()}

    def _has_times_left(self, index: int, rule: ScriptRule, request: Request) -> bool:
        if rule.times is None:
            return True
        key = index, replace(request, again=0)
        with self._lock:
            self._attempts[key] += 1
            return self._attempts[key] <= rule.times

    def _answer(self, index: int, rule: ScriptRule, request: Request) -> Completion:
        if rule.fault is not None:
            raise Fault(rule.fault, f"llm=scripted: rule {index} raises {rule.fault}")
        prompt, completion = rule.prompt_tokens, rule.completion_tokens
        usd = self.price.usd(prompt, completion)
        return Completion(
            text=_reply(index, rule, request),
            finish_reason=rule.finish_reason,
            refusal=rule.refusal,
            model=rule.model or self.model,
            usage=Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, usd=usd),
            seconds=self._seconds,
        )


def _reply(index: int, rule: ScriptRule, request: Request) -> str:
    if not isinstance(rule.reply, list):
        return rule.reply or ""
    number = request.sample if request.ordinal is None else request.ordinal
    if number >= len(rule.reply):
        raise RunError(
            f"llm=scripted: rule {index} has {len(rule.reply)} replies, number {number} (from 0) "
            "is asked for"
        )
    return rule.reply[number]


def _read(path: Path) -> list[ScriptRule]:
    """Read the rules of a file. Raises ConfigError naming file, place and cause."""
    try:
        text = path.read_text(encoding="utf-8")
        # YAML would take JSON's escapes apart, e.g. an emoji's.
        found = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        return pydantic.TypeAdapter(list[ScriptRule]).validate_json(json.dumps(found), strict=True)
    except yaml.YAMLError as error:
        raise ConfigError(f"llm.path {str(path)!r}: {' '.join(str(error).split())}") from None
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"llm.path {str(path)!r}: {where}: {first['msg']}") from None
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"llm.path {str(path)!r} can't be read: {error}") from None


def _check(rule: ScriptRule, where: str) -> None:
    if (rule.reply is None and rule.refusal is None) == (rule.fault is None):
        raise ConfigError(f"{where} must have a reply (or refusal) or a fault, not both or none")
    if rule.fault is not None and rule.fault not in TABLE:
        raise ConfigError(f"{where}: no fault {rule.fault!r}; known: {', '.join(TABLE)}")
