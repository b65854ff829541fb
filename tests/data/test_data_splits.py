"""How rows fall into splits: files of ids, native splits, draws, the rest, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from opro.data.rows import Row, content
from opro.data.splits import Plan, divide
from opro.errors import ConfigError
from opro.types import Split, Task


def row(
    number: int, question: str | None = None, native: Split | None = None, answer: str = "x"
) -> Row:
    fields = {"question": question or f"question {number}"}
    task = Task(id=f"t{number}", fields=fields, answer=answer)
    return Row(task=task, where=f"f.csv:{number}", native=native)


def plan(**settings: object) -> Plan:
    empty = {"train": None, "val": None, "test": None, "draw": "port", "seed": 0}
    return Plan(**{**empty, **settings})


def ids(rows: list[Row], **settings: object) -> dict[str, list[str]]:
    return {n: [t.id for t in tasks] for n, tasks in divide(rows, plan(**settings)).items()}


def refused(rows: list[Row], **settings: object) -> str:
    with pytest.raises(ConfigError) as caught:
        divide(rows, plan(**settings))
    assert "\n" not in str(caught.value)
    return str(caught.value)


PLAIN = [row(i) for i in range(20)]
NATIVE = [row(i, native="train" if i < 12 else "val" if i < 16 else "test") for i in range(20)]


def numbers(found: list[str]) -> list[int]:
    return [int(name[1:]) for name in found]


class TestWholeSplits:
    def test_no_native_split(self) -> None:
        assert ids(PLAIN) == {"train": [f"t{i}" for i in range(20)], "val": [], "test": []}

    def test_native(self) -> None:
        assert {name: len(found) for name, found in ids(NATIVE).items()} == {
            "train": 12,
            "val": 4,
            "test": 4,
        }

    def test_train_takes_what_the_others_leave(self) -> None:
        found = ids(PLAIN, val=4, test=0.25)
        assert [len(found[name]) for name in ("train", "val", "test")] == [11, 4, 5]
        assert sorted(sum(map(numbers, found.values()), [])) == list(range(20))

    def test_val_drawn_from_native_train(self) -> None:
        rows = [row(i, native="train" if i < 12 else "test") for i in range(20)]
        found = ids(rows, val=3)
        assert len(found["train"]) == 9
        assert set(found["train"]) | set(found["val"]) == {f"t{i}" for i in range(12)}
        assert len(found["test"]) == 8


class TestDraws:
    def test_order_is_the_datas(self) -> None:
        for found in ids(PLAIN, train=8, val=6).values():
            assert numbers(found) == sorted(numbers(found))

    def test_seed(self) -> None:
        assert ids(PLAIN, train=8, seed=1) == ids(PLAIN, train=8, seed=1)
        assert ids(PLAIN, train=8, seed=1) != ids(PLAIN, train=8, seed=2)

    def test_larger_count_adds_rows(self) -> None:
        assert set(ids(PLAIN, train=5)["train"]) < set(ids(PLAIN, train=9)["train"])

    def test_other_splits_do_not_move_train(self) -> None:
        train = ids(PLAIN, train=8)["train"]
        assert ids(PLAIN, train=8, val=3, test="rest")["train"] == train

    def test_fraction_is_of_the_whole_pool(self) -> None:
        found = ids(PLAIN, train=0.5, val=0.25, test=0.25)
        assert [len(found[name]) for name in ("train", "val", "test")] == [10, 5, 5]

    def test_fraction_is_rounded_as_a_person_would(self) -> None:
        rows = [row(i) for i in range(100)]
        assert len(ids(rows, train=0.29)["train"]) == 29

    def test_one_and_one_point_zero(self) -> None:
        assert len(ids(PLAIN, train=1)["train"]) == 1
        assert len(ids(PLAIN, train=1.0)["train"]) == 20

    def test_native_pool(self) -> None:
        found = ids(NATIVE, train=6, val=2, test=0)
        assert all(i < 12 for i in numbers(found["train"]))
        assert all(12 <= i < 16 for i in numbers(found["val"]))
        assert found["test"] == []

    def test_rest(self) -> None:
        found = ids(PLAIN, train=8, val=4, test="rest")
        assert sorted(sum(map(numbers, found.values()), [])) == list(range(20))

    @pytest.mark.parametrize("seed", range(30))
    def test_equal_questions_stay_together(self, seed: int) -> None:
        rows = [*PLAIN, row(20, "Question  3 "), row(21, "QUESTION\n7")]
        splits = divide(rows, plan(train=7, val=7, test="rest", seed=seed))
        held = [{content(task.fields) for task in tasks} for tasks in splits.values()]
        assert sum(map(len, held)) == 20
        assert [len(tasks) for tasks in splits.values()] == [7, 7, 8]

    def test_upstream_drops_repeats_from_later_splits(self) -> None:
        rows = [row(i, f"question {i % 10}") for i in range(40)]
        found = divide(rows, plan(train=0.2, val=0.2, test="rest", draw="upstream"))
        assert len(found["train"]) == 8
        held = [{content(task.fields) for task in tasks} for tasks in found.values()]
        assert sum(map(len, held)) == len(set.union(*held))


class TestRefused:
    @pytest.mark.parametrize("spec", [0, -1, 0.0, 1.5, -0.1, float("nan"), ""])
    def test_impossible(self, spec: object) -> None:
        assert refused(PLAIN, train=spec).endswith(
            f"data.train={spec}: allowed are null, a count, a fraction above 0 and up to 1, "
            "'rest' or a file of ids"
        )

    def test_too_many(self) -> None:
        message = "data.train=21: 21 rows are wanted, 20 of its pool's 20 rows are free"
        assert refused(PLAIN, train=21) == message
        assert refused(PLAIN, train=15, val=6).startswith("data.val=6: 6 rows are wanted, 5 of")

    def test_fraction_of_nothing(self) -> None:
        assert refused(PLAIN, val=0.01) == "data.val=0.01: no row is left for it"

    def test_nothing_left(self) -> None:
        assert refused(PLAIN, train=20, test="rest") == "data.test=rest: no row is left for it"
        assert refused(PLAIN, val=20) == "data.train=null: no row is left for it"

    def test_groups_that_do_not_fit(self) -> None:
        rows = [row(i, f"q {i // 2}") for i in range(6)]
        assert refused(rows, train=3).startswith("data.train=3: only 2 of 3 rows can be drawn")

    def test_duplicate_id(self) -> None:
        rows = [row(1), Row(task=row(1, "other").task, where="f.csv:9")]
        assert refused(rows) == "f.csv:9: id 't1' is used at f.csv:1 already"

    def test_native_splits_that_leak(self) -> None:
        rows = [row(1, "Who?", "train"), row(2, " who? ", "test")]
        assert refused(rows) == (
            "data.train=null: task 't1' (f.csv:1) has the content of 't2' (f.csv:2) of "
            "data.test; drop one of them"
        )

    def test_drawn_train_avoids_a_leak(self) -> None:
        rows = [row(1, "Who?", "train"), row(2, " who? ", "test"), row(3, "What?", "train")]
        assert ids(rows, train=1) == {"train": ["t3"], "val": [], "test": ["t2"]}


class TestIdFiles:
    def write(self, folder: Path, text: str) -> str:
        path = folder / "val.txt"
        path.write_bytes(text.encode())
        return str(path)

    def test_bom_crlf_blank_lines_and_order(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "\ufefft5\r\n\r\n t2 \r\n")
        found = ids(PLAIN, val=path)
        assert found["val"] == ["t2", "t5"]
        assert len(found["train"]) == 18

    def test_across_native_splits(self, tmp_path: Path) -> None:
        found = ids(NATIVE, val=self.write(tmp_path, "t0\nt19\n"))
        assert found["val"] == ["t0", "t19"]
        assert (len(found["train"]), len(found["test"])) == (11, 3)

    def test_draws_keep_away(self, tmp_path: Path) -> None:
        rows = [*PLAIN, row(20, "question 5")]
        found = ids(rows, val=self.write(tmp_path, "t5\n"), train=19, test=0)
        assert found["val"] == ["t5"]
        assert "t20" not in found["train"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("t1\nt99\n", ":2: id 't99' is no task's (did you mean 't9'?)"),
            ("t1\n\nt1\n", ":3: id 't1' is on line 1 already"),
            ("\n", ": no row is left for it"),
        ],
    )
    def test_bad_lines(self, tmp_path: Path, text: str, message: str) -> None:
        path = self.write(tmp_path, text)
        assert path + message in refused(PLAIN, val=path)

    def test_id_in_two_files(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "t1\n")
        message = f"{path}:1: id 't1' is in data.val already"
        assert refused(PLAIN, val=path, test=path) == message

    def test_missing_file(self) -> None:
        message = refused(PLAIN, val="splits/val.txt")
        assert message.startswith("data.val=splits/val.txt: no such file; allowed are null")

    def test_leak_into_the_rest_is_refused(self, tmp_path: Path) -> None:
        rows = [*PLAIN, row(20, "question 5")]
        message = refused(rows, val=self.write(tmp_path, "t5\n"))
        assert re.search(r"'t20' \(f.csv:20\) has the content of 't5' .* of data.val", message)


class TestCaseData5:
    """cases.md data-5: 20 tasks whose answer repeats the id, one question twice, fraction 0.5."""

    ROWS = [row(i, answer=f"answer of t{i}") for i in range(19)]
    ROWS += [row(19, "question 4", answer="answer of t19")]

    @pytest.mark.parametrize("seed", range(20))
    def test_pairs_and_disjoint(self, seed: int) -> None:
        found = divide(self.ROWS, plan(train=0.5, val="rest", seed=seed))
        assert (len(found["train"]), len(found["val"])) == (10, 10)
        for task in (*found["train"], *found["val"]):
            assert task.answer == f"answer of {task.id}"
            assert "answer" not in task.text()
        held = [{content(task.fields) for task in tasks} for tasks in found.values()]
        assert not held[0] & held[1]


class TestAuthorsDraw:
    GOLDEN = Path(__file__).resolve().parents[3] / "shared/golden/paper_gsm8k_split.json"

    def golden(self) -> dict[str, list[int]]:
        if not self.GOLDEN.is_file():
            pytest.skip("the golden files aren't beside the checkout")
        return json.loads(self.GOLDEN.read_text())

    def test_any_rows(self) -> None:
        rows = [row(i) for i in range(7473)]
        found = ids(rows, train=0.035, draw="upstream", test="rest")
        assert numbers(found["train"]) == self.golden()["train_index"]
        assert len(found["test"]) == 7473 - 261
