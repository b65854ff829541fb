"""A tracker in a process of its own: same calls, its errors, and no process left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opro.errors import ConfigError
from opro.trackers.apart import Apart, TrackingFailed
from opro.trackers.background import BackgroundTracker
from opro.trackers.base import Tracker
from tests.trackers.fakes import make_run


class Odd(Exception):
    """Of a package that the search hasn't imported."""


class Teller(Tracker):
    """Writes into a file what it is told, and does what the run's name says."""

    apart = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self):
        if (self.folder / "broken").exists():
            raise ImportError("No module named 'x'")

    def note(self, text: str) -> None:
        with open(self.folder / "told", "a") as file:
            print(os.getpid(), text, file=file)

    def prepare(self):
        self.note("prepare")

    def on_run_start(self, info):
        self.note(f"start {info.name}")
        if info.name == "sleep":
            time.sleep(60)
        if info.name == "odd":
            raise Odd("strange")
        if info.name == "wrong":
            raise ConfigError("no such store")

    def on_step_end(self, record, totals):
        self.note(f"step {record.step} {totals.requests}")

    def on_run_end(self, end):
        self.note(f"end {end.status}")

    def prompt(self, name):
        return f"text of {name}"

    def told(self) -> list[tuple[int, str]]:
        lines = (self.folder / "told").read_text().splitlines()
        return [(int(pid), text) for pid, text in (line.split(" ", 1) for line in lines)]


@pytest.fixture
def teller(tmp_path: Path) -> Teller:
    return Teller(tmp_path)


@contextlib.contextmanager
def apart(teller: Teller) -> Iterator[Apart]:
    with contextlib.closing(Apart(teller)) as tracker:
        yield tracker


def named(tmp_path: Path, name: str):
    from dataclasses import replace

    return replace(make_run(tmp_path, steps=1).info, name=name)


def wait_for(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_one_process_that_isnt_ours_gets_every_call_in_order(teller: Teller, tmp_path: Path):
    run = make_run(tmp_path, steps=3)
    with apart(teller) as tracker:
        tracker.prepare()
        tracker.on_run_start(run.info)
        for record, totals in run.steps:
            tracker.on_step_end(record, totals)
        tracker.on_run_end(run.end)
        assert tracker.prompt("p") == "text of p"
    steps = [f"step {record.step} {totals.requests}" for record, totals in run.steps]
    assert [text for _, text in teller.told()] == ["prepare", "start fake", *steps, "end FINISHED"]
    (pid,) = {pid for pid, _ in teller.told()}
    assert pid != os.getpid()
    assert is_gone(pid)


def test_a_search_with_mlflow_does_not_import_it(tmp_path: Path):
    """The import holds up the first requests; the tracker's process has it."""
    code = (
        "import sys; from pathlib import Path; from opro.setup.config import build;"
        "from opro.trackers.apart import placed;"
        "from opro.trackers.background import BackgroundTracker;"
        "node = {'_target_': 'opro.trackers.mlflow_tracker.MLflowTracker'};"
        f"tracker = placed(build(node, 't', launch_folder=Path({str(tmp_path)!r})));"
        "tracker = BackgroundTracker(tracker);"
        "tracker.prepare(); assert tracker.finish(60) == 0;"
        "sys.exit('mlflow' in sys.modules)"
    )
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code], env=path, check=True)
    assert (tmp_path / "mlruns/mlflow.db").exists()
    assert not (tmp_path / "mlruns/mlflow.db-wal").exists()  # closed, not only left


def test_what_it_raises_comes_as_text_and_the_next_call_goes_on(teller: Teller, tmp_path: Path):
    with apart(teller) as tracker:
        with pytest.raises(TrackingFailed, match="^Odd: strange$"):
            tracker.on_run_start(named(tmp_path, "odd"))
        with pytest.raises(ConfigError, match="^no such store$"):
            tracker.on_run_start(named(tmp_path, "wrong"))
        tracker.prepare()
    assert teller.told()[-1][1] == "prepare"


def test_what_it_cant_import_is_told_by_every_call(teller: Teller, tmp_path: Path):
    (tmp_path / "broken").touch()
    with apart(teller) as tracker:
        for _ in range(2):
            with pytest.raises(TrackingFailed, match="^ImportError: No module named 'x'$"):
                tracker.prepare()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_all_processes_leaves_it_to_log_the_end(
    number: int, teller: Teller, tmp_path: Path
):
    with apart(teller) as tracker:
        tracker.prepare()
        os.kill(teller.told()[0][0], number)
        tracker.on_run_end(make_run(tmp_path, steps=1).end)
    assert teller.told()[-1][1] == "end FINISHED"


def test_jobs_of_a_sweep_share_their_parents_process(teller: Teller, tmp_path: Path):
    with apart(teller) as parent, apart(teller) as job, apart(teller) as other:
        address = parent.share()
        for tracker in (job, other):
            tracker.join(address)
            tracker.prepare()
            tracker.close()
        (pid,) = {pid for pid, _ in teller.told()}
        assert not is_gone(pid)  # a job's end is not the sweep's
    assert is_gone(pid)


def test_an_address_that_leads_nowhere_is_replaced_by_a_process_of_its_own(teller: Teller):
    with apart(teller) as tracker:
        tracker.join("/nowhere/of/another/machine")
        tracker.prepare()
    assert [text for _, text in teller.told()] == ["prepare"]


def test_a_long_folder_for_temporary_files_is_no_hindrance(
    teller: Teller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    with apart(teller) as tracker:
        tracker.prepare()
    assert [text for _, text in teller.told()] == ["prepare"]


def test_a_process_that_dies_is_told_and_ends_nothing_else(teller: Teller, tmp_path: Path):
    shown: list[str] = []
    tracker = BackgroundTracker(Apart(teller), on_error=shown.append)
    tracker.prepare()
    assert wait_for(lambda: (tmp_path / "told").exists())
    os.kill(teller.told()[0][0], signal.SIGKILL)
    tracker.on_run_start(named(tmp_path, "x"))
    assert tracker.finish(20) == 1
    assert "tracker's process is gone" in shown[0]


def test_a_call_that_hangs_is_given_up_in_time(teller: Teller, tmp_path: Path):
    tracker = BackgroundTracker(Apart(teller))
    tracker.on_run_start(named(tmp_path, "sleep"))
    assert wait_for(lambda: (tmp_path / "told").exists())
    began = time.monotonic()
    assert tracker.finish(0.2) == 1
    assert time.monotonic() - began < 5
    assert is_gone(teller.told()[0][0])


def test_after_close_a_call_starts_another_one(teller: Teller):
    with apart(teller) as tracker:
        tracker.prepare()
        tracker.close()
        tracker.close()
        tracker.prepare()
    assert len({pid for pid, _ in teller.told()}) == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_it_outlives_a_ctrl_c_and_not_its_parent(number: int, teller: Teller, tmp_path: Path):
    code = (
        "import time; from pathlib import Path; from opro.trackers.apart import Apart;"
        "from tests.trackers.test_apart import Teller;"
        f"Apart(Teller(Path({str(tmp_path)!r}))).prepare(); time.sleep(60)"
    )
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", code], env=path, process_group=0) as parent:
        assert wait_for(lambda: (tmp_path / "told").exists())
        pid = teller.told()[0][0]
        assert os.getpgid(pid) != parent.pid
        os.kill(parent.pid, number)
        parent.wait()
        assert wait_for(lambda: is_gone(pid))
