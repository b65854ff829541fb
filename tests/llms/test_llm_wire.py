"""Connections: kept, renewed, cut short, led through proxies."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from opro.llms.faults import Fault
from opro.llms.openai_chat import OpenAILLM
from opro.llms.route import find_route
from opro.testing.handle import Loopback
from tests.suites.llm_suite import ask

Make = Callable[..., OpenAILLM]


def test_llm_connections_are_kept(server: Loopback, make: Make) -> None:
    server.control(latency=0.002, reset=True)
    llm = make(max_in_flight=8)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: llm.send(ask()), range(200)))
    stats = server.stats()
    assert stats["requests"] == stats["outcomes"]["ok"] == 200
    assert stats["connections"] <= 8 + 1  # this question's own
    assert stats["in_flight"]["peak"] <= 8


def test_llm_closed_connection_is_renewed(server: Loopback, make: Make) -> None:
    """One that the endpoint says it closes, and one that it closes while idle."""
    server.control(faults=[{"kind": "connection_close", "at": [1]}])
    llm = make()
    assert [llm.send(ask()).text for _ in range(3)] == ["The answer is 18."] * 3
    server.control(refuse=0.05)
    time.sleep(0.3)
    assert llm.send(ask()).text == "The answer is 18."


def test_llm_answer_after_a_broken_one(server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "reset_body", "at": [2]}])
    llm = make()
    llm.send(ask())
    with pytest.raises(Fault):
        llm.send(ask())
    assert llm.send(ask()).text == "The answer is 18."


def test_llm_close_ends_blocked_sends(server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "hang"}])
    llm, kinds = make(timeout=60.0), []

    def send() -> None:
        with pytest.raises(Fault) as info:
            llm.send(ask())
        kinds.append(info.value.kind)

    llm.start()
    threads = [threading.Thread(target=send, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    while server.stats()["in_flight"]["current"] < 4:
        time.sleep(0.01)
    begin = time.monotonic()
    llm.close()
    for thread in threads:
        thread.join(5)
    assert kinds == ["closed"] * 4 and time.monotonic() - begin < 1.0


def test_llm_outage_ends(server: Loopback, make: Make) -> None:
    llm = make()
    llm.start()
    server.control(refuse=0.5)
    with pytest.raises(Fault, match="refused") as info:
        llm.send(ask())
    assert info.value.kind == "no_connection"
    time.sleep(1.0)
    assert llm.send(ask()).text == "The answer is 18."


def test_llm_plain_proxy(server: Loopback, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy gets the whole address; loopback endpoints are reached without it."""
    monkeypatch.setenv("http_proxy", server.url.replace("//", "//user:hunter2@"))
    monkeypatch.setenv("no_proxy", "")
    llm = make(base_url="http://model.example/v1")
    assert llm.send(ask()).text == "The answer is 18."
    sent = server.log()[0]
    assert sent["line"] == "POST http://model.example/v1/chat/completions HTTP/1.1"
    assert sent["headers"]["host"] == "model.example"
    assert sent["headers"]["proxy-authorization"] == "Basic dXNlcjpodW50ZXIy"
    make().send(ask())
    assert server.log()[1]["line"] == "POST /v1/chat/completions HTTP/1.1"


def test_llm_proxy_tunnel(server: Loopback, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """TLS goes through a tunnel, which this server doesn't make: one fault, no password in it."""
    monkeypatch.setenv("https_proxy", server.url.replace("//", "//user:hunter2@"))
    monkeypatch.setenv("no_proxy", "")
    with pytest.raises(Fault, match="404") as info:
        make(base_url="https://model.example/v1").send(ask())
    assert info.value.kind == "no_connection" and "hunter2" not in info.value.message


def test_llm_proxy_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "model.example")
    assert find_route("https://model.example/v1").proxy is None
    assert find_route("https://other.example/v1").proxy is not None
    assert find_route("https://other.example/v1").context is not None
    assert find_route("https://localhost/v1").proxy is None


def test_llm_tls_is_checked(server: Loopback, make: Make) -> None:
    """An endpoint without TLS behind https:// is a failed connection, not a hang."""
    url = server.base_url.replace("http://", "https://")
    with pytest.raises(Fault) as info:
        make(base_url=url, timeout=0.3).send(ask())
    assert info.value.kind == "no_connection"
