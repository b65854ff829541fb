"""One MLflow store for all tests of this folder: making it takes seconds."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def launch_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where trackers are started; has a blank in its name, which everything must bear."""
    return tmp_path_factory.mktemp("launch") / "a folder"
