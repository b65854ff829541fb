"""The reports: what they say, that they are safe to show, and that they are deterministic."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from opro.plain import cell, fence, plain, visible
from opro.records import Comparison, Scored, Summary
from opro.reports.curve import draw_curve
from opro.reports.run import render_run, render_step
from opro.types import Usage
from tests.trackers.fakes import HOSTILE, make_run, md5

GFM = MarkdownIt("commonmark").enable("table")


def tokens(text):
    return [t for block in GFM.parse(text) for t in (block, *(block.children or []))]


def rows(text):
    """Return the cells' text of every table row."""
    found, row = [], None
    for token in GFM.parse(text):
        if token.type == "tr_open":
            row = []
            found.append(row)
        elif token.type == "inline" and row is not None:
            row.append("".join(child.content for child in token.children))
        elif token.type == "tr_close":
            row = None
    return found


def test_the_first_two_sentences_tell_what_happened(tmp_path):
    run = make_run(tmp_path)
    text = render_run(run.summary, run.info).split("\n\n")[1]
    assert text.count(". ") == 1
    assert text.startswith("In 4 steps the search scored 21 new instructions on 20 training tasks")
    assert "stopped because of: epochs." in text
    test = run.summary.comparisons[1]
    assert f"on 30 test tasks it is {test.winner.mean:.3f} against {test.initial.mean:.3f}" in text


def test_without_test_tasks_the_report_says_so(tmp_path):
    run = make_run(tmp_path, held_out=0)
    text = render_run(run.summary, run.info)
    assert "neither was compared on test tasks" in text
    assert ["test", "–", "not measured", "not measured", "–", "–", "–"] in rows(text)


def test_the_paired_test_stands_beside_the_scores(tmp_path):
    run = make_run(tmp_path)
    row = next(r for r in rows(render_run(run.summary, run.info)) if r[0] == "test")
    test = run.summary.comparisons[1]
    gains = [w.score - i.score for i, w in zip(test.initial.results, test.winner.results, strict=1)]
    assert row[1] == "30"
    assert row[4].startswith(f"{sum(gains) / 30:+.3f} (")
    assert row[5] == f"{gains.count(1.0)} / {gains.count(-1.0)}"


def test_instructions_are_ranked_by_score_then_age(tmp_path):
    run = make_run(tmp_path)
    ranked = [r for r in rows(render_run(run.summary, run.info)) if len(r) == 6 and len(r[5]) == 8]
    scores = [float(r[1]) for r in ranked]
    assert scores == sorted(scores, reverse=True)
    assert len(ranked) == len(run.summary.history)
    ties = [r for r in ranked if r[1] == "0.250"]
    assert [r[2] for r in ties] == sorted((r[2] for r in ties), key=lambda s: s != "initial")


def test_what_was_skipped_is_grouped_by_reason(tmp_path):
    run = make_run(tmp_path)
    found = rows(render_run(run.summary, run.info))
    assert ["skipped", "no tags", "4", "0/6, 1/6, 2/6, 3/6"] in found
    assert ["failed", "timeout: no answer in 60 s", "4", "0/7, 1/7, 2/7, 3/7"] in found


def test_unknown_cost_is_not_zero(tmp_path):
    run = make_run(tmp_path)
    found = rows(render_run(run.summary, run.info))
    assert ["agent", "500", "30,000", "4,500", "unknown"] in found
    totals = dataclasses.replace(run.summary.totals, by_role={"agent": Usage(calls=3)})
    summary = dataclasses.replace(run.summary, totals=totals)
    assert ["agent", "3", "unknown", "unknown", "unknown"] in rows(render_run(summary, run.info))


def test_a_constant_answer_is_named_when_labels_are_few(tmp_path):
    text = render_run((run := make_run(tmp_path)).summary, run.info)
    assert "Always giving the most common answer would score 0.600 on train (positive)" in text
    many = dataclasses.replace(
        run.info.dataset,
        **{
            s: tuple(dataclasses.replace(t, answer=t.id) for t in run.info.dataset.split(s))
            for s in ("train", "val", "test")
        },
    )
    other = dataclasses.replace(run.info, dataset=many)
    assert "most common answer" not in render_run(run.summary, other)


def test_many_unreadable_answers_are_warned_of(tmp_path):
    run = make_run(tmp_path)
    assert "**Warning:**" not in render_run(run.summary, run.info)
    kinds = {"right": 10, "unparsed": 30, "no_response": 10, "error": 500}
    totals = dataclasses.replace(run.summary.totals, kinds=kinds)
    text = render_run(dataclasses.replace(run.summary, totals=totals), run.info)
    assert "80% of the runs gave no readable answer (10 no response, 30 unparsed)" in text


def test_the_initial_instruction_may_win(tmp_path):
    run = make_run(tmp_path, steps=1)
    first = run.summary.initial
    same = tuple(
        Comparison(split=c.split, initial=c.initial, winner=c.initial)
        for c in run.summary.comparisons
    )
    summary = dataclasses.replace(run.summary, winner=first, comparisons=same)
    text = render_run(summary, run.info)
    assert "The initial instruction (0.250) is still the chosen one." in text
    assert "the same one" in text


def test_a_run_without_a_finished_step_has_a_report(tmp_path):
    run = make_run(tmp_path)
    totals = dataclasses.replace(run.summary.totals, by_role={}, kinds={})
    empty = dataclasses.replace(
        run.summary,
        winner=run.summary.initial,
        steps=(),
        finalists=(),
        comparisons=(),
        history=run.summary.history[:1],
        stop_reason="budget: calls",
        totals=totals,
    )
    text = render_run(empty, run.info)
    assert "In 0 steps the search scored 0 new instructions" in text
    assert "No step was finished." in text
    assert "No model was asked." in text
    draw_curve(empty, tmp_path / "curve.png")


def test_same_journal_same_bytes(tmp_path):
    """What differs between a run and its replay (time, place, requests) isn't in the report."""
    run = make_run(tmp_path / "one")
    totals = dataclasses.replace(
        run.summary.totals, seconds=9e9, requests=0, replayed=532, cache_hits=7, faults={}
    )
    summary = dataclasses.replace(run.summary, totals=totals)
    info = dataclasses.replace(run.info, folder=tmp_path / "two", resumed=True, name="again")
    assert render_run(summary, info) == render_run(run.summary, run.info)
    assert str(tmp_path) not in render_run(run.summary, run.info)
    draw_curve(run.summary, tmp_path / "a.png")
    time.sleep(1.1)
    draw_curve(summary, tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("render", ["run", "step"])
def test_hostile_instructions_stay_text(tmp_path, render):
    run = make_run(tmp_path, odd=[HOSTILE])
    hostile = next(s for s in run.summary.history if s.instruction == HOSTILE)
    summary = dataclasses.replace(run.summary, winner=hostile)
    text = render_run(summary, run.info) if render == "run" else render_step(run.steps[0][0])
    text.encode("utf-8")
    assert not set(text) & set("\x00\x1b\r\u202e")
    kinds = {t.type for t in tokens(text)}
    assert not kinds & {"html_inline", "html_block", "link_open"}
    assert [t.attrs["src"] for t in tokens(text) if t.type == "image"] in ([], ["curve.png"])
    fences = [t.content for t in GFM.parse(text) if t.type == "fence"]
    assert visible(HOSTILE, keep="\n\t") + "\n" in fences
    widths = {len(row) for row in rows(text)}
    assert widths <= {3, 4, 5, 6, 7}
    shown = next(c for row in rows(text) for c in row if c.startswith("a | b"))
    assert shown.startswith("a | b ⏎ | c | ⏎ ``` ⏎ </td><script>alert(1)</script>")


def test_a_megabyte_is_clipped_with_a_pointer(tmp_path):
    huge = "word `x` | " * 100_000
    run = make_run(tmp_path, odd=[huge])
    began = time.perf_counter()
    text = render_step(run.steps[0][0])
    assert time.perf_counter() - began < 1
    assert len(text) < 40_000
    assert "Cut: 20,000 of 1,100,000 characters are shown; all are in state/opro.json." in text
    assert md5(huge) in text


def test_long_histories_are_cut_with_a_count(tmp_path):
    run = make_run(tmp_path, steps=70, tasks=5)
    text = render_run(run.summary, run.info)
    more = len(run.summary.history) - 50
    assert f"{more:,} more are in state/opro.json." in text
    assert "without a new best, or older, not shown." in text


def test_a_step_report_tells_what_was_shown(tmp_path):
    text = render_step(make_run(tmp_path).steps[2][0])
    assert "3 training problems (train/000, train/001, train/002), asked at temperature 1." in text
    assert "**Note:** the two worst instructions were left out to fit the context" in text
    assert "scored once more (its own score stays)" in text
    assert [r[2] for r in rows(text)][6:9] == [
        "duplicate: generated in step 2",
        "skipped: no tags",
        "failed: timeout: no answer in 60 s",
    ]


def test_unscored_is_never_a_number(tmp_path):
    run = make_run(tmp_path)
    record = run.steps[0][0]
    evaluation = dataclasses.replace(record.candidates[0].evaluation, mean=None, failed=("t|1",))
    broken = dataclasses.replace(
        record.candidates[0], status="unscored", reason="1 run failed twice", evaluation=evaluation
    )
    step = dataclasses.replace(record, candidates=(broken, *record.candidates[1:]))
    assert ["0", "unscored", "unscored: 1 run failed twice"] in [
        r[:3] for r in rows(render_step(step))
    ]
    summary = dataclasses.replace(run.summary, steps=(step,))
    assert "Tasks whose run failed twice, which left an instruction unscored: t\\|1." in render_run(
        summary, run.info
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  two\n\n lines \t x ", "two ⏎ ⏎ lines x"),
        ("\x1b[2J\x07bell", "\\x1b[2J\\x07bell"),
        ("a\u202eb\u200bc\ud800", "a\\u202eb\\u200bc\\ud800"),
        ("é 日本語 🎉 ß", "é 日本語 🎉 ß"),
        ("x" * 200, "x" * 79 + "…"),
        ("", ""),
    ],
)
def test_plain(text, expected):
    assert plain(text) == expected


def test_cells_and_fences_of_nothing():
    assert cell("") == "(empty)"
    assert fence("") == "```text\n\n```"


def test_bare_addresses_do_not_become_links():
    linkify = MarkdownIt("commonmark").enable("table")
    text = cell("see https://evil.example/x, www.evil.example and a@evil.example")
    assert "https://" not in text
    assert linkify.renderInline(text).count("<a") == 0


def test_a_summary_needs_no_history_beyond_the_initial(tmp_path):
    first = Scored(instruction="x", md5=md5("x"), step=-1, score=None)
    run = make_run(tmp_path)
    summary = Summary(
        initial=first,
        winner=first,
        select="train",
        finalists=(),
        comparisons=(),
        history=(first,),
        steps=(),
        stop_reason="budget: calls",
        totals=run.summary.totals,
    )
    assert "unscored" in render_run(summary, run.info)


def test_reports_name_no_machine(tmp_path):
    run = make_run(Path("/home/somebody/secret"))
    assert "/home/" not in render_run(run.summary, run.info)
