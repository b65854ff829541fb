"""A small search at a loopback server, whose answers depend on the request alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from opro.testing.handle import Loopback
from scripts.benchmarks.load import endpoint
from tests.conftest import ROOT

OPTIMIZER = "Your task is to generate"
RULES: list[dict[str, Any]] = [
    {"contains": [OPTIMIZER], "text": "<INS>In the way of $sha.</INS>"},
    {"contains": [], "text": [f"The answer is {number}." for number in (1, 2, 2, 3)]},
]
"""Each instruction is new; a task is answered right in half of the cases, by the body's hash."""


def small(server: Loopback, folder: Path, *, tasks: int = 5, width: int = 8) -> list[str]:
    """Write the tasks and return the settings: 3 candidates, 2 steps, chosen on training."""
    rows = [{"id": f"t{i}", "question": f"number {i}?", "answer": "2"} for i in range(tasks)]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return [
        *endpoint(server, width),
        "data=jsonl",
        "data.path=tasks.jsonl",
        "data.id_field=id",
        "judge=number",
        "evolver.params.n_candidates=3",
        "evolver.params.select=train",
        "trainer.epochs=2",
        "trainer.rescore=false",
        "trainer.compare=[]",
        f"trainer.concurrency={width}",
    ]


CALLS = 5 + 2 * (3 + 3 * 5)
"""Requests of `small` when nothing fails."""


def command_line(
    folder: Path, arguments: list[str], **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m opro.run` in a folder, with more variables in its environment."""
    return subprocess.run(
        [sys.executable, "-m", "opro.run", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        timeout=120,
        check=False,
    )
