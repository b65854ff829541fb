"""The real small model in this process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opro.llms import weights
from opro.llms.faults import Fault
from opro.llms.llama_server import LlamaServerLLM
from opro.types import Request
from tests.suites.llm_suite import ask

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model(real_weights: Path) -> Iterator[LlamaServerLLM]:
    llm = LlamaServerLLM(model_path=str(real_weights), model="smol", slots=4, n_ctx_per_slot=256)
    llm.check()
    llm.start()
    yield llm
    llm.close()


def questions(number: int) -> list[Request]:
    return [
        ask(f"Tell me about the number {n}.", temperature=0.0, max_tokens=8) for n in range(number)
    ]


def test_llm_local_answers_in_parallel(
    model: LlamaServerLLM, capfd: pytest.CaptureFixture[str]
) -> None:
    """More threads than slots, no crash, nothing printed, and equal requests answered alike."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(model.send, questions(8)))
    alone = [model.send(request) for request in questions(8)]
    assert [one.text for one in found] == [one.text for one in alone]
    assert len({one.text for one in found}) > 1
    for one in found:
        assert one.text and one.model == "smol" and one.usage.usd == 0.0
        assert 1 <= (one.usage.completion_tokens or 0) <= 8 and one.usage.prompt_tokens
    assert capfd.readouterr() == ("", "")


def test_llm_local_cut_answer(model: LlamaServerLLM) -> None:
    found = model.send(ask("Tell me a long story.", temperature=0.0, max_tokens=3))
    assert (found.finish_reason, found.usage.completion_tokens) == ("length", 3)


def test_llm_local_overflow_fails_one_call(model: LlamaServerLLM) -> None:
    with pytest.raises(Fault, match=r"needs \d{3,} tokens, 256 are available per slot") as info:
        model.send(ask("word " * 400))
    assert info.value.kind == "context_overflow"
    assert model.send(questions(1)[0]).text


def test_llm_local_samples_differ_and_come_again(model: LlamaServerLLM) -> None:
    def draw() -> list[str]:
        base = {"temperature": 1.0, "max_tokens": 12}
        return [model.send(ask("Name an animal.", sample=n, **base)).text for n in range(3)]

    first = draw()
    assert len(set(first)) > 1 and draw() == first


def test_llm_local_server_can_be_shared(model: LlamaServerLLM, real_weights: Path) -> None:
    address = model._client._settings.base_url  # no other way to learn a free port
    settings = {"model_path": str(real_weights), "model": "smol", "n_ctx_per_slot": 256}
    guest = LlamaServerLLM(base_url=address, **settings)
    assert guest.send(questions(1)[0]).text == model.send(questions(1)[0]).text
    assert guest.identity() == model.identity()
    guest.close()
    assert model.send(questions(1)[0]).text


def test_llm_local_identity(model: LlamaServerLLM) -> None:
    assert model.identity()["weights"] == weights.SHA256 == LlamaServerLLM().identity()["weights"]


PROGRAM = """
import signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a shell's background job
from opro.llms.llama_server import LlamaServerLLM
from opro.types import Message, Request
llm = LlamaServerLLM(model_path=sys.argv[1], slots=2, n_ctx_per_slot=2048, threads=1)
llm.start()
long = Request(messages=(Message(role="user", content="Count to 1000."),), max_tokens=1900)
threading.Thread(target=lambda: llm.send(long), daemon=True).start()
print("ready", flush=True)
try:
    threading.Event().wait(60)
except KeyboardInterrupt:
    if sys.argv[2] == "close":
        llm.close()
"""


@pytest.mark.parametrize("how", ["close", "leave"])
def test_llm_local_ends_with_its_process(how: str, real_weights: Path) -> None:
    """Ctrl-C in the middle of an answer ends the process soon, whether `close` is called or not."""
    command = [sys.executable, "-c", PROGRAM, str(real_weights), how]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert time.monotonic() - begin < 5.0
