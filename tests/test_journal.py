"""The journal keeps every finished answer, and drops only what was torn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opro.errors import BudgetExceeded, ConfigError, RunError
from opro.journal import Journal

HEADER = {"opro_journal": 1, "fingerprint": {"a": 1}}


def reopened(path: Path, **options: bool) -> Journal:
    return Journal(path, {"other": True}, **options)


def test_an_answer_comes_back_after_reopening_and_only_once(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    hostile = 'x"\n\x00\ud800\u202e${oc.env:HOME}' + "y" * 100_000
    with Journal(path, HEADER) as journal:
        assert not journal.resumed
        journal.put((3, "optimizer", 2, 1), {"text": hostile})
        journal.put((3, "candidates", "md5", "train", "task/1", 1, "run"), {"kind": "right"})
    with reopened(path) as journal:
        assert journal.resumed
        assert journal.header == HEADER
        assert journal.get((3, "optimizer", 2, 2)) is None
        assert journal.get((3, "optimizer", 2, 1))["text"] == hostile
        assert journal.get((3, "optimizer", 2, 1)) is None
        assert journal.get((3, "candidates", "md5", "train", "task/1", 1, "run")) is not None


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_torn_last_line_is_dropped_and_overwritten(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        journal.put((0, "a"), {"text": "first"})
        journal.put((0, "b"), {"text": "second"})
    path.write_bytes(path.read_bytes()[:-cut])
    with reopened(path) as journal:
        assert journal.get((0, "b")) is None
        journal.put((0, "b"), {"text": "again"})
    with reopened(path) as journal:
        assert journal.get((0, "a"))["text"] == "first"
        assert journal.get((0, "b"))["text"] == "again"
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        journal.put((0, "a"), {"text": "first"})
    path.write_bytes(path.read_bytes() + b"garbage\n")
    with pytest.raises(ConfigError, match=r"journal.jsonl:3: not a line"):
        reopened(path)


def test_failed_calls_of_the_last_steps_can_be_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, HEADER) as journal:
        journal.put((0, "a"), {"error": "http_500", "message": "m"})
        journal.put((1, "b"), {"error": "http_500", "message": "m"})
        journal.put((1, "c"), {"text": "good"})
        journal.stop("failed steps", void_errors_from=1)
    with reopened(path) as journal:
        assert journal.get((0, "a")) is not None
        assert journal.get((1, "b")) is None
        assert journal.get((1, "c")) is not None
        assert journal.last_stop == "failed steps"


def test_a_replay_may_not_write_and_ends_where_the_budget_did(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with pytest.raises(ConfigError, match="no journal"):
        Journal(path, HEADER, closed=True)
    with Journal(path, HEADER) as journal:
        journal.put((0, "a"), {"text": "first"})
    with reopened(path, closed=True) as journal, pytest.raises(RunError, match="network is closed"):
        journal.check_open()
    with reopened(path) as journal:
        journal.stop("budget: calls=1 is used up")
    with reopened(path, closed=True) as journal, pytest.raises(BudgetExceeded, match="^calls=1"):
        journal.check_open()
