"""agent=command with small programs: what they get, what is rated, and how they fail."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from opro.agents.base import Session
from opro.agents.command import CommandAgent
from opro.errors import ConfigError, Interrupted
from opro.setup.config import build
from opro.types import Kind, Rollout, Task
from tests.conftest import Search

TASK = Task(
    id="../t 1", fields={"question": "süß?", "n": 2}, answer="secret", extra={"check": "hidden"}
)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files, which must be empty in the end."""
    path = tmp_path / "scratch"
    path.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(path))
    return path


def make(*command: str, **settings: Any) -> CommandAgent:
    return CommandAgent(launch_folder=Path.cwd(), command=list(command), **settings)


def run(agent: CommandAgent, instruction: str = "Be exact.") -> Rollout:
    agent.check((TASK,))
    return agent.run(instruction, TASK, Session(ask=None, position=(0,)))  # type: ignore[arg-type]


def shell(script: str, **settings: Any) -> Rollout:
    return run(make("sh", "-c", script, **settings))


SHOW = """
import json, os, sys
print(json.dumps({
    "argv": sys.argv[1:], "cwd": os.getcwd(), "stdin": sys.stdin.read(), "env": dict(os.environ),
    "files": {name: open(name).read() for name in sorted(os.listdir("."))},
}))
"""


def test_what_a_command_gets(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPRO_TEST_SECRET", "s3cret")
    monkeypatch.setenv("OPRO_TEST_GIVEN", "given")
    places = [
        "{instruction_file}",
        "in={task_file}",
        "{workdir}",
        "{launch_folder}",
        "{x} $HOME",
    ]
    agent = make(
        sys.executable, "-c", SHOW, *places,
        instruction_files=["AGENTS.md", "CLAUDE.md"], env=["PATH", "OPRO_TEST_GIVEN", "NO_SUCH"],
    )  # fmt: skip
    hostile = "Use {workdir} and ${HOME}; ü"
    told = json.loads(run(agent, hostile).output)
    folder = told["cwd"]
    assert told["argv"] == [
        f"{folder}/AGENTS.md", f"in={folder}/task.json", folder, str(Path.cwd()), "{x} $HOME",
    ]  # fmt: skip
    assert told["stdin"] == "question: süß?\nn: 2"
    assert told["files"]["AGENTS.md"] == told["files"]["CLAUDE.md"] == hostile
    assert json.loads(told["files"]["task.json"]) == {
        "id": "../t 1", "fields": {"question": "süß?", "n": 2}, "text": told["stdin"],
    }  # fmt: skip
    assert "secret" not in json.dumps(told) and "hidden" not in json.dumps(told)
    assert set(told["env"]) - {"LC_CTYPE"} == {"PATH", "OPRO_TEST_GIVEN", "OPRO_SCRATCH"}
    assert list(scratch.iterdir()) == []


def test_the_output_is_what_it_prints_or_a_file() -> None:
    assert shell("echo out; echo err >&2").output == "out\n"
    assert shell("printf '\\377\\0x'").output == "\ufffd\0x"
    assert shell("echo no; printf 4 > answer", output_file="answer").output == "4"
    gone = shell("true", output_file="answer")
    assert (gone.kind, gone.reason) == (Kind.NO_RESPONSE, "the command left no file answer")
    link = shell("ln -s /etc/passwd answer", output_file="answer")
    assert (link.kind, link.output) == (Kind.NO_RESPONSE, "")
    assert shell("cat", stdin="none").output == ""


@pytest.mark.parametrize(
    ("script", "kind", "reason"),
    [
        ("echo 4", None, ""),
        ("echo 4; echo >&2 oh; exit 3", Kind.NO_RESPONSE, "the command exited with 3: oh"),
        ("echo proxy; exit 75", Kind.ERROR, "the command exited with 75: proxy"),
        ("kill -9 $$", Kind.ERROR, "the command was ended by SIGKILL"),
        ("kill -TERM $$", Kind.ERROR, "the command was ended by SIGTERM"),
        ("sleep 60", Kind.LIMIT, "seconds: the command took more than 2 s"),
        ("exec >&- 2>&-; sleep 60", Kind.LIMIT, "seconds: the command took more than 2 s"),
        ("yes", Kind.LIMIT, "output: the command printed more than 100000 bytes"),
    ],
)
def test_how_a_run_ends(script: str, kind: Kind | None, reason: str) -> None:
    found = shell(script, seconds=2.0, max_output_bytes=100_000, infrastructure_exit_codes=[75, 76])
    assert (found.kind, found.reason) == (kind, reason)
    assert len(json.dumps(found.trajectory)) < 10_000


@pytest.mark.parametrize(
    "left", ["sleep 61 & echo $! > PID", "setsid sh -c 'echo $$ > PID; exec sleep 61' &"]
)
@pytest.mark.parametrize("end", ["echo 4", "sleep 61"])
def test_all_that_it_started_ends_with_it(tmp_path: Path, left: str, end: str) -> None:
    pid = tmp_path / "pid"
    script = left.replace("PID", str(pid)) + f"\nwhile [ ! -s {pid} ]; do sleep 0.05; done; {end}"
    found = shell(script, seconds=2.0)
    assert found.kind is (None if end == "echo 4" else Kind.LIMIT)
    until = time.monotonic() + 5
    while Path(f"/proc/{pid.read_text().strip()}").exists():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_close_ends_what_runs_and_its_run_is_no_result() -> None:
    agent = make("sleep", "60")
    errors: list[Exception] = []

    def work() -> None:
        try:
            run(agent)
        except Interrupted as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    began = time.monotonic()
    agent.close()
    for thread in threads:
        thread.join()
    assert len(errors) == 4 and time.monotonic() - began < 5
    with pytest.raises(Interrupted):
        run(agent)


def test_folders_made_read_only_go_too(scratch: Path) -> None:
    shell("mkdir -p a/b; touch a/b/c; chmod 500 a/b a")
    assert list(scratch.iterdir()) == []


def test_a_program_that_vanishes_is_infrastructure(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\necho 4\n")
    program.chmod(0o755)
    agent = make(os.path.relpath(program))
    assert run(agent).output == "4\n"
    program.unlink()
    found = agent.run("", TASK, Session(ask=None, position=(0,)))  # type: ignore[arg-type]
    assert (found.kind, "can't be started: No such file" in found.reason) == (Kind.ERROR, True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"command": []}, "agent.command=[]: give the program and its arguments as a list"),
        ({"command": ["no-such-agent"]}, "'no-such-agent' isn't found or can't be executed"),
        ({"command": ["/etc/passwd"]}, "'/etc/passwd' isn't found or can't be executed"),
        ({"command": ["sh", "{workdri}"]}, "unknown placeholder (did you mean 'workdir'?)"),
        ({"command": ["sh"], "instruction_files": ["task.json"]}, "a name of its own"),
        ({"command": ["sh"], "instruction_files": ["../x"]}, "agent.instruction_files"),
        ({"command": ["sh"], "output_file": ".."}, "a name of its own"),
        ({"command": "sh -c true"}, "agent.command="),
        ({"command": ["sh"], "seconds": 0}, "agent.seconds=0"),
    ],
)
def test_what_cannot_work_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        node = {"_target_": "opro.agents.command.CommandAgent", **settings}
        build(node, "agent", launch_folder=Path.cwd()).check((TASK,))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_search_without_an_acting_model(search: Search) -> None:
    search.write("sums.jsonl", '{"q": "1+1", "answer": "2"}\n{"q": "2+2", "answer": "4"}\n')
    reply = "<INS>Say 4.</INS>"
    search.write("script.yaml", f"[{{contains: 'Your task is to', reply: ['{reply}']}}]")
    search.run(
        "agent=command",
        "agent.command=[grep,-o,'4',ADAPTER.md]",
        "agent.stdin=none",
        "data=jsonl",
        "data.path=sums.jsonl",
        "judge=number",
        "llm=scripted",
        "llm.path=script.yaml",
        "trainer.epochs=1",
        "evolver.params.n_candidates=1",
        "evolver.params.select=train",
    )
    assert [entry["scores"] for entry in search.state()["history"]] == [[0.0, 0.0], [0.0, 1.0]]
    kinds = [entry["kind"] for entry in search.entries() if entry.get("kind")]
    assert kinds == ["no_response", "no_response"]
