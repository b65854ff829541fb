"""One search, killed at random moments until it completes; what the server and the disk say.

Each request's body is its own (the seed differs), and each reply begins with a hash of the body.
So a reply in the journal tells which request it answers, and whether that one was sent again.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opro.testing.handle import Loopback
from scripts.benchmarks.load import endpoint
from scripts.benchmarks.process import ROOT

RULES: list[dict[str, Any]] = [
    {"contains": ["Your task is to generate"], "text": "$sha <INS>In the way of $sha.</INS>"},
    {"contains": [], "text": [f"$sha The answer is {number}." for number in (1, 2, 2, 3)]},
]
IN_FLIGHT = 4
TASKS = {"train": 6, "val": 3, "test": 3}
COMPARED = ("state", "output", "report.md", "ADAPTER.md")
_HASH = re.compile(r"^[0-9a-f]{8}(?= )")


@dataclass(kw_only=True)
class Round:
    """What one search went through.

    Attributes:
        kills: how often it was killed.
        requests: that the server saw.
        repeated: requests whose body had been sent before.
        in_flight: requests under way, or answered and not yet recorded, at the kills.
        paid_twice: requests sent again although the journal had the answer.
        lost: answers of the journal that a later one doesn't hold.
        problems: broken promises, for people.
    """

    kills: int = 0
    requests: int = 0
    repeated: int = 0
    in_flight: int = 0
    paid_twice: int = 0
    lost: int = 0
    problems: list[str] = field(default_factory=list)


class Trial:
    """Searches of one kind against one server.

    Args:
        server: answers by `RULES`; nobody else asks it.
        folder: to work in.
        overrides: more settings of the search.
    """

    def __init__(self, server: Loopback, folder: Path, *overrides: str) -> None:
        self._server = server
        self._folder = folder
        self._overrides = overrides
        self._files: dict[str, bytes] = {}
        self._calls: set[str] = set()
        rows = [
            {"id": f"{split}{i}", "split": split, "question": f"{split} {i}?", "answer": "2"}
            for split, count in TASKS.items()
            for i in range(count)
        ]
        (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")

    def reference(self) -> None:
        """Run one search without a kill; it is what the others are compared with."""
        process = self._start("reference")
        if process.wait() != 0:
            raise RuntimeError((self._folder / "output.txt").read_text("utf-8"))
        self._files = files(self._run_folder("reference"))
        self._calls = answered(self._run_folder("reference"))
        log = self._server.log()
        if len(log) != len(self._calls) or len({_hash_of(entry) for entry in log}) != len(log):
            raise RuntimeError("the search without a kill asks something twice")

    def round(self, name: str, rng: random.Random) -> Round:
        """Run one search to its end, killing it on the way, and say what was seen."""
        found, seen, journaled = Round(), set[str](), set[str]()
        while True:
            self._server.control(reset=True)
            process = self._start(name)
            killed = self._kill_sometime(process, rng)
            sent = [_hash_of(entry) for entry in self._log_at_rest()]
            after = answered(self._run_folder(name))
            found.requests += len(sent)
            found.repeated += len(seen & set(sent))
            found.paid_twice += len(journaled & set(sent)) + len(sent) - len(set(sent))
            found.lost += len(journaled - after)
            seen |= set(sent)
            if not killed:
                break
            found.kills += 1
            found.in_flight += len(set(sent) - after)
            journaled = after
        self._judge(name, process.returncode, found, after)
        return found

    def _judge(self, name: str, status: int, found: Round, calls: set[str]) -> None:
        said, folder = found.problems, self._run_folder(name)
        if status != 0:
            output = (self._folder / "output.txt").read_text("utf-8")
            said.append(f"ended with status {status}: {output}")
        kept = files(folder)
        names = sorted({*kept, *self._files})
        differ = [one for one in names if kept.get(one) != self._files.get(one)]
        if differ:
            said.append(f"differs from the search without a kill in {', '.join(differ)}")
        if calls != self._calls:
            said.append(f"the journal's answers differ in {len(calls ^ self._calls)}")
        if len(positions(folder)) != len(set(positions(folder))):
            said.append("the journal holds a position twice")
        if found.paid_twice or found.lost:
            said.append(f"{found.paid_twice} answers paid twice, {found.lost} lost")
        if found.repeated > found.in_flight or found.in_flight > found.kills * IN_FLIGHT:
            said.append(f"{found.repeated} asked again, {found.in_flight} under way at kills")

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        command = [
            *(sys.executable, "-m", "opro.run"),
            *endpoint(self._server, IN_FLIGHT),
            *("data=jsonl", "data.path=tasks.jsonl", "data.id_field=id", "data.split_field=split"),
            *("judge=number", "evolver.params.n_candidates=3", "evolver.params.top_k=2"),
            *("trainer.epochs=3", f"trainer.concurrency={IN_FLIGHT}"),
            *(f"trainer.run_name={name}", *self._overrides),
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with open(self._folder / "output.txt", "wb") as output:
            return subprocess.Popen(
                command, cwd=self._folder, env=environment, stdout=output, stderr=output
            )

    def _kill_sometime(self, process: subprocess.Popen[bytes], rng: random.Random) -> bool:
        """Kill at a random moment of the start or the search; False: it had ended before."""
        wanted = rng.choice((0, rng.randrange(1, 40), rng.randrange(1, 120)))
        pause = rng.uniform(0.0, 1.0 if wanted == 0 else 0.1)
        while process.poll() is None and self._server.stats()["requests"] < wanted:
            time.sleep(0.005)
        time.sleep(pause)
        if process.poll() is not None:
            return False
        process.kill()
        process.wait()
        return True

    def _log_at_rest(self) -> list[dict[str, Any]]:
        """Return the server's log once it has nothing in hand."""
        while self._server.stats()["in_flight"]["current"]:
            time.sleep(0.01)
        return self._server.log()

    def _run_folder(self, name: str) -> Path:
        return self._folder / "mlruns/runs" / name


def files(folder: Path) -> dict[str, bytes]:
    """Return what a run keeps, by path."""
    found = [path for name in COMPARED for path in _all(folder / name)]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def _all(path: Path) -> list[Path]:
    return [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]


def answered(folder: Path) -> set[str]:
    """Return the hashes of the requests whose answers are in the journal."""
    texts = (entry.get("text", "") for entry in _entries(folder))
    return {match.group() for text in texts if (match := _HASH.match(text))}


def positions(folder: Path) -> list[str]:
    """Return the positions of the journal's entries."""
    return [json.dumps(entry["at"]) for entry in _entries(folder) if "at" in entry]


def _entries(folder: Path) -> list[dict[str, Any]]:
    path = folder / "journal.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []  # a torn one is none
    return [json.loads(line) for line in lines[1:]]


def _hash_of(entry: dict[str, Any]) -> str:
    return hashlib.sha256(entry["body"].encode("latin-1")).hexdigest()[:8]
