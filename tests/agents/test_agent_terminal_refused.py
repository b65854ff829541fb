"""agent=terminal without a daemon, an image or the package: one line, before anything is spent."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from opro.agents.base import Session
from opro.agents.docker_engine import Engine
from opro.agents.terminal import TerminalAgent
from opro.errors import ConfigError
from opro.types import Completion, Kind, Request, Task
from tests.conftest import Search

TASK = Task(id="t", fields={"task": "Do it."}, extra={"check": "true"})


def refused(agent: TerminalAgent) -> str:
    with pytest.raises(ConfigError) as caught:
        agent.check((TASK,))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_no_socket(nobody: Path) -> None:
    assert refused(TerminalAgent()) == (
        f"agent: no Docker daemon answers at unix://{nobody} (No such file or directory);"
        " start it, or set DOCKER_HOST to where one listens"
    )


def test_nobody_listens(nobody: Path) -> None:
    with socket.socket(socket.AF_UNIX) as unused:
        unused.bind(str(nobody))
        assert "(Connection refused); start it" in refused(TerminalAgent())


def test_no_rights(nobody: Path) -> None:
    program = """
import os
import docker, requests
from opro.agents.docker_engine import connect
from opro.errors import ConfigError
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    connect()
except ConfigError as error:
    print(error)
"""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(nobody))
        listener.listen()
        os.chmod(nobody, 0)
        for folder in list(nobody.parents)[:3]:
            os.chmod(folder, 0o755)
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=False,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
    assert "(Permission denied); join the group that owns the socket" in done.stdout, done.stderr
    assert done.stdout.count("\n") == 1


def test_a_listener_that_is_no_daemon(deaf: Path) -> None:
    assert refused(TerminalAgent()).startswith(f"agent: no Docker daemon answers at unix://{deaf}")


def test_a_host_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "gopher://x")
    assert "no Docker daemon answers at gopher://x" in refused(TerminalAgent())


def test_an_image_that_was_never_made(daemon: Engine) -> None:
    daemon.api.tag("opro-busybox:1", "opro-test", "kept")
    with pytest.MonkeyPatch.context():
        daemon.api.remove_image("opro-busybox:1")
        try:
            assert refused(TerminalAgent()) == (
                "agent.image=opro-busybox:1: Docker has no such image; make it with"
                " scripts/build-image"
            )
        finally:
            daemon.api.tag("opro-test:kept", "opro-busybox", "1")
            daemon.api.remove_image("opro-test:kept")


def test_the_package_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "docker.py").write_text("raise ImportError('no docker')")
    program = "from opro.agents.docker_engine import connect; connect()"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        cwd=Path(__file__).parents[2], env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert "pip install 'opro[docker]'" in done.stderr


def test_a_daemon_that_goes_away_is_infrastructure(nobody: Path) -> None:
    def ask(request: Request) -> Completion:
        raise AssertionError("nothing may be spent")

    run = TerminalAgent().run("", TASK, Session(ask=ask, position=(0,)))
    assert run.kind is Kind.ERROR and "no Docker daemon answers" in run.reason


@pytest.mark.parametrize("sweep", [[], ["-m", "seed=1,2"]])
def test_a_run_without_a_daemon_is_one_line(search: Search, nobody: Path, sweep: list[str]) -> None:
    search.write("script.yaml", "[{contains: '', reply: DONE}]")
    command = [sys.executable, "-m", "opro.run", "agent=terminal", "data=terminal_demo"]
    command += ["llm=scripted", "llm.path=script.yaml", "tracker=none", *sweep]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and f"no Docker daemon answers at unix://{nobody}" in (
        done.stderr
    )
    assert not (search.folder / "mlruns").exists()


def test_a_run_without_docker_never_touches_the_daemon(search: Search, nobody: Path) -> None:
    search.write("sums.jsonl", '{"q": "1+1", "answer": "2"}\n')
    search.write("script.yaml", "[{contains: '', reply: '2'}]")
    arguments = ["data=jsonl", "data.path=sums.jsonl", "judge=number", "llm=scripted"]
    arguments += ["llm.path=script.yaml", "trainer.epochs=1", "evolver.params.n_candidates=1"]
    assert search.run(*arguments, "evolver.params.select=train").status == 0
