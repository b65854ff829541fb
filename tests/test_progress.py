"""Live progress: what it writes, how often, and that it never gets in the way."""

from __future__ import annotations

import dataclasses
import io
import re
import threading
import time

import pytest

from opro.progress import QUIET_SECONDS, Progress, duration, summary_lines
from opro.types import Usage
from tests.trackers.fakes import HOSTILE, make_run


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path, odd=[HOSTILE])


def lines(stream):
    return stream.getvalue().splitlines()


def test_without_a_terminal_each_step_is_one_line(run):
    stream = io.StringIO()
    progress = Progress(stream=stream)
    progress.start(run.info, 600, steps=4)
    for record, totals in run.steps:
        progress.step_done(record, totals)
    progress.stop()
    first, *steps = lines(stream)
    assert first.startswith("fake starts: reviews (20 train, 10 val, 30 test tasks); at most 600 ")
    assert len(steps) == 4
    assert steps[0].startswith("step 0 (1 of 4): best 0.500 (new), initial 0.250 · 6 scored, mean ")
    assert "1 skipped · 1 failed · 10,860 tokens · 12 s" in steps[0]
    assert steps[3].startswith("step 3 (4 of 4): best 0.950 (new) · 5 scored")


def test_within_a_step_a_line_comes_every_half_minute_at_most(run):
    clock, stream = Clock(), io.StringIO()
    progress = Progress(stream=stream, clock=clock)
    progress.start(run.info, 1000)
    for _ in range(300):
        clock.now += 0.5  # so 60 calls in half a minute
        progress.call_done("agent")
    assert QUIET_SECONDS == 30
    assert lines(stream)[1:] == [
        "step 0 · 60/1,000 calls",
        "step 0 · 120/1,000 calls · 7 min left",
        "step 0 · 180/1,000 calls · 7 min left",
        "step 0 · 240/1,000 calls · 6 min left",
        "step 0 · 300/1,000 calls · 6 min left",
    ]


def test_a_quiet_step_is_not_interrupted(run):
    clock, stream = Clock(), io.StringIO()
    progress = Progress(stream=stream, clock=clock)
    progress.start(run.info, 0)
    for _ in range(1000):
        progress.call_done("agent")
    assert len(lines(stream)) == 1


def test_calls_from_many_threads_are_all_counted_and_cheap(run):
    clock, stream = Clock(), io.StringIO()
    progress = Progress(stream=stream, clock=clock)
    progress.start(run.info, 0)

    def work():
        for _ in range(5000):
            progress.call_done("agent")

    threads = [threading.Thread(target=work) for _ in range(8)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.perf_counter() - began < 4  # 40,000 calls; 2,000 a second would be 20 s
    clock.now += QUIET_SECONDS
    progress.call_done("agent")
    assert lines(stream)[-1] == "step 0 · 40,001 calls"


def test_a_terminal_gets_a_line_that_is_redrawn_and_steps_that_stay(run):
    stream = Terminal()
    progress = Progress(stream=stream)
    progress.start(run.info, 600, steps=4)
    progress.call_done("agent")
    progress.step_done(*run.steps[0])
    time.sleep(0.4)
    progress.stop()
    progress.stop()
    progress.note("after the end")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "1/600 calls" in text
    assert "step 0 (1 of 4): best 0.500 (new)" in text
    assert text.endswith("after the end\n")


def test_the_terminal_is_drawn_at_most_four_times_a_second(run):
    stream = Terminal()
    progress = Progress(stream=stream)
    progress.start(run.info, 600)
    before = stream.getvalue().count("calls")
    end = time.perf_counter() + 1.0
    while time.perf_counter() < end:
        progress.call_done("agent")
        time.sleep(0.001)
    drawn = stream.getvalue().count("calls") - before
    progress.stop()
    assert 1 <= drawn <= 6


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_hostile_notes_are_neutralised(run, kind):
    stream = kind()
    progress = Progress(stream=stream)
    progress.start(run.info, 0)
    before = len(stream.getvalue())
    progress.note(f"server said [bold]{HOSTILE}")
    progress.stop()
    written = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue()[before:])
    assert "[bold]a | b ⏎ | c |" in written
    assert "\\x1b[31mred\\x00 \\u202eevil \\ud800" in written
    assert "\x1b" not in written
    assert "\x00" not in written
    written.encode("utf-8")


def test_a_closed_stream_does_not_stop_the_run(run):
    stream = io.StringIO()
    progress = Progress(stream=stream)
    progress.start(run.info, 10)
    stream.close()
    progress.note("x")
    progress.step_done(*run.steps[0])
    progress.stop()


def test_jobs_that_share_a_terminal_are_told_apart(run):
    stream = Terminal()
    progress = Progress(stream=stream, live=False, label="3")
    progress.start(run.info, 10)
    progress.step_done(*run.steps[0])
    assert all(line.startswith("[3] ") for line in lines(stream))


def test_unknown_cost_and_tokens_are_not_shown_as_zero(run):
    stream = io.StringIO()
    progress = Progress(stream=stream)
    progress.start(run.info, 0)
    record, totals = run.steps[0]
    unknown = dataclasses.replace(totals, by_role={"agent": Usage(calls=5)})
    progress.step_done(record, unknown)
    known = dataclasses.replace(
        totals, by_role={"agent": Usage(calls=5, prompt_tokens=9, completion_tokens=1, usd=0.25)}
    )
    progress.step_done(record, known)
    _, first, second = lines(stream)
    assert "tokens" not in first
    assert "$" not in first
    assert "10 tokens · $0.2500" in second


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89.4, "89 s"), (90, "2 min"), (3599, "60 min"), (7500, "2 h 05 min")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_the_last_lines_name_the_winner_and_where_everything_is(run):
    command = "mlflow ui --backend-store-uri 'sqlite:////a b/mlflow.db'"
    shown = summary_lines(run.summary, run.info, command)
    text = "\n".join(shown)
    assert all("\n" not in line for line in shown)
    assert shown[0].startswith("Stopped after 4 steps: epochs (532 answers, 35,700 tokens, cost ")
    assert run.summary.winner.instruction in shown[1]
    assert "train: 0.950 (0.764 to 0.991) on 20 tasks; initial 0.250" in text
    assert "val: 0.600 on 10 tasks; initial not measured" in text
    assert "test: 0.533 (0.361 to 0.698) on 30 tasks" in text
    assert str(run.info.folder / "ADAPTER.md") in text
    assert shown[-1].endswith(command)
    assert summary_lines(run.summary, run.info, "")[-1].startswith("Report:")


def test_a_hostile_winner_is_one_harmless_line(run):
    winner = dataclasses.replace(run.summary.winner, instruction=HOSTILE * 100)
    shown = summary_lines(dataclasses.replace(run.summary, winner=winner), run.info, "")
    assert len(shown[1]) < 300
    assert not set("".join(shown)) & set("\x1b\x00\u202e\ud800")


def test_the_initial_instruction_may_stay(run):
    first = run.summary.initial
    same = tuple(dataclasses.replace(c, winner=c.initial) for c in run.summary.comparisons)
    summary = dataclasses.replace(run.summary, winner=first, comparisons=same)
    text = "\n".join(summary_lines(summary, run.info, ""))
    assert "train: 0.250 (0.112 to 0.469) on 20 tasks, still the initial instruction" in text
    assert "difference" not in text
