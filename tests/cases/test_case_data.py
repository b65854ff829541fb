"""Known troubles with data, each with exactly its input, through whole searches."""

from __future__ import annotations

import json
import re

import pytest

from opro.errors import ConfigError
from opro.testing.handle import in_thread
from tests.conftest import Search
from tests.endpoint import small
from tests.store import points
from tests.test_search import START, optimizer, right, script, table

ONE = ["trainer.epochs=1", "evolver.params.n_candidates=1", "trainer.rescore=false"]
SMALL = [*ONE, "evolver.params.select=train"]


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_data_1_a_byte_order_mark(search: Search, kind: str) -> None:
    rows = [{"question": "1+1", "answer": "2"}, {"question": "2+2", "answer": "4"}]
    text = "question,answer\n1+1,2\n2+2,4\n\n"
    if kind == "jsonl":
        text = "\n".join(map(json.dumps, rows)) + "\n\n"
    (search.folder / f"tasks.{kind}").write_bytes(b"\xef\xbb\xbf" + text.encode())
    rules = script(search, optimizer("<INS>New</INS>"), {"reply": "2"})
    search.run(f"data={kind}", f"data.path=tasks.{kind}", *rules, *SMALL, "judge=number")
    assert search.state()["task_ids"] == ["row-00001", "row-00002"]
    assert search.state()["history"][0]["scores"] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "override", "message"),
    [
        ("", "data.train=null", "data.path=tasks.jsonl: 0 rows"),
        ("\n\n", "data.train=null", "data.path=tasks.jsonl: 0 rows"),
        ('{"q": "x", "answer": "1"}\n' * 3, "data.train=0", "data.train=0"),
        ('{"q": "x", "answer": "1"}\n' * 3, "data.train=0.01", "data.train=0.01: no row is left"),
        ('{"q": "x", "answer": "1"}\n' * 3, "data.train=ids.txt", "data.train=ids.txt"),
        ('{"q": "x", "answer": "1", "s": "test"}\n', "data.split_field=s", "data.train"),
    ],
)
def test_data_4_no_task_left_is_one_line_before_any_call(
    search: Search, text: str, override: str, message: str
) -> None:
    with in_thread() as server:
        arguments = small(server, search.folder)
        search.write("tasks.jsonl", text)
        search.write("ids.txt", "\n")
        with pytest.raises(ConfigError, match=message) as caught:
            search.run(*arguments, "data.id_field=null", override, "tracker=mlflow")
        assert server.stats()["requests"] == 0
    assert "\n" not in str(caught.value)
    assert not (search.folder / "mlruns").exists()


@pytest.mark.parametrize(("asked", "shown"), [(3, 3), (0, 0), (50, 10)])
@pytest.mark.parametrize("answer", ["agent", "gold"])
def test_data_5_exemplars_match_their_answers_and_never_repeat(
    search: Search, capsys: pytest.CaptureFixture[str], asked: int, shown: int, answer: str
) -> None:
    questions = [f"Which number is {number}?" for number in range(19)]
    questions.append(questions[4])  # one question twice
    rows = [{"id": f"t{n:02}", "q": q, "answer": f"of t{n:02}"} for n, q in enumerate(questions)]
    search.write("tasks.jsonl", "\n".join(map(json.dumps, rows)))
    rules = [optimizer("<INS>New</INS>"), {"reply": "no"}]
    arguments = ["data=jsonl", "data.path=tasks.jsonl", "data.id_field=id", "judge=exact"]
    search.run(
        *arguments,
        *script(search, *rules),
        *ONE,
        "data.train=0.5",
        "data.val=rest",
        f"evolver.params.num_exemplars={asked}",
        f"evolver.params.exemplar_answer={answer}",
    )
    text = (search.path() / "output/step_000/meta_prompt.md").read_text("utf-8")
    pairs = re.findall(r"\nProblem:\n<INS>\n(.+)\n\nGround truth answer:\n(.+)\n", text)
    ids = search.state()["steps"][0]["exemplar_ids"]
    assert len(pairs) == len(set(ids)) == shown
    by_id = {row["id"]: row for row in rows}
    for id_, (question, shown_answer) in zip(ids, pairs, strict=True):
        assert question == by_id[id_]["q"]
        feedback = f"The answer given was 'no'; the expected answer is 'of {id_}'."
        assert shown_answer == (f"of {id_}" if answer == "gold" else feedback)
    assert ("Below are some problems." in text) == (shown > 0)
    assert text.endswith("generally applicable to all problems above.")
    train = search.state()["task_ids"]
    assert (
        len({by_id[id_]["q"] for id_ in train} & {r["q"] for r in rows if r["id"] not in train})
        == 0
    )
    said = "num_exemplars=50 is capped at the 10 training tasks"
    assert (said in capsys.readouterr().err) == (asked == 50)


def test_data_5_held_out_scores_have_names_of_their_own(search: Search) -> None:
    rules = [optimizer("<INS>Better.</INS>"), *right("Better", "a", "b", "c", "e"), {"reply": "0"}]
    search.run(*table(search), *script(search, *rules), *ONE, "tracker=mlflow")
    assert search.state()["history"][0]["instruction"] == START
    assert points(search, "train/score")[-1][1] == 0.75
    assert points(search, "val/score")[-1][1] == 0.5
    assert points(search, "test/score")[-1][1] == 0.0
