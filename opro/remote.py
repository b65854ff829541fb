"""Agents on other machines: the run's side of `trainer.backend: dask | ray`.

Workers act, and nothing else: each takes one (instruction, task) at a time over a connection of its
own and sends the outcome back. What its agent asks the model comes back over that connection and
goes through the run's one door, so journal, cache, budget and limits are those of `threads`.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from urllib.parse import urlsplit

from opro.agents.base import Agent, Session
from opro.errors import OproError, RunError
from opro.pool import spread
from opro.remote_worker import AgentSpec, Errand, work
from opro.settings import ScoringSettings
from opro.types import Kind, Request, Rollout, Task

PATIENCE = 60.0
"""Seconds that a run goes on waiting while not one worker is there."""

LOST = Rollout(output="", kind=Kind.ERROR, reason="the worker that ran it is gone")


@dataclass(kw_only=True)
class _Ticket:
    errand: Errand
    session: Session
    done: threading.Event = field(default_factory=threading.Event)
    outcome: Rollout | Exception = LOST


class RemoteAgent(Agent):
    """Hands each run to a worker of a cluster. The cluster is asked for with the first run.

    Args:
        agent: the same agent here; it isn't run.
        spec: what a worker builds its own from.
        settings: backend, cluster and concurrency.
    """

    def __init__(self, agent: Agent, spec: AgentSpec, settings: ScoringSettings) -> None:
        self.max_calls = agent.max_calls
        self.needs_llm = agent.needs_llm
        self._agent = agent
        self._spec = spec
        self._settings = settings
        self._tickets: queue.SimpleQueue[_Ticket | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._listener: Listener | None = None
        self._key = secrets.token_bytes(32)
        self._workers = 0
        self._present = threading.Event()
        self._failure: Exception | None = None
        self._closed = False

    def run(self, instruction: str, task: Task, session: Session) -> Rollout:
        """Wait for a worker to run it.

        Raises:
            RunError: no worker came, or the agent raised there.
        """
        self._start()
        errand = Errand(
            instruction=instruction,
            task=task,
            position=session.position,
            run_name=session.run_name,
            sweep=session.sweep,
            attempt=session.attempt,
        )
        ticket = _Ticket(errand=errand, session=session)
        self._tickets.put(ticket)
        while not ticket.done.wait(1.0):
            self._check()
        if isinstance(ticket.outcome, Exception):
            raise ticket.outcome
        return ticket.outcome

    def close(self) -> None:
        """Send the workers home; what they still run is given up."""
        self._agent.close()
        with self._lock:
            self._closed = True
            self._failure = self._failure or RunError("the run is closed")
            if self._listener is None:
                return
        for _ in range(self._settings.concurrency):
            self._tickets.put(None)  # ends one that serves a worker
            with contextlib.suppress(OSError):  # wakes one that waits for a worker
                socket.create_connection(self._address, timeout=1.0).close()
        self._listener.close()

    def _start(self) -> None:
        with self._lock:
            if self._listener is None and not self._closed:
                host, many = _host_towards(self._settings.cluster), self._settings.concurrency
                self._listener = Listener((host, 0), "AF_INET", backlog=many, authkey=self._key)
                self._address: tuple[str, int] = self._listener.address
                self._begin(self._ask_for_workers)
                for _ in range(self._settings.concurrency):
                    self._begin(self._serve)
        self._check()

    def _check(self) -> None:
        if not self._present.wait(PATIENCE) and self._failure is None:
            self._fail(RunError(f"no worker in {PATIENCE:.0f} s"))
        if self._failure is not None:
            raise self._failure

    def _begin(self, work_: Callable[[], None]) -> None:
        threading.Thread(target=work_, name="opro-remote", daemon=True).start()

    def _ask_for_workers(self) -> None:
        """Keep `concurrency` loops on the cluster until the run is closed."""
        call = (work, (self._address, self._key, self._spec))
        settings = self._settings
        assert settings.backend != "threads"
        try:
            spread(call, settings.concurrency, settings.backend, settings.cluster)
        except Exception as error:
            self._fail(error)
        else:
            self._fail(RunError("all workers left"))

    def _fail(self, error: Exception) -> None:
        if not self._closed:
            kind = "" if isinstance(error, OproError) else f"{type(error).__name__}: "
            settings = self._settings
            where = f"trainer.backend={settings.backend}, trainer.cluster={settings.cluster}"
            self._failure = self._failure or RunError(f"{where}: {kind}{error}")
        self._present.set()

    def _serve(self) -> None:
        """Serve one worker, and another one when it is gone, until the run is closed."""
        assert self._listener is not None
        while not self._closed:
            with contextlib.suppress(OSError, EOFError, AuthenticationError):
                with self._listener.accept() as connection, self._one_more():
                    self._hand_out(connection)

    @contextlib.contextmanager
    def _one_more(self) -> Iterator[None]:
        with self._lock:
            self._workers += 1
            self._present.set()
        try:
            yield
        finally:
            with self._lock:
                self._workers -= 1
                if self._workers == 0:
                    self._present.clear()

    def _hand_out(self, connection: Connection) -> None:
        while (ticket := self._tickets.get()) is not None:
            if connection.poll():  # an idle worker says nothing: this one is gone
                self._tickets.put(ticket)
                return
            try:
                ticket.outcome = _outcome(connection, ticket)
            finally:
                ticket.done.set()
        connection.send(None)


def _outcome(connection: Connection, ticket: _Ticket) -> Rollout | Exception:
    """Send the errand, answer what its agent asks, and return how it ended."""
    connection.send(ticket.errand)
    while isinstance(message := connection.recv(), Request):
        connection.send(_answer(ticket.session, message))
    assert isinstance(message, Rollout | Exception)
    return message


def _answer(session: Session, request: Request) -> object:
    try:
        return session.ask(request)
    except OproError as error:
        return error


def _host_towards(cluster: str | None) -> str:
    """Return the address of this machine by which the cluster's machines can reach it."""
    if cluster is None:
        return "127.0.0.1"
    parts = urlsplit(cluster if "://" in cluster else f"tcp://{cluster}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # sends nothing
        probe.connect((parts.hostname, parts.port or 80))
        return str(probe.getsockname()[0])
