"""GSM8K: grade school arithmetic in words, answered by a number.

Reads the authors' form (`gsm_train.tsv`, `gsm_test.tsv`: question, answer, worked solution) or
the public one (`train.jsonl`, `test.jsonl`: question, and an answer that ends in `#### 18`); both
give the same tasks. Ids count the file's rows: `gsm8k-train-0` is the first. The worked solution
isn't kept, and thousands separators of answers are dropped, as the authors' form has them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opro.data import files
from opro.data.loader import Loader
from opro.data.rows import Row, Source
from opro.errors import ConfigError
from opro.types import Split, Task

WANTED = (
    "the folder with gsm_train.tsv and gsm_test.tsv (data/gsm_data of google-deepmind/opro) or "
    "train.jsonl and test.jsonl (grade_school_math/data of openai/grade-school-math)"
)
_SPLITS: tuple[Split, ...] = ("train", "test")
_PUBLISHED: dict[Split, int] = {"train": 7473, "test": 1319}
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(kw_only=True)
class Gsm8k(Loader):
    """7,473 training and 1,319 test problems; the field is `question`, the answer `"72"`."""

    path: str | None = None

    def read(self) -> Source:
        """See Loader."""
        base = files.folder(self.path, WANTED)
        rows: list[Row] = []
        for split in _SPLITS:
            path = files.member(base, (f"gsm_{split}.tsv", f"{split}.jsonl"), WANTED)
            pairs = _tsv(path) if path.suffix == ".tsv" else _jsonl(path)
            rows += [_row(path, split, i, *pair) for i, pair in enumerate(pairs)]
        return Source(name="gsm8k", source=str(base), rows=rows)

    def published(self) -> Source:
        """See Loader; the invented questions have the mean length of the true ones."""
        rows = [
            _row(Path("published"), split, index, 0, f"{split} {index:229}", "0")
            for split, size in _PUBLISHED.items()
            for index in range(size)
        ]
        return Source(name="gsm8k", source="the published sizes", rows=rows)


def _tsv(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in files.lines(path):
        parts = line.split("\t")
        if len(parts) < 2:
            raise ConfigError(f"{path}:{number}: question, tab, answer are wanted; there is no tab")
        yield number, parts[0], parts[1]


def _jsonl(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, record in files.json_lines(path):
        question, solution = record.get("question"), record.get("answer")
        if not isinstance(question, str) or not isinstance(solution, str):
            raise ConfigError(f"{path}:{number}: 'question' and 'answer' are wanted, both text")
        yield number, question, solution.rpartition("####")[2]


def _row(path: Path, split: Split, index: int, line: int, question: str, answer: str) -> Row:
    where = f"{path}:{line}"
    number = answer.strip().replace(",", "")
    if not question.strip() or not _NUMBER.fullmatch(number):
        raise ConfigError(f"{where}: a question and a number are wanted, not {answer.strip()!r}")
    task = Task(id=f"gsm8k-{split}-{index}", fields={"question": question}, answer=number)
    return Row(task=task, where=where, native=split)
