"""The public benchmarks but for GSM8K: their counts, the authors' draw, and broken files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import pytest

from opro.data.aqua import Aqua
from opro.data.bbh import TASKS, Bbh
from opro.data.mmlu import CATEGORIES, Mmlu
from opro.data.multiarith import MultiArith
from opro.errors import ConfigError

SHARED = Path(__file__).resolve().parents[3] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="no benchmark files here")


def refused(loader: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        loader.load()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@needs_shared
class TestBbh:
    PATH = str(SHARED / "data/BIG-Bench-Hard-data")

    def test_counts_of_all_27(self) -> None:
        found = Bbh(path=self.PATH).load()
        counts = Counter(task.extra["task"] for task in found.train)
        odd = {"causal_judgement": 187, "penguins_in_a_table": 146, "snarks": 178}
        assert counts == {task: odd.get(task, 250) for task in TASKS}
        assert (len(TASKS), len(found.train)) == (27, 6511)

    def test_choices_where_letters_are_answers(self) -> None:
        found = Bbh(path=self.PATH).load()
        for task in found.train:
            if "choices" in task.extra:
                place = "ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(task.answer.strip("()"))
                assert f"{task.answer} {task.extra['choices'][place]}" in task.text()
        with_choices = Counter(t.extra["task"] for t in found.train if "choices" in t.extra)
        assert len(with_choices) == 17
        assert with_choices["movie_recommendation"] == 249
        assert with_choices["ruin_names"] == 248

    def test_one_task(self) -> None:
        found = Bbh(path=self.PATH, tasks="date_understanding").load()
        first = found.train[0]
        assert (found.name, first.id) == ("bbh/date_understanding", "bbh-date_understanding-0")
        assert first.answer == "(B)"
        assert list(first.fields) == ["input"]
        assert first.extra["choices"][1] == "12/25/1937"

    def test_the_papers_split(self) -> None:
        settings = {"train": 0.2, "test": "rest", "draw": "upstream"}
        found = Bbh(path=self.PATH, tasks="ruin_names", **settings).load()
        assert (len(found.train), len(found.val), len(found.test)) == (50, 0, 200)

    def test_repeats_never_cross(self) -> None:
        settings = {"train": 0.2, "test": "rest", "draw": "upstream"}
        found = Bbh(path=self.PATH, tasks="sports_understanding", **settings).load()
        left = 250 - len(found.train) - len(found.test)
        assert len(found.train) == 50
        assert left == 1
        assert f"({left} rows left out: " in found.source

    def test_several(self) -> None:
        found = Bbh(path=self.PATH, tasks=["web_of_lies", "navigate"]).load()
        assert [found.train[0].extra["task"], found.train[-1].extra["task"]] == [
            "web_of_lies",
            "navigate",
        ]
        assert len(found.train) == 500

    def test_unknown_task(self) -> None:
        message = refused(Bbh(path=self.PATH, tasks="navigat"))
        assert message.startswith("data.tasks=navigat: no such task (did you mean 'navigate'?)")


class TestBbhRefused:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"examples":\n [}', "navigate.json:2: not JSON: "),
            ("[]", "navigate.json:1: a list 'examples' is wanted"),
            ('{"examples": [{"input": "a"}]}', "navigate.json: examples[0]: 'input' and 'target'"),
            ('{"examples": []}', "data.path="),
        ],
    )
    def test_bad_file(self, tmp_path: Path, text: str, message: str) -> None:
        (tmp_path / "navigate.json").write_text(text)
        assert message in refused(Bbh(path=str(tmp_path), tasks="navigate"))

    def test_missing_file(self, tmp_path: Path) -> None:
        message = refused(Bbh(path=str(tmp_path), tasks="snarks"))
        assert message.startswith(f"data.path={tmp_path}: no snarks.json in it; give the folder")


@needs_shared
class TestMmlu:
    PATH = str(SHARED / "data/MMLU-data")

    def test_counts_by_category(self) -> None:
        found = Mmlu(path=self.PATH).load()
        assert len(found.train) == 14042
        assert Counter(task.extra["category"] for task in found.train) == {
            "STEM": 3018,
            "humanities": 4705,
            "social sciences": 3077,
            "other": 3242,
        }
        assert len({task.extra["subject"] for task in found.train}) == 57

    @pytest.mark.parametrize("category", list(CATEGORIES))
    def test_category(self, category: str) -> None:
        found = Mmlu(path=self.PATH, subjects=category).load()
        assert {task.extra["subject"] for task in found.train} == set(CATEGORIES[category])

    def test_form(self) -> None:
        path = f"{self.PATH}/test"
        task = Mmlu(path=path, subjects=["abstract_algebra"]).load().train[1]
        assert task.id == "mmlu-abstract_algebra-1"
        assert task.text() == (
            "Let p = (1, 2, 5, 4)(2, 3) in S_5 . Find the index of <p> in S_5."
            "\n(A) 8\n(B) 2\n(C) 24\n(D) 120\nWhat's the answer in (A) (B) (C) (D)?"
        )
        assert task.answer == "C"
        assert task.extra["choices"] == ["8", "2", "24", "120"]

    def test_none_is_a_choice(self) -> None:
        found = Mmlu(path=self.PATH, subjects="college_mathematics").load()
        assert found.train[8].extra["choices"][0] == "None"

    def test_the_authors_ratios(self) -> None:
        settings = {"train": 0.8, "val": 0.2, "draw": "upstream"}
        found = Mmlu(path=self.PATH, subjects="STEM", **settings).load()
        every = [task.id for task in Mmlu(path=self.PATH, subjects="STEM").load().train]
        generator = numpy.random.RandomState(0)
        train = generator.choice(3018, size=int(0.8 * 3018), replace=False)
        rest = sorted(set(range(3018)) - set(train.tolist()))
        val = generator.choice(rest, size=int(0.2 * 3018), replace=False)
        assert [task.id for task in found.train] == [every[i] for i in sorted(train)]
        kept = [task.id for task in found.val]
        dropped = {every[i] for i in val} - set(kept)
        assert len(kept) + len(dropped) == 603
        assert len(dropped) == 4  # they repeat a training question
        assert found.test == ()

    def test_unknown_subject(self) -> None:
        message = refused(Mmlu(path=self.PATH, subjects=["stem"]))
        assert message.startswith("data.subjects=stem: unknown; allowed are all, STEM, humanities")
        message = refused(Mmlu(path=self.PATH, subjects="anatom"))
        assert message.startswith("data.subjects=anatom: unknown (did you mean 'anatomy'?)")


def test_mmlu_bad_line(tmp_path: Path) -> None:
    (tmp_path / "anatomy_test.csv").write_text('"a\nb",1,2,3,4,A\n\nc,1,2,3,4,AB\n')
    message = refused(Mmlu(path=str(tmp_path), subjects="anatomy"))
    assert message.startswith(f"{tmp_path}/anatomy_test.csv:4: a question, four choices and a")


@needs_shared
class TestMultiArith:
    PATH = str(SHARED / "data/MultiArith-data")

    def test_counts_and_first_task(self) -> None:
        found = MultiArith(path=self.PATH).load()
        assert len(found.train) == 600
        assert (found.train[0].id, found.train[0].answer) == ("multiarith-0", "39")
        assert found.train[0].text().startswith("For Halloween Debby")

    def test_twenty_repeats_stay_together(self) -> None:
        found = MultiArith(path=self.PATH, train=200, val=200, test="rest").load()
        questions = [
            {task.text() for task in tasks} for tasks in (found.train, found.val, found.test)
        ]
        assert sum(map(len, questions)) == 580
        assert [len(tasks) for tasks in (found.train, found.val, found.test)] == [200] * 3


@needs_shared
class TestAqua:
    PATH = str(SHARED / "data/AQuA-data")

    def test_counts_and_first_task(self) -> None:
        found = Aqua(path=self.PATH).load()
        assert len(found.train) == 254
        first = found.train[0]
        assert first.id == "aqua-0"
        assert first.text().endswith(
            "\n(E)None of these\nWhat's the answer in (A) (B) (C) (D) (E)?"
        )
        assert (first.answer, first.extra["choices"][4]) == ("A", "None of these")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"sQuestion": "a"}]', "[0]: 'lSolutions' is wanted"),
        ('[{"sQuestion": " ", "lSolutions": [1]}]', "[0]: 'sQuestion' is wanted"),
        ('[{"sQuestion": "a", "lSolutions": ["1"]}]', "[0]: 'lSolutions' is wanted"),
        ("{}", ":1: a list of problems is wanted"),
        ("[]", ": 0 rows"),
    ],
)
def test_multiarith_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "MultiArith.json").write_text(text)
    assert message in refused(MultiArith(path=str(tmp_path)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": ""}, ":2: 'question' is wanted"),
        ({"options": ["A)1", "B)2"]}, ":2: 'options' is wanted"),
        ({"correct": "F"}, ":2: 'correct' is wanted"),
    ],
)
def test_aqua_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    good = {"question": "q", "options": [f"{x})1" for x in "ABCDE"], "correct": "A"}
    path = tmp_path / "AQuA.json"
    path.write_text("\n".join(json.dumps(record) for record in (good, {**good, **change})))
    assert refused(Aqua(path=str(tmp_path))).startswith(f"{path}{message}")
