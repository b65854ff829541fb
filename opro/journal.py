"""The append-only record of everything that the world answered: `journal.jsonl`."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opro.errors import BudgetExceeded, ConfigError, RunError
from opro.types import Position

Entry = Mapping[str, Any]
_AT = '{"at":'
_JSON = json.JSONEncoder(separators=(",", ":")).encode
_ANY_STEP = 1 << 62
"""Of an entry whose position begins with no number: always one of the last steps."""
_DECODER = json.JSONDecoder()
_QUOTED = json.encoder.encode_basestring_ascii


class Journal:
    """Answers by position. One line each; a line is whole or, torn by a kill, dropped.

    Written under one lock by a single process (the run's lock file sees to that); reading is
    by offset, so memory holds no text. Lines reach the operating system before `put` returns:
    a kill -9 loses none of them; `sync` makes them survive a power cut.

    Args:
        path: the file; made with `header` as its first line when missing.
        header: the fingerprint and what else identifies the run.
        closed: replay mode: nothing may be written.

    Raises:
        ConfigError: a line that is neither whole nor the last, or no journal at all.
        RunError: the disk is full or the folder can't be written.
    """

    def __init__(self, path: Path, header: Entry, *, closed: bool = False) -> None:
        self.path = path
        self.closed = closed
        self._lock = threading.Lock()
        self._index: dict[int, int] = {}
        self._errors: list[tuple[int, int]] = []
        self.last_stop: str | None = None
        known = path.exists() and path.stat().st_size > 0
        if closed and not known:
            raise ConfigError(f"{path}: there is no journal to replay")
        flags = os.O_RDONLY if closed else os.O_RDWR | os.O_CREAT | os.O_APPEND
        try:
            self._fd = os.open(path, flags, 0o644)
        except OSError as error:
            raise RunError(f"{path}: {error.strerror}") from None
        self._end = os.fstat(self._fd).st_size
        self.header: Entry = header
        self.resumed = False
        if known:
            self._load()
        if self._end == 0:
            self._append(_JSON(header).encode() + b"\n")

    def get(self, at: Position) -> Entry | None:
        """Return the entry at a position and forget where it lies; None when there is none."""
        place = self._index.pop(hash(at), None)
        if place is None:
            return None
        line = os.pread(self._fd, place & 0xFFFFFFFF, place >> 32)
        entry: Entry = _DECODER.raw_decode(line.decode())[0]
        return entry

    def put(self, at: Position, entry: Entry) -> None:
        """Append one entry; the position must be new.

        Raises:
            RunError: the line could not be written (disk full, folder gone).
        """
        body = _JSON(entry)[1:]
        line = f"{_AT}{_encode(at)}{',' if body != '}' else ''}{body}\n"
        with self._lock:
            self._append(line.encode())

    def check_open(self) -> None:
        """Raise unless something new may happen; called before anything that costs.

        Raises:
            BudgetExceeded: a replay has come to where the run's budget was spent.
            RunError: a replay misses an answer.
        """
        if self.closed:
            if self.last_stop is not None and self.last_stop.startswith("budget"):
                raise BudgetExceeded(self.last_stop.removeprefix("budget: "))
            raise RunError("replay: the journal holds no answer here, and the network is closed")

    def stop(self, reason: str, *, void_errors_from: int | None = None) -> None:
        """Record why this part of the run ended.

        Args:
            reason: e.g. `budget: calls`; a replay ends here for the same reason.
            void_errors_from: failed calls of this and later steps are forgotten by the next
                resume (the endpoint was away: they are asked again).
        """
        if self.closed:
            return
        entry: dict[str, Any] = {"stop": reason}
        if void_errors_from is not None:
            entry["void_errors_from"] = void_errors_from
        with self._lock:
            self._append(_JSON(entry).encode() + b"\n")
        self.sync()

    def sync(self) -> None:
        """Make what was written survive a power cut."""
        if not self.closed:
            os.fsync(self._fd)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _append(self, line: bytes) -> None:
        self.check_open()
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            raise RunError(f"{self.path}: {error.strerror}; what is finished is kept") from None
        if written != len(line):
            # Answers still under way come here, too: none may follow half a line.
            os.ftruncate(self._fd, self._end)
            raise RunError(f"{self.path}: the disk is full; what is finished is kept")
        self._end += written

    def _load(self) -> None:
        offset = 0
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break  # torn by a kill in mid-write
                self._read_line(line, number, offset)
                offset += len(line)
        if offset != self._end and not self.closed:
            os.ftruncate(self._fd, offset)
        self._end = offset
        self.resumed = bool(self._index)

    def _read_line(self, line: bytes, number: int, offset: int) -> None:
        text = line.decode("utf-8", errors="replace")
        try:
            if number == 1:
                self.header = json.loads(text)
            elif text.startswith(_AT):
                at, end = _DECODER.raw_decode(text, len(_AT))
                key = hash(tuple(at))
                self._index[key] = offset << 32 | len(line)
                if text.startswith(',"error"', end):
                    self._errors.append((at[0] if isinstance(at[0], int) else _ANY_STEP, key))
                self.last_stop = None
            else:
                self._read_stop(json.loads(text))
        except (ValueError, TypeError, LookupError):
            raise ConfigError(f"{self.path}:{number}: not a line of a journal") from None

    def _read_stop(self, entry: Entry) -> None:
        self.last_stop = str(entry["stop"])
        since = entry.get("void_errors_from")
        if since is not None:
            for step, key in self._errors:
                if step >= since:
                    self._index.pop(key, None)


def _encode(at: Position) -> str:
    """Return a position as JSON, five times as fast as the encoder would."""
    parts = [_QUOTED(part) if isinstance(part, str) else str(part) for part in at]
    return f"[{','.join(parts)}]"
