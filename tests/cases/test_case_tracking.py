"""Known troubles with tracking, each with exactly its input, through whole searches."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from opro.errors import FatalEndpointError
from opro.testing.handle import Loopback, in_process, in_thread
from tests.conftest import Search
from tests.endpoint import RULES, command_line, small
from tests.gateway import gateway
from tests.store import artifact, params, points, query, tags
from tests.sweeps import Done, Sandbox
from tests.test_sweep_tracked import free_port, mlflow_server


@pytest.fixture
def server() -> Iterator[Loopback]:
    with in_thread(rules=RULES) as loopback:
        yield loopback


def test_tracking_1_a_long_instruction_many_keys_and_many_tasks(
    search: Search, server: Loopback
) -> None:
    long = "Think about it again and then once more.".ljust(50) * 140
    assert len(long) == 7000
    keys = ",".join(f"k{n}: {n}" for n in range(150))
    search.run(
        *small(server, search.folder, tasks=1200, width=32),
        "trainer.epochs=1",
        "evolver.params.n_candidates=1",
        f"evolver.initial_instructions=['{long}']",
        f"+llm.extra_body={{{keys}}}",
        "tracker=mlflow",
    )
    logged = params(search)
    assert [logged[f"llm.extra_body.k{n}"] for n in range(150)] == [str(n) for n in range(150)]
    shown = logged["evolver.initial_instructions"]
    assert len(shown) < 7000 and "7," in shown and "characters" in shown  # cut, and it says so
    kept = artifact(search, "params/evolver.initial_instructions.txt").decode()
    assert json.loads(kept) == [long]
    sql = "select count(*) from metrics where key like 'task/%'"
    assert query(search.folder, sql) == [(2 * 1200,)]


def test_tracking_4_a_failure_in_step_2_is_stored(search: Search, server: Loopback) -> None:
    before = 5 + 2 * (3 + 3 * 5)
    server.control(faults=[{"kind": "401", "at": [before + 1]}])
    arguments = [*small(server, search.folder, width=1), "trainer.epochs=3", "tracker=mlflow"]
    with pytest.raises(FatalEndpointError):
        search.run(*arguments)
    assert query(search.folder, "select status from runs") == [("FAILED",)]
    assert "HTTP 401" in tags(search)["opro.error"]
    assert [x for x, _ in points(search, "step/best")] == [0, 1]
    search.run(*arguments)
    assert query(search.folder, "select status from runs") == [("FINISHED",)]


@pytest.mark.parametrize(
    ("uri", "store"),
    [(None, "mlruns/mlflow.db"), ("sqlite:///kept/my store.db", "kept/my store.db")],
)
def test_tracking_6_the_store_is_where_it_was_asked_for(
    search: Search, server: Loopback, uri: str | None, store: str
) -> None:
    launch = search.folder / "a folder"
    launch.mkdir()
    own = [] if uri is None else [f"tracker.uri='{uri}'"]
    arguments = [*small(server, launch), "trainer.run_name=x", "hydra.job.chdir=true", *own]
    done = command_line(launch, arguments)
    assert done.returncode == 0, done.stderr.decode()
    assert (launch / store).is_file()
    stores = {path.name for path in search.folder.rglob("*.db")} - {"answers.db"}
    assert stores == {Path(store).name}  # and no other one anywhere
    line = re.search(r"mlflow ui .*", done.stdout.decode())
    assert line is not None
    assert shlex.split(line[0])[:4] == [
        *("mlflow", "ui", "--backend-store-uri", f"sqlite:///{launch / store}")
    ]


def test_tracking_7_threads_write_to_one_run_whatever_the_environment_says(
    search: Search,
    server: Loopback,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MLFLOW_RUN_ID", "0" * 32)
    search.run(*small(server, search.folder, width=4), "tracker=mlflow")
    assert query(search.folder, "select name, status from runs") == [("x", "FINISHED")]
    assert "MLFLOW_RUN_ID is set but not used" in capfd.readouterr().err
    history = search.state()["history"]
    for number in range(5):
        found = [value for _, value in points(search, f"task/t{number}")]
        assert found == [one["scores"][number] for one in history]


def test_tracking_7_a_failed_job_leaves_its_parent_and_the_others_whole(tmp_path: Path) -> None:
    with in_process() as server:
        sandbox = Sandbox(tmp_path, server)
        server.control(faults=[{"kind": "401", "contains": ["bad"]}])
        texts = "evolver.initial_instructions=[bad],[fine]"
        done = sandbox.sweep(texts, "trainer.run_name=S", tracker="mlflow")
    assert done.status == 1, done.text
    runs = dict(query(tmp_path, "select name, status from runs"))
    assert len(runs) == 3  # one for each job, and the parent
    assert runs.pop("S") == "FAILED"
    assert sorted(runs.values()) == ["FAILED", "FINISHED"]
    ends = dict(query(tmp_path, "select name, end_time from runs"))
    assert all(ends[name] <= ends["S"] for name in runs)


def test_tracking_8_an_outage_of_5_seconds_changes_nothing(tmp_path: Path) -> None:
    """Ridden out by the tracker's own retries; without them it is made good by a command."""
    store = ["--backend-store-uri", f"sqlite:///{tmp_path}/srv.db", "--serve-artifacts"]
    store += ["--artifacts-destination", str(tmp_path / "art")]
    search = Search(tmp_path)
    with (
        in_process(rules=RULES, latency=0.1) as server,
        mlflow_server(tmp_path, free_port(), *store) as target,
    ):

        def due() -> bool:  # in the second step
            return bool(server.stats()["requests"] > 5 + 18 + 3)

        arguments = [*small(server, tmp_path), "trainer.epochs=4"]
        plain = command_line(tmp_path, [*arguments, "tracker=none", "trainer.run_name=plain"])
        assert plain.returncode == 0
        for name, retries, status in (("b", "7", 0), ("c", "0", 3)):
            server.control(reset=True)
            with gateway(target, due, 5.0) as (url, outage):
                tracked = [*arguments, f"tracker.uri={url}", f"trainer.run_name={name}"]
                done = command_line(tmp_path, tracked, MLFLOW_HTTP_REQUEST_MAX_RETRIES=retries)
                assert done.returncode == status, done.stdout.decode() + done.stderr.decode()
                assert outage.refused > 0
                for file in ("state/opro.json", "ADAPTER.md", "report.md"):
                    same = (search.path("plain") / file).read_bytes()
                    assert (search.path(name) / file).read_bytes() == same
                if status:
                    assert b"not fully tracked" in done.stdout
                    sent = Done(Sandbox(tmp_path, server).start(name, module="opro.sync"))
                    assert sent.status == 0, sent.text
    with contextlib.closing(sqlite3.connect(tmp_path / "srv.db")) as database:
        runs = dict(database.execute("select name, run_uuid from runs where status = 'FINISHED'"))
        assert sorted(runs) == ["b", "c"]
        for run in runs.values():
            sql = "select step from metrics where run_uuid = ? and key = 'step/best' order by step"
            assert database.execute(sql, [run]).fetchall() == [(0,), (1,), (2,), (3,)]
            sql = "select count(*) from metrics where run_uuid = ? and key like 'task/%'"
            assert database.execute(sql, [run]).fetchone() == (5 * (1 + 4 * 3),)
