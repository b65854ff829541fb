"""Every option of conf/judge passes the shared suite; a new YAML file is picked up by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.suites import judge_suite
from tests.suites.judge_suite import Sample

OPTIONS = sorted((Path(__file__).resolve().parents[2] / "conf" / "judge").glob("*.yaml"))


@pytest.fixture(params=OPTIONS, ids=lambda path: path.stem)
def option(request: pytest.FixtureRequest) -> Path:
    if request.param.stem == "reasoning_gym":
        pytest.importorskip("reasoning_gym")
    return request.param


@pytest.fixture
def sample(option: Path) -> tuple:
    return judge_suite.sample_of(option)


def test_there_are_judges() -> None:
    assert len(OPTIONS) >= 11


def test_yaml(option: Path, sample: tuple) -> None:
    judge_suite.check_yaml(option, sample[0])


@pytest.mark.parametrize(
    "promise",
    [
        judge_suite.check_right_and_wrong,
        judge_suite.check_blank,
        judge_suite.check_ends,
        judge_suite.check_hostile,
        judge_suite.check_threads,
    ],
    ids=lambda promise: promise.__name__,
)
def test_promise(sample: tuple[object, Sample], promise) -> None:
    promise(*sample)
