"""The shared answers: what they are keyed by, who asks, and what a broken file does."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opro.cache import AnswerCache
from opro.errors import Interrupted
from opro.llms.base import LLM
from opro.stop import Stop
from opro.types import Completion, Message, Request, Usage
from tests.sweeps import ROOT

ASKED = Request(messages=(Message(role="user", content="1+1 ${x}"),), temperature=0.0)
ANSWER = Completion(
    text="2 \ud800\x00",
    finish_reason="stop",
    model="m",
    usage=Usage(calls=1, prompt_tokens=3, completion_tokens=1, usd=0.5),
    seconds=3.0,
    attempts=2,
    notes=("n",),
)


class Model(LLM):
    """A model that is only asked who it is."""

    cache = True

    def __init__(self, **identity: Any) -> None:
        self._identity = {"model": "m", "base_url": "http://127.0.0.1:1/v1", **identity}

    def identity(self) -> Mapping[str, Any]:
        return self._identity

    def send(self, request: Request) -> Completion:
        raise AssertionError


def ask(cache: AnswerCache, llm: LLM, request: Request) -> Completion | None:
    key = cache.key(llm, request)
    assert key is not None
    found = cache.get(key, Stop())
    if found is None:
        cache.put(key, ANSWER)
    return found


def test_an_answer_outlives_the_process_and_is_marked(tmp_path: Path) -> None:
    first = AnswerCache(tmp_path)
    assert ask(first, Model(), ASKED) is None
    first.close()
    again = AnswerCache(tmp_path)
    found = ask(again, Model(), ASKED)
    again.close()
    assert found == replace(ANSWER, cached=True, seconds=0.0, attempts=1)


@pytest.mark.parametrize(
    ("llm", "request_"),
    [
        (Model(), replace(ASKED, sample=1)),
        (Model(), replace(ASKED, again=1)),
        (Model(), replace(ASKED, max_tokens=5)),
        (Model(), replace(ASKED, messages=(Message(role="system", content="1+1 ${x}"),))),
        (Model(), replace(ASKED, messages=(*ASKED.messages, *ASKED.messages))),
        (Model(model="n"), ASKED),
        (Model(base_url="http://127.0.0.1:2/v1"), ASKED),
        (Model(seed=1), ASKED),
        (Model(extra_body={"top_k": 1}), ASKED),
    ],
)
def test_whatever_can_change_an_answer_is_in_the_key(
    tmp_path: Path, llm: Model, request_: Request
) -> None:
    cache = AnswerCache(tmp_path)
    assert ask(cache, Model(), ASKED) is None
    assert ask(cache, llm, request_) is None
    assert ask(cache, llm, request_) is not None
    cache.close()


def test_only_temperature_0_of_a_model_that_takes_part(tmp_path: Path) -> None:
    cache, off = AnswerCache(tmp_path), Model()
    off.cache = False
    assert cache.key(Model(), replace(ASKED, temperature=None)) is None
    assert cache.key(Model(), replace(ASKED, temperature=0.7)) is None
    assert cache.key(off, ASKED) is None
    assert cache.key(Model(send_temperature=False), ASKED) is None
    assert cache.key(Model(extra_body={"temperature": 1}), ASKED) is None
    cache.close()


def test_the_second_who_asks_waits_for_the_first(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    key = cache.key(Model(), ASKED)
    assert key is not None and cache.get(key, Stop()) is None
    found: list[Completion | None] = []
    thread = threading.Thread(target=lambda: found.append(cache.get(key, Stop())))
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    cache.put(key, ANSWER)
    thread.join(5)
    assert found[0] is not None and found[0].cached
    # The one that fails lets the next one ask; a stop ends the waiting.
    other = cache.key(Model(), replace(ASKED, sample=9))
    assert other is not None and cache.get(other, Stop()) is None
    stop = Stop()
    stop.request(Interrupted("SIGINT"))
    with pytest.raises(Interrupted):
        cache.get(other, stop)
    cache.put(other, None)
    assert cache.get(other, Stop()) is None
    cache.put(other, None)
    cache.close()


OTHER_PROCESS = """
import sys
from pathlib import Path
from opro.cache import AnswerCache
from opro.stop import Stop
cache = AnswerCache(Path(sys.argv[1]))
print("asks" if cache.get(bytes.fromhex(sys.argv[2]), Stop()) is None else "has it", flush=True)
sys.stdin.read()
"""


def test_another_process_waits_too_and_its_death_frees_the_question(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    key = cache.key(Model(), ASKED)
    assert key is not None
    with subprocess.Popen(
        [sys.executable, "-c", OTHER_PROCESS, str(tmp_path), key.hex()],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "asks\n"
        found: list[Completion | None] = []
        thread = threading.Thread(target=lambda: found.append(cache.get(key, Stop())))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        other.kill()
        thread.join(10)
    assert found == [None]
    cache.put(key, None)
    cache.close()


def test_a_broken_file_turns_the_cache_off_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "answers.db").write_bytes(b"not a database, but long enough to look at" * 50)
    notes: list[str] = []
    cache = AnswerCache(tmp_path, notes.append)
    assert cache.key(Model(), ASKED) is None
    cache.close()
    assert len(notes) == 1 and "cache of answers is off" in notes[0]
