"""Ctrl-C and SIGTERM: no new request, out within seconds, and the run goes on later."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from opro.signals import SAME_SECONDS
from opro.testing.handle import Loopback, in_thread
from tests.conftest import ROOT, Search
from tests.endpoint import CALLS, RULES, command_line, small

LIMIT = 7.0
"""Seconds to be out in: 3 for what is in flight, 1 for the tracker, and a slow machine."""


@pytest.fixture
def server() -> Iterator[Loopback]:
    with in_thread(rules=RULES) as loopback:
        yield loopback


def start(search: Search, arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "opro.run", *arguments],
        cwd=search.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def tracked(search: Search) -> list[str]:
    """Return the status of each MLflow run; none while there is no whole store."""
    path = search.folder / "mlruns/mlflow.db"
    if not path.exists():
        return []
    with contextlib.closing(sqlite3.connect(path)) as database:
        try:
            return [status for (status,) in database.execute("select status from runs")]
        except sqlite3.OperationalError:
            return []


@pytest.mark.parametrize(
    ("number", "status", "latency"),
    [
        (signal.SIGINT, 130, 0.3),  # what is in flight comes home
        (signal.SIGTERM, 143, 600.0),  # and here it doesn't
    ],
)
def test_a_signal_ends_a_run_that_can_be_continued(
    search: Search, server: Loopback, number: int, status: int, latency: float
) -> None:
    arguments = [*small(server, search.folder, width=2), "trainer.run_name=x"]
    server.control(latency=0.05, slots=0)
    process = start(search, arguments)
    wait_until(lambda: tracked(search) == ["RUNNING"])
    server.control(slots=2)
    wait_until(lambda: server.stats()["requests"] >= 8)
    server.control(latency=latency)
    time.sleep(0.2)
    process.send_signal(number)
    began = time.monotonic()
    seen = server.stats()["requests"]
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < LIMIT
    assert process.returncode == status, err
    assert server.stats()["requests"] <= seen + 1  # one may have been on its way
    assert "to go on: python -m opro.run" in out
    assert "Traceback" not in err

    known = sum("text" in entry for entry in search.entries())
    assert seen - 3 <= known <= seen + 1
    assert tracked(search) == ["KILLED"]

    server.control(reset=True, latency=0.0)
    done = command_line(search.folder, arguments)
    assert done.returncode == 0, done.stderr.decode()
    assert server.stats()["outcomes"]["ok"] == CALLS - known
    assert tracked(search) == ["FINISHED"]


def test_a_second_signal_ends_it_at_once(search: Search, server: Loopback) -> None:
    server.control(latency=600.0)
    arguments = [*small(server, search.folder, width=2), "tracker=none"]
    process = start(search, arguments)
    wait_until(lambda: server.stats()["requests"] >= 2)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(SAME_SECONDS + 0.1)  # sooner, it is one Ctrl-C that reached us twice
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert time.monotonic() - began < LIMIT
    assert process.returncode == 130
