"""The note in a run's folder that says which MLflow run it is, for when it is continued."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "mlflow_run.json"


@dataclass(frozen=True, kw_only=True)
class RunNote:
    """What is kept between two processes of one run.

    Attributes:
        run_id: MLflow's id of the run.
        store: hash of the store's URI; a note of another store is void.
        step: the step that was last begun; its points may be in the store already.
        time_ms: the time stamp that all points of that step carry, so that logging them once
            more adds nothing.
    """

    run_id: str
    store: str
    step: int = -1
    time_ms: int = 0


def store_hash(uri: str) -> str:
    """Return a short hash that names a store without showing a password."""
    return hashlib.sha256(uri.encode()).hexdigest()[:16]


def load(folder: Path, uri: str) -> RunNote | None:
    """Return the folder's note on a run of this store; None when there is none that holds."""
    try:
        note = RunNote(**json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return note if note.store == store_hash(uri) else None


def save(folder: Path, note: RunNote) -> None:
    """Write the note, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{NAME}.{os.getpid()}"
    draft.write_text(json.dumps(asdict(note)), encoding="utf-8")
    draft.replace(folder / NAME)
