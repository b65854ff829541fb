"""Every option of conf/tracker passes the shared suite; a new YAML file is picked up by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suites import tracker_suite
from tests.suites.tracker_suite import Make

OPTIONS = sorted((Path(__file__).resolve().parents[2] / "conf" / "tracker").glob("*.yaml"))


@pytest.fixture(params=OPTIONS, ids=lambda path: path.stem)
def option(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def make(option: Path, launch_folder: Path) -> Make:
    return tracker_suite.maker(option, launch_folder)


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
    ],
    ids=lambda promise: promise.__name__,
)
def test_promise(promise, make: Make, tmp_path: Path) -> None:
    promise(make, tmp_path)
