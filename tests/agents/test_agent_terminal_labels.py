"""What a container says of whose it is: a search's, a sweep's job's, an evaluation's."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from opro import clean
from opro.agents.docker_engine import Engine
from tests.agents.conftest import small_box
from tests.conftest import ROOT, Search
from tests.sweeps import Done

Labels = Mapping[str, str]
ARGUMENTS = [
    *("agent=terminal", "judge=environment", "llm=scripted", "llm.path=script.yaml"),
    *("data=jsonl", "data.path=tasks.jsonl", "data.id_field=id", "data.split_field=split"),
    *("data.fields=[task]", "data.answer_field=null"),
]
TASK = "whose-is-it"
"""Tells our containers from those of tests that run beside this one, whatever else is wrong."""


def labels_of(daemon: Engine, search: Search, module: str, *arguments: str) -> list[Labels]:
    """Run a command to its end; return the labels of the containers that were seen meanwhile."""
    row = {"id": TASK, "split": "train", "task": "Make x.", "check": "[ -f x ]"}
    search.write("tasks.jsonl", json.dumps(row))
    rules = [
        {"contains": "Your task is to generate", "reply": ["<INS>Do well.</INS>"]},
        {"contains": "exit code: ", "reply": "DONE"},
        {"contains": "", "reply": "```bash\nsleep 1\ntouch x\n```"},
    ]
    search.write("script.yaml", yaml.safe_dump(rules))
    process = subprocess.Popen(
        [sys.executable, "-m", module, *ARGUMENTS, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    seen: dict[str, Labels] = {}
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(Done, process)
        while not ending.done():
            seen |= {one.id: one.labels for one in daemon.ours()}
            time.sleep(0.1)
    done = ending.result()
    assert done.status == 0, done.text
    return [labels for labels in seen.values() if labels.get("opro.task") == TASK]


def test_the_containers_of_a_sweep_name_their_job_and_the_sweep(
    search: Search, daemon: Engine, nothing_left: None
) -> None:
    found = labels_of(
        daemon, search, "opro.run", "-m", "seed=1,2", "trainer.run_name=S", "trainer.epochs=1",
        "evolver.params.n_candidates=1", "evolver.params.select=train",
    )  # fmt: skip
    assert len(found) == 4  # in each job, the initial instruction and the candidate
    assert {labels["opro.project"] for labels in found} == {"opro"}
    assert {labels["opro.sweep"] for labels in found} == {"S"}
    runs = {labels["opro.run"] for labels in found}
    assert runs == {"seed=1", "seed=2"}
    assert runs == {path.parent.name for path in search.folder.glob("mlruns/sweeps/S/*/job.json")}
    with contextlib.closing(sqlite3.connect(search.folder / "mlruns/mlflow.db")) as store:
        names = {row[0] for row in store.execute("select name from runs")}
    assert runs == names - {"S"}


def test_the_containers_of_an_evaluation_name_it(
    search: Search, daemon: Engine, nothing_left: None
) -> None:
    arguments = ("instructions=[Do well.]", "split=train", "trainer.run_name=E", "tracker=none")
    found = labels_of(daemon, search, "opro.evaluate", *arguments)
    assert [(labels["opro.run"], labels["opro.sweep"]) for labels in found] == [("E", "")]


def test_clean_takes_one_job_or_one_sweep(
    daemon: Engine, nothing_left: None, capsys: pytest.CaptureFixture[str]
) -> None:
    boxes = [small_box(run, sweep=sweep) for run, sweep in (("a", "s1"), ("b", "s1"), ("a", "s2"))]
    names = [daemon.start(box) for box in boxes]
    try:
        assert clean.main(["--sweep", "s1"]) == 0  # nothing says whose they are: kept
        assert clean.main(["--all", "--sweep", "s1", "--run", "a"]) == 0
        assert "(sweep 's1', run 'a', task 't')" in capsys.readouterr().out
        assert here(daemon, names) == names[1:]
        assert clean.main(["--all", "--sweep", "s1"]) == 0
        assert here(daemon, names) == names[2:]
        assert clean.main(["--all", "--run", "a"]) == 0
        assert here(daemon, names) == []
    finally:
        for name in names:
            daemon.remove(name)


def here(daemon: Engine, names: list[str]) -> list[str]:
    found = {one.id for one in daemon.ours()}
    return [name for name in names if name in found]
