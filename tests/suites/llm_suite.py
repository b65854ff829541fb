"""What every llm must do; one function for one promise, each given a way to make it anew.

Whatever an option's class takes of `STAND_INS` is set to something that works without a key or a
model: an endpoint becomes the loopback server, a file a small one.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from opro.llms.base import LLM
from opro.llms.faults import Fault
from opro.llms.price import Price
from opro.setup.config import build
from opro.types import Completion, Message, Request

Make = Callable[..., LLM]
KEY = "sk-suite-0123456789abcdef"
FREE = {
    "timeout": 77.0,
    "retries": 9,
    "max_in_flight": 3,
    "cache": False,
    "max_retry_after": 7.0,
    "price": {"prompt": 3.0},
}
"""Settings that change no answer, so they must leave the identity alone."""


def ask(text: str = "How many?", **settings: object) -> Request:
    """Return a request with one user message."""
    return Request(messages=(Message(role="user", content=text),), **settings)


def stand_ins(base_url: str, folder: Path) -> dict[str, object]:
    """Return settings by name, for whichever a class takes."""
    gguf = folder / "tiny.gguf"
    gguf.write_bytes(b"GGUF" + bytes(60))
    return {
        "base_url": base_url,
        "api_key_env": "OPRO_SUITE_KEY",
        "model": "suite-model",
        "model_path": str(gguf),
        "rules": [{"reply": "The answer is 18."}],
        "command": ["printf", "The answer is 18."],
        "output_file": None,
        "reply_field": None,
    }


def maker(path: Path, settings: dict[str, object]) -> Make:
    """Return what builds the option of one YAML file, checked as a run's configuration is."""
    whole = OmegaConf.create({"seed": 0, "llm": OmegaConf.load(path)})
    for name in set(settings) & set(whole.llm.keys()):
        whole.llm[name] = settings[name]
    node = OmegaConf.to_container(whole, resolve=True)["llm"]
    return lambda **more: build(
        {**node, **{name: value for name, value in more.items() if name in node}}, "llm"
    )


def check_yaml(path: Path, make: Make) -> None:
    """Hold that the file shows every setting, each line with a comment."""
    keys = [key for key in OmegaConf.load(path) if key != "_target_"]
    arguments = inspect.signature(type(make())).parameters
    assert set(keys) == set(arguments)
    assert all(argument.kind is argument.KEYWORD_ONLY for argument in arguments.values())
    assert all("#" in line for line in path.read_text("utf-8").splitlines())


def check_attributes(make: Make) -> None:
    """Hold what the callers read."""
    llm = make()
    assert isinstance(llm, LLM) and llm.model
    assert llm.max_in_flight >= 1 and llm.retries >= 0
    assert isinstance(llm.cache, bool) and isinstance(llm.price, Price)
    llm.check()


def check_identity(make: Make) -> None:
    """Hold that the identity is plain data, free of the key, and of what changes no answer."""
    first, second, freed = make(), make(), make(**FREE)
    text = json.dumps(first.identity(), sort_keys=True)
    assert text == json.dumps(second.identity(), sort_keys=True)
    assert text == json.dumps(freed.identity(), sort_keys=True)
    assert first.model in text and KEY not in text
    first.start()
    first.send(ask())
    assert text == json.dumps(first.identity(), sort_keys=True)
    first.close()


def check_send(make: Make) -> None:
    """Hold that many threads get whole answers, the same for the same request."""
    llm = make()
    llm.start()
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: llm.send(ask(temperature=0.0, max_tokens=9)), range(48)))
    llm.close()
    assert {completion.text for completion in found} == {"The answer is 18."}
    for completion in found:
        assert isinstance(completion, Completion)
        assert completion.usage.calls == 1 and completion.attempts == 1 and not completion.cached
        assert completion.finish_reason == "stop" and completion.model


def check_close(make: Make) -> None:
    """Hold that a closed model sends nothing more, and that closing again does no harm."""
    llm = make()
    llm.close()  # never started
    llm = make()
    llm.start()
    llm.send(ask())
    llm.close()
    llm.close()
    begin = time.monotonic()
    with pytest.raises(Fault) as caught:
        llm.send(ask())
    assert caught.value.kind == "closed" and time.monotonic() - begin < 1.0
