"""Any OpenAI-compatible endpoint: OpenAI itself, vLLM, Ollama, gateways.

The openai package says how requests to OpenAI look (`_client_headers`); the requests themselves go
over `opro.llms.wire`, which measured at a tenth of the package's CPU per call.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from opro.errors import ConfigError
from opro.llms.base import LLM, Switch
from opro.llms.chat_client import ChatClient, ChatSettings
from opro.llms.dialect import CapName
from opro.llms.price import Price
from opro.llms.route import check_base_url
from opro.types import Completion, Request

OFFICIAL = "https://api.openai.com/v1"

ACCOUNT = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
"""Header → variable: whom a request is billed to, which gateways pass on."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class OpenAILLM(LLM):
    """Asks one model behind `base_url`. Keys come from the environment, never from the config.

    Args:
        model: as the endpoint calls it.
        base_url: up to and without `/chat/completions`; None is OpenAI's own.
        api_key_env: name of the variable that holds the key; None sends no key.
        headers_env: more headers: name → name of the variable that holds the value.
        extra_body: laid over each request's JSON; wins over what is built here.
        seed: None sends none; else seed + the sample's number.
        max_tokens_param: what the endpoint calls the limit of an answer; switched once when it
            answers 400 to it, and then noted in each completion.
        send_temperature: False leaves it to the endpoint; also learned from a 400.
        price: US dollars per million tokens.
        timeout: seconds for one attempt, from connecting to the answer's last byte.
        retries: attempts after the first; made by the caller.
        max_retry_after: the most seconds that a Retry-After is obeyed for.
        max_in_flight: requests at once.
        cache: whether answers may come from the shared cache; for the caller.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        api_key_env: str | None = None,
        headers_env: dict[str, str] | None = None,
        extra_body: dict[str, Any] | None = None,
        seed: int | None = None,
        max_tokens_param: CapName = "max_tokens",
        send_temperature: bool = True,
        price: Price | None = None,
        timeout: Annotated[float, Field(gt=0, le=86400)] = 120.0,
        retries: Annotated[int, Field(ge=0, le=100)] = 4,
        max_retry_after: Annotated[float, Field(ge=0, le=86400)] = 60.0,
        max_in_flight: Annotated[int, Field(ge=1, le=4096)] = 32,
        cache: Switch = True,
    ) -> None:
        if model in ("", "???"):
            raise ConfigError("llm.model must name a model that the endpoint serves")
        self.model = model
        self.base_url = check_base_url(base_url or OFFICIAL)
        self.price = price or Price()
        self.timeout = timeout
        self.retries = retries
        self.max_in_flight = max_in_flight
        self.cache = cache
        self._api_key_env = api_key_env
        self._headers_env = headers_env or {}
        self._extra_body = extra_body or {}
        self._seed = seed
        self._max_tokens_param: CapName = max_tokens_param
        self._send_temperature = send_temperature
        self._max_retry_after = max_retry_after
        self._client: ChatClient | None = None
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise ConfigError if a variable that should hold a key or header doesn't."""
        self._headers()

    def start(self) -> None:
        """Read the key and make the client; connects to nothing yet."""
        with self._lock:
            if self._client is None:
                self._client = ChatClient(self._settings())

    def close(self) -> None:
        """Drop all connections; for good."""
        if self._client is not None:
            self._client.close()

    def send(self, request: Request) -> Completion:
        """Send one request once and return the answer."""
        if self._client is None:
            self.start()
        assert self._client is not None
        return self._client.send(request)

    def identity(self) -> Mapping[str, Any]:
        """Return what can change an answer; no key, header, price, time or number of slots."""
        return {
            "model": self.model,
            "base_url": self.base_url,
            "extra_body": self._extra_body,
            "seed": self._seed,
            "max_tokens_param": self._max_tokens_param,
            "send_temperature": self._send_temperature,
        }

    def _settings(self) -> ChatSettings:
        headers = self._headers()
        return ChatSettings(
            base_url=self.base_url,
            model=self.model,
            headers={**_client_headers(self.base_url), **headers},
            secrets=tuple(value.removeprefix("Bearer ") for value in headers.values()),
            key_env=self._api_key_env,
            extra_body=self._extra_body,
            seed=self._seed,
            max_tokens_param=self._max_tokens_param,
            send_temperature=self._send_temperature,
            price=self.price,
            timeout=self.timeout,
            max_retry_after=self._max_retry_after,
            max_in_flight=self.max_in_flight,
        )

    def _headers(self) -> dict[str, str]:
        headers = {}
        if self._api_key_env is not None:
            key = _from_environment(self._api_key_env, "llm.api_key_env")
            headers["Authorization"] = f"Bearer {key}"
        for name, variable in self._headers_env.items():
            headers[name] = _from_environment(variable, f"llm.headers_env.{name}")
        return headers


def _client_headers(base_url: str) -> dict[str, str]:
    """Return what the official client sends along: organization, project, name, platform.

    The two last are for OpenAI alone: loading the package takes half a second of each process.
    """
    if not base_url.startswith("https://api.openai.com/"):
        known = {name: os.environ.get(variable, "").strip() for name, variable in ACCOUNT.items()}
        return {name: value for name, value in known.items() if value}
    import openai

    with openai.OpenAI(api_key="set by us", base_url=base_url, max_retries=0) as client:
        head = dict(client.default_headers)
    own = {"authorization", "content-type", "accept"}
    return {k: v for k, v in head.items() if isinstance(v, str) and k.lower() not in own}


def _from_environment(variable: str, config_key: str) -> str:
    """Return a variable's value, stripped. The errors name the variable, never the value."""
    if not _VARIABLE.fullmatch(variable):
        raise ConfigError(
            f"{config_key} must be the name of an environment variable (letters, digits and _),"
            " not the secret itself"
        )
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ConfigError(f"environment variable {variable!r} is not set; {config_key} names it")
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(
            f"environment variable {variable!r} ({config_key}) holds a character that an HTTP "
            "header can't carry"
        )
    return value
