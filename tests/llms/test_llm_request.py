"""What is really sent, and what is read from a good answer."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from opro.llms import openai_chat
from opro.llms.faults import Fault
from opro.llms.openai_chat import OpenAILLM
from opro.llms.price import Price
from opro.testing.handle import Loopback
from opro.types import Message, Request
from tests.conftest import ROOT
from tests.suites.llm_suite import ask

Make = Callable[..., OpenAILLM]
HOSTILE = "${oc.env:HOME} %s {} ../ \x00 \ud800 \u202e é😀 <b>\x1b[31m" + "x" * 1_000_000


def test_llm_sends_nothing_unasked(server: Loopback, make: Make) -> None:
    make().send(ask("Hi"))
    sent = server.log()[0]
    assert sent["json"] == {"model": "m-big", "messages": [{"role": "user", "content": "Hi"}]}
    assert not sent["authorized"] and sent["line"].startswith("POST /v1/chat/completions ")


def test_llm_sends_all_that_is_asked(
    server: Loopback, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPRO_TEST_KEY", " sk-test-0123456789abcdef\n")
    monkeypatch.setenv("OPRO_TEST_HEADER", "team-1")
    llm = make(
        api_key_env="OPRO_TEST_KEY",
        headers_env={"X-Team": "OPRO_TEST_HEADER"},
        extra_body={"top_p": 0.5, "max_tokens": 11, "deep": {"a": [1]}},
        seed=5,
    )
    llm.check()
    messages = (Message(role="system", content="S"), Message(role="user", content="U"))
    llm.send(Request(messages=messages, temperature=0.0, max_tokens=7, sample=3))
    sent = server.log()[0]
    assert sent["json"] == {
        "model": "m-big",
        "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],
        "temperature": 0.0,
        "max_tokens": 11,
        "seed": 8,
        "top_p": 0.5,
        "deep": {"a": [1]},
    }
    assert '"temperature": 0.0' in sent["body"]
    llm.send(Request(messages=messages, sample=3, again=1))
    assert server.log()[1]["json"]["seed"] not in range(100)
    assert sent["authorized"] and sent["headers"]["x-team"] == "team-1"


def test_llm_hostile_text_passes_both_ways(server: Loopback, make: Make) -> None:
    server.control(rules=[{"text": HOSTILE}])
    found = make().send(ask(HOSTILE))
    assert server.log()[0]["json"]["messages"][0]["content"] == HOSTILE
    assert found.text == HOSTILE


def test_llm_records_what_the_endpoint_says(server: Loopback, make: Make) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 500}
    server.control(rules=[{"text": "B", "model": "m-small", "usage": usage}])
    found = make(price=Price(prompt=2.0, completion=8.0)).send(ask())
    assert (found.text, found.model, found.finish_reason) == ("B", "m-small", "stop")
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (1000, 500)
    assert found.usage.usd == pytest.approx(0.006)
    assert make(price=Price(prompt=2.0)).send(ask()).usage.usd is None
    assert make().send(ask()).usage.usd is None


def test_llm_configured_dialect(server: Loopback, make: Make) -> None:
    llm = make(max_tokens_param="max_completion_tokens", send_temperature=False)
    found = llm.send(ask(temperature=0.7, max_tokens=5))
    assert set(server.log()[0]["json"]) == {"model", "messages", "max_completion_tokens"}
    assert found.notes == ()


def test_llm_learns_the_endpoints_dialect(server: Loopback, make: Make) -> None:
    """Each refusal costs one attempt, once; every later answer says how it was asked for."""
    server.control(
        faults=[
            {"kind": "no_max_tokens", "has": "max_tokens"},
            {"kind": "no_temperature", "has": "temperature"},
        ]
    )
    llm, request = make(), ask(temperature=0.7, max_tokens=5)
    before = json.dumps(llm.identity())
    for _ in range(2):
        with pytest.raises(Fault) as info:
            llm.send(request)
        assert info.value.kind == "unsupported_parameter" and info.value.rule.retry
    for _ in range(2):
        notes = llm.send(request).notes
        assert notes[0] == "sent max_completion_tokens in place of max_tokens"
        assert notes[1].startswith("left temperature out")
    assert set(server.log()[-1]["json"]) == {"model", "messages", "max_completion_tokens"}
    assert server.stats()["requests"] == 4
    assert json.dumps(llm.identity()) == before


def test_llm_gives_up_when_both_names_are_refused(server: Loopback, make: Make) -> None:
    server.control(
        faults=[
            {"kind": "no_max_tokens", "has": "max_tokens"},
            {"kind": "400", "has": "max_completion_tokens"},
        ]
    )
    llm, kinds = make(), []
    for _ in range(2):
        with pytest.raises(Fault) as info:
            llm.send(ask(max_tokens=5))
        kinds.append(info.value.kind)
    assert kinds == ["unsupported_parameter", "bad_request"]


def test_llm_too_large_a_cap_is_not_a_dialect(server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "context_overflow", "has": "max_tokens"}])
    with pytest.raises(Fault) as info:
        make().send(ask(max_tokens=100_000))
    assert info.value.kind == "context_overflow"


def test_llm_retry_keeps_the_model(server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "429", "at": [1, 3]}])
    llm = make()
    for number in range(4):
        if number in (0, 2):
            with pytest.raises(Fault):
                llm.send(ask())
        else:
            llm.send(ask())
    assert {entry["json"]["model"] for entry in server.log()} == {"m-big"}


def test_llm_says_who_pays_and_at_openai_what_its_own_client_says(
    server: Loopback, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    make().send(ask("Hi"))
    sent = server.log()[0]["headers"]
    assert (sent["openai-organization"], sent["openai-project"]) == ("org-1", "proj-1")
    assert not any(name.startswith("x-stainless") for name in sent)
    official = openai_chat._client_headers(openai_chat.OFFICIAL)
    assert official["OpenAI-Organization"] == "org-1"
    assert official["X-Stainless-Lang"] == "python"


def test_llm_elsewhere_than_at_openai_the_package_is_not_loaded(server: Loopback) -> None:
    code = (
        "import sys; from opro.llms.openai_chat import OpenAILLM;"
        "from opro.types import Message, Request;"
        f"llm = OpenAILLM(model='m', base_url={server.base_url!r});"
        "llm.send(Request(messages=(Message(role='user', content='Hi'),)));"
        "sys.exit('openai' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    assert server.stats()["requests"] == 1
