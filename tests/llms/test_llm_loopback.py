"""The loopback server itself: what it counts must be right, since other tests rest on it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opro.llms.faults import Fault
from opro.llms.openai_chat import OpenAILLM
from opro.testing.handle import Loopback, in_process
from tests.suites.llm_suite import ask

ROOT = Path(__file__).resolve().parents[2]
Make = Callable[..., OpenAILLM]


def kind_of(llm: OpenAILLM, text: str = "How many?") -> str:
    try:
        llm.send(ask(text))
    except Fault as fault:
        return fault.kind
    return "ok"


def test_loopback_counts(server: Loopback, make: Make) -> None:
    server.control(latency=0.1, reset=True)
    llm = make(max_in_flight=4)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: llm.send(ask(f"Question {n % 6}")), range(8)))
    stats = server.stats()
    assert stats["requests"] == 8 and stats["outcomes"] == {"ok": 8} and stats["repeats"] == 2
    assert stats["in_flight"]["peak"] == 4 and stats["in_flight"]["current"] == 0
    assert 3.0 < stats["in_flight"]["mean"] <= 4.0 and 0.19 < stats["seconds"] < 1.0
    server.control(reset=True)
    assert server.stats()["requests"] == 0 and server.log() == []


def test_loopback_slots(server: Loopback, make: Make) -> None:
    """More requests than slots wait their turn, or are turned away with a 429."""
    server.control(latency=0.05, slots=2)
    llm = make(max_in_flight=6)
    begin = time.monotonic()
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lambda _: kind_of(llm), range(6))) == ["ok"] * 6
    assert time.monotonic() - begin > 0.14
    server.control(over_slots="429")
    with ThreadPoolExecutor(6) as pool:
        kinds = list(pool.map(lambda _: kind_of(llm), range(6)))
    assert sorted(kinds) == ["ok"] * 2 + ["rate_limit"] * 4


def test_loopback_slots_survive_a_client_that_leaves(server: Loopback, make: Make) -> None:
    server.control(latency=0.3, slots=1)
    assert kind_of(make(timeout=0.05)) == "timeout"
    assert kind_of(make()) == "ok"
    assert server.stats()["outcomes"] == {"gone": 1, "ok": 1}


def test_loopback_faults_by_position(server: Loopback, make: Make) -> None:
    server.control(
        faults=[
            {"kind": "500", "at": [1, 3]},
            {"kind": "409", "every": 4},
            {"kind": "408", "contains": ["odd"], "times": 1},
        ]
    )
    llm = make()
    kinds = [kind_of(llm, text) for text in ("a", "b", "c", "d", "odd", "odd")]
    assert kinds == ["server_error", "ok", "server_error", "conflict", "request_timeout", "ok"]
    assert server.stats()["outcomes"] == {"500": 2, "409": 1, "408": 1, "ok": 2}


def test_loopback_faults_by_chance_depend_on_the_request(server: Loopback, make: Make) -> None:
    faults = [{"kind": "500", "rate": 0.3, "seed": 1}]
    texts = [f"Question {n}" for n in range(60)]
    llm, found = make(), []
    for order in (texts, texts[::-1]):
        server.control(faults=faults, reset=True)
        found.append({text: kind_of(llm, text) for text in order})
    assert found[0] == found[1]
    assert 5 < list(found[0].values()).count("server_error") < 31


def test_loopback_replies(server: Loopback, make: Make) -> None:
    server.control(
        rules=[
            {"contains": ["count"], "text": ["a", "b"], "pick": "count"},
            {"contains": ["hash"], "text": ["a", "b", "c"]},
            {"text": "<INS>try $sha, $count</INS>"},
        ]
    )
    llm = make()
    assert [llm.send(ask("count")).text for _ in range(3)] == ["a", "b", "b"]
    hashed = [llm.send(ask(f"hash {n}")).text for n in range(20)]
    assert set(hashed) == {"a", "b", "c"}
    assert [llm.send(ask(f"hash {n}")).text for n in range(20)] == hashed
    first, again, other = (llm.send(ask(text)).text for text in ("x", "x", "y"))
    assert first.split(",")[0] == again.split(",")[0] != other.split(",")[0]
    assert first.endswith("0</INS>") and again.endswith("1</INS>")


@pytest.mark.parametrize(
    "settings", [{"latecny": 1}, {"faults": [{"kind": "nonsense"}]}, {"rules": [{"txt": "a"}]}]
)
def test_loopback_refuses_what_it_does_not_know(
    settings: dict[str, object], server: Loopback
) -> None:
    with pytest.raises(ValueError, match=r"latecny|nonsense|txt"):
        server.control(**settings)


def test_loopback_log_holds_no_key(
    server: Loopback, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPRO_TEST_KEY", "sk-test-0123456789abcdef")
    make(api_key_env="OPRO_TEST_KEY").send(ask())
    entry = server.log()[0]
    assert entry["authorized"] and "sk-test" not in str(entry)
    assert entry["outcome"] == "ok" and entry["begin"] <= entry["end"]


def test_loopback_in_a_process_of_its_own(make: Make) -> None:
    with in_process(latency=0.01) as server:
        assert make(base_url=server.base_url).send(ask()).text == "The answer is 18."
        assert server.stats()["requests"] == 1


def test_loopback_ends_with_its_parent() -> None:
    program = (
        "import time\nfrom opro.testing.handle import in_process\n"
        "with in_process() as server:\n    print(server.url, flush=True)\n    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server = Loopback(parent.stdout.readline().strip())
        assert server.stats()["requests"] == 0
        parent.kill()
        parent.wait(10)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            server.stats()
        except OSError:
            return
        time.sleep(0.05)
    pytest.fail("the server has outlived its parent")
