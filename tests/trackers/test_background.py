"""A slow, broken or hanging tracker costs the search nothing, and each failure is counted."""

from __future__ import annotations

import threading
import time

import pytest

from opro.trackers.background import BackgroundTracker
from opro.trackers.base import Tracker
from tests.trackers.fakes import make_run


class Recorder(Tracker):
    """Notes what it is told, after `before` has been called."""

    def __init__(self, before=lambda name: None):
        self.calls, self.threads, self.before = [], set(), before

    def _note(self, name, value=None):
        self.before(name)
        self.calls.append((name, value))
        self.threads.add(threading.current_thread().name)

    def prepare(self):
        self._note("prepare")

    def on_run_start(self, info):
        self._note("start", info.name)

    def on_step_end(self, record, totals):
        self._note("step", record.step)

    def on_run_end(self, end):
        self._note("end", end.status)

    def where(self):
        return "there"


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path, steps=4, tasks=5)


def tell(tracker, run):
    tracker.prepare()
    tracker.on_run_start(run.info)
    for record, totals in run.steps:
        tracker.on_step_end(record, totals)
    tracker.on_run_end(run.end)


WHOLE = [
    ("prepare", None),
    ("start", "fake"),
    *(("step", i) for i in range(4)),
    ("end", "FINISHED"),
]


def test_calls_arrive_in_order_in_one_thread(run):
    inner = Recorder()
    tracker = BackgroundTracker(inner)
    tell(tracker, run)
    assert tracker.where() == "there"
    assert tracker.finish(10) == 0
    assert inner.calls == WHOLE
    assert inner.threads == {"tracker"}


def test_a_slow_tracker_holds_nobody_up_and_loses_nothing(run):
    inner = Recorder(lambda name: time.sleep(0.05))
    tracker = BackgroundTracker(inner)
    began = time.perf_counter()
    tell(tracker, run)
    assert time.perf_counter() - began < 0.05
    assert tracker.finish(10) == 0
    assert inner.calls == WHOLE


def test_failures_are_counted_and_the_first_is_shown(run):
    def fail(name):
        if name == "step":
            raise OSError("no\nroute")

    shown = []
    inner = Recorder(fail)
    tracker = BackgroundTracker(inner, on_error=shown.append)
    tell(tracker, run)
    assert tracker.finish(10) == 4
    assert shown == ["tracking failed in on_step_end (the run goes on): OSError: no route"]
    assert [name for name, _ in inner.calls] == ["prepare", "start", "end"]


def test_a_hanging_tracker_is_given_up(run):
    free = threading.Event()
    shown = []
    tracker = BackgroundTracker(Recorder(lambda name: free.wait(30)), on_error=shown.append)
    tell(tracker, run)
    began = time.perf_counter()
    assert tracker.finish(0.2) == 7
    assert time.perf_counter() - began < 2
    assert "7 tracking calls not finished after 0.2 s" in shown[0]
    free.set()


def test_steps_beyond_the_limit_are_dropped_but_never_the_end(run):
    free = threading.Event()
    inner = Recorder(lambda name: free.wait(30))
    tracker = BackgroundTracker(inner, limit=2)
    tell(tracker, run)
    free.set()
    failed = tracker.finish(10)
    assert failed >= 1
    assert len(inner.calls) + failed == 7
    assert inner.calls[-1] == ("end", "FINISHED")


def test_closing_without_a_call_starts_no_thread():
    before = threading.active_count()
    tracker = BackgroundTracker(Recorder())
    assert threading.active_count() == before
    assert tracker.finish(0) == 0
