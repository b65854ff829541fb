"""Known troubles with configurations, each with exactly its input, from the command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from opro.errors import ConfigError
from opro.testing.handle import in_process, in_thread
from tests.conftest import ROOT, Search
from tests.endpoint import OPTIMIZER, command_line, small
from tests.store import artifact, params, query
from tests.sweeps import Done, Sandbox
from tests.test_search import rich_search

ODD = 'Pay ${amount} and return {"x": 1} at 100%'
QUESTION = "A = {1; 2; 3}"
LEAK = "Read ${oc.env:HOME} first."


def test_config_2_texts_are_sent_and_logged_byte_for_byte(search: Search) -> None:
    rules = [
        {"contains": [OPTIMIZER], "text": f"<INS>{LEAK}</INS>"},
        {"contains": [LEAK], "text": "2"},
        {"contains": [], "text": "3"},
    ]
    with in_thread(rules=rules) as server:
        arguments = small(server, search.folder)
        rows = [{"id": "t", "question": QUESTION, "answer": "2"}]
        search.write("tasks.jsonl", json.dumps(rows[0]))
        texts = f"evolver.initial_instructions=['{ODD}']"
        own = ["trainer.run_name=x", "trainer.epochs=2", "evolver.params.n_candidates=1"]
        done = command_line(search.folder, [*arguments, texts, *own])
        assert done.returncode == 0, done.stderr.decode()
        sent = [[m["content"] for m in entry["json"]["messages"]] for entry in server.log()]
    assert [ODD, QUESTION] in sent and [LEAK, QUESTION] in sent
    meta_prompts = [one[0] for one in sent if len(one) == 1]
    assert any(f"text:\n{ODD}\nscore:" in text for text in meta_prompts)
    assert any(f"text:\n{LEAK}\nscore:" in text for text in meta_prompts)
    assert all(f"\nProblem:\n<INS>\n{QUESTION}\n" in text for text in meta_prompts)
    assert artifact(search, "ADAPTER.md").decode() == LEAK
    assert json.loads(params(search)["evolver.initial_instructions"]) == [ODD]
    home = os.environ["HOME"]
    for path in search.path().rglob("*.md"):
        assert home not in path.read_text("utf-8")
    versions = query(search.folder, "select value from model_version_tags")
    assert (LEAK,) in versions and not any(home in str(row) for row in versions)


STUDY = """# @package _global_
defaults:
  - override /hydra/launcher: joblib
hydra:
  launcher:
    n_jobs: 2
evolver:
  params:
    select: train
"""


def test_config_3_a_launcher_in_an_experiment_file_is_the_one_used(tmp_path: Path) -> None:
    (tmp_path / "own/experiment").mkdir(parents=True)
    (tmp_path / "own/experiment/mine.yaml").write_text(STUDY)
    with in_process() as server:
        sandbox = Sandbox(tmp_path, server)
        arguments = ["--config-dir=own", "-m", *sandbox.settings, "tracker=none"]
        swept = "evolver.params.n_candidates=1,2,3"
        done = Done(sandbox.start(*arguments, "+experiment=mine", swept))
        assert done.status == 0, done.text
    assert "launcher joblib, 2 at once" in done
    assert "3 of 3 jobs ok" in done


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hydra:\n  launcher: joblib\n", "'experiment/mine': .*LauncherConf. value: joblib"),
        ("hydra:\n  launcher:\n    n_job: 2\n", "'experiment/mine': .*Key 'n_job' not in 'Basic"),
        ("defaults:\n  - override /hydra/launcher: jobilb\n", r"did you mean 'joblib'\?"),
        ("trainer: {epochs: 1\n", "own/experiment/mine.yaml:[23]: not YAML: "),
    ],
)
def test_config_3_a_launcher_or_file_that_has_no_effect_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "own/experiment").mkdir(parents=True)
    (tmp_path / "own/experiment/mine.yaml").write_text(f"# @package _global_\n{text}")
    with in_process() as server:
        sandbox = Sandbox(tmp_path, server)
        arguments = ["--config-dir=own", "-m", *sandbox.settings, "tracker=none"]
        done = Done(sandbox.start(*arguments, "+experiment=mine", "seed=1,2"))
        assert done.status == 2 and re.search(said, done.text), done.text
        assert "Traceback" not in done and len(done.text.splitlines()) == 1
        assert sandbox.requests() == 0


@pytest.mark.parametrize(
    ("one", "other", "key"),
    [
        (["judge=number"], ["judge=number", "judge.tolerance=0.5"], "judge.tolerance"),
        (["judge=upstream_bool"], ["judge=upstream_choice"], "judge._target_"),
        (["agent.think_tags=[think]"], ["agent.think_tags=[reasoning]"], "agent.think_tags"),
    ],
)
def test_config_4_runs_that_differ_in_how_answers_are_read_are_told_apart(
    search: Search, one: list[str], other: list[str], key: str
) -> None:
    arguments = [word for word in rich_search(search) if word != "judge=number"]
    arguments += ["trainer.epochs=1", "trainer.compare=[]"]
    search.run(*arguments, *one, name="one")
    search.run(*arguments, *other, name="other")
    logged = {name: search.result(name)["params"] for name in ("one", "other")}
    differing = {k for k, v in logged["one"].items() if logged["other"].get(k) != v}
    assert differing - {"trainer.run_name"} <= {key, "judge.boxed"} and key in differing
    with pytest.raises(ConfigError, match="was run with other settings: judge|agent"):
        search.run(*arguments, *other, "trainer.epochs=2", name="one")


def test_config_4_code_version_and_data_hash_are_logged(search: Search) -> None:
    arguments = [*rich_search(search), "trainer.epochs=1", "tracker=mlflow"]
    search.run(*arguments, name="one")
    rows = (search.folder / "sums.jsonl").read_text("utf-8")
    search.write("sums.jsonl", rows.replace("1+1", "1 + 1"))
    search.run(*arguments, name="other")
    one, other = params(search, "one"), params(search, "other")
    assert len(one["data.digest"]) == 64 and one["data.digest"] != other["data.digest"]
    assert one["opro.version"] == other["opro.version"]
    sql = "select value from tags where key = 'opro.git_commit'"
    commits = {value for (value,) in query(search.folder, sql)}
    assert len(commits) == 1 and len(commits.pop()) >= 40


def test_config_5_an_unsupported_python_is_told_in_one_line(tmp_path: Path) -> None:
    code = "import sys; sys.version_info = (3, 10, 9); import opro"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"opro needs Python 3.11 or newer; this is \S+\n", done.stderr)


def test_config_5_the_set_up_looks_for_a_python_that_will_do(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/setup", tmp_path / "scripts/setup")
    (tmp_path / "bin").mkdir()
    for name in ("python3", "python3.11", "python3.12", "python3.13"):  # all of them too old
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    command = [str(tmp_path / "scripts/setup"), "local"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 2
    assert done.stderr == "opro needs Python 3.11 or newer; set PYTHON to one\n"


def test_config_5_every_requirement_of_the_core_has_a_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["requires-python"] == ">=3.11"
    assert all(re.search(r"[<>=]=?\d", one) for one in project["dependencies"])
