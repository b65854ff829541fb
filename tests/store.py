"""Reads the MLflow store of a search that was tracked, by SQL, as nobody's client would hide."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from tests.conftest import Search


def query(folder: Path, sql: str, *values: object) -> list[Any]:
    """Return the rows of a query on the store below a launch folder."""
    with contextlib.closing(sqlite3.connect(folder / "mlruns/mlflow.db")) as database:
        return database.execute(sql, values).fetchall()


def run_id(search: Search, name: str = "x") -> str:
    """Return the id of a search's run."""
    note = json.loads((search.path(name) / "mlflow_run.json").read_text("utf-8"))
    return str(note["run_id"])


def points(search: Search, key: str, name: str = "x") -> list[tuple[int, float]]:
    """Return (x, value) of every point of a metric."""
    sql = "select step, value from metrics where run_uuid = ? and key = ? order by step"
    return query(search.folder, sql, run_id(search, name), key)


def params(search: Search, name: str = "x") -> dict[str, str]:
    """Return the params of a search's run."""
    sql = "select key, value from params where run_uuid = ?"
    return dict(query(search.folder, sql, run_id(search, name)))


def tags(search: Search, name: str = "x") -> dict[str, str]:
    """Return the tags of a search's run."""
    sql = "select key, value from tags where run_uuid = ?"
    return dict(query(search.folder, sql, run_id(search, name)))


def artifact(search: Search, path: str, name: str = "x") -> bytes:
    """Return the bytes of an artifact of a search's run."""
    base = search.folder / "mlruns/artifacts" / run_id(search, name) / "artifacts"
    return (base / path).read_bytes()
