"""Text of models and data is data: it passes byte for byte and can do nothing on its way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from opro.evolvers.reply import polish
from opro.testing.handle import Loopback, in_thread
from tests.conftest import Search
from tests.endpoint import OPTIMIZER, command_line, small

PIECES = [
    "${oc.env:HOME}",
    "%s %d %(x)s {} {0} {x!r}",
    "../../etc/passwd",
    "a\0b",
    "\ud800 lone",
    "\u202etfel ot thgir",
    "👩‍👩‍👧‍👦 🏴‍☠️",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "```\n# heading | cell |\n```",
    "${{ secrets.X }} `$(rm -rf /)` \\n",
]
ALL = " ~ ".join(PIECES)
INSTRUCTION = polish("Follow " + ALL.replace("\ud800", "\ue000"))
"""As the rest, but valid Unicode, which `template: prompt-only@1.0` asks of it."""

HUGE = ALL + "z" * 1_000_000
IDS = ["../../up", "a/b", "${oc.env:HOME}", "%s{}", "n\0l", "\udc80", "\u202e", "<b>🦊</b>\x1b[1m"]


@pytest.fixture
def server() -> Iterator[Loopback]:
    rules: list[dict[str, Any]] = [
        {"contains": [OPTIMIZER], "text": [f"<INS>{INSTRUCTION}</INS>", "<INS>\ud800</INS>"]},
        {"contains": [INSTRUCTION], "text": HUGE},
        {"contains": [], "text": f"{ALL} The answer is 3."},
    ]
    with in_thread(rules=rules) as loopback:
        yield loopback


def hostile_settings(search: Search, server: Loopback) -> list[str]:
    """Write tasks whose ids, texts and file name are hostile, too."""
    arguments = small(server, search.folder)
    rows = [{"id": id_, "question": f"{ALL} {id_} 2?", "answer": "2"} for id_ in IDS]
    name = "%s {} $(x) <b> 🦊.jsonl"
    (search.folder / name).write_text("\n".join(map(json.dumps, rows)), "ascii")
    return [*arguments, f"data.path='{name}'", "trainer.run_name=x"]


def test_hostile_text_passes_through_a_whole_run(search: Search, server: Loopback) -> None:
    before = {path.name for path in search.folder.parent.iterdir()}
    arguments = [*hostile_settings(search, server), "evolver.params.num_exemplars=8"]
    done = command_line(search.folder, arguments)
    assert done.returncode == 0, done.stderr.decode()[-2000:]

    # Sent byte for byte, both as an instruction and within a meta-prompt.
    sent = [[one["content"] for one in entry["json"]["messages"]] for entry in server.log()]
    assert {tuple(one) for one in sent if one[0] == INSTRUCTION} == {
        (INSTRUCTION, f"{ALL} {id_} 2?") for id_ in IDS
    }
    assert any(f"text:\n{INSTRUCTION}\nscore:" in one[0] for one in sent)

    # Kept as it is in the records for programs …
    state = search.state()
    assert state["task_ids"] == IDS
    assert state["history"][1]["instruction"] == INSTRUCTION
    rejected = [one for one in state["steps"][0]["candidates"] if one["status"] == "skipped"]
    assert rejected and rejected[0]["instruction"] == "\ud800"
    runs = [entry for entry in search.entries() if "text" in entry]
    assert sum(entry["text"] == HUGE for entry in runs) == len(IDS)
    assert (search.path() / "output/step_000/replies.json").read_text("utf-8")

    # … and harmless for people: no control character, no markup, nothing resolved.
    shown = done.stdout + done.stderr
    assert b"\x1b" not in shown and b"\0" not in shown
    assert "\u202e" not in shown.decode("utf-8")
    for path in [search.path() / "report.md", *search.path().glob("output/*/report.md")]:
        text = path.read_text("utf-8")
        assert not {"\x1b", "\0", "\u202e"} & set(text)
        assert len(text) < 200_000

    # Nothing was written beside the run's own folders, and no name comes from a text.
    assert {path.name for path in search.folder.parent.iterdir()} == before
    names = {path.name for path in search.folder.rglob("*")}
    assert not [name for name in names if "passwd" in name or "script" in name or "🦊" in name] or (
        [name for name in names if "🦊" in name] == ["%s {} $(x) <b> 🦊.jsonl"]
    )


def test_a_hostile_run_is_replayed_to_the_same_bytes(search: Search, server: Loopback) -> None:
    arguments = hostile_settings(search, server)
    search.run(*arguments)
    asked = server.stats()["requests"]
    search.run(*arguments, "trainer.resume_mode=replay")
    assert server.stats()["requests"] == asked


def test_an_error_that_repeats_hostile_text_is_one_harmless_line(
    search: Search, server: Loopback
) -> None:
    arguments = hostile_settings(search, server)
    server.control(faults=[{"kind": "403", "value": ALL}])
    done = command_line(search.folder, [*arguments, "tracker=none"])
    assert done.returncode == 1
    assert b"\x1b" not in done.stderr and b"\0" not in done.stderr
    errors = [line for line in done.stderr.decode("utf-8").splitlines() if line[:5] == "opro:"]
    assert len(errors) == 1
    assert "\u202e" not in errors[0]
