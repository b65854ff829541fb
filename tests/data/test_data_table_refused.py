"""Files of the user's own that are refused, files per split, and the fingerprint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opro.data.rows import digest
from opro.data.table import Csv, Jsonl, Tsv
from opro.errors import ConfigError
from opro.types import Dataset, Task

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


class TestRefused:
    @pytest.mark.parametrize(
        ("kind", "text", "message"),
        [
            ("jsonl", '{"q": "a"}\n', "tasks.jsonl:1: no value for data.answer_field=answer"),
            ("jsonl", '{"q": "a", "answer": null}\n', "tasks.jsonl:1: no value for data.answer"),
            (
                "jsonl",
                '{"q": "a", "answer": " "}',
                "tasks.jsonl:1: 'answer' (data.answer_field) is",
            ),
            ("csv", "q,answer\na,1\nb,\n", "tasks.csv:3: 'answer' (data.answer_field) is blank"),
            (
                "csv",
                "q,answer\na,1\n,2\n",
                "tasks.csv:3: nothing to show the model (q: data.fields)",
            ),
            ("csv", "q,answer\na,1\nb\n", "tasks.csv:3: 1 cells, but 2 columns (q, answer)"),
            ("csv", "q,answer\na,b,1\n", "tasks.csv:2: 3 cells, but 2 columns (q, answer)"),
            ("csv", 'q,answer\na,1\n"b,2\nc,3\n', "tasks.csv:3: "),
            ("csv", "q,q,answer\na,b,1\n", "tasks.csv:1: column 2 'q' is there twice"),
            ("csv", ",q,answer\n0,a,1\n", "tasks.csv:1: column 1 '' has no name"),
            ("csv", b"q,answer\na,1\nb\xff,2\n", "tasks.csv:3: not UTF-8 text: "),
            ("jsonl", '["a"]\n', "tasks.jsonl:1: a JSON object is wanted on each line, not a list"),
            (
                "jsonl",
                '{"q": NaN, "answer": 1}\n',
                "tasks.jsonl:1: not JSON: NaN is no JSON number",
            ),
            ("jsonl", '\n{"q": "a",\n', "tasks.jsonl:2: not JSON: "),
            ("jsonl", '{"answer": 1}\n', "tasks.jsonl:1: nothing to show the model (no column is"),
        ],
    )
    def test_bad_line(self, tmp_path: Path, kind: str, text: Any, message: str) -> None:
        assert refused(tmp_path, kind, text).startswith(message)

    def test_duplicate_ids(self, tmp_path: Path) -> None:
        text = '{"id": 1, "q": "a", "answer": 1}\n\n{"id": "1", "q": "b", "answer": 2}\n'
        message = "tasks.jsonl:3: id '1' is used at tasks.jsonl:1 already"
        assert refused(tmp_path, "jsonl", text, id_field="id") == message

    @pytest.mark.parametrize("value", ['" "', "1.5", "true", "[1]", "null"])
    def test_no_id(self, tmp_path: Path, value: str) -> None:
        text = f'{{"id": {value}, "q": "a", "answer": 1}}\n'
        assert refused(tmp_path, "jsonl", text, id_field="id").startswith("tasks.jsonl:1: ")

    def test_paths(self, tmp_path: Path) -> None:
        for path, message in [
            (None, "data.path=null: give a file, or one per split"),
            (str(tmp_path / "no.csv"), f"data.path={tmp_path}/no.csv: no such file"),
            (str(tmp_path), f"data.path={tmp_path}: a folder, not a file"),
            ({"test": "no.csv"}, "data.path.test=no.csv: no such file"),
            ("pkg://no_such/a.csv", "pkg://no_such/a.csv: no package 'no_such' is installed"),
            ("pkg://opro/data/no.csv", "data.path=pkg://opro/data/no.csv: no such file"),
        ]:
            with pytest.raises(ConfigError) as caught:
                Csv(path=path).load()
            assert str(caught.value) == message


class TestFiles:
    def test_a_file_per_split(self, tmp_path: Path) -> None:
        paths = {}
        for name, question in [("train", "a"), ("val", "b"), ("test", "c")]:
            (tmp_path / f"{name}.csv").write_text(f"q,answer\n{question},1\n")
            paths[name] = str(tmp_path / f"{name}.csv")
        found = Csv(path=paths).load()
        assert [task.id for task in found.train] == ["train-00001"]
        assert [task.text() for task in (*found.val, *found.test)] == ["b", "c"]
        with pytest.raises(ConfigError, match=r"data\.split_field=q: data\.path names a file per"):
            Csv(path=paths, split_field="q").load()

    def test_package_file(self) -> None:
        task = Csv(path="pkg://opro/data/__init__.py", answer_field=None).load
        with pytest.raises(ConfigError, match="0 rows"):  # found and read: one line, the header
            task()

    def test_digest(self, tmp_path: Path) -> None:
        base = {"id": "a", "q": "x", "answer": "1", "note": "n"}
        first = load(tmp_path, "jsonl", json.dumps(base), id_field="id", fields=["q"]).digest
        for key in base:
            text = json.dumps({**base, key: "other"})
            assert load(tmp_path, "jsonl", text, id_field="id", fields=["q"]).digest != first

    def test_digest_knows_order_and_splits(self) -> None:
        one = Task(id="a", fields={"q": 1, "r": 2})
        turned = Task(id="a", fields={"r": 2, "q": 1})
        other = Task(id="b", fields={"q": 3})
        digests = {
            digest([[one, other], [], []]),
            digest([[turned, other], [], []]),
            digest([[other, one], [], []]),
            digest([[one], [other], []]),
            digest([[one], [], [other]]),
        }
        assert len(digests) == 5

    def test_digest_needs_json(self) -> None:
        with pytest.raises(ConfigError, match="task 'a': no fingerprint can be made: a value of"):
            digest([[Task(id="a", fields={"q": 1}, extra={"x": object()})]])

    def test_rows_left_out_are_counted(self, tmp_path: Path) -> None:
        text = "id,q,answer\na,x,1\nb,X,1\nc,y,2\n"
        (tmp_path / "val.txt").write_text("a\n")
        ids = str(tmp_path / "val.txt")
        found = load(tmp_path, "csv", text, id_field="id", val=ids, train=1)
        assert [task.id for task in found.train] == ["c"]
        assert found.source.endswith("(1 rows left out: a split has their question already)")
