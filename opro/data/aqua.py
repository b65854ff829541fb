"""AQuA: 254 algebra problems of five choices, the authors' file, no split of its own.

The authors only test on it. The rationale isn't kept.
"""

from dataclasses import dataclass
from typing import Any

from opro.data import files
from opro.data.loader import Loader
from opro.data.rows import Row, Source
from opro.errors import ConfigError
from opro.types import Task

FILE = "AQuA.json"
LETTERS = "ABCDE"
WANTED = f"the folder with {FILE} (data/AQuA-data of google-deepmind/opro)"


@dataclass(kw_only=True)
class Aqua(Loader):
    """The field is `question`, options and closing question included; the answer is the letter.

    Ids count the lines that hold a problem: `aqua-0`. Extra holds `choices` (texts, A first).
    """

    path: str | None = None

    def read(self) -> Source:
        """See Loader."""
        path = files.member(files.folder(self.path, WANTED), (FILE,), WANTED)
        records = enumerate(files.json_lines(path))
        rows = [_row(record, i, f"{path}:{line}") for i, (line, record) in records]
        return Source(name="aqua", source=str(path), rows=rows)


def _row(record: dict[str, Any], index: int, where: str) -> Row:
    question, options = record.get("question"), record.get("options")
    if not isinstance(question, str) or not question.strip():
        raise ConfigError(f"{where}: 'question' is wanted, a text")
    if not isinstance(options, list) or [str(text)[:2] for text in options] != [
        f"{letter})" for letter in LETTERS
    ]:
        raise ConfigError(f"{where}: 'options' is wanted, five texts from 'A)…' to 'E)…'")
    if record.get("correct") not in tuple(LETTERS):
        raise ConfigError(f"{where}: 'correct' is wanted, a letter A to E")
    shown = "".join(f"\n({text}" for text in options)
    fields = {"question": f"{question}{shown}\nWhat's the answer in (A) (B) (C) (D) (E)?"}
    choices = [text[2:] for text in options]
    task = Task(
        id=f"aqua-{index}", fields=fields, answer=record["correct"], extra={"choices": choices}
    )
    return Row(task=task, where=where)
