"""The MLflow tracker against a real SQLite store, read back with MLflow's own client."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import textwrap
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from opro.errors import ConfigError
from opro.records import RunEnd
from opro.trackers import names, points, tables
from opro.trackers.background import BackgroundTracker
from opro.trackers.mlflow_tracker import MLflowTracker
from tests.suites.tracker_suite import tell
from tests.trackers.fakes import make_run

ROOT = Path(__file__).resolve().parents[2]
ODD = "Use {{x}}, {% if y %}${oc.env:HOME}{% endif %} and 100% {braces}.\r\n\tÜ  "


class Desk:
    """An experiment of its own in the shared store, and a client to read it with."""

    def __init__(self, launch_folder: Path) -> None:
        self.launch_folder = launch_folder
        self.experiment = f"e-{uuid.uuid4().hex[:8]}"
        self.tracker().prepare()
        from mlflow import MlflowClient

        uri = f"sqlite:///{launch_folder}/mlruns/mlflow.db"
        self.client = MlflowClient(tracking_uri=uri, registry_uri=uri)
        self.experiment_id = self.client.get_experiment_by_name(self.experiment).experiment_id

    def tracker(self, **settings) -> MLflowTracker:
        given = {"experiment": self.experiment, "register": False, **settings}
        return MLflowTracker(launch_folder=self.launch_folder, **given)

    def runs(self):
        return self.client.search_runs([self.experiment_id])

    def run(self):
        (run,) = self.runs()
        return run

    def history(self, key):
        found = self.client.get_metric_history(self.run().info.run_id, key)
        return sorted((point.step, point.value) for point in found)

    def text(self, path, tmp_path):
        run_id = self.run().info.run_id
        return Path(self.client.download_artifacts(run_id, path, str(tmp_path))).read_bytes()

    def duplicates(self):
        """Return the metrics with two points at one x."""
        run = self.run()
        found = {}
        for key in run.data.metrics:
            points_of = self.client.get_metric_history(run.info.run_id, key)
            if max(Counter(p.step for p in points_of).values()) > 1:
                found[key] = [(p.step, p.value) for p in points_of]
        return found


@pytest.fixture
def desk(launch_folder):
    return Desk(launch_folder)


def stamped(run, **changes):
    return dataclasses.replace(run, info=dataclasses.replace(run.info, **changes))


def folder_files(run):
    """Write what the trainer would have written by the run's end."""
    folder = run.info.folder
    for record, _ in run.steps:
        step = folder / "output" / f"step_{record.step:03d}"
        step.mkdir(parents=True)
        (step / "meta_prompt.md").write_text(record.meta_prompt)
    (folder / "state").mkdir()
    (folder / "state" / "opro.json").write_text("{}")
    for name in ("report.md", "ADAPTER.md", "config.json", "journal.jsonl"):
        (folder / name).write_text(f"# {name}\n")


def test_a_whole_run_can_be_read_back(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=3, tasks=5)
    folder_files(run)
    tell(desk.tracker(), run)
    found = desk.run()
    assert (found.info.status, found.info.run_name) == ("FINISHED", "fake")
    assert found.data.params["evolver.params.n_candidates"] == "8"
    assert found.data.params["trainer.budget.usd"] == "null"
    assert found.data.tags["opro.git_commit"] == "0" * 40
    assert found.data.tags["opro.stop_reason"] == "epochs"
    assert found.data.tags["mlflow.note.content"] == "# report.md\n"
    assert desk.history("step/best") == [(r.step, r.best.score) for r, _ in run.steps]
    assert desk.history("step/rescore") == [(r.step, r.current.mean) for r, _ in run.steps[1:]]
    assert desk.history("step_counts/n_candidates") == [(0, 8), (1, 8), (2, 8)]
    assert desk.history("step_counts/n_failed") == [(0, 1), (1, 1), (2, 1)]
    calls = [(r.step, sum(u.calls for u in t.by_role.values())) for r, t in run.steps]
    assert desk.history("total/calls") == calls
    assert desk.history("total/usd") == []  # the agent's cost is unknown, so the sum is, too
    files = {f.path for f in desk.client.list_artifacts(found.info.run_id)}
    assert files >= {"report.md", "ADAPTER.md", "journal.jsonl", "state", "output", "initial"}
    assert desk.text("output/step_002/meta_prompt.md", tmp_path).startswith(b"Your task")


def test_scores_over_candidates_match_the_records(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=2, tasks=5)
    tell(desk.tracker(), run)
    scored = {0: run.steps[0][0].initial[0]}
    for record, _ in run.steps:
        for c in record.candidates:
            if c.evaluation:
                scored[1 + 8 * record.step + c.index] = c.evaluation
    assert desk.history("candidate/score") == [(n, e.mean) for n, e in sorted(scored.items())]
    wanted = [(n, e.results[3].score) for n, e in sorted(scored.items())]
    assert desk.history("task/train/003") == wanted


def test_per_task_metrics_can_be_left_out(desk, tmp_path):
    tell(desk.tracker(per_task=False), make_run(tmp_path / "run", steps=1, tasks=5))
    assert not [key for key in desk.run().data.metrics if key.startswith("task/")]


def test_results_of_all_splits_are_metrics(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=2, tasks=5)
    tell(desk.tracker(), run)
    metrics, test = desk.run().data.metrics, run.summary.comparisons[1]
    assert metrics["train/score"] == run.summary.winner.score
    assert metrics["train/score_initial"] == run.summary.initial.score
    assert metrics["val/score"] == pytest.approx(0.6)
    assert metrics["test/score"] == test.winner.mean
    assert metrics["test/gain"] == pytest.approx(test.winner.mean - test.initial.mean)
    assert "val/score_initial" not in metrics  # not measured, so not there


def test_tables_are_mlflows_own(desk, tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", steps=2, tasks=5, odd=[ODD])
    tell(desk.tracker(), run)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", desk.client.tracking_uri)  # `load_table` follows it
    instructions = desk.client.load_table(desk.experiment_id, tables.INSTRUCTIONS)
    assert list(instructions["rank"].dropna()) == list(range(1, len(run.summary.history) + 1))
    scores = sorted(scored.score for scored in run.summary.history)
    assert sorted(instructions["score"].dropna()) == pytest.approx(scores)
    assert ODD in set(instructions["instruction"])
    assert len(instructions) == 1 + 16
    scores = desk.client.load_table(desk.experiment_id, tables.SCORES)
    assert scores.iloc[:, 0].is_unique
    winner = scores[(scores["instruction"] == "winner") & (scores["split"] == "test")]
    assert winner["score"].mean() == pytest.approx(run.summary.comparisons[1].winner.mean)


def test_a_table_too_large_for_a_browser_says_what_is_missing(tmp_path):
    run = make_run(tmp_path, steps=4, tasks=1500)
    text, note = tables.scores_table(run.summary)
    rows = json.loads(text)["data"]
    assert len(rows) <= tables.MAX_SCORE_ROWS
    assert note == "9 instructions left out; state/opro.json has all"
    assert rows[0][0] == "winner on train: train/000"


def test_the_data_set_is_an_input(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=1, tasks=5)
    tell(desk.tracker(), run)
    tell(desk.tracker(), run)  # again, as a continued run does
    (entry,) = desk.run().inputs.dataset_inputs
    assert entry.dataset.name == "reviews"
    assert run.info.dataset.digest.startswith(entry.dataset.digest)
    profile = json.loads(entry.dataset.profile)
    assert (profile["train"], profile["digest"]) == (5, run.info.dataset.digest)


def test_long_texts_and_many_keys(desk, tmp_path):
    """Case tracking-1."""
    long = "Instruction ä. " * 467
    params = {"evolver.initial": long, **{f"k.{i}": i for i in range(150)}}
    run = stamped(make_run(tmp_path / "run", steps=1, tasks=1200, n=3), params=params)
    tell(desk.tracker(), run)
    found = desk.run()
    assert len(found.data.params) == 151
    assert found.data.params["k.149"] == "149"
    assert "7,005 characters" in found.data.params["evolver.initial"]
    assert desk.text("params/evolver.initial.txt", tmp_path).decode() == long
    assert sum(key.startswith("task/") for key in found.data.metrics) == 1200


def test_a_killed_run_goes_on_in_the_same_mlflow_run(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=4, tasks=5)
    first = desk.tracker()
    first.on_run_start(run.info)
    for record, totals in run.steps[:2]:
        first.on_step_end(record, totals)
    assert desk.run().info.status == "RUNNING"
    # No end: the process was killed. The next one tells of all steps again.
    tell(desk.tracker(), stamped(run, resumed=True))
    assert desk.run().info.status == "FINISHED"
    assert desk.duplicates() == {}
    assert [x for x, _ in desk.history("step/best")] == [0, 1, 2, 3]


def test_a_step_sent_in_part_is_completed_not_repeated(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=2, tasks=5)
    folder_files(run)
    broken = run.info.folder / "output" / "step_001" / "gone.md"
    broken.symlink_to(tmp_path / "nowhere")
    first = desk.tracker()
    first.on_run_start(run.info)
    first.on_step_end(*run.steps[0])
    with pytest.raises(OSError):
        first.on_step_end(*run.steps[1])
    assert [x for x, _ in desk.history("step/best")] == [0, 1]
    assert [x for x, _ in desk.history(points.MARK)] == [0]
    broken.unlink()
    time.sleep(0.01)
    later = dataclasses.replace(run.steps[1][1], seconds=99.0)
    again = dataclasses.replace(run, steps=(run.steps[0], (run.steps[1][0], later)))
    tell(desk.tracker(), stamped(again, resumed=True))
    assert desk.duplicates() == {}
    assert desk.history("total/seconds") == [(0, 12.5), (1, 99.0)]


@pytest.mark.parametrize("known", [True, False])
def test_steps_that_never_arrived_are_sent_at_the_end(desk, tmp_path, known):
    run = make_run(tmp_path / "run", steps=4, tasks=5)
    tracker = desk.tracker()
    tracker.on_run_start(run.info)
    for record, totals in (run.steps[0], run.steps[2], run.steps[3]):
        tracker.on_step_end(record, totals)
    spent = tuple(totals for _, totals in run.steps) if known else ()
    summary = dataclasses.replace(run.summary, spent=spent)
    tracker.on_run_end(dataclasses.replace(run.end, summary=summary))
    assert [x for x, _ in desk.history("step/best")] == [0, 1, 2, 3]
    found = [x for x, _ in desk.history("total/calls")]
    assert found == ([0, 1, 2, 3] if known else [0])  # unknown is absent, not 0
    assert len(desk.history("candidate/score")) == len(run.summary.history)
    assert desk.duplicates() == {}


def test_ending_twice_changes_nothing(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=2, tasks=5, odd=[ODD])
    tell(desk.tracker(register=True), run)
    tell(desk.tracker(register=True), stamped(run, resumed=True))
    assert desk.duplicates() == {}
    assert len(desk.history("test/score")) == 1
    assert desk.run().info.status == "FINISHED"


def test_the_lost_note_is_found_again_by_the_folder(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=2, tasks=5)
    desk.tracker().on_run_start(run.info)
    (run.info.folder / "mlflow_run.json").unlink()
    tell(desk.tracker(), stamped(run, resumed=True))
    assert desk.run().info.status == "FINISHED"


def test_a_fresh_start_in_an_emptied_folder_is_a_new_run(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=1, tasks=5)
    tell(desk.tracker(), run)
    (run.info.folder / "mlflow_run.json").unlink()
    tell(desk.tracker(), run)
    assert len(desk.runs()) == 2


def test_a_run_deleted_in_the_ui_is_made_anew(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=1, tasks=5)
    tell(desk.tracker(), run)
    desk.client.delete_run(desk.run().info.run_id)
    tell(desk.tracker(), stamped(run, resumed=True))
    assert desk.run().info.status == "FINISHED"
    assert desk.history("step/best") == [(0, run.steps[0][0].best.score)]


def test_a_setting_changed_on_resume_is_recorded(desk, tmp_path):
    run = stamped(make_run(tmp_path / "run", steps=1, tasks=5), params={"trainer.concurrency": 8})
    tell(desk.tracker(), run)
    tell(desk.tracker(), stamped(run, params={"trainer.concurrency": 2}, resumed=True))
    assert desk.run().data.params["trainer.concurrency"] == "8"
    assert desk.run().data.tags["opro.changed.trainer.concurrency"] == "2"


@pytest.mark.parametrize("status", ["FAILED", "KILLED"])
def test_failures_are_stored_and_forgotten_when_continued(desk, tmp_path, status):
    """Case tracking-4."""
    run = make_run(tmp_path / "run", steps=2, tasks=5)
    error = "Traceback\n" + "line\n" * 5000 + "ValueError: boom"
    end = RunEnd(status=status, stop_reason="error", summary=None, error=error)
    tell(desk.tracker(), dataclasses.replace(run, steps=run.steps[:1]), end)
    assert desk.run().info.status == status
    assert desk.run().data.tags["opro.error"].startswith("Traceback\nline")
    assert desk.text("error.txt", tmp_path).decode() == error
    tell(desk.tracker(), stamped(run, resumed=True))
    assert desk.run().info.status == "FINISHED"
    assert "opro.error" not in desk.run().data.tags


def child(code, *args, **settings):
    """Run Python code in a process of its own, with the repository importable."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    text = textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", text, *map(str, args)], env=environment, check=True, **settings
    )


def test_runs_of_dead_processes_are_closed_by_a_later_start(desk, tmp_path):
    """Case tracking-4: an end without a word, then a later start; live runs are left alone."""
    child(
        """
        import os, sys
        from pathlib import Path
        from opro.trackers.mlflow_tracker import MLflowTracker
        from tests.trackers.fakes import make_run
        launch, experiment, folder = sys.argv[1:]
        tracker = MLflowTracker(launch_folder=Path(launch), experiment=experiment)
        tracker.on_run_start(make_run(Path(folder), steps=1, tasks=3).info)
        os._exit(0)
        """,
        desk.launch_folder, desk.experiment, tmp_path / "dead",
    )  # fmt: skip
    alive = make_run(tmp_path / "alive", steps=1, tasks=3)
    desk.tracker().on_run_start(dataclasses.replace(alive.info, name="alive"))
    assert {run.info.status for run in desk.runs()} == {"RUNNING"}
    desk.tracker().prepare()
    found = {run.info.run_name: run for run in desk.runs()}
    assert found["fake"].info.status == "KILLED"
    assert "ended without closing this run" in found["fake"].data.tags["opro.error"]
    assert found["alive"].info.status == "RUNNING"


def test_a_sweep_is_a_parent_with_its_jobs_and_outlives_a_failed_one(desk, tmp_path):
    """Case tracking-7: exactly one run for each job and one parent."""
    parent = desk.tracker()
    parent.prepare()
    tags = parent.open_sweep("my sweep", tmp_path / "sweep", {"opro.sweep": "my sweep"})
    (tmp_path / "sweep" / "report.md").write_text("# Sweep\n")
    bad = RunEnd(status="FAILED", stop_reason="error", summary=None, error="x")
    for job, end in enumerate((None, bad)):
        run = make_run(tmp_path / "sweep" / str(job), steps=1, tasks=5, seed=job)
        tell(desk.tracker(), stamped(run, tags=tags, name=f"job{job}"), end)
    parent.close_sweep("FINISHED")
    found = {run.info.run_name: run for run in desk.runs()}
    assert sorted(found) == ["job0", "job1", "my sweep"]
    parent_id = found["my sweep"].info.run_id
    assert found["job0"].data.tags["mlflow.parentRunId"] == parent_id
    assert found["job1"].data.tags["mlflow.parentRunId"] == parent_id
    assert found["job1"].info.status == "FAILED"
    assert found["my sweep"].info.status == "FINISHED"
    assert found["my sweep"].data.tags["mlflow.note.content"] == "# Sweep\n"
    again = desk.tracker().open_sweep("my sweep", tmp_path / "sweep", {})
    assert again == tags


def test_the_environment_gives_no_orders(desk, tmp_path, monkeypatch, caplog):
    """Case tracking-7: the variables are ignored, with a note."""
    stranger = desk.client.create_run("0")
    monkeypatch.setenv("MLFLOW_RUN_ID", stranger.info.run_id)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "elsewhere")
    tell(desk.tracker(register=True), make_run(tmp_path / "run", steps=1, tasks=5))
    assert desk.run().info.status == "FINISHED"
    untouched = desk.client.get_run(stranger.info.run_id)
    assert (untouched.data.metrics, untouched.data.params) == ({}, {})
    assert "MLFLOW_RUN_ID is set but not used" in caplog.text
    assert "MLFLOW_TRACKING_URI is set but not used" in caplog.text


def test_mlflows_own_state_and_the_current_folder_stay_clean(desk, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    tell(desk.tracker(register=True), make_run(tmp_path / "run", steps=1, tasks=5))
    import mlflow

    assert mlflow.active_run() is None
    assert list(here.iterdir()) == []


def test_the_winner_is_a_version_of_the_data_sets_prompt(desk, tmp_path):
    run = make_run(tmp_path / "run", steps=1, tasks=5)
    name = f"data {uuid.uuid4().hex[:6]}"
    dataset = dataclasses.replace(run.info.dataset, name=name)
    winner = dataclasses.replace(run.summary.winner, instruction=ODD)
    summary = dataclasses.replace(run.summary, winner=winner)
    odd = dataclasses.replace(run, end=dataclasses.replace(run.end, summary=summary))
    tell(desk.tracker(register=True), stamped(odd, dataset=dataset))
    other = make_run(tmp_path / "other", steps=1, tasks=5, seed=2)
    tell(desk.tracker(register=True), stamped(other, dataset=dataset, name="other"))
    prompt = names.prompt_name(name)
    one, two = (desk.client.get_prompt_version(prompt, v) for v in (1, 2))
    assert one.template == ODD
    assert one.tags["opro.md5"] == winner.md5
    assert one.tags["opro.test.score"] == f"{run.summary.comparisons[1].winner.mean:.4f}"
    assert two.template == other.summary.winner.instruction
    found = {r.info.run_name: r for r in desk.runs()}
    assert found["fake"].data.tags["opro.prompt"].startswith(f"{prompt} version 1")
    linked = json.loads(found["other"].data.tags["mlflow.linkedPrompts"])
    assert linked == [{"name": prompt, "version": "2"}]
    listed = desk.client.get_prompt(prompt).tags["_mlflow_experiment_ids"]
    assert listed == f",{desk.experiment_id},"


def test_no_password_is_written_down(tmp_path, monkeypatch):
    """Case tracking-9."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    run = make_run(tmp_path / "run", steps=1, tasks=5)
    tracker = MLflowTracker(uri="http://me:hunter2@127.0.0.1:9", launch_folder=tmp_path)
    shown = []
    background = BackgroundTracker(tracker, on_error=shown.append)
    tell(background, run)
    assert background.finish(60) == 4
    assert len(shown) == 1
    every = b"".join(f.read_bytes() for f in tmp_path.rglob("*") if f.is_file())
    assert "hunter2" not in every.decode() + shown[0] + tracker.where()


def test_a_deleted_experiment_is_refused_with_the_fix(desk):
    desk.client.delete_experiment(desk.experiment_id)
    with pytest.raises(ConfigError, match=f"tracker.experiment={desk.experiment}: deleted in"):
        desk.tracker().prepare()


def test_mlflow_tells_nobody(desk):
    import mlflow.telemetry.client

    assert mlflow.telemetry.client.get_telemetry_client() is None


def test_eight_jobs_on_a_fresh_store(tmp_path):
    """Case tracking-5, without even a parent that prepares the store."""
    child(
        """
        import os, sys
        from pathlib import Path
        from opro.trackers.mlflow_tracker import MLflowTracker
        from tests.suites.tracker_suite import tell
        from tests.trackers.fakes import make_run
        import mlflow.store.tracking.sqlalchemy_store  # once, for all
        import mlflow.store.model_registry.sqlalchemy_store
        base = Path(sys.argv[1])
        jobs = []
        for job in range(8):
            pid = os.fork()
            if pid == 0:
                tracker = MLflowTracker(launch_folder=base)
                tell(tracker, make_run(base / str(job), steps=2, tasks=50, seed=job))
                os._exit(0)
            jobs.append(pid)
        sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in jobs))
        """,
        tmp_path,
    )
    MLflowTracker(launch_folder=tmp_path).prepare()
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlruns/mlflow.db")
    found = client.search_runs([client.get_experiment_by_name("opro").experiment_id])
    assert [run.info.status for run in found] == ["FINISHED"] * 8
    for run in found:
        history = client.get_metric_history(run.info.run_id, "step/best")
        assert sorted(point.step for point in history) == [0, 1]
        scored = client.get_metric_history(run.info.run_id, "candidate/score")
        for task in (3, 49):
            points_of = client.get_metric_history(run.info.run_id, f"task/train/{task:03}")
            assert len(points_of) == len(scored) == 12
