"""A run's files on disks that are full, read-only, or were torn."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opro.errors import ConfigError, RunError
from opro.journal import Journal
from opro.testing.handle import Loopback, in_thread
from tests.conftest import Search
from tests.endpoint import CALLS, RULES, command_line, small

LONG = "x" * 20_000


@pytest.fixture
def server() -> Iterator[Loopback]:
    rules = [RULES[0], {**RULES[1], "text": [f"{LONG} The answer is {n}." for n in (1, 2, 2)]}]
    with in_thread(rules=rules) as loopback:
        yield loopback


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of its own; only root may mount one."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if not sys.platform.startswith("linux") or subprocess.run(command, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        os.chdir("/")
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_full_disk_ends_the_run_and_costs_nothing_twice(
    search: Search, server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = small(server, search.folder)
    search.run(*arguments, name="clean")
    clean = search.state("clean"), search.path("clean") / "report.md"
    server.control(reset=True)
    disk = search.folder / "disk"
    disk.mkdir()
    with small_disk(disk, "500k"):
        shutil.copy(search.folder / "tasks.jsonl", disk)
        monkeypatch.chdir(disk)
        here = Search(disk)
        with pytest.raises(RunError, match="disk is full|No space left on device") as caught:
            here.run(*arguments)
        assert "\n" not in str(caught.value)
        assert not (here.path() / "result.json").exists()
        known = [one for one in lines(here.path() / "journal.jsonl")[1:] if "text" in one]
        asked = server.stats()["requests"]
        assert 10 < len(known) <= asked < CALLS
        with pytest.raises(RunError, match="disk is full|No space left on device"):
            here.run(*arguments)  # still full: refused again, and nothing damaged
        remount(disk, "size=20m")
        server.control(reset=True)
        here.run(*arguments)
        assert server.stats()["requests"] == CALLS - len(known)
        assert here.state() == clean[0]
        assert (here.path() / "report.md").read_bytes() == clean[1].read_bytes()


def test_half_a_line_is_taken_back_when_the_disk_is_full(tmp_path: Path) -> None:
    with small_disk(tmp_path, "64k"):
        path = tmp_path / "journal.jsonl"
        with Journal(path, {"opro_journal": 1}) as journal:
            with pytest.raises(RunError, match="the disk is full; what is finished is kept"):
                journal.put((0, "a"), {"text": "y" * 100_000})
            journal.put((0, "b"), {"text": "short"})
        assert [entry.get("at") for entry in lines(path)] == [None, [0, "b"]]


def test_a_read_only_disk_is_told_in_one_line(search: Search, server: Loopback) -> None:
    arguments = small(server, search.folder)
    disk = search.folder / "disk"
    disk.mkdir()
    with small_disk(disk, "1m"):
        shutil.copy(search.folder / "tasks.jsonl", disk)
        remount(disk, "ro")
        done = command_line(disk, [*arguments, "tracker=none"])
    assert done.returncode == 1
    said = done.stderr.decode().strip().splitlines()
    assert len(said) == 1
    assert said[0].startswith("opro: ") and os.strerror(errno.EROFS) in said[0]
    assert server.stats()["requests"] == 0


def test_files_that_only_tell_of_the_journal_are_made_again(
    search: Search, server: Loopback
) -> None:
    arguments = small(server, search.folder)
    search.run(*arguments, name="clean")
    search.run(*arguments, "trainer.budget.calls=30")
    state = search.path() / "state/opro.json"
    state.write_bytes(state.read_bytes()[:100])
    (search.path() / "result.json").write_bytes(b'{"stop_rea')
    (search.path() / "output/step_000/report.md").unlink()
    with (search.path() / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"at":[1,"candidates","torn')
    server.control(reset=True)
    search.run(*arguments)
    assert server.stats()["requests"] == CALLS - 30
    for name in ("state/opro.json", "report.md", "output/step_000/report.md"):
        assert (search.path() / name).read_bytes() == (search.path("clean") / name).read_bytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace(b'"at"', b'"a', 1), r"journal.jsonl:2: not a line of a journal"),
        (lambda text: b"\0" * 10 + text, r"journal.jsonl:1: not a line of a journal"),
    ],
)
def test_a_damaged_journal_is_refused_and_left_alone(
    search: Search, server: Loopback, damage, message: str
) -> None:
    arguments = small(server, search.folder)
    search.run(*arguments, "trainer.budget.calls=8")
    path = search.path() / "journal.jsonl"
    path.write_bytes(damage(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=message):
        search.run(*arguments)
    assert path.read_bytes() == before
    assert server.stats()["requests"] == 8  # the endpoint was asked nothing more


def test_the_header_torn_by_a_kill_is_written_again(search: Search, server: Loopback) -> None:
    search.path().mkdir(parents=True)
    (search.path() / "journal.jsonl").write_bytes(b'{"opro_jour')
    search.run(*small(server, search.folder), "trainer.epochs=1")
    assert lines(search.path() / "journal.jsonl")[0]["opro_journal"] == 1
