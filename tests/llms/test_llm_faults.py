"""Each odd answer of an endpoint is one fault of its kind, or an honest completion."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest

from opro.llms.faults import LARGER_CAP, TABLE, Fault
from opro.llms.openai_chat import OpenAILLM
from opro.llms.price import Price
from opro.testing.handle import Loopback
from opro.types import Request
from tests.suites.llm_suite import ask

Make = Callable[..., OpenAILLM]
KEY = "sk-test-0123456789abcdef"
KINDS = {
    "500": "server_error",
    "503": "server_error",
    "429": "rate_limit",
    "insufficient_quota": "insufficient_quota",
    "400": "bad_request",
    "401": "unauthorized",
    "402": "insufficient_quota",
    "403": "forbidden",
    "404": "not_found",
    "408": "request_timeout",
    "409": "conflict",
    "301": "redirected",
    "invalid_json": "invalid_json",
    "json_list": "invalid_json",
    "html": "html",
    "choices_null": "no_choices",
    "choices_empty": "no_choices",
    "content_null": "null_content",
    "context_overflow": "context_overflow",
    "reset": "reset",
    "reset_body": "reset",
}
FATAL = {"unauthorized", "forbidden", "not_found", "insufficient_quota", "redirected"}


def caught(llm: OpenAILLM, request: Request | None = None) -> Fault:
    with pytest.raises(Fault) as info:
        llm.send(request or ask())
    assert "\n" not in str(info.value) and info.value.rule is TABLE[info.value.kind]
    return info.value


@pytest.mark.parametrize(("asked", "kind"), KINDS.items())
def test_llm_fault(
    asked: str, kind: str, server: Loopback, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request, one fault; it names the endpoint and never the key that the body repeats."""
    monkeypatch.setenv("OPRO_TEST_KEY", KEY)
    server.control(faults=[{"kind": asked, "value": KEY}])
    fault = caught(make(api_key_env="OPRO_TEST_KEY"))
    assert fault.kind == kind
    assert fault.rule.fatal == (kind in FATAL)
    assert f"{server.base_url}, model 'm-big': " in fault.message
    assert KEY not in fault.message and KEY not in repr(fault.__cause__)
    assert server.stats()["requests"] == 1


def test_llm_fault_names_what_to_mend(
    server: Loopback, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPRO_TEST_KEY", KEY)
    server.control(faults=[{"kind": "401", "value": KEY[:8] + "***"}])
    message = caught(make(api_key_env="OPRO_TEST_KEY")).message
    assert "401" in message and "OPRO_TEST_KEY (llm.api_key_env)" in message
    assert KEY[:8] not in message  # a part of the key, as endpoints like to repeat it
    assert "no key was sent" in caught(make()).message
    server.control(faults=[{"kind": "404"}])
    assert "model does not exist" in caught(make()).message
    server.control(faults=[{"kind": "html"}])
    assert "<html>Log in\\x1b[31m</html>" in caught(make()).message


def test_llm_fault_long_body_is_cut(server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "403", "value": "x" * 100_000}])
    assert 200 < len(caught(make()).message) < 500


def test_llm_fault_keeps_what_was_charged(server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "choices_null"}])
    usage = caught(make()).usage
    assert usage is not None
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (0, 50, 8)


def test_llm_refused_connection(make: Make) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        fault = caught(make(base_url=url))
    assert fault.kind == "no_connection" and "refused" in fault.message


@pytest.mark.parametrize("kind", ["hang", "drip", "drip_head"])
def test_llm_timeout_bounds_the_attempt(kind: str, server: Loopback, make: Make) -> None:
    """Also an answer that keeps dripping, in its head or body, ends."""
    server.control(faults=[{"kind": kind}])
    begin = time.monotonic()
    fault = caught(make(timeout=0.4))
    assert fault.kind == "timeout" and "within 0.4 s" in fault.message
    assert 0.35 < time.monotonic() - begin < 1.5


@pytest.mark.parametrize(
    ("asked", "value", "low", "high"),
    [
        ("429_seconds", "7", 7, 7),
        ("429_seconds", "0.5", 0.5, 0.5),
        ("429_seconds", "-3", 0, 0),
        ("429_seconds", "inf", 30, 30),
        ("429_absurd", "", 30, 30),
        ("429_date", "20", 15, 20),
        ("429_date", "-500", 0, 0),
        ("429_date", "86400", 30, 30),
    ],
)
def test_llm_retry_after(
    asked: str, value: str, low: float, high: float, server: Loopback, make: Make
) -> None:
    server.control(faults=[{"kind": asked, "value": value}])
    fault = caught(make(max_retry_after=30.0))
    assert fault.kind == "rate_limit" and fault.retry_after is not None
    assert low <= fault.retry_after <= high


@pytest.mark.parametrize("value", ["soon", "nan", "Mon, 99 Foo"])
def test_llm_retry_after_that_says_nothing(value: str, server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "429_seconds", "value": value}])
    assert caught(make()).retry_after is None


def test_llm_refusal_is_an_answer(server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "refusal"}])
    found = make().send(ask())
    assert (found.text, found.refusal) == ("", "I can't help with that.")


@pytest.mark.parametrize("kind", ["content_filter", "prompt_filtered"])
def test_llm_content_filter_is_an_answer(kind: str, server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": kind}])
    found = make().send(ask())
    assert (found.text, found.finish_reason) == ("", "content_filter")
    assert found.usage.calls == 1


def test_llm_empty_and_cut_text_are_answers(server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "content_empty", "at": [1]}, {"kind": "length_text"}])
    empty, cut = make().send(ask()), make().send(ask())
    assert (empty.text, empty.finish_reason) == ("", "stop")
    assert (cut.text, cut.finish_reason) == ("The answer", "length")


def test_llm_missing_usage_is_unknown(server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "usage_missing"}])
    usage = make(price=Price(prompt=1.0, completion=1.0)).send(ask()).usage
    assert (usage.calls, usage.prompt_tokens, usage.completion_tokens) == (1, None, None)
    assert usage.usd is None


def test_llm_cap_spent_before_any_text(server: Loopback, make: Make) -> None:
    """The fault carries the answer that stands if a larger cap doesn't help."""
    server.control(faults=[{"kind": "length_empty"}])
    fault = caught(make(), ask(max_tokens=400))
    assert fault.kind == "empty_truncated" and fault.rule.larger_cap and LARGER_CAP > 1
    assert fault.completion is not None and fault.usage is not None
    assert (fault.completion.text, fault.completion.finish_reason) == ("", "length")
    assert fault.completion.usage.completion_tokens == fault.usage.completion_tokens == 400
    without_cap = make().send(ask())
    assert (without_cap.text, without_cap.finish_reason) == ("", "length")


def test_llm_overflow_says_need_and_available(server: Loopback, make: Make) -> None:
    server.control(faults=[{"kind": "context_overflow"}])
    fault = caught(make())
    assert "needs 900 tokens, 512 are available" in fault.message
    assert not fault.rule.retry and not fault.rule.fatal
