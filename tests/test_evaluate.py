"""`opro.evaluate`: given instructions on given tasks, measured, compared, kept, continued."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from opro import evaluation, job, run
from opro.errors import ConfigError, RunError
from opro.setup.composed import plain_config
from opro.stats import sign_test
from opro.trackers import mlflow_quiet
from tests.conftest import ROOT, Search
from tests.test_search import START, WRONG, optimizer, right, script, table


@dataclass(frozen=True)
class Evaluations:
    """Runs evaluations in the folder of `search`, as the command line would."""

    search: Search

    def run(self, instructions: str, *overrides: str, name: str = "e") -> job.Outcome:
        given = [f"instructions={instructions}", "tracker=none", "split=train", *overrides]
        given.append(f"trainer.run_name={name}")
        with initialize_config_dir(str(run.CONF), version_base="1.3"):
            config = plain_config(compose("evaluate", overrides=given))
        place = job.Place(launch=self.search.folder, folder=self.path(name), overrides=tuple(given))
        return evaluation.run(config, place)

    def path(self, name: str = "e") -> Path:
        return self.search.folder / "mlruns/evaluations" / name

    def result(self, name: str = "e") -> dict[str, Any]:
        return json.loads((self.path(name) / "result.json").read_text("utf-8"))

    def asked(self, name: str = "e") -> int:
        lines = (self.path(name) / "journal.jsonl").read_text("utf-8").splitlines()
        return sum('"turn"' in line for line in lines)


@pytest.fixture
def evaluations(search: Search) -> Evaluations:
    return Evaluations(search)


def answers(search: Search, *rules: dict) -> list[str]:
    return [*table(search), *script(search, *rules, WRONG)]


def test_means_intervals_kinds_and_the_exact_test(evaluations: Evaluations) -> None:
    arguments = answers(evaluations.search, *right("Good", "a", "b", "c"), *right("Fair", "a"))
    outcome = evaluations.run("[Good, Fair, '']", *arguments)
    found = evaluations.result()
    assert [one["mean"] for one in found["instructions"]] == [0.75, 0.25, 0.0]
    assert outcome.value == 0.75
    assert found["instructions"][0]["kinds"] == {"right": 3, "wrong": 1}
    assert found["instructions"][1]["scores"] == {"a": 1.0, "b": 0.0, "c": 0.0, "d": 0.0}
    assert found["instructions"][2]["instruction"] == ""
    first = found["comparisons"][0]
    assert (first["first"], first["second"], first["better"], first["worse"]) == (0, 1, 0, 2)
    assert first["test"] == "exact McNemar" and first["p_value"] == sign_test(0, 2) == 0.5
    assert first["p_value_holm"] == 1.0  # three pairs
    text = (evaluations.path() / "per_task.csv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 12
    assert rows[4] == {
        "instruction": "1", "name": "Fair", "repeat": "0", "split": "train", "task": "a",
        "score": "1.0", "kind": "right", "answer": "2",
    }  # fmt: skip
    report = (evaluations.path() / "report.md").read_text("utf-8")
    assert "| 0 | 0.750 | 0.301 to 0.954 | 4 | 3 right, 1 wrong | Good |" in report
    assert "| 1 minus 0 | -0.500 |" in report
    assert "| b | 1 | 0 | 0 |" in report


def test_each_repeat_is_a_measurement_of_its_own(evaluations: Evaluations) -> None:
    changing = {"contains": ["Moody", "1+1"], "reply": ["2", "0", "2", "0"]}  # by sample
    arguments = answers(evaluations.search, changing, *right("Moody", "b"), *right("Calm", "b"))
    evaluations.run("[Moody, Calm]", *arguments, "repeats=4")
    moody, calm = evaluations.result()["instructions"]
    assert moody["repeat_means"] == [0.5, 0.25, 0.5, 0.25]
    assert moody["scores"] == {"a": 0.5, "b": 1.0, "c": 0.0, "d": 0.0}
    assert moody["mean"] == 0.375 and moody["interval"]["n"] == 4  # the tasks are the sample
    assert calm["repeat_means"] == [0.25] * 4
    assert evaluations.result()["comparisons"][0]["test"] == "sign-flip permutation"
    assert evaluations.asked() == 2 * 4 * 4


def test_more_instructions_and_repeats_cost_only_what_is_new(evaluations: Evaluations) -> None:
    arguments = answers(evaluations.search, *right("Good", "a"))
    evaluations.run("[Good]", *arguments)
    assert evaluations.asked() == 4
    evaluations.run("[Good, Fair]", *arguments, "repeats=2", "split=all")
    assert evaluations.asked() == 2 * 2 * 8
    before = (evaluations.path() / "report.md").read_bytes()
    evaluations.run("[Good, Fair]", *arguments, "repeats=2", "split=all")
    assert evaluations.asked() == 2 * 2 * 8
    assert (evaluations.path() / "report.md").read_bytes() == before
    with pytest.raises(ConfigError, match="e: was run with other settings: agent.suffix"):
        evaluations.run("[Good]", *arguments, "agent.suffix=' Now.'")


def test_a_failed_run_is_never_a_zero_and_is_asked_again_next_time(
    evaluations: Evaluations,
) -> None:
    search = evaluations.search
    broken = {"contains": ["Bad", "1+2"], "fault": "server_error", "times": 2}
    rules = [broken, *right("Bad", "a", "b"), *right("Good", "a", "b", "c")]
    arguments = [*answers(search, *rules), "llm.retries=0"]
    evaluations.run("[Good, Bad]", *arguments)
    good, bad = evaluations.result()["instructions"]
    assert (bad["mean"], bad["failed"], bad["scores"]) == (None, ["b"], {"a": 1, "c": 0, "d": 0})
    assert evaluations.result()["comparisons"][0]["n"] == 3  # the tasks that both have
    assert "unscored (0.333 on 3)" in (evaluations.path() / "report.md").read_text("utf-8")
    asked = evaluations.asked()
    evaluations.run("[Good, Bad]", *arguments)
    assert evaluations.asked() == asked + 2  # the failed run and its second attempt, no other


def test_nothing_scored_at_all_is_a_failure(evaluations: Evaluations) -> None:
    broken = {"contains": "", "fault": "server_error"}
    arguments = [*table(evaluations.search), *script(evaluations.search, broken), "llm.retries=0"]
    with pytest.raises(RunError, match="no run could be scored; last cause: agent: .*server_err"):
        evaluations.run("[Good]", *arguments)
    assert (evaluations.path() / "error.txt").read_text().startswith("no run could be scored")


def test_a_spent_budget_is_said_and_can_be_raised(evaluations: Evaluations) -> None:
    arguments = answers(evaluations.search, *right("Good", "a", "b", "c"))
    evaluations.run("[Good, Fair]", *arguments, "trainer.budget.calls=5")
    found = evaluations.result()
    assert found["stop_reason"] == "budget: trainer.budget.calls=5 is used up"
    assert evaluations.asked() == 5 and found["instructions"][1]["mean"] is None
    assert "Not whole" in (evaluations.path() / "report.md").read_text("utf-8")
    evaluations.run("[Good, Fair]", *arguments)
    assert [one["mean"] for one in evaluations.result()["instructions"]] == [0.75, 0.0]
    assert evaluations.asked() == 8


def test_files_runs_and_literal_texts_as_instructions(evaluations: Evaluations) -> None:
    search = evaluations.search
    hostile = "Pay ${oc.env:HOME} at 100% {0}"
    rules = [optimizer("<INS>New</INS>"), *right("New", "a", "b"), *right(hostile, "a")]
    arguments = answers(search, *rules)
    search.run(*arguments, "trainer.epochs=1", "evolver.params.n_candidates=1", name="done")
    search.write("file.md", f"{hostile}\n")
    evaluations.run(
        "['@file.md', 'run:done', 'initial:done', 'run:mlruns/runs/done', 'text:run:x',"
        " 'Pay ${oc.env:HOME} at 100% {0}']",
        *arguments,
    )
    found = evaluations.result()["instructions"]
    assert [one["instruction"] for one in found] == [hostile, "New", START, "run:x"]
    assert [one["mean"] for one in found] == [0.25, 0.5, 0.0, 0.0]
    assert found[0]["names"] == ["@file.md", hostile]  # the same text is run once
    assert found[1]["names"] == ["run:done", "run:mlruns/runs/done"]


@pytest.mark.parametrize(
    ("instructions", "overrides", "message"),
    [
        ("[]", [], "instructions=.*: list should have at least 1 item"),
        ("['@no.md']", [], "instructions: @no.md: .*No such file"),
        ("['run:dnoe']", [], r"instructions: run:dnoe: no such run; in mlruns/runs are: none"),
        ("['mlflow:0']", [], "instructions: mlflow:0: only tracker=mlflow keeps runs"),
        ("['prompt:p@best']", [], "instructions: prompt:p@best: only tracker=mlflow keeps"),
        ("[x]", ["split=tset"], "split=\"tset\": input should be 'train', 'val', 'test' or 'all'"),
        ("[x]", ["repeats=0"], "repeats=0: input should be greater than or equal to 1"),
        ("[x]", ["split=val", "data.val=0"], "split=val: sums has no such tasks; see data.val"),
        ("[x]", ["+trainer.epochs=3"], "trainer.epochs: unknown key"),
        ("[x]", ["+evolver=opro"], "evolver: unknown key"),
        ("[x]", ["+spilt=test"], r"spilt: unknown key \(did you mean 'split'\?\)"),
    ],
)
def test_what_cannot_work_is_one_line_before_anything_is_made(
    evaluations: Evaluations, instructions: str, overrides: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        evaluations.run(instructions, *answers(evaluations.search), *overrides)
    assert "\n" not in str(caught.value)
    assert not (evaluations.search.folder / "mlruns").exists()


def opro(search: Search, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "opro.evaluate", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=search.folder, env=environment, capture_output=True, text=True, timeout=120
    )


def test_the_command_line(search: Search) -> None:
    arguments = [*answers(search, *right("Good", "a")), "tracker=none", "split=train"]
    plan = opro(search, *arguments, "instructions=[Good,Fair]", "repeats=3", "plan=true")
    assert plan.returncode == 0, plan.stderr
    assert "2 instructions × 4 tasks of train × 3 repeats = 24 runs, up to 24 model" in plan.stdout
    missing = opro(search, *arguments)
    assert missing.returncode == 2 and "instructions" in missing.stderr
    assert not (search.folder / "mlruns").exists()
    done = opro(search, *arguments, "instructions=[Good,'Pay ${amount}']", "trainer.run_name=x")
    assert done.returncode == 0, done.stderr
    assert "0  0.250  0.046 to 0.699  4      1 right, 3 wrong  Good" in done.stdout
    assert "Pay ${amount}" in done.stdout
    assert (search.folder / "mlruns/evaluations/x/report.md").is_file()


def test_mlflow_keeps_it_and_gives_back_winners_and_prompts(search: Search) -> None:
    rules = [optimizer("<INS>Né **w** ${x} {{y}}</INS>"), *right("Né w", "a", "b")]
    arguments = [*answers(search, *rules), "tracker=mlflow"]
    search.run(*arguments, "trainer.epochs=1", "evolver.params.n_candidates=1", name="done")
    note = json.loads((search.path("done") / "mlflow_run.json").read_text())
    found = Evaluations(search)
    references = f"['mlflow:{note['run_id']}', 'prompt:opro-sums', 'prompt:opro-sums/1', Other]"
    outcome = found.run(references, *arguments, "repeats=2")
    assert outcome.status == 0
    first, second = found.result()["instructions"]
    assert first["instruction"] == "Né w ${x} {{y}}"
    assert len(first["names"]) == 3 and first["mean"] == 0.5
    for wrong in ("mlflow:nope", "prompt:nope", "prompt:opro-sums@nope", "prompt:opro-sums/9"):
        with pytest.raises(ConfigError, match=f"instructions: {wrong}: "):
            found.run(f"['{wrong}']", *arguments, name="wrong")

    mlflow_quiet.before_import()
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{search.folder}/mlruns/mlflow.db")
    run_id = json.loads((found.path() / "mlflow_run.json").read_text())["run_id"]
    logged = client.get_run(run_id)
    assert logged.info.status == "FINISHED"
    assert logged.data.tags["opro.kind"] == "evaluation"
    assert logged.data.params["repeats"] == "2"
    history = client.get_metric_history(run_id, "evaluation/score")
    assert [(point.step, point.value) for point in history] == [(0, 0.5), (1, 0.0)]
    names = {item.path for item in client.list_artifacts(run_id)}
    assert {"instructions.json", "per_task_scores.json", "comparisons.json", "report.md"} <= names
    assert "per_task.csv" in names
    scores = json.loads(Path(client.download_artifacts(run_id, "per_task_scores.json")).read_text())
    assert len(scores["data"]) == 2 * 2 * 4
    assert scores["data"][0][0] == "0.0 on train: a"
    assert len({row[0] for row in scores["data"]}) == 16
