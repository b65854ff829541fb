"""Known troubles with reading answers, each with exactly its input, through whole searches."""

from __future__ import annotations

import json

import pytest

from opro.errors import ConfigError
from opro.testing.handle import in_thread
from tests.conftest import Search
from tests.endpoint import small
from tests.test_search import optimizer, script

Pairs = list[tuple[object, str]]
"""Of an expected answer and a reply."""

BOXED = "\\boxed{12}"


def scores(search: Search, pairs: Pairs, *overrides: str) -> list[float | None]:
    """Run a search whose only instruction is the first one; return each reply's score."""
    rows = [{"q": f"question {n}.", "answer": answer} for n, (answer, _) in enumerate(pairs)]
    search.write("tasks.jsonl", "\n".join(map(json.dumps, rows)))
    replies = [{"contains": f"question {n}.", "reply": reply} for n, (_, reply) in enumerate(pairs)]
    search.run(
        "data=jsonl",
        "data.path=tasks.jsonl",
        *script(search, optimizer("nothing"), *replies),
        "trainer.epochs=1",
        "evolver.params.select=train",
        "evolver.params.n_candidates=1",
        "evolver.params.reply_parsing=strict",
        *overrides,
    )
    found: list[float | None] = search.state()["history"][0]["scores"]
    return found


def test_judging_1_spellings_of_numbers(search: Search) -> None:
    right: Pairs = [
        (1000, "$1,000."),
        ("1,000", "$1,000"),
        (29, "$29.00"),
        (-3, "The answer is -3"),
        ("#### -1,234.5", "-1234.5"),
        (42, "42."),
        (42, "**42**"),
        (12, BOXED),
        (12, f"${BOXED}$"),
        (60, "4 of the 10 left, so 60%\nDone"),
    ]
    wrong: Pairs = [(-3, "3"), (3, "-3")]
    found = scores(search, [*right, *wrong], "judge=number")
    assert found == [1.0] * len(right) + [0.0, 0.0]


def test_judging_4_decorated_letters(search: Search) -> None:
    replies = ["So the answer is (B). ", " (B)", "(B)\n", "Correct answer is (B)", "b", "B."]
    pairs: Pairs = [("(B)", reply) for reply in replies]
    assert scores(search, pairs, "judge=choice", "judge.letters=ABCD") == [1.0] * 6


def test_judging_5_letters_in_words(search: Search) -> None:
    pairs: Pairs = [
        ("C", "The answer is C because I checked."),
        ("B", "The answer is B because a car moves."),
        ("D", "Answer: **D**"),
        ("A", "Answer seems to be A.\nAnswer: A"),
        ("B", "The answer is B. Note A is a distractor."),
        ("A", "A car moves, I think."),  # a bare letter counts only when it is all there is
    ]
    found = scores(search, pairs, "judge=choice", "judge.letters=ABCDEFGHIJ")
    assert found == [1.0] * 5 + [0.0]


@pytest.mark.parametrize("tag", ["think", "thinking", "why"])
def test_judging_7_thinking_is_cut_out_and_kept(search: Search, tag: str) -> None:
    replies = [
        f"<{tag}>Could be (A).</{tag}>(B)",
        f"<{tag}>It could be (B), let me see",
        f"It could be (A).</{tag}>\n(B)",
        f"<{tag}>(B), surely.</{tag}>\n",
    ]
    own = [] if tag != "why" else ["agent.think_tags=[why]"]
    pairs: Pairs = [("B", reply) for reply in replies]
    found = scores(search, pairs, "judge=choice", "judge.letters=ABCD", *own)
    assert found == [1.0, 0.0, 1.0, 0.0]
    assert search.result()["totals"]["kinds"] == {"right": 2, "unparsed": 2}
    assert {entry["text"] for entry in search.entries() if "text" in entry} >= {*replies}


def test_judging_8_what_is_no_answer_is_told_apart(search: Search) -> None:
    def only(number: int) -> list[str]:
        return [f"number {number}?"]

    rules = [{"contains": only(1), "text": "   "}, {"contains": only(4), "text": "7"}]
    faults = [
        {"kind": "content_empty", "contains": only(0)},
        {"kind": "content_null", "contains": only(2)},
        {"kind": "refusal", "contains": only(3)},
    ]
    with in_thread(rules=rules, faults=faults) as server:
        arguments = small(server, search.folder, tasks=5)
        search.run(*arguments, "trainer.epochs=1", "llm.retries=0", "evolver.params.n_candidates=1")
    found = search.state()["history"][0]
    assert found["scores"] == [0.0, 0.0, None, 0.0, 0.0]
    assert found["score"] is None  # a run that failed leaves no score, never a 0
    journal = [one["verdict"]["kind"] for one in search.entries() if "verdict" in one]
    assert sorted(journal[:4]) == ["no_response", "no_response", "refusal", "wrong"]
    assert search.result()["totals"]["kinds"]["error"] >= 1
    report = (search.path() / "report.md").read_text("utf-8")
    assert "no text in the message" in report


def test_judging_8_a_blank_target_is_refused_and_a_blank_reply_is_never_right(
    search: Search,
) -> None:
    with pytest.raises(ConfigError, match="tasks.jsonl:2: 'answer'"):
        scores(search, [("5", "5"), ("", "")], "judge=number")
    assert not (search.folder / "mlruns").exists()
    assert scores(search, [("5", ""), ("5", "   ")], "judge=exact") == [0.0, 0.0]


def test_judging_8_a_run_without_one_readable_reply_is_warned_of(
    search: Search, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs: Pairs = [("5", "no idea"), ("6", "hard to say"), ("7", "who knows")]
    assert scores(search, pairs, "judge=number") == [0.0] * 3
    assert "100% of the answers are unparsed: the judge finds no answer" in capsys.readouterr().err
    report = (search.path() / "report.md").read_text("utf-8")
    assert "**Warning:** 100% of the runs gave no readable answer (3 unparsed)" in report
