"""Where an MLflow store is: resolved once, against the launch folder, without importing mlflow."""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from opro.errors import ConfigError

DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
ALLOWED = "null, sqlite:///<path>, postgresql://…, mysql://…, mssql://…, http(s)://…"


@dataclass(frozen=True, kw_only=True)
class Store:
    """A tracking store.

    Attributes:
        uri: absolute; may hold a password, so never show it: `shown` is for people.
        artifacts: URI for a new experiment's artifacts; None where a server decides.
        file: the SQLite file, or None.
        shown: `uri` without a password.
        launch_folder: where the command was started.
    """

    uri: str
    artifacts: str | None
    file: Path | None
    shown: str
    launch_folder: Path

    def redact(self, text: str) -> str:
        """Return a message of MLflow's without the user, password and options of the URI."""
        parts = urlsplit(self.uri)
        hidden = [parts.netloc.rpartition("@")[0], parts.query if self.file is None else ""]
        for secret in filter(None, hidden):
            text = text.replace(secret, "***")
        return text

    def command(self) -> str:
        """Return what shows this store in a browser: a shell command, or the server's address."""
        if urlsplit(self.uri).scheme in ("http", "https"):
            return f"open {self.shown} in a browser"
        command = f"mlflow ui --backend-store-uri {shlex.quote(self.shown)}"
        ours = self.launch_folder / "mlruns" / "mlflow.db"
        if self.file == ours and (self.launch_folder / "scripts" / "ui").exists():
            return f"{command}  (or: ./scripts/ui)"
        return command

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold off other processes of this machine while a SQLite store is created.

        MLflow's first use of a store runs migrations, which fail when two run at once.
        """
        if self.file is None:
            yield
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{self.file}.lock", "w") as handle, _locked(handle.fileno()):
            if not self.file.exists():
                _create(self.file)
            yield


def _create(file: Path) -> None:
    """Make an empty database whose readers and writers don't wait for each other (WAL).

    Eight jobs that write at once are five times as fast with it.
    """
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")


@contextlib.contextmanager
def _locked(descriptor: int) -> Iterator[None]:
    try:
        import fcntl
    except ImportError:  # Windows: the retries on lock errors must do
        yield
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def resolve(uri: str | None, launch_folder: Path) -> Store:
    """Return the store that `tracker.uri` names.

    Args:
        uri: None is `mlruns/mlflow.db` in the launch folder. A relative SQLite path is taken
            from the launch folder, too, wherever a job runs.
        launch_folder: where the command was started.

    Raises:
        ConfigError: for a file store, which MLflow no longer takes, or an unknown scheme.
    """
    launch_folder = launch_folder.absolute()
    if uri is None:
        return _sqlite(launch_folder / "mlruns" / "mlflow.db", "", launch_folder)
    scheme = uri.partition(":")[0].partition("+")[0].lower() if "://" in uri else ""
    if scheme == "sqlite":
        return _sqlite_uri(uri, launch_folder)
    if scheme in DATABASES:
        artifacts = (launch_folder / "mlruns" / "artifacts").as_uri()
    elif scheme in ("http", "https"):
        artifacts = None
    else:
        kind = "an unknown scheme" if scheme not in ("", "file") else "a file store"
        why = " (MLflow no longer takes those)" if kind == "a file store" else ""
        raise ConfigError(f"tracker.uri={_redacted(uri)}: {kind}{why}; allowed are {ALLOWED}")
    return Store(
        uri=uri,
        artifacts=artifacts,
        file=None,
        shown=_redacted(uri),
        launch_folder=launch_folder,
    )


def _sqlite_uri(uri: str, launch_folder: Path) -> Store:
    path, mark, query = uri.partition("://")[2].removeprefix("/").partition("?")
    if path in ("", ":memory:"):
        raise ConfigError(f"tracker.uri={uri}: an SQLite store needs a file: sqlite:///<path>")
    return _sqlite(launch_folder / Path(path).expanduser(), mark + query, launch_folder)


def _sqlite(path: Path, query: str, launch_folder: Path) -> Store:
    path = Path(os.path.abspath(path))
    uri = f"sqlite:///{path}{query}"
    artifacts = (path.parent / "artifacts").as_uri()
    return Store(uri=uri, artifacts=artifacts, file=path, shown=uri, launch_folder=launch_folder)


def _redacted(uri: str) -> str:
    """Return `uri` without the user, password and options that it may hold."""
    parts = urlsplit(uri)
    guarded, _, host = parts.netloc.rpartition("@")
    if not guarded and not parts.query:
        return uri
    netloc = f"***@{host}" if guarded else host
    return urlunsplit(parts._replace(netloc=netloc, query="***" if parts.query else ""))
