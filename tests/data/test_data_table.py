"""Files of the user's own: what loads, what it becomes, and what is refused with file and line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from opro.data.table import Csv, Jsonl, Tsv
from opro.errors import ConfigError
from opro.types import Dataset

KINDS = {"jsonl": Jsonl, "csv": Csv, "tsv": Tsv}


def load(folder: Path, kind: str, text: str | bytes, **settings: Any) -> Dataset:
    path = folder / f"tasks.{kind}"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return KINDS[kind](**{"path": str(path), **settings}).load()


def refused(folder: Path, kind: str, text: str | bytes, **settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, kind, text, **settings)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{folder}/", "")


class TestCaseData1:
    """cases.md data-1: a byte-order mark, a blank last line; a truly bad line is named."""

    def test_jsonl(self, tmp_path: Path) -> None:
        text = '\ufeff{"question": "1+1", "answer": "2"}\n{"question": "2+2", "answer": "4"}\n\n'
        found = load(tmp_path, "jsonl", text)
        assert [(task.text(), task.answer) for task in found.train] == [("1+1", "2"), ("2+2", "4")]

    def test_csv(self, tmp_path: Path) -> None:
        found = load(tmp_path, "csv", "\ufeffquestion,answer\n1+1,2\n2+2,4\n\n")
        assert [(task.text(), task.answer) for task in found.train] == [("1+1", "2"), ("2+2", "4")]
        assert [task.id for task in found.train] == ["row-00001", "row-00002"]

    def test_bad_line(self, tmp_path: Path) -> None:
        text = '\ufeff{"question": "1+1", "answer": "2"}\n\n{"question": "2+2", answer: 4}\n'
        assert refused(tmp_path, "jsonl", text).startswith("tasks.jsonl:3: not JSON: ")


class TestCaseData4:
    """cases.md data-4: 0 rows are one line of error."""

    @pytest.mark.parametrize(
        ("kind", "text"),
        [
            ("jsonl", ""),
            ("jsonl", "\n \r\n"),
            ("csv", ""),
            ("csv", "a,answer\n"),
            ("tsv", "\ufeff"),
        ],
    )
    def test_no_rows(self, tmp_path: Path, kind: str, text: str) -> None:
        assert refused(tmp_path, kind, text) == f"data.path=tasks.{kind}: 0 rows"

    def test_a_split_that_leaves_none(self, tmp_path: Path) -> None:
        message = refused(tmp_path, "csv", "a,answer\nx,1\ny,2\n", train=0.1)
        assert message == "data.train=0.1: no row is left for it"


class TestValues:
    def test_cells_stay_text(self, tmp_path: Path) -> None:
        cells = ["None", "NA", "007", "nan", "null", "1e3", "TRUE", " x "]
        text = "q,answer\r\n" + "".join(f"q{i},{cell}\r\n" for i, cell in enumerate(cells))
        assert [task.answer for task in load(tmp_path, "csv", text).train] == cells

    def test_json_values_stay_json(self, tmp_path: Path) -> None:
        records = [
            {"q": "a", "answer": "007"},
            {"q": ["b", 1], "answer": 7},
            {"q": {"c": None}, "answer": [1.5, False]},
            {"q": 0, "answer": "NA"},
        ]
        text = "\r\n".join(json.dumps(record) for record in records)
        found = load(tmp_path, "jsonl", text).train
        assert [(dict(task.fields), task.answer) for task in found] == [
            ({"q": record["q"]}, record["answer"]) for record in records
        ]

    def test_quoted_cells(self, tmp_path: Path) -> None:
        text = 'q,answer\n"a, ""b""\nc",1\n\nd,2\n'
        found = load(tmp_path, "csv", text).train
        assert [task.text() for task in found] == ['a, "b"\nc', "d"]

    def test_a_document_in_one_cell(self, tmp_path: Path) -> None:
        document = "word " * 50_000
        limit = csv.field_size_limit()
        assert load(tmp_path, "csv", f"q,answer\n{document},1\n").train[0].text() == document
        assert csv.field_size_limit() == limit

    def test_tsv(self, tmp_path: Path) -> None:
        found = load(tmp_path, "tsv", 'q\tanswer\na, b\t1\n"c\td"\t2\n').train
        assert [(task.text(), task.answer) for task in found] == [("a, b", "1"), ("c\td", "2")]

    def test_line_separators_inside_json(self, tmp_path: Path) -> None:
        text = '{"q": "a\u2028b\u0085c", "answer": 1}\n{"q": "d", "answer": 2}\n'
        assert load(tmp_path, "jsonl", text).train[0].text() == "a\u2028b\u0085c"

    def test_three_forms_of_one_table_are_one_data_set(self, tmp_path: Path) -> None:
        jsonl = '{"id": "a", "q": "x", "answer": "1"}\n{"id": "b", "q": "y", "answer": "2"}\n'
        texts = {
            "jsonl": jsonl,
            "csv": "id,q,answer\na,x,1\nb,y,2\n",
            "tsv": "answer\tid\tq\n1\ta\tx\n2\tb\ty\n",
        }
        found = {load(tmp_path, kind, text, id_field="id").digest for kind, text in texts.items()}
        assert len(found) == 1


class TestColumns:
    TEXT = (
        "nr,topic,question,check,answer,part\n7,math,1+1?,run 1,2,train\n8,art,who?,run 2,me,test\n"
    )

    def test_all_but_the_answer_are_shown(self, tmp_path: Path) -> None:
        task = load(tmp_path, "csv", self.TEXT, id_field="nr", split_field="part").train[0]
        assert task.id == "7"
        assert task.text() == "topic: math\nquestion: 1+1?\ncheck: run 1"
        assert task.extra == {}

    def test_chosen_fields_in_their_order_and_the_rest_in_extra(self, tmp_path: Path) -> None:
        roles = {"id_field": "nr", "split_field": "part", "fields": ["question", "topic"]}
        found = load(tmp_path, "csv", self.TEXT, **roles)
        assert list(found.train[0].fields) == ["question", "topic"]
        assert found.train[0].extra == {"check": "run 1"}
        assert [task.id for task in found.test] == ["8"]

    def test_null_counts_as_absent(self, tmp_path: Path) -> None:
        text = '{"q": "a", "hint": null, "answer": 1}\n{"q": "b", "hint": "h", "answer": 2}\n'
        assert [task.text() for task in load(tmp_path, "jsonl", text).train] == [
            "a",
            "q: b\nhint: h",
        ]

    def test_no_answer_wanted(self, tmp_path: Path) -> None:
        task = load(tmp_path, "jsonl", '{"q": "a"}\n', answer_field=None).train[0]
        assert task.answer is None

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            (
                {"answer_field": "anser"},
                "tasks.csv:2: no value for data.answer_field=anser (did you mean 'answer'?); "
                "columns here: nr, topic, question, check, answer, part",
            ),
            ({"fields": ["questoin"]}, "data.fields=questoin (did you mean 'question'?)"),
            ({"id_field": "id"}, "tasks.csv:2: no value for data.id_field=id; columns here: nr"),
            ({"split_field": "split"}, "tasks.csv:2: no value for data.split_field=split"),
            ({"split_field": "topic"}, "tasks.csv:2: split 'math'; allowed are train, val, test"),
            ({"fields": ["question", "answer"]}, "data.fields=['question', 'answer']: 'answer' is"),
            ({"fields": []}, "data.fields=[]: null (all) or one column or more is wanted"),
        ],
    )
    def test_wrong_columns(self, tmp_path: Path, settings: Any, message: str) -> None:
        assert message in refused(tmp_path, "csv", self.TEXT, **settings)
