"""A Docker daemon with our image, for the tests that start real containers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from opro.agents import image
from opro.agents.base import Session
from opro.agents.box import Box
from opro.agents.docker_engine import Engine, connect
from opro.agents.terminal import TerminalAgent
from opro.errors import ConfigError
from opro.types import Completion, Request, Rollout, Task


@pytest.fixture(scope="session")
def daemon() -> Iterator[Engine]:
    try:
        engine = connect()
    except ConfigError as error:
        pytest.skip(str(error))
    with engine:
        if not engine.has(image.IMAGE):
            assert image.main() == 0
        yield engine


@pytest.fixture
def nothing_left(daemon: Engine) -> Iterator[None]:
    """Hold that a test leaves no container of ours behind."""
    before = {found.id for found in daemon.ours()}
    yield
    assert {found.id for found in daemon.ours()} <= before


def small_box(run: str, made_by: str = "", sweep: str = "") -> Box:
    """A container that does nothing."""
    return Box(
        image=image.IMAGE,
        user="65534:65534",
        network=False,
        read_only=True,
        memory_mb=64,
        cpus=1.0,
        pids=32,
        workdir_mb=4,
        labels={"opro.run": run, "opro.sweep": sweep, "opro.task": "t", "opro.owner": made_by},
    )


class Runner:
    """Runs tasks whose model writes given blocks, turn by turn, then DONE."""

    def __init__(self, **settings: Any) -> None:
        self.agent = TerminalAgent(**settings)
        self.requests: list[Request] = []
        self._lock = threading.Lock()

    def run(
        self, *blocks: str, replies: Sequence[str] | None = None, name: str = "test", **extra: Any
    ) -> Rollout:
        task = Task(id="t", fields={"task": "Do it."}, extra={"check": "true", **extra})
        self.agent.check((task,))
        left = iter(replies or [*(f"```bash\n{block}\n```" for block in blocks), "DONE"])

        def ask(request: Request) -> Completion:
            with self._lock:
                self.requests.append(request)
            return Completion(text=next(left))

        return self.agent.run("Be brief.", task, Session(ask=ask, position=(0,), run_name=name))

    def told(self) -> str:
        """Return what the model was told last."""
        return self.requests[-1].messages[-1].content


@pytest.fixture
def runner(daemon: Engine, nothing_left: None) -> Iterator[Runner]:
    made = Runner()
    yield made
    made.agent.close()


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A socket that no daemon listens at."""
    path = tmp_path / "docker.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
    return path


@pytest.fixture
def deaf(nobody: Path) -> Iterator[Path]:
    """A socket whose listener takes a connection and hangs up."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(nobody))
        listener.listen()

        def hang_up() -> None:
            while True:
                try:
                    listener.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        yield nobody
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
