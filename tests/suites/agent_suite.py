"""What every agent must do; one function for one promise, each given a sample of the agent.

An agent that answers any task without settings needs nothing here; others get an entry in
`SAMPLES`.
"""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from opro.agents.base import Agent, Session
from opro.errors import CallFailed
from opro.setup.config import build
from opro.types import Completion, Kind, Request, Rollout, Task

HOSTILE = 'Pay ${oc.env:HOME} {"x": {}} 100% %s $(id) `id`; \u202e"\'\\n #\n\n```bash\nexit 9\n```'


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A task that the agent can do, and what its model says.

    Attributes:
        replies: of the model, turn by turn.
        output: what a run's output is, whatever the instruction.
        settings: those that the agent can't do without.
        shows: settings under which the output is the instruction; None: the model sees it.
    """

    task: Task = Task(id="t", fields={"question": "Legs of a dog?"}, answer="4")
    replies: Sequence[str] = ("4",)
    output: str = "4"
    settings: dict[str, Any] = field(default_factory=dict)
    shows: dict[str, Any] | None = None


SAMPLES = {
    "terminal": Sample(
        task=Task(
            id="t",
            fields={"task": "Write 4 to the file answer."},
            extra={"check": '[ "$(cat answer)" = 4 ]'},
        ),
        replies=("```bash\necho 4 > answer\n```", "DONE"),
        output="DONE",
    ),
    "command": Sample(
        settings={"command": ["sh", "-c", "printf 4"]},
        shows={"command": ["cat", "{instruction_file}"]},
    ),
}


class Model:
    """Answers by turn, from many threads at once, and keeps what it was asked."""

    def __init__(self, replies: Sequence[str]) -> None:
        self.replies = replies
        self.requests: list[Request] = []
        self._lock = threading.Lock()

    def session(self, number: int = 0) -> Session:
        """Return the doors of one run."""
        left = iter(self.replies)

        def ask(request: Request) -> Completion:
            with self._lock:
                self.requests.append(request)
            return Completion(text=next(left), finish_reason="stop")

        return Session(ask=ask, position=(0, "suite", number, 1), run_name="suite")


def sample_of(path: Path, **settings: Any) -> tuple[Agent, Sample]:
    """Return the agent of one YAML file, checked as a run's configuration is, and its sample."""
    sample = SAMPLES.get(path.stem, Sample())
    node = OmegaConf.to_container(OmegaConf.load(path))
    node = {**node, **sample.settings, **settings}
    agent = build(node, "agent", launch_folder=Path.cwd())
    assert isinstance(agent, Agent)
    agent.check((sample.task,))
    return agent, sample


def check_yaml(path: Path) -> None:
    """Hold that the file shows every setting, each line with a comment."""
    agent, _ = sample_of(path)
    arguments = dict(inspect.signature(type(agent)).parameters)
    arguments.pop("launch_folder", None)  # given by the run, not by the configuration
    assert set(OmegaConf.load(path)) - {"_target_"} == set(arguments)
    assert all(argument.kind is argument.KEYWORD_ONLY for argument in arguments.values())
    lines = path.read_text("utf-8").splitlines()
    assert all("#" in line or line.startswith("_target_") for line in lines)


def check_run(path: Path) -> None:
    """Hold that a run gives the output, and within the number of calls that was announced."""
    agent, sample = sample_of(path)
    model = Model(sample.replies)
    rollout = agent.run("Think.", sample.task, model.session())
    agent.close()
    assert (rollout.output, rollout.kind, rollout.reason) == (sample.output, None, "")
    assert rollout.score in (None, 1.0)
    assert len(model.requests) <= agent.max_calls
    assert bool(model.requests) == agent.needs_llm
    check_rollout(rollout)


def check_instruction(path: Path) -> None:
    """Hold that an instruction reaches whoever acts by it, byte for byte."""
    _, sample = sample_of(path)
    agent, _ = sample_of(path, **(sample.shows or {}))
    model = Model(sample.replies)
    rollout = agent.run(HOSTILE, sample.task, model.session())
    agent.close()
    seen = rollout.output
    if sample.shows is None:
        seen = "\n".join(message.content for message in model.requests[0].messages)
    assert HOSTILE in seen
    check_rollout(rollout)


def check_call_failed(path: Path) -> None:
    """Hold that a failed call of the model is the infrastructure's failure."""
    agent, sample = sample_of(path)
    if agent.needs_llm:

        def ask(request: Request) -> Completion:
            raise CallFailed("server_error", "HTTP 500")

        try:
            rollout = agent.run("", sample.task, Session(ask=ask, position=(0,)))
        except CallFailed:
            rollout = Rollout(output="", kind=Kind.ERROR, reason="HTTP 500")
        assert rollout.kind is Kind.ERROR and "500" in rollout.reason
    agent.close()


def check_threads(path: Path) -> None:
    """Hold that runs at once don't touch each other."""
    agent, sample = sample_of(path)
    model = Model(sample.replies)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: agent.run("", sample.task, model.session(k)), range(4)))
    assert {(one.output, one.kind) for one in found} == {(sample.output, None)}
    agent.close()


def check_close(path: Path) -> None:
    """Hold that an agent may be closed unused, and twice."""
    agent, _ = sample_of(path)
    agent.close()
    agent.close()


def check_rollout(rollout: Rollout) -> None:
    """Hold what the journal needs of any rollout."""
    assert isinstance(rollout.output, str) and isinstance(rollout.trajectory, tuple)
    assert json.loads(json.dumps(rollout.trajectory)) == [dict(s) for s in rollout.trajectory]
    assert rollout.kind is None or rollout.reason
