"""llm=command with small programs in place of a coding agent's CLI."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from opro.errors import ConfigError
from opro.llms.command import CommandLLM
from opro.llms.faults import Fault
from opro.setup.config import build
from opro.types import Message, Request
from tests.conftest import Search

ROOT = Path(__file__).resolve().parents[2]


def ask(*texts: str, **settings: Any) -> Request:
    return Request(messages=tuple(Message(role="user", content=t) for t in texts), **settings)


def shell(script: str, **settings: Any) -> CommandLLM:
    return CommandLLM(command=["sh", "-c", script, "{prompt_file}", "{model}"], **settings)


def fault(llm: CommandLLM) -> tuple[str, str]:
    with pytest.raises(Fault) as caught:
        llm.send(ask("x"))
    assert "\n" not in caught.value.message
    return caught.value.kind, caught.value.message


def test_the_prompt_comes_by_stdin_or_file_and_the_answer_back() -> None:
    hostile = "Pay ${HOME} {model} $(id) ü\u202e\n" + "x" * 200_000
    answer = shell("cat; echo").send(ask("One.", hostile, temperature=0.5))
    assert answer.text == f"One.\n\n{hostile}"
    assert answer.notes == ("not passed on: temperature",)
    assert (answer.usage.prompt_tokens, answer.usage.usd) == (None, None)
    assert answer.model == "command" and answer.seconds > 0
    assert shell('cat "$0"; echo "$1" ', prompt="file", model="m").send(ask("a")).text == "am"
    to_file = CommandLLM(
        command=["sh", "-c", "echo noise; cat > $0", "{output_file}"], output_file="answer"
    )
    assert to_file.send(ask("a")).text == "a"


JSON = {
    "result": "An answer.\n",
    "is_error": False,
    "total_cost_usd": 0.25,
    "usage": {
        "input_tokens": 10,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": 0,
        "output_tokens": 7,
    },
}


def claude(tmp_path: Path, printed: object, code: int = 0) -> CommandLLM:
    """Return llm=claude with a program that prints something in claude's place."""
    program = tmp_path / "claude"
    told = printed if isinstance(printed, str) else json.dumps(printed)
    program.write_text(f"#!/bin/sh\ncat > /dev/null\ncat <<'END'\n{told}\nEND\nexit {code}\n")
    program.chmod(0o755)
    node = OmegaConf.to_container(OmegaConf.load(ROOT / "conf/llm/claude.yaml"))
    node["command"][0] = str(program)
    llm = build(node, "llm")
    llm.check()
    return llm


def test_claudes_json(tmp_path: Path) -> None:
    answer = claude(tmp_path, JSON).send(ask("a"))
    usage = answer.usage
    assert answer.text == "An answer."
    assert (usage.prompt_tokens, usage.completion_tokens, usage.usd) == (15, 7, 0.25)
    less = {"result": "An answer.", "usage": {"input_tokens": 10}}
    usage = claude(tmp_path, less).send(ask("a")).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.usd) == (None, None, None)


@pytest.mark.parametrize(
    ("printed", "code", "kind", "said"),
    [
        ({**JSON, "is_error": True, "result": "Not logged in"}, 0, "command_failed", "Not logged"),
        (
            {**JSON, "is_error": True, "result": "Not logged in"},
            1,
            "command_failed",
            "1: 'Not logged",
        ),
        ("Please log in", 0, "invalid_json", "'Please log in"),
        ({**JSON, "result": " "}, 0, "null_content", "no text in its answer"),
        ({**JSON, "result": None}, 0, "null_content", "no text in its answer"),
    ],
)
def test_claudes_failures(tmp_path: Path, printed: object, code: int, kind: str, said: str) -> None:
    found, message = fault(claude(tmp_path, printed, code))
    assert found == kind and said in message


@pytest.mark.parametrize(
    ("script", "settings", "kind", "said"),
    [
        ("echo >&2 no quota; exit 3", {}, "command_failed", "sh exited with 3: 'no quota'"),
        ("kill -9 $$", {}, "command_failed", "sh was ended by SIGKILL"),
        ("true", {}, "null_content", "sh: no text in its answer"),
        ("echo; echo '  '", {}, "null_content", "sh: no text in its answer"),
        ("sleep 60", {"timeout": 0.3}, "timeout", "sh: no answer within 0.3 s"),
        ("yes", {"max_output_bytes": 1000}, "command_failed", "more than llm.max_output_bytes"),
        ("true", {"output_file": "a"}, "command_failed", "sh: left no file a"),
        (
            'echo "key $K_TOKEN"; exit 1',
            {"env": ["PATH", "K_TOKEN"]},
            "command_failed",
            "'key ***'",
        ),
    ],
)
def test_failures(
    script: str, settings: dict[str, Any], kind: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("K_TOKEN", "tok-123456")
    found, message = fault(shell(script, **settings))
    assert found == kind and said in message


def test_a_missing_program_is_refused_or_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="llm.command: the program 'no-such' isn't found"):
        CommandLLM(command=["no-such"]).check()
    program = tmp_path / "p"
    program.write_text("#!/bin/sh\necho 1\n")
    program.chmod(0o755)
    llm = CommandLLM(command=[os.path.relpath(program)])
    llm.check()
    program.unlink()
    kind, _ = fault(llm)
    assert kind == "command_missing"


def test_close_ends_a_command_under_way() -> None:
    llm = shell("sleep 60")
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.append(fault(llm)[0]))
    thread.start()
    time.sleep(0.4)
    llm.close()
    thread.join(5)
    assert found == ["closed"]


def test_the_presets_name_their_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("codex", "claude"):
        node = OmegaConf.to_container(OmegaConf.load(ROOT / f"conf/llm/{name}.yaml"))
        with pytest.raises(ConfigError, match=f"llm.command: the program '{name}' isn't found"):
            build(node, "llm").check()


def test_codex_leaves_its_answer_in_a_file(tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "place = sys.argv[sys.argv.index('--output-last-message') + 1]\n"
        "assert sys.argv[1] == 'exec' and sys.argv[-1] == '-'\n"
        "print('progress')\nopen(place, 'w').write('<INS>' + sys.stdin.read() + '</INS>\\n')\n"
    )
    program.chmod(0o755)
    node = OmegaConf.to_container(OmegaConf.load(ROOT / "conf/llm/codex.yaml"))
    node["command"][0] = str(program)
    assert build(node, "llm").send(ask("Hm.")).text == "<INS>Hm.</INS>"


def test_a_search_whose_optimizer_is_a_program(search: Search) -> None:
    search.write("sums.jsonl", '{"q": "1+1", "answer": "2"}\n')
    search.write("script.yaml", "[{contains: 'Say 2', reply: '2'}, {contains: '', reply: '0'}]")
    program = search.folder / "think.sh"
    program.write_text("#!/bin/sh\ngrep -q 'Your task is to' && echo '<INS>Say 2</INS>'\n")
    program.chmod(0o755)
    search.run(
        "llm=command",
        "llm.command=[./think.sh]",
        "llm@agent.llm=scripted",
        "agent.llm.path=script.yaml",
        "data=jsonl",
        "data.path=sums.jsonl",
        "judge=number",
        "trainer.epochs=1",
        "evolver.params.n_candidates=1",
        "evolver.params.select=train",
    )
    assert search.result()["winner"]["instruction"] == "Say 2"
    assert search.result()["winner"]["train_score"] == 1.0
