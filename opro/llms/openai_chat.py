"""Any OpenAI-compatible endpoint: OpenAI itself, vLLM, Ollama, gateways.

The openai package is not used: all that it would do here is to build one address and two
headers, for 0.7 s of import and ten times the CPU per call (see `opro.llms.wire`).
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from opro.errors import ConfigError
from opro.llms.base import LLM
from opro.llms.chat_client import ChatClient, ChatSettings
from opro.llms.dialect import CapName
from opro.llms.price import Price
from opro.llms.route import check_base_url
from opro.types import Completion, Request

OFFICIAL = "https://api.openai.com/v1"

_SECRET_NAME = re.compile(
    r"(^|[_-])(api[_-]?key|secret|password|passwd|authorization|(auth|access|bearer)[_-]?token)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"^(sk-|Bearer\s|ghp_|hf_|xox[bp]-)\S{8,}")


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
        cache: bool = True,
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
        _check_free_of_secrets(self._extra_body)

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
            headers=headers,
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


def _from_environment(variable: str, config_key: str) -> str:
    """Return a variable's value, stripped. The errors name the variable, never the value."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ConfigError(f"environment variable {variable!r} is not set; {config_key} names it")
    if not (value.isascii() and value.isprintable()):
        raise ConfigError(
            f"environment variable {variable!r} ({config_key}) holds a character that an HTTP "
            "header can't carry"
        )
    return value


def _check_free_of_secrets(extra_body: Mapping[str, Any]) -> None:
    for path, value in _leaves(extra_body, "llm.extra_body"):
        named = isinstance(value, str) and _SECRET_NAME.search(path.rpartition(".")[2])
        if named or (isinstance(value, str) and _SECRET_VALUE.match(value)):
            raise ConfigError(
                f"{path} looks like a secret, and settings are logged; send it as a header: "
                "llm.headers_env takes the name of an environment variable"
            )


def _leaves(node: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield from _leaves(value, f"{path}.{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _leaves(value, f"{path}.{index}")
    else:
        yield path, node
