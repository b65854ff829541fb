"""MultiArith: 600 short problems of two or more arithmetic steps, no split of their own.

Twenty problems stand in it twice. The authors only test on it.
"""

from dataclasses import dataclass

from opro.data import files
from opro.data.loader import Loader
from opro.data.rows import Row, Source
from opro.errors import ConfigError
from opro.types import Task

FILE = "MultiArith.json"
WANTED = f"the folder with {FILE} (data/MultiArith-data of google-deepmind/opro)"


@dataclass(kw_only=True)
class MultiArith(Loader):
    """The field is `question`, the answer a number as text; ids count the list: `multiarith-0`."""

    path: str | None = None

    def read(self) -> Source:
        """See Loader."""
        path = files.member(files.folder(self.path, WANTED), (FILE,), WANTED)
        problems = files.json_document(path)
        if not isinstance(problems, list):
            raise ConfigError(f"{path}:1: a list of problems is wanted")
        rows = [_row(problem, i, f"{path}: [{i}]") for i, problem in enumerate(problems)]
        return Source(name="multiarith", source=str(path), rows=rows)


def _row(problem: object, index: int, where: str) -> Row:
    found = problem if isinstance(problem, dict) else {}
    question, solutions = found.get("sQuestion"), found.get("lSolutions")
    if not isinstance(question, str) or not question.strip():
        raise ConfigError(f"{where}: 'sQuestion' is wanted, a text")
    if not isinstance(solutions, list) or not solutions or type(solutions[0]) not in (int, float):
        raise ConfigError(f"{where}: 'lSolutions' is wanted, a list that starts with the answer")
    answer = f"{solutions[0]:.12g}"  # 39.0 is "39", as the authors take it
    fields = {"question": question.strip()}
    return Row(task=Task(id=f"multiarith-{index}", fields=fields, answer=answer), where=where)
