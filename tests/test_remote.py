"""trainer.backend=dask: agents on the workers of a real cluster of two processes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opro.errors import ConfigError, RunError
from tests.conftest import Search
from tests.test_search import WRONG, kept, optimizer, rich_search, script, table


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes of four threads each; a worker that dies is started again."""
    distributed = pytest.importorskip("distributed")
    # Forked, since a worker spawned from pytest would run pytest's main once more.
    options = {"n_workers": 2, "threads_per_worker": 4, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as local:
        yield local


def on(cluster: Any) -> list[str]:
    return ["trainer.backend=dask", f"trainer.cluster={cluster.scheduler_address}"]


def journal(search: Search, name: str) -> list[str]:
    """Return the entries, sorted, without the clock's part."""
    entries = search.entries(name)
    for entry in entries:
        entry.get("entry", entry).pop("seconds", None)
    return sorted(json.dumps(entry, sort_keys=True) for entry in entries)


def test_scores_state_reports_and_journal_are_those_of_threads(
    search: Search, cluster: Any
) -> None:
    arguments = rich_search(search)
    search.run(*arguments, name="here")
    search.run(*arguments, *on(cluster), "trainer.concurrency=8", name="there")
    assert kept(search, "here") == kept(search, "there")
    assert journal(search, "here") == journal(search, "there")
    search.run(*arguments, "trainer.resume_mode=replay", name="there")  # needs no cluster


def command(search: Search, program: str) -> list[str]:
    """A search with two new instructions whose answers a shell program prints."""
    return [
        *table(search),
        *script(search, optimizer("<INS>One</INS>", "<INS>Two</INS>"), WRONG),
        "agent=command",
        f"agent.command={json.dumps(['sh', '-c', program])}",
        "trainer.epochs=1",
        "evolver.params.n_candidates=2",
    ]


def outputs(search: Search) -> list[str]:
    runs = [entry for entry in search.entries() if entry["at"][-1] == "run"]
    return [json.dumps(run) for run in runs]


def test_agents_run_on_both_workers_and_none_here(search: Search, cluster: Any) -> None:
    search.run(*command(search, "sleep 0.2; echo pid$PPID."), *on(cluster), "trainer.concurrency=8")
    workers = {str(worker.pid) for worker in cluster.workers.values()}
    assert len(workers) == 2 and str(os.getpid()) not in workers
    text = "".join(outputs(search))
    assert all(f"pid{pid}." in text for pid in workers)
    assert f"pid{os.getpid()}." not in text


def test_a_worker_that_dies_costs_its_runs_one_attempt(
    search: Search, cluster: Any, tmp_path: Path
) -> None:
    flag = tmp_path / "killed"
    program = f"if mkdir {flag}; then kill -9 $PPID; sleep 9; fi; echo 2"
    search.run(*command(search, program), *on(cluster), "trainer.concurrency=2")
    lost = [text for text in outputs(search) if "the worker that ran it is gone" in text]
    assert 1 <= len(lost) <= 2  # both of ours may have been on that worker
    assert [entry["score"] for entry in search.state()["history"]] == [0.25, 0.25, 0.25]


def test_a_cluster_that_is_not_there_is_named(search: Search) -> None:
    arguments = [*command(search, "echo 2"), "trainer.backend=dask", "trainer.cluster=127.0.0.1:1"]
    with pytest.raises(RunError, match=r"^trainer\.backend=dask, trainer\.cluster=127\.0\.0\.1:1"):
        search.run(*arguments)
    assert outputs(search) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["trainer.cluster=tcp://h:1"], "trainer.cluster=tcp://h:1: has no effect"),
        (["trainer.backend=ray"], "trainer.backend=ray: needs the package ray, of the extra 'ray'"),
        (["trainer.backend=spark"], 'trainer.backend="spark"'),
    ],
)
def test_what_cannot_work_is_refused(search: Search, given: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        search.run(*command(search, "echo 2"), *given)
    assert said in str(error.value) and "\n" not in str(error.value)
