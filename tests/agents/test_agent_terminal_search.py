"""Whole searches with agent=terminal: right and wrong scores, containers that die, resumes."""

from __future__ import annotations

import json
import shlex
import threading
import time
from collections.abc import Iterator

import pytest
import yaml

from opro.agents.base import Session
from opro.agents.container import Container
from opro.agents.docker_engine import Engine
from opro.data.table import Jsonl
from opro.testing.handle import in_thread
from opro.types import Completion
from tests.agents.conftest import Runner, small_box
from tests.conftest import Search

SOLUTIONS = {
    "count-errors": "grep -c ERROR app.log > answer.txt",
    "largest-file": "ls -S data | head -n 1 > answer.txt",
    "rename-all": 'for f in notes/*.text; do mv "$f" "${f%.text}.txt"; done',
    "sum-column": "awk -F, 'NR>1{s+=$3} END{print s}' sales.csv > answer.txt",
    "fix-script": (
        'printf \'#!/bin/sh\nif [ -z "$1" ]; then\n  echo "usage: greet.sh NAME"\n'
        '  exit 2\nfi\necho "Hello, $1!"\n\' > greet.sh'
    ),
    "find-secret": "grep -rl marmalade tree > answer.txt",
    "unique-sorted": "sort -u words.txt > sorted.txt",
    "make-script": "echo 'echo $((2 * $1))' > double.sh",
    "count-words": "wc -w < poem.txt > answer.txt",
    "delete-empty": 'find box -type f | while read -r f; do [ -s "$f" ] || rm "$f"; done',
    "upper-case": "tr a-z A-Z < in.txt > out.txt",
    "last-entry": "sort log.txt | tail -n 1 > answer.txt",
    "pack": "tar -czf src.tar.gz src",
    "count-files": "find pile -type f | wc -l > answer.txt",
    "replace-word": "sed -i 's/colour/color/g' page.txt",
    "join-files": "cat part1 part2 part3 > whole",
    "executable": "chmod +x run.sh && ./run.sh > answer.txt",
    "max-value": "sort -k2 -n temps.txt | tail -n 1 | cut -d' ' -f1 > answer.txt",
}
DEMO = Jsonl(
    path="pkg://opro/data/terminal_demo.jsonl",
    id_field="id",
    answer_field=None,
    split_field="split",
    fields=["task"],
).load()


def test_every_task_of_the_demo_can_be_done_and_is_not_done_by_itself(
    daemon: Engine, nothing_left: None
) -> None:
    tasks = DEMO.train + DEMO.val + DEMO.test
    assert [len(DEMO.split(name)) for name in ("train", "val", "test")] == [8, 5, 5]
    assert {task.id for task in tasks} == set(SOLUTIONS)
    script = """
        rate() { sh -c "$CHECK" > /tmp/out 2>&1 && ! grep -q "^SCORE: 0" /tmp/out; }
        rate && echo done by itself
        (eval "$SOLUTION")
        rate && echo done
        cd /; find /work -mindepth 1 -maxdepth 1 -exec rm -r {} +"""
    name = daemon.start(small_box("demo"))
    try:
        box = Container(daemon, name)
        for task in tasks:
            box.write(task.extra["files"])
            values = {"CHECK": task.extra["check"], "SOLUTION": SOLUTIONS[task.id]}
            given = "".join(f"{key}={shlex.quote(text)}\n" for key, text in values.items())
            ran = box.shell(given + script, 20, 10_000)
            assert (task.id, ran.output) == (task.id, b"done\n")
    finally:
        daemon.remove(name)


@pytest.fixture
def arguments(search: Search, nothing_left: None) -> Iterator[list[str]]:
    """Two tasks, one of which takes a while; an instruction that does them and one that doesn't."""
    rows = [
        {"id": "quick", "split": "train", "task": "Make q.", "check": "[ -f q ]"},
        {"id": "slow", "split": "train", "task": "Make s.", "check": "[ -f s ]"},
    ]
    search.write("tasks.jsonl", "\n".join(map(json.dumps, rows)))
    rules = [
        {"contains": "Your task is to generate", "reply": ["<INS>Do well.</INS>"]},
        {"contains": ["Make q.", "Do well."], "reply": "```bash\ntouch q\n```\nDONE"},
        {"contains": ["Make s.", "exit code: "], "reply": "DONE"},
        {"contains": "Make s.", "reply": "```bash\nsleep 1\ntouch s\n```"},
        {"contains": "", "reply": "DONE"},
    ]
    search.write("script.yaml", yaml.safe_dump(rules))
    yield [
        "agent=terminal",
        "judge=environment",
        "data=jsonl",
        "data.path=tasks.jsonl",
        "data.id_field=id",
        "data.split_field=split",
        "data.fields=[task]",
        "data.answer_field=null",
        "llm=scripted",
        "llm.path=script.yaml",
        "trainer.epochs=1",
        "evolver.params.n_candidates=1",
        "evolver.params.select=train",
    ]


def test_right_and_wrong_scores_and_feedback(search: Search, arguments: list[str]) -> None:
    search.run(*arguments)
    assert [entry["scores"] for entry in search.state()["history"]] == [[0.0, 1.0], [1.0, 1.0]]
    prompt = (search.path() / "output/step_000/meta_prompt.md").read_text("utf-8")
    assert "The check exited with 1." in prompt
    runs = [entry for entry in search.entries() if entry["at"][-1] == "run"]
    slow = [entry["trajectory"] for entry in runs if "slow" in entry["at"]]
    assert len(slow) == 2
    assert [step.get("command") for step in slow[0]] == ["sleep 1\ntouch s\n", None, None]


def test_a_container_that_dies_once_counts_and_one_that_dies_twice_leaves_no_score(
    search: Search, arguments: list[str], daemon: Engine
) -> None:
    # The first instruction's container dies once, the second one's each time.
    victims = [("1", True), ("2", False), ("1", True), ("2", True)]
    script = search.folder / "script.yaml"
    script.write_text(script.read_text().replace("touch s", "sleep 1; touch s"))
    killer = threading.Thread(target=_kill, args=(daemon, "slow", victims))
    killer.start()
    search.run(*arguments)
    killer.join()
    history = search.state()["history"]
    assert [entry["score"] for entry in history] == [0.5, None]
    assert [entry["scores"] for entry in history] == [[0.0, 1.0], [1.0, None]]
    reasons = [entry["reason"] for entry in search.entries() if entry.get("error") == "run"]
    assert reasons == ["the container was ended from outside (exit code 137)"] * 3
    assert search.state()["steps"][0]["candidates"][0]["status"] == "unscored"


def _kill(daemon: Engine, task: str, victims: list[tuple[str, bool]]) -> None:
    """Kill, one after the other, the containers of a task's attempts that are to die."""
    seen: set[str] = set()
    with Engine(daemon.version) as engine:
        for attempt, dies in victims:
            found = _next(engine, task, attempt, seen)
            seen.add(found)
            if dies:
                time.sleep(0.4)  # so that its command is under way
                engine.api.kill(found)


def _next(engine: Engine, task: str, attempt: str, seen: set[str]) -> str:
    wanted = {"opro.run": "x", "opro.task": task, "opro.attempt": attempt}
    for _ in range(600):
        for found in engine.ours():
            if found.id not in seen and wanted.items() <= found.labels.items():
                if engine.state(found.id)["Running"]:
                    return found.id
        time.sleep(0.02)
    raise AssertionError(f"no container for attempt {attempt}")


def test_a_resume_asks_nothing_again_but_works_again(search: Search, arguments: list[str]) -> None:
    search.run(*arguments)
    whole = search.state()
    journal = search.path() / "journal.jsonl"
    kept = [line for line in journal.read_text().splitlines() if '"run"]' not in line]
    journal.write_text("\n".join(kept) + "\n")
    (search.path() / "result.json").unlink()
    search.run(*arguments)
    assert search.state()["history"] == whole["history"]
    assert search.result()["totals"]["requests"] == 0


def test_a_conversation_that_outgrows_the_model_is_a_limit(
    search: Search, arguments: list[str]
) -> None:
    rules = [
        {"contains": "Your task is to generate", "reply": ["<INS>x</INS>"]},
        {"contains": "exit code: ", "fault": "context_overflow"},
        {"contains": "", "reply": "```bash\ntouch q s\n```"},
    ]
    search.write("script.yaml", yaml.safe_dump(rules))
    search.run(*arguments, "trainer.epochs=1")
    assert search.state()["history"][0]["scores"] == [1.0, 1.0]
    reasons = {entry["reason"] for entry in search.entries() if entry["at"][-1] == "run"}
    assert reasons == {"context: the conversation grew longer than the model can read"}


def test_the_demo_brings_its_judge_and_the_command_line_wins(search: Search) -> None:
    config = search.config("data=terminal_demo", "agent=terminal")
    assert config["judge"]["_target_"] == "opro.judges.environment.Environment"
    chosen = search.config("data=terminal_demo", "agent=terminal", "judge=number")
    assert chosen["judge"]["_target_"] != config["judge"]["_target_"]


def test_a_container_says_whose_it_is(runner: Runner, daemon: Engine) -> None:
    found: list[dict[str, str]] = []

    def look(request: object) -> Completion:
        found.extend(dict(one.labels) for one in daemon.ours())
        return Completion(text="DONE")

    task = DEMO.train[0]
    session = Session(ask=look, position=(0,), run_name="n", sweep="s", attempt=2)
    runner.agent.run("", task, session)
    (labels,) = [one for one in found if one["opro.run"] == "n"]
    assert labels["opro.project"] == "opro" and labels["opro.sweep"] == "s"
    assert (labels["opro.task"], labels["opro.attempt"]) == (task.id, "2")


def test_a_model_on_localhost_is_asked_from_the_host(search: Search, nothing_left: None) -> None:
    row = {"task": "Make q.", "check": "[ -f q ]"}
    search.write("tasks.jsonl", json.dumps(row))
    rules = [
        {"contains": ["exit code: "], "text": "DONE"},
        {"contains": ["Make q."], "text": "```bash\ntouch q\n```"},
    ]
    with in_thread(rules=rules) as server:
        search.run(
            "agent=terminal",
            "judge=environment",
            "data=jsonl",
            "data.path=tasks.jsonl",
            "data.fields=[task]",
            "data.answer_field=null",
            "llm=openai",
            "llm.model=m",
            "llm.api_key_env=null",
            f"llm.base_url={server.base_url.replace('127.0.0.1', 'localhost')}",
            "trainer.epochs=1",
            "evolver.params.n_candidates=1",
            "evolver.params.num_exemplars=0",
            "evolver.params.select=train",
        )
        assert server.stats()["requests"] >= 2
    assert search.state()["history"][0]["scores"] == [1.0]
