"""What is left of a run after Ctrl-C, and what `opro.clean` takes away after a kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from opro import clean, owner, processes
from opro.agents.docker_engine import Engine
from opro.agents.image import IMAGE
from tests.agents.conftest import small_box
from tests.conftest import Search

ROOT = Path(__file__).resolve().parents[2]


def start(search: Search, name: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a search of two tasks in a process of its own."""
    rows = [{"id": one, "task": one, "check": "true", "answer": "x"} for one in "ab"]
    search.write("tasks.jsonl", "\n".join(map(json.dumps, rows)))
    rule = {"contains": "", "reply": "```bash\nsleep 60\n```"}
    search.write("script.yaml", yaml.safe_dump([rule]))
    command = [sys.executable, "-m", "opro.run", "data=jsonl", "data.path=tasks.jsonl"]
    command += ["data.id_field=id", "data.fields=[task]", "llm=scripted", "llm.path=script.yaml"]
    command += ["evolver.params.select=train", "tracker=none", f"trainer.run_name={name}"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )


def of_run(daemon: Engine, name: str) -> list[str]:
    return [found.id for found in daemon.ours() if found.labels.get("opro.run") == name]


def wait_for(condition: object, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)


def test_containers_after_a_signal_and_after_a_kill(
    search: Search, daemon: Engine, nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = ("agent=terminal", "judge=environment")
    with start(search, "asked", *terminal) as asked, start(search, "killed", *terminal) as killed:
        wait_for(lambda: len(of_run(daemon, "asked") + of_run(daemon, "killed")) == 4)
        killed.kill()
        asked.send_signal(signal.SIGINT)
        began = time.monotonic()
        asked.communicate(timeout=60)
        assert time.monotonic() - began < 12
        assert asked.returncode not in (0, 2)
        killed.communicate()
    assert of_run(daemon, "asked") == []
    failed = [entry for entry in search.entries("asked") if "error" in entry]
    assert failed == []  # the next start runs them again, at no attempt's cost
    assert len(of_run(daemon, "killed")) == 2
    clean_up(daemon, capsys)


def clean_up(daemon: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    """Clean up while a container of a living process, and one of somebody else, are there."""
    living = daemon.start(small_box("living", str(owner.myself())))
    strange = daemon.api.create_container(IMAGE, ["/bin/true"], labels={"somebody": "else"})["Id"]
    try:
        assert clean.main(["--run", "other"]) == 0
        assert "removed 0 containers" in capsys.readouterr().out
        assert clean.main([]) == 0
        told = capsys.readouterr().out
        assert told.count("removed container") >= 2 and "(run 'killed', task 'a')" in told
        assert f"(run 'living', task 't'): its process {os.getpid()} still runs" in told
        assert of_run(daemon, "killed") == [] and of_run(daemon, "living") == [living]
        assert clean.main(["--all", "--run", "living"]) == 0
        assert of_run(daemon, "living") == []
        assert daemon.state(strange)["Status"] == "created"
    finally:
        daemon.remove(strange)
        daemon.remove(living)


NAMES = ("pid", "own")


def test_commands_after_a_signal_and_after_a_kill(
    search: Search, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    program = "setsid sh -c 'echo $$ > pid; exec sleep 61' & echo $$ > own; exec sleep 61"
    command = ("agent=command", f"agent.command=[sh,-c,{json.dumps(program)}]", "judge=exact")

    def folders() -> list[Path]:
        return list(scratch.glob("opro-*/work/pid"))

    def written() -> list[str]:
        texts = [
            path.read_text().strip() for path in scratch.glob("opro-*/work/*") if path.name in NAMES
        ]
        return [text for text in texts if text]

    with start(search, "asked", *command) as asked, start(search, "killed", *command) as killed:
        wait_for(lambda: len(written()) == 8)
        pids = list(map(int, written()))
        killed.kill()
        asked.send_signal(signal.SIGINT)
        asked.communicate(timeout=60)
        killed.communicate()
    assert len(folders()) == 2  # of the killed one
    assert sum(map(runs, pids)) == 4
    (scratch / "opro-notes").mkdir()
    with processes.scratch_folder() as ours:
        assert clean.main([]) == 0
        assert ours.is_dir() and (scratch / "opro-notes").is_dir()
    assert folders() == []
    wait_for(lambda: not any(map(runs, pids)))


def runs(pid: int) -> bool:
    return owner._began(pid) != ""


def test_clean_without_a_daemon_says_so(nobody: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert clean.main([]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "no Docker daemon answers" in said


def test_an_owner_is_one_process_and_not_the_next_one_of_its_number() -> None:
    me = owner.myself()
    assert me.alive and me.here and owner.read(str(me)) == me
    assert not owner.Owner(host=me.host, pid=me.pid, began="1").alive
    assert not owner.Owner(host="elsewhere", pid=me.pid, began=me.began).here
    assert owner.read("") is None and owner.read("host:x:1") is None
    with subprocess.Popen(["true"]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        zombie = owner.Owner(host=me.host, pid=ended.pid, began=owner._began(ended.pid))
        assert not zombie.alive
