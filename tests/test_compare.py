"""The comparison of a sweep's jobs: the best one, the tests between winners, table, plots, page."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from opro import compare
from opro.comparison.load import best_of, load
from opro.comparison.pairs import compare_winners
from opro.sweeps.file import JobNote, SweepFile, save_job, save_sweep
from opro.text import md5_of

HOSTILE = "<script>alert(1)</script> | **x** ${oc.env:HOME} {0} \x1b[31m \u202e $a_b$"


def write_job(
    folder: Path,
    n: int,
    right: int,
    *,
    winner: str,
    val: float | None = 0.5,
    usd: float | None = 1.0,
) -> None:
    """Write a finished job whose winner is right on the first `right` of 20 test tasks."""
    name = f"n_candidates={n}"
    overrides = [f"evolver.params.n_candidates={n}", "seed=0"]
    save_job(folder / name, JobNote(name=name, overrides=overrides, status="ok", value=val))
    scores = {f"t{i}": float(i < right) for i in range(20)}
    md5 = md5_of(winner)
    result: dict[str, Any] = {
        "dataset": {"name": "sums"},
        "winner": {"instruction": winner, "md5": md5, "step": 0, "train_score": 0.5},
        "finalists": [] if val is None else [{"md5": md5, "validation": val}],
        "scores": {
            "train": {"winner": {"mean": n / 100, "n": 20, "scores": scores}},
            "test": {"winner": {"mean": right / 20, "n": 20, "scores": scores}},
        },
        "curve": [
            {"best": 0.1, "calls": 20, "tokens": 200, "usd": usd},
            {"best": 0.4, "calls": 20 + 10 * n, "tokens": 400, "usd": usd and 2 * usd},
        ],
        "totals": {
            "used": {"calls": 20 + 10 * n, "tokens": 400, "usd": usd and 2 * usd},
            "requests": 30,
            "cache_hits": 10 * n - 10,
            "seconds": 12.3,
        },
    }
    (folder / name / "result.json").write_text(json.dumps(result))


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mlruns/sweeps/S"
    save_sweep(folder, SweepFile(name="S", swept=["evolver.params.n_candidates"]))
    return folder


def test_the_best_is_chosen_without_the_test_split(sweep: Path) -> None:
    write_job(sweep, 4, 1, winner="a", val=0.9)
    write_job(sweep, 16, 20, winner="b", val=0.5)
    best = best_of(load(sweep))
    assert best is not None and (best[0].name, best[1]) == ("n_candidates=4", "val")
    write_job(sweep, 8, 5, winner="c", val=None)  # one without validation: training decides
    best = best_of(load(sweep))
    assert best is not None and (best[0].name, best[1]) == ("n_candidates=16", "train")
    assert [job.name for job in load(sweep).jobs] == [f"n_candidates={n}" for n in (4, 8, 16)]


def test_winners_are_tested_in_pairs_and_corrected(sweep: Path) -> None:
    write_job(sweep, 4, 0, winner="a")
    write_job(sweep, 8, 8, winner="b")
    write_job(sweep, 16, 20, winner="c")
    write_job(sweep, 32, 20, winner="c")
    rows = {(p.first.name[13:], p.second.name[13:]): p for p in compare_winners(load(sweep))}
    assert set(rows) == {("4", "8"), ("4", "16"), ("4", "32"), ("8", "16"), ("8", "32")}
    assert rows["4", "16"].paired.p_value == pytest.approx(2 / 2**20)
    assert rows["4", "16"].p_holm == pytest.approx(5 * 2 / 2**20)
    assert rows["4", "8"].paired.p_value == pytest.approx(2 / 2**8)
    assert rows["4", "8"].p_holm == pytest.approx(2 / 2**8)  # the largest p: times 1
    assert rows["4", "8"].paired.difference == pytest.approx(0.4)


def test_the_page_is_one_file_and_shows_model_text_literally(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(sweep, 4, 1, winner=HOSTILE)
    write_job(sweep, 16, 19, winner="b", val=0.6, usd=None)
    failed = JobNote(name="z", overrides=["a=b"], status="failed", error="boom\n<b>")
    save_job(sweep / "z", failed)
    assert compare.main(["S"]) == 0
    text = capsys.readouterr().out
    assert "2 of 3 jobs have a result." in text and "failed: boom ⏎ <b>" in text
    assert "better than 1 and worse than 0 of 1" in text and "\x1b" not in text

    page = (sweep / "comparison.html").read_text("utf-8")
    assert "&lt;script&gt;alert(1)" in page and "<script" not in page and "<b>" not in page
    assert "\x1b" not in page and "\u202e" not in page
    assert page.count("data:image/png;base64,") == 3
    assert "http://" not in page and "https://" not in page and "default-src 'none'" in page
    report = (sweep / "report.md").read_text("utf-8")
    assert r"\<script\>" in report and "\x1b" not in report
    for name in ("best_by_calls.png", "best_by_cost.png", "parallel.png"):
        assert (sweep / name).read_bytes().startswith(b"\x89PNG")
    with open(sweep / "jobs.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["winner"] == HOSTILE and rows[0]["test_mean"] == "0.05" and rows[1]["usd"] == ""
    assert rows[1]["evolver.params.n_candidates"] == "16" and rows[2]["status"] == "failed"


def test_a_name_that_is_no_sweep_is_one_line(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare.main(["nope"]) == 2
    assert "there is no sweep here" in capsys.readouterr().err
