"""A GGUF model in this process: llama.cpp's own server on a free loopback port.

xllamacpp's wheels hold llama.cpp's HTTP server; requests reach it as they would reach any other
endpoint, so any number of threads may send. Its slots answer in parallel, and what is more waits
in its queue. At temperature 0 a slot's neighbours can still change the last bits of a
probability, so an answer may differ from the one that a single slot gives; `slots: 1` avoids it.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from opro.errors import ConfigError
from opro.llms import weights
from opro.llms.base import LLM, Switch
from opro.llms.chat_client import ChatClient, ChatSettings
from opro.llms.price import Price
from opro.llms.route import check_base_url
from opro.types import Completion, Request


class LlamaServerLLM(LLM):
    """Starts the server on the first use and ends it on `close`.

    Args:
        model_path: the user's GGUF file; None is SmolLM2-135M-Instruct, see `opro.llms.weights`.
        model: the name reported; None is the file's.
        base_url: a server that already runs and is used instead of starting one, so that the
            jobs of a sweep share it; `model_path` still says what it serves.
        slots: requests answered in parallel.
        n_ctx_per_slot: tokens of prompt and answer together, for each slot.
        threads: None is one per core that this process may use.
        seed: of the sampling; each request is sent with seed + its sample's number. None lets
            the server draw one.
        extra_body: laid over each request's JSON.
        timeout: seconds for one attempt, waiting for a slot included.
        retries: attempts after the first; made by the caller.
        max_in_flight: None is slots + 2, so that a slot finds its next request in the queue.
        cache: whether answers may come from the shared cache; for the caller.
    """

    def __init__(
        self,
        *,
        model_path: str | None = None,
        model: str | None = None,
        base_url: str | None = None,
        slots: Annotated[int, Field(ge=1, le=256)] = 8,
        n_ctx_per_slot: Annotated[int, Field(ge=64)] = 2048,
        threads: Annotated[int, Field(ge=1)] | None = None,
        seed: Annotated[int, Field(ge=0)] | None = 0,
        extra_body: dict[str, Any] | None = None,
        timeout: Annotated[float, Field(gt=0, le=86400)] = 600.0,
        retries: Annotated[int, Field(ge=0, le=100)] = 2,
        max_in_flight: Annotated[int, Field(ge=1, le=4096)] | None = None,
        cache: Switch = True,
    ) -> None:
        if model_path == "???":
            raise ConfigError("llm.model_path must name a GGUF file")
        self._path = None if model_path is None else Path(model_path).expanduser()
        self.model = model or (weights.MODEL if self._path is None else self._path.stem)
        self.base_url = None if base_url is None else check_base_url(base_url)
        self.slots = slots
        self.n_ctx_per_slot = n_ctx_per_slot
        self.threads = threads or _cores()
        self.timeout = timeout
        self.retries = retries
        self.max_in_flight = max_in_flight or slots + 2
        self.cache = cache
        self.price = Price(prompt=0.0, completion=0.0)
        self._seed = seed
        self._extra_body = extra_body or {}
        self._server: Any = None
        self._client: ChatClient | None = None
        self._lock = threading.Lock()
        self._sha256: str | None = None if self._path else weights.SHA256

    def check(self) -> None:
        """Raise ConfigError if the file isn't a GGUF file or xllamacpp isn't installed."""
        if self._path is not None:
            weights.check_gguf(self._path)
        if self.base_url is None and importlib.util.find_spec("xllamacpp") is None:
            raise ConfigError(
                "a model in this process needs xllamacpp: install the extra 'local' "
                "(pip install 'opro[local]'), or choose another llm"
            )

    def start(self) -> None:
        """Start the server (about 1 s; the first time on a machine, the weights are fetched)."""
        with self._lock:
            if self._client is None:
                self._client = ChatClient(self._settings(self.base_url or self._serve()))

    def share(self) -> str | None:
        """Start the server for the jobs of a sweep and return its address."""
        if self.base_url is not None:
            return None  # runs already, and each job knows where
        with self._lock:
            return self._serve()

    def join(self, address: str) -> None:
        """Use the server at `address` instead of starting one."""
        self.base_url = address

    def close(self) -> None:
        """Drop the connections and end our own server."""
        with self._lock:
            if self._client is not None:
                self._client.close()
            self._server = None
        atexit.unregister(self.close)

    def send(self, request: Request) -> Completion:
        """Send one request once and return the answer."""
        if self._client is None:
            self.start()
        assert self._client is not None
        return self._client.send(request)

    def identity(self) -> Mapping[str, Any]:
        """Return model, weights' sha256, context, seed and extra_body.

        The address is left out, as it is another one in each process, and so are slots and
        threads: they are for speed, though see the module about the last bits.
        """
        if self._sha256 is None:
            assert self._path is not None
            self._sha256 = weights.sha256(self._path)
        return {
            "model": self.model,
            "weights": self._sha256,
            "n_ctx_per_slot": self.n_ctx_per_slot,
            "seed": self._seed,
            "extra_body": self._extra_body,
        }

    def _settings(self, base_url: str) -> ChatSettings:
        return ChatSettings(
            base_url=base_url,
            model=self.model,
            extra_body=self._extra_body,
            seed=self._seed,
            price=self.price,
            timeout=self.timeout,
            max_in_flight=self.max_in_flight,
        )

    def _serve(self) -> str:
        path = weights.smollm2() if self._path is None else self._path
        library = _import_quietly()
        params = library.CommonParams()
        params.model.path = str(path)
        params.model_alias = {self.model}
        params.n_parallel = self.slots
        params.n_ctx = self.slots * self.n_ctx_per_slot
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = self.threads
        params.n_threads_http = self.max_in_flight + 2
        params.port = 0
        params.verbosity = -1
        params.ui = False
        # Keeping past prompts in memory (8 GB by default) brings nothing here: a slot's own
        # prefix is reused anyway, and the process grew past 1 GB in a search.
        params.cache_ram_mib = 0
        try:
            self._server = library.Server(params)
        except Exception as error:
            raise ConfigError(f"llama.cpp can't load {str(path)!r}: {error}") from None
        # Its threads must have ended before the interpreter takes itself apart.
        atexit.register(self.close)
        return f"{self._server.listening_address}/v1"


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _import_quietly() -> Any:
    """Import xllamacpp so that its threads sleep, not spin, while they wait for each other.

    Spinning is a little faster on an idle machine, but with two threads on two busy cores it was
    measured at 4 tokens/s and less, sleeping at 30 to 60. OpenMP reads the variable once.
    """
    before = os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        import xllamacpp
    except ImportError as error:
        raise ConfigError(f"xllamacpp can't be imported: {error}") from None
    finally:
        if before is None:
            os.environ.pop("OMP_WAIT_POLICY", None)
    return xllamacpp
