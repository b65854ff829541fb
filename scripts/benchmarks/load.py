"""What a measured search has to do: its tasks, its settings, and the least time it can take."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opro.testing.handle import Loopback

RULES: list[dict[str, Any]] = [
    {
        "contains": ["Your task is to generate"],
        "text": "<INS>Work on it in the way that $sha names.</INS>",
    }
]
"""Each optimizer call gets an instruction of its own, which depends on the call alone."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """A search in which each reply is a new instruction, scored on all tasks."""

    tasks: int = 50
    candidates: int = 8
    steps: int = 3
    in_flight: int = 32
    latency: float = 0.2

    @property
    def scoring(self) -> int:
        """Calls of the acting model."""
        return self.tasks * (1 + self.candidates * self.steps)

    @property
    def calls(self) -> int:
        """All calls."""
        return self.scoring + self.candidates * self.steps

    @property
    def ideal(self) -> float:
        """Seconds of the best schedule: full waves, and a step's calls only after the last's."""
        step = self._waves(self.candidates) + self._waves(self.candidates * self.tasks)
        return self.latency * (self._waves(self.tasks) + self.steps * step)

    def _waves(self, calls: int) -> int:
        return math.ceil(calls / self.in_flight)

    def write(self, folder: Path) -> None:
        """Write the tasks where `overrides` expects them."""
        rows = [
            {"id": f"t{i}", "question": question, "answer": str(i + 7 * i % 50)}
            for i, question in enumerate(self.questions())
        ]
        (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")

    def questions(self) -> list[str]:
        """Return the tasks' texts."""
        return [f"What is {i} plus {7 * i % 50}?" for i in range(self.tasks)]

    def overrides(self, server: Loopback) -> list[str]:
        """Return the settings of this search at a server."""
        return [
            *endpoint(server, self.in_flight),
            "data=jsonl",
            "data.path=tasks.jsonl",
            "data.id_field=id",
            f"data.train={self.tasks}",
            "judge=number",
            "evolver.params.select=train",
            f"evolver.params.n_candidates={self.candidates}",
            f"trainer.epochs={self.steps}",
            f"trainer.concurrency={self.in_flight}",
            "trainer.rescore=false",
            "trainer.compare=[]",
        ]


def endpoint(server: Loopback, in_flight: int) -> list[str]:
    """Return the settings of a loopback server as the model."""
    return [
        "llm=openai",
        "llm.model=loopback-model",
        f"llm.base_url={server.base_url}",
        "llm.api_key_env=null",
        "llm.seed=0",
        "llm.cache=false",
        f"llm.max_in_flight={in_flight}",
    ]
