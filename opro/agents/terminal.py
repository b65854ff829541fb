"""The agent with a shell: each run works in a Docker container of its own.

The model is asked from this process; only its commands run in the container. What becomes of a
run (`opro.rollouts` runs the infrastructure's failures once more, then leaves the instruction
unscored):

    done, then the check                      the check's score
    turns, seconds or output used up          limit; the check's score, as the container lives
    the model's context used up               limit; the check's score
    a command over its own seconds            the model is told and goes on
    a command killed at the memory limit      the model is told and goes on
    more processes than allowed               the command's own failure; named beside a bad score
    the memory limit ended the container      limit; 0
    the check over its seconds                0
    the model refused                         refusal; 0
    the daemon away, the image gone           infrastructure
    a container that doesn't start            infrastructure
    a task's set-up that fails                infrastructure
    the container ended from outside          infrastructure
    the model's endpoint failed (CallFailed)  infrastructure
    a check that prints a score out of range  the run of OPRO stops: a broken scorer is no score
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

from pydantic import Field

from opro import owner
from opro.agents.base import Agent, Session
from opro.agents.box import Box, ContainerFailed, OutOfMemory
from opro.agents.container import Container
from opro.agents.docker_engine import Engine, connect
from opro.agents.image import IMAGE
from opro.agents.terminal_run import Asking, Episode
from opro.agents.terminal_task import Limits, TerminalTask, read_task
from opro.agents.terminal_text import PROTOCOL
from opro.errors import ConfigError, Interrupted
from opro.types import Kind, Message, Rollout, Task

PATIENCE = 5.0
"""Seconds that `close` waits for containers that are just being made."""
NOBODY = 65534
"""Runs the commands when we are root ourselves."""


class TerminalAgent(Agent):
    """Works on a task by shell commands; the instruction is its system prompt.

    Args:
        image: of tasks that name none.
        limits: of tasks that name none.
        shown_chars: of one command's output; the middle of a longer one is left out.
        temperature, max_tokens: of a reply; None leaves them to the endpoint.
    """

    def __init__(
        self,
        *,
        image: Annotated[str, Field(min_length=1)] = IMAGE,
        limits: Limits | None = None,
        shown_chars: Annotated[int, Field(ge=100)] = 4000,
        temperature: Annotated[float, Field(ge=0, le=5)] | None = 0.0,
        max_tokens: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        self.image = image
        self.limits = limits or Limits()
        self.max_calls = self.limits.turns
        self.max_tokens = max_tokens
        self._asking = Asking(
            temperature=temperature, max_tokens=max_tokens, shown_chars=shown_chars
        )
        self._lock = threading.Condition()
        self._starts = self._starting = 0
        self._running: set[str] = set()
        self._closed = False
        self._version: str | None = None

    def check(self, tasks: tuple[Task, ...]) -> None:
        """Raise ConfigError for a task that can't be run, no daemon, or a missing image."""
        read = [read_task(task, self.image, self.limits) for task in tasks]
        self.max_calls = max((one.limits.turns for one in read), default=self.limits.turns)
        with connect() as engine:
            self._version = engine.version
            for limit in engine.unlimited():
                raise ConfigError(
                    f"agent.limits: this Docker daemon can't limit {limit}; a rootless one needs"
                    " cgroup v2 with that controller delegated"
                )
            for image in dict.fromkeys(one.image for one in read):
                if not engine.has(str(image)):
                    raise ConfigError(
                        f"agent.image={image}: Docker has no such image; {_make(image)}"
                    )

    def run(self, instruction: str, task: Task, session: Session) -> Rollout:
        """Run one task in a container of its own; see the module for what becomes of it."""
        told = read_task(task, self.image, self.limits)
        episode: Episode | None = None
        try:
            with self._container(told, task, session) as container:
                episode = Episode(
                    container=container,
                    task_id=task.id,
                    task=told,
                    session=session,
                    asking=self._asking,
                    messages=_opening(instruction, task, told),
                )
                return episode.play()
        except OutOfMemory:
            reason = f"memory: the limit of {told.limits.memory_mb} MB ended the container"
            return _ended(episode, Kind.LIMIT, reason, 0.0)
        except ContainerFailed as error:
            if self._closed:
                raise Interrupted("the run is ending") from None
            return _ended(episode, Kind.ERROR, str(error), None)

    def close(self) -> None:
        """End all containers of this agent now; a run under way raises Interrupted."""
        atexit.unregister(self.close)
        with self._lock:
            self._closed = True
            self._lock.wait_for(lambda: not self._starting, PATIENCE)
            left = list(self._running)
        try:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(_remove, left))
        except RuntimeError:  # the interpreter is ending and starts no more threads
            list(map(_remove, left))

    @contextlib.contextmanager
    def _container(self, told: TerminalTask, task: Task, session: Session) -> Iterator[Container]:
        with Engine(self._version) as engine:
            self._version = engine.version
            name = self._started(engine, _box(told, task, session))
            try:
                yield Container(engine, name)
            finally:
                # What a daemon that went away leaves behind is for `python -m opro.clean`.
                with contextlib.suppress(ContainerFailed):
                    engine.remove(name)
                with self._lock:  # only now: until then `close` must know of it
                    self._running.discard(name)

    def _started(self, engine: Engine, box: Box) -> str:
        """Start a container that `close` knows of, or waits for while it is being made."""
        with self._lock:
            if self._closed:
                raise ContainerFailed("the run is ending")
            if not self._starts:
                atexit.register(self.close)  # for whoever ends without calling it
            self._starts += 1
            self._starting += 1
        name = None
        try:
            name = engine.start(box)
        finally:
            with self._lock:
                self._starting -= 1
                self._running |= set() if name is None else {name}
                self._lock.notify_all()
        return name


def _remove(name: str) -> None:
    with contextlib.suppress(ContainerFailed), Engine() as engine:
        engine.remove(name)


def _box(told: TerminalTask, task: Task, session: Session) -> Box:
    limits = told.limits
    return Box(
        image=str(told.image),
        user=_user(),
        network=told.network,
        read_only=told.read_only,
        memory_mb=limits.memory_mb,
        cpus=limits.cpus,
        pids=limits.pids,
        workdir_mb=limits.workdir_mb,
        labels={
            "opro.sweep": session.sweep,
            "opro.run": session.run_name,
            "opro.task": task.id,
            "opro.attempt": str(session.attempt),
            "opro.owner": str(owner.myself()),
        },
    )


def _user() -> str:
    """Return the caller's user and group, or nobody's when that is root."""
    return f"{os.getuid() or NOBODY}:{os.getgid() or NOBODY}"


def _opening(instruction: str, task: Task, told: TerminalTask) -> list[Message]:
    protocol = PROTOCOL.format(turns=told.limits.turns)
    system = f"{instruction}\n\n{protocol}" if instruction else protocol
    return [Message(role="system", content=system), Message(role="user", content=task.text())]


def _ended(episode: Episode | None, kind: Kind, reason: str, score: float | None) -> Rollout:
    output = "" if episode is None else episode.output
    steps = () if episode is None else tuple(episode.trajectory)
    return Rollout(output=output, kind=kind, reason=reason, score=score, trajectory=steps)


def _make(image: str | None) -> str:
    if image == IMAGE:
        return "make it with scripts/build-image"
    return f"get it with docker pull {image}, or name another"
