"""Answers that jobs and runs share: equal requests at temperature 0 are sent once.

A key names the model (`LLM.identity`: endpoint or weights, and every setting of it), the messages,
all sampling parameters and the sample's number. So a re-score, which has a sample number of its
own, stays a real measurement, and so does the second attempt of a failed run. Deleting the folder
is always safe.

The answers are in one SQLite file, which its file system must be able to lock (not every network
file system can). Two that ask for the same at the same time, threads or processes, ask once: the
second waits for the first one's answer.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from opro.entries import from_entry, to_entry
from opro.llms.base import LLM
from opro.stop import Stop
from opro.types import Completion, Request

FLUSH_SECONDS = 0.05
"""Answers are written together, this long after the first of them."""
LOOK_SECONDS = 0.02
"""How often an answer that somebody else is asking for is looked for."""
_TABLE = "CREATE TABLE IF NOT EXISTS answers (key BLOB PRIMARY KEY, answer TEXT) WITHOUT ROWID"


class AnswerCache:
    """The cache of one process; thread-safe. A broken file or full disk only turns it off.

    Args:
        folder: made when missing.
        on_error: called with one line when the cache can't be used.
    """

    def __init__(self, folder: Path, on_error: Callable[[str], None] = lambda line: None) -> None:
        self._on_error = on_error
        self._lock = threading.Condition()
        self._identities: dict[int, tuple[LLM, str]] = {}
        self._claimed: set[bytes] = set()
        self._pending: dict[bytes, str] = {}
        self._broken = self._closing = False
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._claims = os.open(folder / "claims.lock", os.O_RDWR | os.O_CREAT, 0o644)
            self._reader = _connect(folder / "answers.db")
            self._writer = _connect(folder / "answers.db")
            self._writer.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            self._break(error)
        self._thread = threading.Thread(target=self._write, name="cache", daemon=True)
        self._thread.start()

    def key(self, llm: LLM, request: Request) -> bytes | None:
        """Return the request's key; None for one that mustn't be answered from the cache."""
        if self._broken or not llm.cache or request.temperature != 0.0:
            return None
        known = self._identities.get(id(llm))
        if known is None:
            known = llm, json.dumps(dict(llm.identity()), sort_keys=True)
            if not _sends_temperature(llm):
                return None
            self._identities[id(llm)] = known
        messages = [[one.role, one.content] for one in request.messages]
        parts = [known[1], request.max_tokens, request.sample, request.again, messages]
        return hashlib.sha256(json.dumps(parts, separators=(",", ":")).encode()).digest()

    def get(self, key: bytes, stop: Stop) -> Completion | None:
        """Return the answer, waiting while another thread or process asks for it.

        None makes the caller the one who asks: it must call `put` afterwards.

        Raises:
            BaseException: `stop`'s, while waiting.
        """
        while True:
            found = self._find(key)
            if found is None and self._claim(key):
                found = self._find(key)  # it may have come between the two
                if found is None:
                    return None
                self._release([key])
            if found is not None:
                entry = json.loads(found)
                return from_entry({**entry, "seconds": 0.0, "attempts": 1, "cached": True})
            stop.wait(LOOK_SECONDS)

    def put(self, key: bytes, completion: Completion | None) -> None:
        """Store an answer; None: there was none, so the next one may ask."""
        if completion is None or self._broken:
            self._release([key])
            return
        with self._lock:
            self._pending[key] = json.dumps(to_entry(completion), separators=(",", ":"))
            self._lock.notify()

    def close(self) -> None:
        """Write what waits and close the file."""
        with self._lock:
            self._closing = True
            self._lock.notify()
        self._thread.join()
        if not self._broken:
            self._reader.close()
            self._writer.close()
            os.close(self._claims)

    def _find(self, key: bytes) -> str | None:
        with self._lock:
            found = self._pending.get(key)
            if found is not None or self._broken:
                return found
            try:
                row = self._reader.execute("SELECT answer FROM answers WHERE key=?", (key,))
                first = row.fetchone()
            except sqlite3.Error as error:
                self._break(error)
                return None
        return None if first is None else str(first[0])

    def _claim(self, key: bytes) -> bool:
        """Take the right to ask; the system takes it back when the process dies."""
        with self._lock:
            if self._broken:
                return True
            if key in self._claimed:
                return False
            try:
                fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _offset(key))
            except OSError:
                return False
            self._claimed.add(key)
            return True

    def _release(self, keys: list[bytes]) -> None:
        with self._lock:
            for key in keys:
                if key in self._claimed:
                    self._claimed.discard(key)
                    with contextlib.suppress(OSError):
                        fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _offset(key))

    def _write(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: bool(self._pending) or self._closing)
                if not self._pending:
                    return
                if not self._closing:
                    self._lock.wait(FLUSH_SECONDS)
                batch = dict(self._pending)
            try:
                with self._writer:
                    self._writer.execute("BEGIN IMMEDIATE")
                    self._writer.executemany(
                        "INSERT OR IGNORE INTO answers VALUES (?, ?)", batch.items()
                    )
            except sqlite3.Error as error:
                self._break(error)
            with self._lock:
                for key in batch:
                    self._pending.pop(key, None)
            self._release(list(batch))

    def _break(self, error: Exception) -> None:
        if not self._broken:
            self._broken = True
            self._on_error(f"the cache of answers is off: {error}")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=20.0, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")  # a power cut may cost the last answers
    return connection


def _offset(key: bytes) -> int:
    return int.from_bytes(key[:7], "big")


def _sends_temperature(llm: LLM) -> bool:
    """Tell whether a request's temperature is the one that the model is asked with."""
    identity = llm.identity()
    body = identity.get("extra_body") or {}
    return identity.get("send_temperature", True) is not False and "temperature" not in body
