"""The committed studies: what they set, what they would cost, and that they run."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from opro.data.bbh import Bbh
from opro.data.gsm8k import Gsm8k
from opro.errors import ConfigError
from opro.evolvers.params import OPROParams
from opro.setup.assembly import Assembly, assemble
from opro.setup.planning import make_plan
from tests.conftest import ROOT, Search
from tests.test_search import optimizer, script

STUDIES = ROOT / "conf/experiment"


def assembly(search: Search, *overrides: str) -> Assembly:
    return assemble(search.config(*overrides), search.folder)


def counts(search: Search, *overrides: str) -> tuple[int, int, dict[str, int]]:
    plan = make_plan(assembly(search, "plan=true", "tracker=none", *overrides))
    rows = {row.purpose: row.count for row in plan.rows if row.role == "agent"}
    return plan.count("optimizer"), plan.count("agent"), rows


@pytest.mark.parametrize("files", [False, True])
def test_the_papers_budget(search: Search, shared: Path, files: bool) -> None:
    path = [f"data.path={shared / 'data/gsm_data'}"] if files else []
    optimizer_calls, scorer_calls, rows = counts(search, "+experiment=paper_gsm8k", *path)
    assert (optimizer_calls, scorer_calls) == (1_600, 417_861)
    assert rows == {
        "score the initial instructions": 261,
        "score new instructions": 1_600 * 261,
    }


@pytest.mark.parametrize(("val", "finalists"), [(50, 150), (20, 60)])
def test_the_ports_budget(search: Search, val: int, finalists: int) -> None:
    optimizer_calls, scorer_calls, rows = counts(search, "+experiment=port", f"data.val={val}")
    assert (optimizer_calls, scorer_calls) == (12, 50 + 600 + 100 + finalists)
    assert rows == {
        "score the initial instructions": 50,
        "score new instructions": 600,
        "re-score the best": 100,
        "validate the top_k": finalists,
    }


def test_both_budgets_side_by_side(search: Search) -> None:
    command = [sys.executable, "-m", "opro.run", "-m", "+experiment=paper_gsm8k,port", "plan=true"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=search.folder, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = {" ".join(line.split()[:-2]): line.split()[-2:] for line in done.stdout.splitlines()}
    assert lines["optimizer calls"] == ["1,600", "12"]
    assert lines["scorer calls"] == ["417,861", "900"]
    assert lines["re-score the best"] == ["0", "100"]
    assert lines["validate the top_k"] == ["0", "150"]
    assert done.stdout.count("data.path=null, so counted by the published sizes") == 2
    assert list(search.folder.iterdir()) == []


def test_without_files_nothing_but_a_plan_is_possible(search: Search) -> None:
    with pytest.raises(ConfigError, match="data.path=null: give the folder with gsm_train.tsv"):
        search.run("+experiment=paper_gsm8k")
    with pytest.raises(ConfigError, match="data.path=null: give the folder with MultiArith.json"):
        assembly(search, "data=multiarith", "plan=true")  # its size isn't stated


@pytest.mark.parametrize("tasks", ["all", "snarks", ["navigate", "penguins_in_a_table"]])
def test_published_sizes_are_those_of_the_files(shared: Path, tasks: str | list[str]) -> None:
    for path, made in (
        ("gsm_data", lambda path: Gsm8k(path=path, train=0.035, val=50, draw="upstream")),
        ("BIG-Bench-Hard-data", lambda path: Bbh(path=path, tasks=tasks, train=20, val=0.2)),
    ):
        outline, loaded = made(None).outline(), made(str(shared / "data" / path)).load()
        assert outline is not None
        assert made(str(shared / "data" / path)).outline() is None
        assert outline.name == loaded.name
        for split in ("train", "val", "test"):
            assert len(outline.split(split)) == len(loaded.split(split))


@pytest.mark.parametrize(
    ("data", "judge"),
    [
        ("gsm8k", "number.Number"),
        ("multiarith", "number.Number"),
        ("mmlu", "choice.Choice"),
        ("aqua", "choice.Choice"),
        ("bbh", "bbh.Bbh"),
        ("reasoning_gym", "reasoning_gym.ReasoningGym"),
        ("demo", "label.Label"),
        ("jsonl", "exact.Exact"),
    ],
)
def test_a_data_set_brings_its_judge_and_the_command_line_wins(
    search: Search, data: str, judge: str
) -> None:
    brought = search.config(f"data={data}")
    assert brought["judge"]["_target_"] == f"opro.judges.{judge}"
    assert "defaults" not in brought["data"]
    chosen = search.config(f"data={data}", "judge=upstream_bool")
    assert chosen["judge"]["_target_"] == "opro.judges.upstream_bool.UpstreamBool"
    first = search.config("judge=upstream_bool", f"data={data}")  # in any order
    assert first["judge"] == chosen["judge"]


def test_a_study_wins_over_its_data_sets_judge(search: Search) -> None:
    assert search.config("+experiment=paper_gsm8k")["judge"]["_target_"].endswith("UpstreamNumber")
    assert search.config("+experiment=paper_bbh")["judge"]["_target_"].endswith("UpstreamBbh")
    changed = search.config("+experiment=paper_gsm8k", "judge=number")
    assert changed["judge"]["_target_"].endswith("number.Number")


# -- what they set ---------------------------------------------------------------------------

SOURCES = ("[main]", "[loop]", "[eval]", "[call]", "[page]", "[design]", "ours", "paper", "README")


@pytest.mark.parametrize("name", ["paper_gsm8k", "paper_bbh", "port"])
def test_every_line_says_where_its_value_comes_from(name: str) -> None:
    for line in (STUDIES / f"{name}.yaml").read_text("utf-8").splitlines():
        key, _, comment = line.partition("#")
        states_a_value = key.strip() and not key.rstrip().endswith(":") and "_self_" not in key
        if states_a_value and key.strip() != "- INS":
            assert any(source in comment for source in SOURCES), line


@pytest.mark.parametrize(
    ("name", "left"),
    [
        # Without effect there: a draw of its own, no finalists, no schedule, gold answers.
        ("paper_gsm8k", {"question_field", "seed", "success_score", "task_description",
                         "temperature_end", "top_k"}),
        # Without effect there: the authors' draw, no schedule.
        ("port", {"exemplar_criterion", "task_description", "temperature_end"}),
    ],
)  # fmt: skip
def test_a_study_states_every_setting_of_the_search(name: str, left: set[str]) -> None:
    stated = yaml.safe_load((STUDIES / f"{name}.yaml").read_text("utf-8"))["evolver"]["params"]
    assert {one.name for one in dataclasses.fields(OPROParams)} - set(stated) == left


def test_the_papers_settings(search: Search) -> None:
    config = search.config("+experiment=paper_gsm8k")
    params = config["evolver"]["params"]
    assert params["n_candidates"] == 8 and params["score_threshold"] == 0.3
    assert (params["select"], params["exemplar_answer"]) == ("train", "gold")
    assert (params["exemplar_sampler"], params["max_instruction_chars"]) == ("upstream", 500)
    trainer, agent = config["trainer"], config["agent"]
    assert (trainer["epochs"], trainer["rescore"], trainer["compare"]) == (200, False, [])
    assert (agent["instruction_position"], agent["max_tokens"]) == ("Q_begin", 1024)
    assert config["judge"] == {
        "_target_": "opro.judges.upstream_number.UpstreamNumber", "num_decimals": 0, "boxed": False,
    }  # fmt: skip


def test_the_papers_bbh_search_on_a_tasks_own_split(search: Search, shared: Path) -> None:
    path = f"data.path={shared / 'data/BIG-Bench-Hard-data'}"
    found = assembly(search, "+experiment=paper_bbh", path, "data.tasks=snarks", "tracker=none")
    sizes = [len(found.dataset.split(split)) for split in ("train", "val", "test")]
    assert sizes == [35, 0, 143]  # int(0.2 * 178)
    assert counts(search, "+experiment=paper_bbh", path)[:2] == (1_600, 50 * 1_601)


def test_a_shrunk_port_run_validates_its_best_three(search: Search, shared: Path) -> None:
    rules = [optimizer(*(f"<INS>Text {i}</INS>" for i in range(12))), {"reply": "The answer is 5."}]
    search.run(
        "+experiment=port",
        f"data.path={shared / 'data/gsm_data'}",
        *script(search, *rules),
        "data.train=6",
        "data.val=4",
    )
    found = search.result()
    assert found["steps"] == 3 and len(found["finalists"]) == 3
    assert found["select"] == "validation" and found["stop_reason"] == "epochs"
    runs = sum("run" in entry["at"] for entry in search.entries())
    assert runs == 6 + 12 * 6 + 2 * 6 + 3 * 4


def test_the_smoke_study_shows_each_part_at_work(search: Search) -> None:
    search.run("+experiment=smoke")
    found = search.result()
    assert found["winner"]["instruction"] == "Look at the letters, then name the language."
    assert found["winner"]["train_score"] > found["initial"]["train_score"] > 0
    assert found["scores"]["test"]["winner"]["mean"] > found["scores"]["test"]["initial"]["mean"]
    statuses = [[one["status"] for one in step["candidates"]] for step in search.state()["steps"]]
    assert statuses == [["scored", "scored", "duplicate"], ["scored", "duplicate", "scored"]]
