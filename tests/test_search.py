"""Whole searches with written answers: what joins, what is skipped, what is kept on disk."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from opro.errors import ConfigError, RunError
from tests.conftest import Search

SUMS = [("a", "1+1", "2"), ("b", "1+2", "3"), ("c", "2+2", "4"), ("d", "3+3", "6")]
SUMS += [("e", "4+4", "8"), ("f", "5+4", "9"), ("g", "6+1", "7"), ("h", "0+5", "5")]


def table(search: Search) -> list[str]:
    """Eight sums: four to train on, two to validate, two to test."""
    splits = ["train"] * 4 + ["val"] * 2 + ["test"] * 2
    rows = [
        json.dumps({"id": i, "split": s, "sum": q, "answer": a})
        for (i, q, a), s in zip(SUMS, splits, strict=True)
    ]
    search.write("sums.jsonl", "\n".join(rows))
    return [
        "data=jsonl",
        "data.path=sums.jsonl",
        "data.id_field=id",
        "data.split_field=split",
        "data.fields=[sum]",
        "judge=number",
    ]


def script(search: Search, *rules: dict, name: str = "script.yaml") -> list[str]:
    search.write(name, yaml.safe_dump(list(rules)))
    return ["llm=scripted", f"llm.path={name}"]


def optimizer(*replies: str, **more: object) -> dict:
    return {"contains": "Your task is to generate", "reply": list(replies), **more}


def right(instruction: str, *ids: str) -> list[dict]:
    """Right answers to some of the sums under an instruction."""
    return [{"contains": [instruction, q], "reply": a} for i, q, a in SUMS if i in ids]


WRONG = {"contains": "", "reply": "0"}
START = "Let's solve the problem."


def statuses(search: Search, step: int = 0, name: str = "x") -> list[tuple[str, str]]:
    found = search.state(name)["steps"][step]["candidates"]
    return [(one["status"], one["reason"]) for one in found]


def test_every_reply_is_scored_or_skipped_with_its_reason(search: Search) -> None:
    replies = [
        "<INS>add **up**</INS>",
        "<INS>Add up</INS>",  # the same after polishing
        "",
        "<INS>" + "x" * 60 + "</INS>",
        "<INS>No 7 here</INS>",
        "No tags at all",
        f"<INS>{START}</INS>",  # the initial one counts as new, as upstream
        "<think>hm <INS>not this</INS></think><INS>Think first</INS>",
        "<think>never closed <INS>not this</INS>",
    ]
    search.run(
        *table(search),
        *script(search, optimizer(*replies), *right("Add up", "a", "b"), WRONG),
        "trainer.epochs=1",
        "evolver.params.n_candidates=9",
        "evolver.params.max_instruction_chars=50",
        r"evolver.params.reject_patterns=['\d']",
    )
    assert statuses(search) == [
        ("scored", ""),
        ("duplicate", "generated before"),
        ("skipped", "empty"),
        ("skipped", "60 characters, at most 50"),
        ("skipped", r"matches reject_patterns: \d"),
        ("scored", ""),
        ("scored", ""),
        ("scored", ""),
        ("skipped", "truncated"),
    ]
    texts = [entry["instruction"] for entry in search.state()["history"]]
    assert texts == [START, "Add up", "No tags at all", START, "Think first"]
    assert search.state()["history"][1]["scores"] == [1.0, 1.0, 0.0, 0.0]
    assert (search.path() / "ADAPTER.md").read_text() == "Add up"


def test_strict_parsing_truncation_and_duplicates_of_the_start(search: Search) -> None:
    rules = [
        optimizer(
            "no tags", "<INS>a</INS><INS>b</INS>", f" <INS> {START.lower()} </INS>", "<INS>c"
        ),
        WRONG,
    ]
    rules[0]["finish_reason"] = "length"
    search.run(
        *table(search),
        *script(search, *rules),
        "trainer.epochs=1",
        "evolver.params.n_candidates=4",
        "evolver.params.reply_parsing=strict",
        "evolver.params.reject_truncated=true",
        "evolver.params.dedupe_initial=true",
    )
    assert statuses(search) == [
        ("skipped", "truncated"),
        ("skipped", "no single complete tag pair"),
        ("duplicate", "generated before"),
        ("skipped", "truncated"),
    ]


def test_a_reply_is_begun_for_the_optimizer(search: Search) -> None:
    rules = [
        # The second endpoint's way: it repeats the beginning that it was given.
        {"contains": "Score 1: <INS>", "reply": ["Once</INS>", "Score 1: <INS>Twice</INS> <INS>"]},
        WRONG,
    ]
    search.run(
        *table(search),
        *script(search, *rules),
        "trainer.epochs=1",
        "evolver.params.n_candidates=2",
        "evolver.params.reply_prefix='Score 1: <INS>'",
    )
    found = search.state()["steps"][0]["candidates"]
    assert [one["instruction"] for one in found] == ["Once", "Twice"]
    replies = search.path() / "output/step_000/replies.json"
    assert json.loads(replies.read_text("utf-8"))[0]["reply"] == "Once</INS>"


def test_a_failed_optimizer_call_is_tried_once_more_then_dropped(search: Search) -> None:
    once = optimizer("<INS>One</INS>", "<INS>Two</INS>")
    failing = {"contains": "Your task is to generate", "fault": "bad_request", "times": 1}
    search.run(
        *table(search),
        *script(search, failing, once, WRONG),
        "trainer.epochs=1",
        "evolver.params.n_candidates=2",
    )
    assert [status for status, _ in statuses(search)] == ["scored", "scored"]
    failing["times"] = 2
    search.run(
        *table(search),
        *script(search, failing, once, WRONG, name="twice.yaml"),
        "trainer.epochs=2",
        "evolver.params.n_candidates=2",
        "trainer.max_failed_steps=5",
        name="twice",
    )
    assert [status for status, _ in statuses(search, name="twice")] == ["failed", "failed"]


def test_a_run_that_fails_twice_leaves_its_instruction_unscored(search: Search) -> None:
    rules = [
        optimizer("<INS>Twice</INS>", "<INS>Once</INS>"),
        {"contains": ["Twice", "1+2"], "fault": "bad_request"},
        {"contains": ["Once", "1+2"], "fault": "bad_request", "times": 1},
        *right("Once", "a", "b", "c"),
        *right("Twice", "a", "c", "d"),
        WRONG,
    ]
    search.run(
        *table(search),
        *script(search, *rules),
        "trainer.epochs=1",
        "evolver.params.n_candidates=2",
    )
    assert statuses(search) == [("unscored", "1 of 4 runs failed twice: b"), ("scored", "")]
    history = search.state()["history"]
    assert [entry["score"] for entry in history] == [0.0, None, 0.75]
    assert history[1]["scores"] == [1.0, None, 1.0, 1.0]
    assert search.result()["winner"]["instruction"] == "Once"


def test_selection_on_validation_and_its_tie_rules(search: Search) -> None:
    rules = [
        optimizer("<INS>Best</INS>", "<INS>Tie</INS>", "<INS>Late</INS>", "<INS>Low</INS>"),
        *right("Best", "a", "b", "c"),
        *right("Tie", "a", "b", "c", "e"),
        *right("Late", "a", "b", "c", "e"),
        *right("Low", "a", "e", "f"),
        WRONG,
    ]
    arguments = [
        *table(search),
        *script(search, *rules),
        "trainer.epochs=1",
        "evolver.params.n_candidates=4",
    ]
    search.run(*arguments)
    assert search.result()["winner"]["instruction"] == "Tie"  # 0.5 twice: the earlier
    assert [row["validation"] for row in search.result()["finalists"]] == [0.0, 0.5, 0.5]
    outcome = search.run(*arguments, "evolver.params.select=train", name="train")
    assert search.result("train")["winner"]["instruction"] == "Best"
    assert outcome.value == 0.75
    search.run(*arguments, "evolver.params.top_k=4", name="four")
    assert search.result("four")["winner"]["instruction"] == "Low"


def test_the_meta_prompt_shows_scores_exemplars_and_answers(search: Search) -> None:
    rules = [optimizer("<INS>New</INS>", "<INS>Newer</INS>"), *right(START, "a"), WRONG]
    search.run(
        *table(search),
        *script(search, *rules),
        "trainer.epochs=2",
        "evolver.params.n_candidates=1",
        "evolver.params.num_exemplars=50",
        "evolver.params.score_threshold=0.25",
    )
    text = (search.path() / "output/step_001/meta_prompt.md").read_text()
    assert f"\ntext:\n{START}\nscore:\n25\n" in text
    assert "text:\nNew\n" not in text  # scored 0, under the threshold
    assert "\nProblem:\n<INS>\n1+1\n\nGround truth answer:\n2\n" in text
    feedback = "The answer given was '0'; the expected answer is '3'."
    assert f"\nProblem:\n<INS>\n1+2\n\nGround truth answer:\n{feedback}\n" in text
    assert search.state()["steps"][0]["exemplar_ids"] == ["a", "b", "c", "d"]


def test_hostile_instructions_are_sent_and_kept_byte_for_byte(search: Search) -> None:
    hostile = 'Pay ${oc.env:HOME} and ${amount} {"x": 1} at 100% %s {} <b>|`\u202e'
    rules = [
        optimizer(f"<INS>{hostile}</INS>"),
        *right(hostile, "a", "b", "c", "d"),
        {"contains": "Pay", "fault": "bad_request"},  # anything but the exact text fails
        WRONG,
    ]
    (search.folder / "start.md").write_text("Start ${amount} at {50%}")
    search.run(
        *table(search),
        *script(search, *rules),
        "trainer.epochs=1",
        "evolver.params.n_candidates=1",
        "evolver.params.select=train",
        "evolver.initial_instructions=['@start.md', 'And ${amount}']",
    )
    texts = [entry["instruction"] for entry in search.state()["history"]]
    assert texts == ["Start ${amount} at {50%}", "And ${amount}", hostile]
    assert search.result()["winner"]["train_score"] == 1.0
    assert (search.path() / "ADAPTER.md").read_text("utf-8") == hostile


FILES = ("state/opro.json", "report.md", "ADAPTER.md", "output/step_001/report.md")


def kept(search: Search, name: str) -> dict[str, bytes]:
    return {file: (search.path(name) / file).read_bytes() for file in FILES}


def rich_search(search: Search) -> list[str]:
    texts = [f"<INS>Number {i % 7}</INS>" for i in range(12)]
    rules = [
        optimizer(*texts),
        *right("Number 1", "a", "b"),
        *right("Number 4", "c", "e"),
        {"contains": ["Number 5", "2+2"], "fault": "server_error", "times": 1},
        WRONG,
    ]
    return [
        *table(search),
        *script(search, *rules),
        "trainer.epochs=3",
        "evolver.params.n_candidates=4",
        "llm.seconds=0.002",
    ]


def test_the_same_bytes_at_any_concurrency(search: Search) -> None:
    arguments = rich_search(search)
    for width in (1, 3, 32):
        search.run(*arguments, f"trainer.concurrency={width}", name=f"w{width}")
    assert kept(search, "w1") == kept(search, "w3") == kept(search, "w32")


def test_a_cut_journal_is_continued_to_the_same_bytes(search: Search) -> None:
    arguments = rich_search(search)
    search.run(*arguments, name="whole")
    journal = (search.path("whole") / "journal.jsonl").read_bytes()
    for part in (0.1, 0.5, 0.93):
        name = f"cut{part}"
        search.path(name).mkdir(parents=True)
        (search.path(name) / "journal.jsonl").write_bytes(journal[: int(len(journal) * part)])
        search.run(*arguments, name=name)
        assert kept(search, name) == kept(search, "whole")
        positions = [json.dumps(entry["at"]) for entry in search.entries(name)]
        assert len(positions) == len(set(positions))  # nothing was asked twice
        assert sorted(positions) == sorted(json.dumps(e["at"]) for e in search.entries("whole"))


def test_replay_asks_nothing_and_finds_a_changed_file(search: Search) -> None:
    arguments = rich_search(search)
    search.run(*arguments)
    replay = [*arguments, "trainer.resume_mode=replay"]
    before = (search.path() / "journal.jsonl").read_bytes()
    search.run(*replay)
    assert (search.path() / "journal.jsonl").read_bytes() == before
    (search.path() / "output/step_001/report.md").write_text("tampered")
    with pytest.raises(RunError, match="replay: differs from the run in output/step_001/report.md"):
        search.run(*replay)


def test_a_finished_run_is_refused_but_more_steps_are_welcome(search: Search) -> None:
    arguments = rich_search(search)
    search.run(*arguments, "trainer.epochs=2")
    with pytest.raises(ConfigError, match=r"trainer.run_name=x: this run is finished \(2 steps\)"):
        search.run(*arguments, "trainer.epochs=2")
    asked = len(search.entries())
    search.run(*arguments)
    search.run(*arguments, name="straight")
    assert kept(search, "x") == kept(search, "straight")
    assert len(search.entries()) > asked
    with pytest.raises(ConfigError, match="trainer.resume_mode=disable"):
        search.run(*arguments, "trainer.resume_mode=disable")


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("evolver.params.n_candidates=3", "evolver.params.n_candidates: 4 -> 3"),
        ("evolver.initial_instructions=[Other]", "evolver.initial_instructions: "),
        ("judge=exact", "judge."),
        ("agent.max_tokens=5", "agent.max_tokens: null -> 5"),
        ("data.test=1", "data.digest: "),
    ],
)
def test_a_changed_setting_is_refused_with_a_diff(search: Search, change: str, shown: str) -> None:
    arguments = rich_search(search)
    search.run(*arguments)
    with pytest.raises(ConfigError, match="was run with other settings") as caught:
        search.run(*arguments, change, "trainer.epochs=4")
    assert shown in str(caught.value)


@pytest.mark.parametrize("calls", [1, 3, 10, 31, 60])
def test_a_spent_budget_ends_cleanly_and_can_be_raised(search: Search, calls: int) -> None:
    arguments = rich_search(search)
    search.run(*arguments, name="whole")
    search.run(*arguments, f"trainer.budget.calls={calls}")
    assert search.result()["stop_reason"] == f"budget: trainer.budget.calls={calls} is used up"
    assert search.result()["totals"]["requests"] == calls
    search.run(*arguments, f"trainer.budget.calls={calls}", "trainer.resume_mode=replay")
    search.run(*arguments, "trainer.budget.calls=100000")
    assert kept(search, "x") == kept(search, "whole")


def test_steps_without_one_answer_end_the_run_and_can_be_resumed(search: Search) -> None:
    fine = rich_search(search)
    broken = [*table(search), *script(search, {"contains": "", "fault": "server_error"})]
    broken += [*fine[len(broken) :], "llm.retries=0", "trainer.max_failed_steps=2"]
    with pytest.raises(RunError, match="nothing could be scored in 2 steps in a row.*server_error"):
        search.run(*broken)
    assert not (search.path() / "result.json").exists()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.step_size=2", "data.step_size=2: OPRO scores on the whole training split"),
        ("data.val=0", "evolver.params.select=validation: needs data.val"),
        ("evolver.params.question_field=smu", r"task 'a' has no such field \(did you mean 'sum'"),
        ("evolver.params.reject_patterns=['(']", "is no regular expression"),
        ("evolver.params.select=best", 'evolver.params.select="best": input should be'),
        ("evolver.params.score_threshold=30", "evolver.params.score_threshold=30: input should"),
        ("evolver.initial_instructions=[]", r"evolver.initial_instructions=\[\]: give at least"),
        ("evolver.initial_instructions=['@no.md']", "evolver.initial_instructions: @no.md: "),
        ("template=prompt@1.0", r"template=prompt@1.0: must be prompt-only@1.0"),
        ("agent.question_field=x", "agent.question_field=x: task 'a' has no such field"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(
    search: Search, override: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        search.run(*rich_search(search), override)
    assert "\n" not in str(caught.value)
    assert not (search.folder / "mlruns").exists()


def test_a_second_process_on_one_run_is_refused(search: Search) -> None:
    arguments = rich_search(search)
    search.run(*arguments, "trainer.epochs=1")
    hold = (
        "import fcntl, sys; file = open(sys.argv[1], 'a+'); fcntl.flock(file, fcntl.LOCK_EX);"
        " print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(search.path() / "run.lock")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        with pytest.raises(ConfigError, match="trainer.run_name=x: in use by another process"):
            search.run(*arguments)
        owner.kill()
    search.run(*arguments)  # the lock died with its owner
