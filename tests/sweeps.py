"""A folder to start sweeps from, as a user would: the command line against a counting server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opro.testing.handle import Loopback

ROOT = Path(__file__).resolve().parent.parent
RULES = [
    {"contains": ["Your task is to generate"], "text": "<INS>Think $sha</INS>"},
    {"contains": [], "text": [str(2 * i + 1) for i in range(4)]},
]


@dataclass
class Sandbox:
    """Runs `opro` in a folder with a small data set of sums; answers are right now and then."""

    folder: Path
    server: Loopback
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = []
        for i in range(16):
            split = "train" if i < 8 else "val" if i < 12 else "test"
            row = {
                "id": f"t{i}",
                "split": split,
                "sum": f"{i}+{i + 1}",
                "answer": str(i % 4 * 2 + 1),
            }
            rows.append(json.dumps(row))
        (self.folder / "sums.jsonl").write_text("\n".join(rows))
        self.server.control(rules=RULES)

    @property
    def settings(self) -> list[str]:
        return [
            "data=jsonl",
            "data.path=sums.jsonl",
            "data.id_field=id",
            "data.split_field=split",
            "data.fields=[sum]",
            "judge=number",
            "llm=openai",
            "llm.model=m",
            "llm.seed=0",
            "llm.api_key_env=null",
            f"llm.base_url={self.server.base_url}",
            "trainer.epochs=2",
            "trainer.run_name=S",
        ]

    def start(self, *arguments: str, module: str = "opro.run") -> subprocess.Popen[str]:
        """Start a command in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def sweep(self, *overrides: str, tracker: str = "none") -> Done:
        """Run a sweep to its end."""
        return Done(self.start("-m", *self.settings, f"tracker={tracker}", *overrides))

    def path(self, job: str = "") -> Path:
        return self.folder / "mlruns/sweeps/S" / job

    def note(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path(job) / "job.json").read_text("utf-8"))
        return found

    def jobs(self) -> list[str]:
        return sorted(path.parent.name for path in self.path().glob("*/job.json"))

    def requests(self, *, reset: bool = True) -> int:
        """Return how many requests came since the last reset."""
        found = int(self.server.stats()["requests"])
        if reset:
            self.server.control(reset=True)
        return found

    def wait_for_requests(self, number: int, process: subprocess.Popen[str]) -> None:
        while self.server.stats()["requests"] < number:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.02)


class Done:
    """A command that has ended, with what it printed."""

    def __init__(self, process: subprocess.Popen[str], timeout: float = 300.0) -> None:
        try:
            self.text = process.communicate(timeout=timeout)[0]
        finally:
            end_session(process)
        self.status = process.returncode

    def __contains__(self, text: str) -> bool:
        return text in self.text


def session(process: subprocess.Popen[str]) -> list[int]:
    """Return the living processes of a command's session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, leader = stat.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(leader) == process.pid and state != "Z":
            found.append(int(stat.parent.name))
    return found


def end_session(process: subprocess.Popen[str]) -> None:
    """Leave nothing behind, also when a test fails."""
    for pid in session(process):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def slowness() -> float:
    """Return by how much this machine is overloaded; time limits are stretched by it."""
    return max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))
