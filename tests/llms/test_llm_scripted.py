"""Written answers: by the request alone, never by the order of arrival."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opro.errors import ConfigError, RunError
from opro.llms.faults import Fault
from opro.llms.scripted import ScriptedLLM, ScriptRule
from opro.setup.config import build
from tests.suites.llm_suite import ask


def scripted(*rules: dict[str, object], **settings: object) -> ScriptedLLM:
    node = {"_target_": "opro.llms.scripted.ScriptedLLM", "rules": list(rules) or None}
    built: ScriptedLLM = build({**node, **settings}, "llm")
    return built


def test_llm_scripted_first_match_wins() -> None:
    llm = scripted(
        {"contains": ["sum", "two"], "reply": "2"},
        {"contains": "sum", "reply": "1"},
        {"contains": [], "reply": "0"},
    )
    texts = ["a sum of two", "a sum", "nothing"]
    assert [llm.send(ask(text)).text for text in texts] == ["2", "1", "0"]


def test_llm_scripted_unexpected_prompt_stops_the_run() -> None:
    llm = scripted({"contains": "sum", "reply": "1"})
    with pytest.raises(RunError, match=r"begins 'Tell\\nme a") as info:
        llm.send(ask("Tell\nme a " + "long " * 100))
    assert "\n" not in str(info.value) and len(str(info.value)) < 300


def test_llm_scripted_list_is_indexed_by_the_call() -> None:
    """In any order of threads the k-th call gets the k-th reply; a list that ends is an error."""
    llm = scripted({"reply": [f"reply {n}" for n in range(50)]})
    numbers = random.Random(0).sample(range(50), 50)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: llm.send(ask(ordinal=n, sample=99)).text, numbers))
    assert found == [f"reply {n}" for n in numbers]
    assert llm.send(ask(sample=3)).text == "reply 3"
    with pytest.raises(RunError, match="50 replies, number 50"):
        llm.send(ask(ordinal=50))


def test_llm_scripted_faults_and_their_times() -> None:
    llm = scripted(
        {"contains": "flaky", "fault": "server_error", "times": 2},
        {"contains": "dead", "fault": "timeout"},
        {"reply": "ok"},
    )
    for text in ("flaky 1", "flaky 2"):  # each request has its own count
        for _ in range(2):
            with pytest.raises(Fault) as info:
                llm.send(ask(text))
            assert info.value.kind == "server_error"
        assert llm.send(ask(text, again=1)).text == "ok"
    for _ in range(3):
        with pytest.raises(Fault):
            llm.send(ask("dead"))


def test_llm_scripted_reports_what_the_rule_says() -> None:
    price = {"prompt": 1.0, "completion": 2.0}
    rule = {"refusal": "No.", "finish_reason": "content_filter", "model": "other"}
    counts = {"prompt_tokens": 1_000_000, "completion_tokens": 500_000}
    found = scripted({**rule, **counts}, price=price).send(ask())
    assert (found.text, found.refusal, found.finish_reason) == ("", "No.", "content_filter")
    assert found.model == "other" and found.usage.usd == 2.0
    plain = scripted({"reply": "x"}).send(ask())
    assert plain.model == "scripted" and plain.usage.prompt_tokens is None


def test_llm_scripted_text_is_data() -> None:
    text = "Pay ${amount} {0} %s \x00 \ud800"
    llm = ScriptedLLM(rules=[ScriptRule(contains="${x", reply=text)])
    assert llm.send(ask("a ${x b")).text == text


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_llm_scripted_file(suffix: str, tmp_path: Path) -> None:
    rules = [{"contains": "é ${x} 😀", "reply": ["a", "b"]}]
    path = tmp_path / f"rules.{suffix}"
    path.write_text(json.dumps(rules, ensure_ascii=suffix == "json"), encoding="utf-8")
    llm = scripted(path=str(path))
    assert llm.send(ask("é ${x} 😀", sample=1)).text == "b"
    assert llm.identity() == scripted(*rules).identity()
    path.write_text(json.dumps([{"reply": "c"}]), encoding="utf-8")
    assert scripted(path=str(path)).identity() != llm.identity()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("- repyl: x\n", "0.repyl"),
        ("- reply: 5\n", "0.reply"),
        ("reply: x\n", "the file"),
        ("- reply: [x\n", "line 2"),
        ("- {}\n", "rule 0"),
        ("- {reply: x, fault: timeout}\n", "rule 0"),
        ("- fault: tiemout\n", "known: no_connection"),
    ],
)
def test_llm_scripted_bad_file(text: str, what: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as info:
        scripted(path=str(path))
    assert what in str(info.value) and "rules.yaml" in str(info.value)
    assert "\n" not in str(info.value)


def test_llm_scripted_needs_one_source(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"llm\.rules and llm\.path"):
        scripted()
    with pytest.raises(ConfigError, match=r"llm\.path .*missing.yaml"):
        scripted(path=str(tmp_path / "missing.yaml"))
    with pytest.raises(ConfigError, match=r"llm\.rules\.0\.repyl"):
        scripted({"repyl": "x"})
