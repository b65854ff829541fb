"""Every option of conf/agent holds the promises of the suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opro.agents.docker_engine import Engine
from tests.suites import agent_suite

OPTIONS = sorted((Path(__file__).resolve().parents[2] / "conf" / "agent").glob("*.yaml"))


@pytest.mark.parametrize("path", OPTIONS, ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "check",
    [
        agent_suite.check_yaml,
        agent_suite.check_run,
        agent_suite.check_instruction,
        agent_suite.check_call_failed,
        agent_suite.check_threads,
        agent_suite.check_close,
    ],
)
def test_agent_promise(check: Callable[[Path], None], path: Path, daemon: Engine) -> None:
    check(path)
