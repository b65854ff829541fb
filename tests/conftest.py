"""What every test may use."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from opro import job, run

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder beside the repository with benchmark files and stored outputs of the authors."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("../shared isn't there")
    return path


@dataclass(frozen=True)
class Search:
    """Runs searches in a folder of their own, as the command line would."""

    folder: Path

    def config(self, *overrides: str) -> dict[str, Any]:
        with initialize_config_dir(str(run.CONF), version_base="1.3"):
            return run.plain_config(compose("config", overrides=list(overrides)))

    def run(self, *overrides: str, name: str = "x") -> job.Outcome:
        config = self.config("tracker=none", *overrides, f"trainer.run_name={name}")
        place = job.Place(launch=self.folder, folder=self.path(name), overrides=overrides)
        return job.run(config, place)

    def path(self, name: str = "x") -> Path:
        return self.folder / "mlruns/runs" / name

    def state(self, name: str = "x") -> dict[str, Any]:
        return json.loads((self.path(name) / "state/opro.json").read_text("utf-8"))

    def result(self, name: str = "x") -> dict[str, Any]:
        return json.loads((self.path(name) / "result.json").read_text("utf-8"))

    def entries(self, name: str = "x") -> list[dict[str, Any]]:
        lines = (self.path(name) / "journal.jsonl").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines[1:]]

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, "utf-8")
        return name


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    """A folder to start searches from, with nothing in it."""
    monkeypatch.chdir(tmp_path)
    return Search(tmp_path)
