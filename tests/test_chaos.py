"""A search killed by SIGKILL at random moments ends in the same bytes and pays nothing twice."""

from __future__ import annotations

import random
from pathlib import Path

from opro.testing.handle import in_process
from scripts.benchmarks import chaos


def test_a_search_killed_again_and_again(tmp_path: Path) -> None:
    with in_process(latency=0.04, rules=chaos.RULES) as server:
        trial = chaos.Trial(server, tmp_path, "tracker=none")
        trial.reference()
        rounds = [trial.round(f"round{number}", random.Random(number)) for number in range(2)]
    assert [problem for found in rounds for problem in found.problems] == []
    assert sum(found.kills for found in rounds) >= 2
