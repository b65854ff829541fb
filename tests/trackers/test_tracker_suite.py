"""Every option of conf/tracker passes the shared suite; a new YAML file is picked up by itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from opro.trackers.apart import Apart
from opro.trackers.base import Tracker
from tests.suites import tracker_suite
from tests.suites.tracker_suite import Make

OPTIONS = sorted((Path(__file__).resolve().parents[2] / "conf" / "tracker").glob("*.yaml"))


@pytest.fixture(params=OPTIONS, ids=lambda path: path.stem)
def option(request: pytest.FixtureRequest) -> Path:
    return request.param


def ways() -> list[tuple[Path, bool]]:
    """Return each option as it is, and as it runs where it wants a process of its own."""
    apart = [path for path in OPTIONS if tracker_suite.maker(path, Path("/nonexistent"))().apart]
    return [*((path, False) for path in OPTIONS), *((path, True) for path in apart)]


@pytest.fixture(params=ways(), ids=lambda way: way[0].stem + "_apart" * way[1])
def make(request: pytest.FixtureRequest, launch_folder: Path) -> Iterator[Make]:
    option, apart = request.param
    direct = tracker_suite.maker(option, launch_folder)
    with contextlib.ExitStack() as stack:

        def made() -> Tracker:
            return stack.enter_context(contextlib.closing(Apart(direct()) if apart else direct()))

        yield made


def test_there_are_trackers() -> None:
    assert {path.stem for path in OPTIONS} >= {"mlflow", "none"}


def test_yaml(option: Path) -> None:
    tracker_suite.check_yaml(option)


def test_start_is_light(option: Path) -> None:
    tracker_suite.check_start_is_light(option)


@pytest.mark.parametrize(
    "promise",
    [
        tracker_suite.check_prepare_twice,
        tracker_suite.check_where_is_one_line,
        tracker_suite.check_whole_run,
        tracker_suite.check_hostile_text,
        tracker_suite.check_early_end,
        tracker_suite.check_told_twice,
        tracker_suite.check_sweep,
        tracker_suite.check_close,
    ],
    ids=lambda promise: promise.__name__,
)
def test_promise(promise, make: Make, tmp_path: Path) -> None:
    promise(make, tmp_path)
