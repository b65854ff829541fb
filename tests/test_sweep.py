"""Sweeps from the command line: names, checks, continuing, failures, signals, launchers."""

from __future__ import annotations

import importlib.util
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from opro.sweeps.names import job_name
from opro.testing.handle import in_process
from tests.store import query
from tests.sweeps import Done, Sandbox, end_session, session, slowness

GRID = ["evolver.params.n_candidates=2,3", "evolver.params.select=train,validation"]


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with in_process() as server:
        yield Sandbox(tmp_path, server)


# -- names ------------------------------------------------------------------------------------


def test_names_are_short_and_stable_and_keep_hostile_values_apart() -> None:
    keys = ["evolver.params.n_candidates", "evolver.params.select"]
    job = ["seed=1", "evolver.params.select=train", "evolver.params.n_candidates=4"]
    assert job_name(job, keys) == "n_candidates=4,select=train"
    assert job_name(["llm=openai"], ["llm"]) == "llm=openai"
    assert job_name(job, ["seed"]) == "seed=1"
    both = ["llm.model=a", "agent.llm.model=b"]
    assert job_name(both, ["llm.model", "agent.llm.model"]) == "llm.model=a,agent.llm.model=b"


def test_hostile_and_long_values_fit_a_folder_name() -> None:
    key = "evolver.initial_instructions"
    names = {
        job_name([f"{key}={text}"], [key]) for text in ("a/../b", "a-..-b", "x" * 900, "x" * 901)
    }
    assert len(names) == 4
    for name in names:
        assert len(name) <= 80 and "/" not in name and not name.startswith(".")


# -- one sweep, continued -----------------------------------------------------------------------


def test_a_sweep_is_checked_run_skipped_grown_and_guarded(sandbox: Sandbox) -> None:
    plan = sandbox.sweep(*GRID, "plan=true")
    assert plan.status == 0 and plan.text.count("plan 4") == 2, plan.text
    wrong = sandbox.sweep("evolver.params.select=train,nonsense")
    assert wrong.status == 2 and "select=nonsense" in wrong and "Traceback" not in wrong
    typo = sandbox.sweep("evolver.params.n_candidate=2,3")
    assert typo.status == 2 and "did you mean" in typo and "Traceback" not in typo
    assert not (sandbox.folder / "mlruns").exists() and sandbox.requests() == 0

    first = sandbox.sweep(*GRID)
    assert first.status == 0, first.text
    assert "4 jobs over evolver.params.n_candidates (2, 3)" in first
    assert "launcher basic, one at a time" in first and "4 of 4 jobs ok" in first
    names = [f"n_candidates={n},select={s}" for n in (2, 3) for s in ("train", "validation")]
    assert sandbox.jobs() == names
    with_cache = sandbox.requests()

    # Equal requests were sent once, which changed nothing but their number.
    assert sandbox.sweep(*GRID, "trainer.run_name=T", "llm.cache=off").status == 0
    assert with_cache < 0.6 * sandbox.requests()
    for name in names:
        other = sandbox.folder / "mlruns/sweeps/T" / name / "state/opro.json"
        assert (sandbox.path(name) / "state/opro.json").read_bytes() == other.read_bytes()

    # Again: nothing is sent. Grown: only what is new. The lone new value keeps its job's name.
    again = sandbox.sweep(GRID[0].replace("2,3", "2,3,1"), GRID[1])
    assert again.status == 0 and again.text.count("(finished before)") == 8, again.text
    assert sandbox.jobs() == [f"n_candidates=1,select={s}" for s in ("train", "validation")] + names
    sent = sandbox.requests()
    texts = [(sandbox.path(name) / "journal.jsonl").read_text() for name in names]
    assert 0 < sent < sum(text.count("\n") for text in texts) / 2

    changed = sandbox.sweep(*GRID, "judge=exact")
    assert changed.status == 2 and "was run with other settings" in changed
    other_grid = sandbox.sweep("evolver.params.n_candidates=7,8", GRID[1], "evolver.params.top_k=1")
    assert other_grid.status == 2 and "top_k: 3 -> 1" in other_grid
    assert sandbox.requests() == 0


# -- failures -------------------------------------------------------------------------------------


def test_failures_are_shown_when_they_happen_and_the_others_go_on(sandbox: Sandbox) -> None:
    sandbox.server.control(faults=[{"kind": "401", "contains": ["bad"]}])
    texts = "evolver.initial_instructions=[bad one],[bad two],[fine]"
    done = sandbox.sweep(texts)
    assert done.status == 1
    shown = done.text.index("[1/3] failed")
    assert "evolver.initial_instructions=[bad\\ one]" in done.text[
        shown:
    ] and shown < done.text.index("[2/3] failed")
    assert "[3/3] ok" in done and "1 of 3 jobs ok" in done
    bad = next(name for name in sandbox.jobs() if sandbox.note(name)["status"] == "failed")
    assert "HTTP 401" in (sandbox.path(bad) / "job.log").read_text()
    assert "HTTP 401" in (sandbox.path(bad) / "error.txt").read_text()

    stopped = sandbox.sweep(texts, "trainer.run_name=T", "trainer.stop_sweep_on_failure=true")
    assert stopped.status == 1 and stopped.text.count("not run") == 2
    assert "0 of 3 jobs ok" in stopped

    # All of them, for one cause: each is shown when it happens, and the cause with it.
    sandbox.server.control(faults=[{"kind": "401"}])
    every = sandbox.sweep(texts, "trainer.run_name=U")
    assert every.status == 1 and "0 of 3 jobs ok" in every
    for number in (1, 2, 3):
        line = next(one for one in every.text.splitlines() if one.startswith(f"[{number}/3]"))
        assert "failed" in line and "HTTP 401" in line and "initial_instructions=" in line


# -- signals --------------------------------------------------------------------------------------


def ended(sandbox: Sandbox) -> dict[str, tuple[str, int]]:
    """Return each MLflow run's status and when it ended; none while there is no whole store."""
    try:
        rows = query(sandbox.folder, "select name, status, end_time from runs")
    except sqlite3.OperationalError:
        return {}
    return {name: (status, end) for name, status, end in rows}


@pytest.mark.parametrize(
    ("launcher", "number", "runs"),
    [("basic", signal.SIGINT, 2), ("joblib", signal.SIGINT, 4), ("joblib", signal.SIGTERM, 0)],
)
def test_a_signal_ends_everything_soon_and_keeps_what_is_finished(
    sandbox: Sandbox, launcher: str, number: signal.Signals, runs: int
) -> None:
    """Ctrl-C reaches every process of the terminal, SIGTERM the one that it is sent to."""
    arguments = [
        "-m",
        *sandbox.settings,
        f"tracker={'mlflow' if runs else 'none'}",
        "llm.cache=off",
        "evolver.params.n_candidates=2,3,4",
        f"hydra/launcher={launcher}",
    ]
    process = sandbox.start(*arguments)
    try:
        sandbox.wait_for_requests(20, process)
        sandbox.server.control(latency=30.0)
        while len(ended(sandbox)) < runs:  # in MLflow: the parent's, and those of jobs
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        time.sleep(0.5 * slowness())  # now every slot waits for an answer that doesn't come
        began = time.monotonic()
        (os.killpg if number is signal.SIGINT else os.kill)(process.pid, number)
        time.sleep(0.3 * slowness())
        sent = sandbox.requests(reset=False)
        process.wait(60)
        took = time.monotonic() - began
        assert sandbox.requests(reset=False) == sent
        time.sleep(2.0)
        assert session(process) == []
    finally:
        end_session(process)
    text = process.communicate()[0]
    assert process.returncode == 128 + number, text
    print(f"{launcher} {number.name}: {took:.2f} s after the signal")
    assert took < 5.0 * slowness()
    assert "killed" in text and "Traceback" not in text
    assert {sandbox.note(name)["status"] for name in sandbox.jobs()} <= {"killed", "ok"}
    states = ended(sandbox)
    assert len(states) == runs and {status for status, _ in states.values()} <= {"KILLED"}
    assert all(end <= states["S"][1] for _, end in states.values())  # children first
    sandbox.server.control(latency=0.0, reset=True)
    kept = sum(
        (sandbox.path(name) / "journal.jsonl").read_text().count('"finish"')
        for name in sandbox.jobs()
    )
    assert kept >= 20
    again = Done(sandbox.start(*arguments))
    assert again.status == 0 and "3 of 3 jobs ok" in again, again.text


def test_ctrl_c_leaves_a_job_its_time_while_another_worker_has_none(sandbox: Sandbox) -> None:
    arguments = ["-m", *sandbox.settings, "tracker=none", "hydra/launcher=joblib"]
    process = sandbox.start(*arguments, "trainer.epochs=0,50", "llm.cache=off")
    try:
        while not any(sandbox.note(name)["status"] == "ok" for name in sandbox.jobs()):
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.02)
        sandbox.wait_for_requests(20, process)
        sandbox.server.control(latency=1.0)
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
        text = process.communicate(timeout=60)[0]
    finally:
        end_session(process)
    assert process.returncode == 130, text
    assert [sandbox.note(f"epochs={n}")["status"] for n in (0, 50)] == ["ok", "killed"]


# -- launchers and sweepers ----------------------------------------------------------------------


def installed(plugin: str) -> bool:
    return importlib.util.find_spec(f"hydra_plugins.{plugin}") is not None


@pytest.mark.parametrize("launcher", ["submitit_local", "ray"])
def test_other_launchers_run_every_job(sandbox: Sandbox, launcher: str) -> None:
    done = sandbox.sweep(GRID[0], f"hydra/launcher={launcher}")
    if not installed(f"hydra_{launcher.removesuffix('_local')}_launcher"):
        # Ray's plugin pins a cloudpickle that other extras don't take: it has a venv of its own.
        assert done.status == 2 and "install the extra" in done
        return
    assert done.status == 0 and "2 of 2 jobs ok" in done, done.text


def test_optuna_learns_from_the_returned_score(sandbox: Sandbox) -> None:
    if not installed("hydra_optuna_sweeper"):
        pytest.skip("the plugin for Optuna isn't installed")
    done = sandbox.sweep(
        "hydra/sweeper=optuna", "hydra.sweeper.n_trials=3", "evolver.params.n_candidates=range(1,4)"
    )
    assert done.status == 0 and "jobs drawn by the sweeper" in done, done.text
    values = {name: sandbox.note(name)["value"] for name in sandbox.jobs()}
    found = (sandbox.path() / "optimization_results.yaml").read_text()
    assert f"best_value: {max(values.values())}" in found


def test_more_jobs_at_once_than_the_models_limit_are_refused(sandbox: Sandbox) -> None:
    done = sandbox.sweep(*GRID, "hydra/launcher=joblib", "llm.max_in_flight=3")
    assert done.status == 2 and "llm.max_in_flight=3" in done and "n_jobs" in done
