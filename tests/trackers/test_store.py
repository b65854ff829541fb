"""Which store `tracker.uri` names, and the command that shows it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from opro.errors import ConfigError
from opro.trackers.store import resolve

LAUNCH = Path("/some where/launch")


@pytest.mark.parametrize(
    ("uri", "file"),
    [
        (None, "/some where/launch/mlruns/mlflow.db"),
        ("sqlite:///my.db", "/some where/launch/my.db"),
        ("sqlite:///./sub/../my.db", "/some where/launch/my.db"),
        ("sqlite:////abs/my.db", "/abs/my.db"),
        ("SQLite:///my.db", "/some where/launch/my.db"),
    ],
)
def test_sqlite_is_resolved_against_the_launch_folder(uri, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as hydra.job.chdir=true does
    store = resolve(uri, LAUNCH)
    assert store.file == Path(file)
    assert store.uri == f"sqlite:///{file}"
    assert store.artifacts == (Path(file).parent / "artifacts").as_uri()


def test_the_command_survives_a_shell():
    words = shlex.split(resolve(None, LAUNCH).command())
    uri = "sqlite:////some where/launch/mlruns/mlflow.db"
    assert words == ["mlflow", "ui", "--backend-store-uri", uri]


def test_the_script_is_named_where_there_is_one(tmp_path):
    assert "scripts/ui" not in resolve(None, tmp_path).command()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "ui").write_text("")
    assert resolve(None, tmp_path).command().endswith("(or: ./scripts/ui)")
    assert "scripts/ui" not in resolve("sqlite:///other.db", tmp_path).command()


@pytest.mark.parametrize(
    ("uri", "part"),
    [
        ("file:./mlruns", "a file store (MLflow no longer takes those)"),
        ("file:///x/mlruns", "a file store"),
        ("./mlruns", "a file store"),
        ("mlruns", "a file store"),
        ("", "a file store"),
        ("ftp://host/x", "an unknown scheme"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(uri, part):
    with pytest.raises(ConfigError) as caught:
        resolve(uri, LAUNCH)
    line = str(caught.value)
    assert line.startswith(f"tracker.uri={uri}: ")
    assert part in line
    assert "\n" not in line


@pytest.mark.parametrize(
    "uri",
    [
        "https://me:hunter2@tracking.example:5000/x",
        "postgresql+psycopg2://me:hunter2@db.example/mlflow",
        "postgresql://db.example/mlflow?user=me&password=hunter2",
    ],
)
def test_passwords_are_kept_but_not_shown(uri):
    store = resolve(uri, LAUNCH)
    assert store.uri == uri
    assert "hunter2" not in store.command() + store.shown
    assert "example" in store.command()


def test_a_server_decides_on_its_artifacts():
    assert resolve("http://127.0.0.1:5000", LAUNCH).artifacts is None
    assert resolve("postgresql://db/x", LAUNCH).artifacts == (LAUNCH / "mlruns/artifacts").as_uri()


def test_the_refusal_of_a_bad_uri_shows_no_password():
    with pytest.raises(ConfigError) as caught:
        resolve("ftp://me:hunter2@host/x", LAUNCH)
    assert "hunter2" not in str(caught.value)
