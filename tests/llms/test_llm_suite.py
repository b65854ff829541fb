"""Every option of conf/llm holds the promises of the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opro.testing.handle import Loopback, in_thread
from tests.suites import llm_suite

OPTIONS = sorted((Path(__file__).resolve().parents[2] / "conf" / "llm").glob("*.yaml"))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Loopback]:
    with in_thread() as running:
        yield running


@pytest.fixture(params=OPTIONS, ids=lambda path: path.stem)
def option(
    request: pytest.FixtureRequest,
    endpoint: Loopback,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Path, llm_suite.Make]:
    monkeypatch.setenv("OPRO_SUITE_KEY", llm_suite.KEY)
    settings = llm_suite.stand_ins(endpoint.base_url, tmp_path)
    return request.param, llm_suite.maker(request.param, settings)


def test_llm_yaml(option: tuple[Path, llm_suite.Make]) -> None:
    llm_suite.check_yaml(*option)


@pytest.mark.parametrize(
    "check",
    [
        llm_suite.check_attributes,
        llm_suite.check_identity,
        llm_suite.check_send,
        llm_suite.check_close,
    ],
)
def test_llm_promise(
    check: Callable[[llm_suite.Make], None], option: tuple[Path, llm_suite.Make]
) -> None:
    check(option[1])
