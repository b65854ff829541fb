"""GSM8K in both of its forms, the paper's training rows, and broken files."""

from __future__ import annotations

import ast
import json
import time
from pathlib import Path
from typing import Any

import pytest

from opro.data.gsm8k import Gsm8k
from opro.errors import ConfigError

SHARED = Path(__file__).resolve().parents[3] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="no benchmark files here")


def refused(loader: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        loader.load()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@needs_shared
class TestGsm8k:
    PATH = str(SHARED / "data/gsm_data")

    def test_counts_and_first_task(self) -> None:
        found = Gsm8k(path=self.PATH).load()
        assert (len(found.train), len(found.val), len(found.test)) == (7473, 0, 1319)
        first = found.train[0]
        assert (first.id, first.answer) == ("gsm8k-train-0", "72")
        assert first.text().startswith("Natalia sold clips to 48 of her friends")
        assert found.test[0].answer == "18"

    def test_is_fast(self) -> None:
        start = time.perf_counter()
        Gsm8k(path=self.PATH, train=50, val=50).load()
        assert time.perf_counter() - start < 1

    def test_the_papers_rows(self) -> None:
        golden = json.loads((SHARED / "golden/paper_gsm8k_split.json").read_text())
        found = Gsm8k(path=self.PATH, train=0.035, draw="upstream").load()
        rows = [int(task.id.removeprefix("gsm8k-train-")) for task in found.train]
        assert rows == golden["train_index"]
        assert (len(found.train), len(found.val), len(found.test)) == (261, 0, 1319)

    def test_public_form_is_the_same_data_set(self, tmp_path: Path) -> None:
        for split in ("train", "test"):
            text = (SHARED / f"data/gsm_data/gsm_{split}.tsv").read_text("utf-8")
            with (tmp_path / f"{split}.jsonl").open("w", encoding="utf-8") as file:
                for line in text.strip("\n").split("\n"):
                    question, _, solution = line.split("\t")
                    answer = ast.literal_eval(solution).decode()
                    file.write(json.dumps({"question": question, "answer": answer}) + "\r\n")
        assert Gsm8k(path=str(tmp_path)).load().digest == Gsm8k(path=self.PATH).load().digest


class TestGsm8kRefused:
    def test_nothing_there(self, tmp_path: Path) -> None:
        for path in (None, str(tmp_path / "no"), str(tmp_path)):
            message = refused(Gsm8k(path=path))
            assert message.startswith(f"data.path={path or 'null'}: ")
            assert "give the folder with gsm_train.tsv and gsm_test.tsv" in message

    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            ("gsm_train.tsv", "a\t1\tb''\nb 2\n", ":2: question, tab, answer are wanted"),
            ("gsm_train.tsv", "a\t1\n\nb\t\n", ":3: a question and a number are wanted, not ''"),
            ("gsm_train.tsv", "a\tNone\n", ":1: a question and a number are wanted, not 'None'"),
            ("train.jsonl", '{"question": "a"}\n', ":1: 'question' and 'answer' are wanted"),
            ("train.jsonl", '{"question": "a", "answer": "b #### "}\n', ":1: a question and a num"),
        ],
    )
    def test_bad_line(self, tmp_path: Path, name: str, text: str, message: str) -> None:
        (tmp_path / name).write_text(text)
        (tmp_path / "test.jsonl").write_text('{"question": "z", "answer": "#### 1"}\n')
        assert refused(Gsm8k(path=str(tmp_path))).startswith(f"{tmp_path / name}{message}")
