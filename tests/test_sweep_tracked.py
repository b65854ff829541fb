"""A sweep in MLflow: eight jobs at once on a fresh store, its pages, a kill -9, an outage."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opro.testing.handle import in_process
from tests.browser import CHROMIUM, Browser
from tests.sweeps import Done, Sandbox, end_session, session, slowness

GRID = [
    "evolver.params.n_candidates=2,3",
    "evolver.params.score_threshold=0.0,0.3",
    "evolver.params.select=train,validation",
]


@pytest.fixture(scope="module")
def swept(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Sandbox, Done, dict[str, Any]]]:
    """Eight jobs, all at once, on a store that isn't there yet."""
    with in_process(latency=0.01) as server:
        sandbox = Sandbox(tmp_path_factory.mktemp("tracked"), server)
        sandbox.env = {"MLFLOW_RUN_ID": "0" * 32}  # somebody else's: plays no part
        eight = ["hydra/launcher=joblib", "hydra.launcher.n_jobs=8"]
        arguments = [*GRID, *eight, "llm.max_in_flight=8"]
        done = sandbox.sweep(*arguments, tracker="mlflow")
        yield sandbox, done, server.stats()


def query(sandbox: Sandbox, sql: str) -> list[Any]:
    with sqlite3.connect(sandbox.folder / "mlruns/mlflow.db") as connection:
        return connection.execute(sql).fetchall()


def test_eight_jobs_on_a_fresh_store_are_eight_complete_runs(
    swept: tuple[Sandbox, Done, dict[str, Any]],
) -> None:
    sandbox, done, stats = swept
    assert done.status == 0 and "8 of 8 jobs ok" in done, done.text
    assert "launcher joblib, 8 at once" in done
    assert stats["in_flight"]["peak"] <= 8
    names = sandbox.jobs()
    assert len(names) == 8
    runs = dict(query(sandbox, "select name, run_uuid from runs"))
    assert sorted(runs) == sorted([*names, "S"])
    assert {row[0] for row in query(sandbox, "select status from runs")} == {"FINISHED"}
    parents = query(
        sandbox,
        f"select run_uuid from tags where key = 'mlflow.parentRunId' and value = '{runs['S']}'",
    )
    assert {row[0] for row in parents} == {runs[name] for name in names}
    for name in names:
        steps = query(
            sandbox,
            f"select step from metrics where run_uuid = '{runs[name]}' and key = 'total/calls'",
        )
        assert sorted(row[0] for row in steps) == [0, 1], name
        test = query(
            sandbox,
            f"select value from metrics where run_uuid = '{runs[name]}' and key = 'test/score'",
        )
        assert len(test) == 1, name
        history = json.loads((sandbox.path(name) / "state/opro.json").read_text())["history"]
        tasks = query(
            sandbox,
            f"select count(*) from metrics where key like 'task/%' and run_uuid = '{runs[name]}'",
        )
        assert tasks == [(8 * len(history),)]  # of each instruction on each task
    aliases = query(sandbox, "select alias from registered_model_aliases")
    assert aliases == [("champion",)]
    artifacts = sandbox.folder / "mlruns/artifacts" / runs["S"] / "artifacts"
    assert {"comparison.html", "jobs.csv", "report.md", "best_by_calls.png", "parallel.png"} <= {
        path.name for path in artifacts.iterdir()
    }


@pytest.mark.skipif(not CHROMIUM.exists(), reason="Chromium isn't installed")
def test_mlflows_compare_page_shows_jobs_params_and_test_score(
    swept: tuple[Sandbox, Done, dict[str, Any]], tmp_path: Path
) -> None:
    sandbox, _, _ = swept
    runs = dict(query(sandbox, "select name, run_uuid from runs"))
    experiment = query(sandbox, "select experiment_id from runs limit 1")[0][0]
    ids = ",".join(f"%22{runs[name]}%22" for name in sandbox.jobs())
    store = f"sqlite:///{sandbox.folder}/mlruns/mlflow.db"
    with mlflow_server(sandbox.folder, free_port(), "--backend-store-uri", store) as url:
        page = f"{url}/#/compare-runs?runs=[{ids}]&experiments=[%22{experiment}%22]"
        with Browser(tmp_path) as browser:
            text = browser.open(page, until="Show diff only", timeout=60 * slowness())
            browser.picture(tmp_path / "compare.png")
    for wanted in (*sandbox.jobs(), "test/score", "evolver.params.n_candidates"):
        assert wanted in text


def test_a_killed_sweep_goes_on_and_leaves_no_running_run(tmp_path: Path) -> None:
    with in_process() as server:
        sandbox = Sandbox(tmp_path, server)
        arguments = [
            "-m",
            *sandbox.settings,
            "tracker=mlflow",
            "llm.cache=off",
            "hydra/launcher=joblib",
            "hydra.launcher.n_jobs=2",
            "evolver.params.n_candidates=1,2,3",
        ]
        process = sandbox.start(*arguments)
        try:
            while not any(sandbox.note(name)["status"] == "ok" for name in sandbox.jobs()):
                assert process.poll() is None, process.communicate()[0]
                time.sleep(0.02)
            server.control(latency=30.0)
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            end = time.monotonic() + 10 * slowness()
            while session(process) and time.monotonic() < end:
                time.sleep(0.1)
            assert session(process) == []
        finally:
            end_session(process)
        finished = [name for name in sandbox.jobs() if sandbox.note(name)["status"] == "ok"]
        before = {name: (sandbox.path(name) / "journal.jsonl").read_bytes() for name in finished}
        server.control(latency=0.0, reset=True)
        again = Done(sandbox.start(*arguments))
        assert again.status == 0 and "3 of 3 jobs ok" in again, again.text
        for name, journal in before.items():
            assert sandbox.note(name)["skipped"]
            assert (sandbox.path(name) / "journal.jsonl").read_bytes() == journal
        runs = query(sandbox, "select name, status from runs")
        assert sorted(runs) == [(name, "FINISHED") for name in sorted(["S", *sandbox.jobs()])]


def test_an_outage_changes_nothing_and_is_made_good_later(tmp_path: Path) -> None:
    port = free_port()
    with in_process() as server:
        sandbox = Sandbox(tmp_path, server, {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"})
        uri = f"tracker.uri=http://127.0.0.1:{port}"
        names = ["evolver.params.n_candidates=2,3"]
        whole = sandbox.sweep(*names, "trainer.run_name=whole")
        assert whole.status == 0, whole.text
        down = sandbox.sweep(*names, uri, tracker="mlflow")
        assert down.status == 3 and "opro.sync S" in down and "2 of 2 jobs ok" in down, down.text
        for name in sandbox.jobs():
            other = sandbox.folder / "mlruns/sweeps/whole" / name
            assert (sandbox.path(name) / "state/opro.json").read_bytes() == (
                other / "state/opro.json"
            ).read_bytes()
        assert Done(sandbox.start("S", module="opro.sync")).status == 3
        server.control(reset=True)
        arguments = ["--backend-store-uri", f"sqlite:///{tmp_path}/srv.db"]
        arguments += ["--artifacts-destination", str(tmp_path / "art"), "--serve-artifacts"]
        with mlflow_server(tmp_path, port, *arguments):
            sent = Done(sandbox.start("S", module="opro.sync"))
        assert sent.status == 0, sent.text
        assert sandbox.requests() == 0  # no model was asked
        with sqlite3.connect(tmp_path / "srv.db") as connection:
            runs = dict(connection.execute("select name, status from runs").fetchall())
            scores = connection.execute("select 1 from metrics where key = 'test/score'").fetchall()
        assert runs == {name: "FINISHED" for name in ("S", *sandbox.jobs())}
        assert len(scores) == 2
        assert list((tmp_path / "art").rglob("comparison.html"))
        assert "everything is tracked" in Done(sandbox.start(module="opro.sync"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class mlflow_server:  # noqa: N801 - reads as a function
    """A real `mlflow server` on loopback, gone at the end."""

    def __init__(self, folder: Path, port: int, *arguments: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1"]
        command += ["--port", str(port), "--workers", "1", *arguments]
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> str:
        end = time.monotonic() + 60 * slowness()
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5).read()
                return self.url
            except OSError:
                if self._process.poll() is not None or time.monotonic() > end:
                    self.__exit__()
                    raise
                time.sleep(0.2)

    def __exit__(self, *exc: object) -> None:
        end_session(self._process)
        self._process.wait()
