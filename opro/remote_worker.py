"""A worker's side of `trainer.backend: dask | ray`: builds the agent and runs it."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from opro.agents.base import Agent, Session
from opro.errors import OproError, RunError
from opro.setup.config import build
from opro.types import Completion, Position, Request, Rollout, Task


@dataclass(frozen=True, kw_only=True)
class AgentSpec:
    """What an agent is built from; everything in it can be sent.

    Attributes:
        node: `_target_` and its arguments, without `llm`.
        launch: the folder that relative paths are relative to.
        tasks: those it must be able to run.
    """

    node: Mapping[str, Any]
    launch: Path
    tasks: tuple[Task, ...]


@dataclass(frozen=True, kw_only=True)
class Errand:
    """One run to do; the fields are those of `Session`, its door aside."""

    instruction: str
    task: Task
    position: Position
    run_name: str
    sweep: str
    attempt: int


def work(address: tuple[str, int], key: bytes, spec: AgentSpec) -> None:
    """Take errands until the run is closed; one that is closed already is left at once.

    Raises:
        ConfigError: the agent can't work on this machine.
    """
    with contextlib.suppress(OSError, EOFError):  # the run is closed, or its process is gone
        with Client(address, authkey=key) as connection:
            agent: Agent = build(spec.node, "agent", launch_folder=spec.launch)
            with contextlib.closing(agent):
                agent.check(spec.tasks)
                while (errand := connection.recv()) is not None:
                    connection.send(_done(agent, errand, connection))


def _done(agent: Agent, errand: Errand, connection: Connection) -> Rollout | Exception:
    session = Session(
        ask=_Asks(connection),
        position=errand.position,
        run_name=errand.run_name,
        sweep=errand.sweep,
        attempt=errand.attempt,
    )
    try:
        return agent.run(errand.instruction, errand.task, session)
    except OproError as error:
        return error
    except Exception as error:
        trace = "".join(traceback.format_exception(error))
        return RunError(
            f"agent: raised {type(error).__name__} on task {errand.task.id!r}: {error}\n{trace}"
        )


class _Asks:
    """The acting model, as the run's own door answers for it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __call__(self, request: Request) -> Completion:
        self._connection.send(request)
        answer = self._connection.recv()
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Completion)
        return answer
