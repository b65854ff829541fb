"""Known troubles with what an optimizer replies, each with exactly its input."""

from __future__ import annotations

import json

import pytest

from opro.testing.handle import in_thread
from tests.conftest import Search
from tests.endpoint import OPTIMIZER, small
from tests.store import artifact, points
from tests.test_search import START, WRONG, optimizer, right, script, statuses, table

STRICT = [
    "trainer.epochs=1",
    "evolver.params.select=train",
    "evolver.params.reply_parsing=strict",
    "evolver.params.reject_truncated=true",
    "evolver.params.dedupe_initial=true",
]
CUT = ["<think>I look at the scores. The best one says how.", "<INS>Add the numbers in your"]
ODD = [
    "Work through the problem with care.",
    "Sure! Here is a better instruction for you: work slowly.",
    "</INS> x <INS>",
    "<INS>One way.</INS> or <INS>another way.</INS>",
    "```plaintext\n<INS>In a fence.</INS>\n```",
]
APOLOGY = "Sorry, I cannot help with that"
NO_PAIR = ("skipped", "no single complete tag pair")


@pytest.mark.parametrize("finish", ["length", "stop"])
def test_parsing_1_a_reply_that_is_cut_off_is_no_instruction(search: Search, finish: str) -> None:
    rules = [optimizer(*CUT, "<INS>Whole.</INS>", finish_reason=finish), WRONG]
    search.run(*table(search), *script(search, *rules), *STRICT, "evolver.params.n_candidates=3")
    assert statuses(search) == [("skipped", "truncated")] * 2 + [("scored", "")]


def test_parsing_2_and_3_tags_missing_reversed_twice_or_in_a_fence(search: Search) -> None:
    replies = [*CUT, *ODD, APOLOGY]
    rules = [optimizer(*replies, finish_reason="length"), WRONG]
    search.run(
        *table(search),
        *script(search, *rules),
        *STRICT,
        "evolver.params.n_candidates=8",
        "tracker=mlflow",
    )
    cut = ("skipped", "truncated")
    assert statuses(search) == [cut, cut, cut, cut, NO_PAIR, NO_PAIR, ("scored", ""), cut]
    assert [one["instruction"] for one in search.state()["history"]] == [START, "In a fence."]
    # Counted, and kept as they came, both on disk and in MLflow.
    assert points(search, "step_counts/n_skipped") == [(0, 7.0)]
    assert points(search, "step_counts/n_candidates") == [(0, 8.0)]
    kept = json.loads(artifact(search, "output/step_000/replies.json"))
    assert [one["reply"] for one in kept] == replies
    assert kept == json.loads((search.path() / "output/step_000/replies.json").read_text("utf-8"))


def test_parsing_2_by_the_authors_rule_there_is_no_exception_either(search: Search) -> None:
    rules = [optimizer(*ODD, APOLOGY), WRONG]
    rest = [*STRICT[:2], "evolver.params.n_candidates=6"]
    search.run(*table(search), *script(search, *rules), *rest)
    texts = [one["instruction"] for one in search.state()["history"]]
    assert texts == [START, ODD[0], ODD[1], "One way.", "In a fence.", APOLOGY]
    assert statuses(search)[2] == ("skipped", "empty")


def test_parsing_3_an_apology_from_a_real_endpoint(search: Search) -> None:
    rules = [
        {"contains": [OPTIMIZER], "text": [APOLOGY, "<INS>Good.</INS>"], "pick": "count"},
        {"contains": [], "text": "2"},
    ]
    with in_thread(rules=rules) as server:
        arguments = [*small(server, search.folder, width=1), "llm.seed=null", *STRICT]
        search.run(*arguments, "evolver.params.n_candidates=2")
        sent = [str(entry["json"]["messages"]) for entry in server.log()]
    assert statuses(search) == [NO_PAIR, ("scored", "")]
    assert not any(text.startswith(f"[{{'role': 'system', 'content': '{APOLOGY}") for text in sent)


@pytest.mark.parametrize("seed", ["Solve the sum.", "solve the **sum**."])
def test_parsing_4_equal_candidates_are_scored_and_paid_for_once(search: Search, seed: str) -> None:
    lower = f"{seed[0].lower()}{seed[1:]}"
    replies = [f"<INS>{text}</INS>" for text in (seed, f"{seed} ", lower, "Count on.")]
    rules = [optimizer(*replies), *right("Count on.", "a"), *right(seed, "b", "c"), WRONG]
    search.run(
        *table(search),
        *script(search, *rules),
        *STRICT,
        "evolver.params.n_candidates=4",
        f"evolver.initial_instructions=['{seed}']",
        "trainer.compare=[]",
        "tracker=mlflow",
    )
    again = ("duplicate", "generated before")
    assert statuses(search) == [again, again, again, ("scored", "")]
    history = search.state()["history"]
    assert [(one["instruction"], one["score"]) for one in history] == [
        *((seed, 0.5), ("Count on.", 0.25))
    ]
    assert search.result()["totals"]["by_role"]["agent"]["calls"] == 2 * 4
    assert points(search, "step_counts/n_unique") == [(0, 1.0)]
    assert points(search, "step_counts/n_duplicate") == [(0, 3.0)]


def test_parsing_4_equal_new_ones_are_scored_once(search: Search) -> None:
    replies = ["<INS>Count on.</INS>", "<INS> count on. </INS>", "<INS>**Count on.**</INS>"]
    search.run(
        *table(search),
        *script(search, optimizer(*replies), WRONG),
        *STRICT[:2],
        "evolver.params.n_candidates=3",
    )
    assert [one for one, _ in statuses(search)] == ["scored", "duplicate", "duplicate"]
