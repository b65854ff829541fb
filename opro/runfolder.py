"""A run's folder: files written whole or not at all, and the lock that guards it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opro.errors import ConfigError, RunError


class RunFolder:
    """The files of one run; made when missing.

    Args:
        path: absolute.

    Raises:
        RunError: the folder can't be made or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}") from None

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        return (self.path / name).exists()

    def write(self, name: str, text: str) -> None:
        """Write a text file whole or not at all, lone surrogates as escapes.

        Raises:
            RunError: the disk is full or the folder can't be written; an older file stays.
        """
        target = self.path / name
        partial = target.with_name(f"{target.name}.partial")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(
                partial, "w", encoding="utf-8", errors="backslashreplace", newline=""
            ) as file:
                file.write(text)
            os.replace(partial, target)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise RunError(f"{target}: {error.strerror}; what is finished is kept") from None

    def write_json(self, name: str, value: Any) -> None:
        """Write JSON whole or not at all."""
        self.write(name, json.dumps(value, indent=1) + "\n")

    def read_json(self, name: str) -> Any:
        """Return a JSON file's value; None when it is missing or torn (it is only derived)."""
        try:
            return json.loads((self.path / name).read_text("utf-8"))
        except (OSError, ValueError):
            return None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for this process; the lock dies with its owner.

        Raises:
            ConfigError: another process holds it.
        """
        try:
            file = open(self.path / "run.lock", "a+", encoding="utf-8")
        except OSError as error:
            raise RunError(f"{self.path}: {error.strerror}") from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.seek(0)
                owner = file.read().strip() or "unknown"
                raise ConfigError(
                    f"trainer.run_name={self.path.name}: in use by another process (pid {owner})"
                ) from None
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield
