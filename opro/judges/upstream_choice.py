"""Judge `upstream_choice`: the authors' rule for MMLU, AQuA and BBH's multiple-choice tasks.

Where the choices come from, `opro.judges.upstream_match` says. A task without any is compared
as text, as the authors do with BBH's `dyck_languages` and `word_sorting`. As with them, a
multiple-choice answer that is no letter (three rows of BBH) is never right.

One difference: the authors' prompt holds the instruction too, so an instruction that names `(A)`
misleads their reading of the choices; ours never sees it.
"""

from __future__ import annotations

from opro.errors import ConfigError
from opro.judges.upstream import Upstream
from opro.judges.upstream_match import LETTERS, choices_of, matches
from opro.judges.upstream_text import Form
from opro.types import Task


class UpstreamChoice(Upstream):
    """Gives 1 when the authors' normal form of the reply is or holds the right letter or text."""

    def __init__(self, *, boxed: bool = False) -> None:
        super().__init__(Form(), boxed)

    def check(self, task: Task) -> None:
        """Raise ConfigError for a missing answer, or a letter beyond the choices."""
        super().check(task)
        choices = choices_of(task)
        answer = self.expected(task)
        letter = answer.strip("()").upper()
        if choices and len(letter) == 1 and letter not in LETTERS[: choices.count]:
            raise ConfigError(
                f"task {task.id!r}: answer={answer!r} is none of its {choices.count} choices"
            )

    def _matches(self, task: Task, found: str) -> bool:
        return matches(self.expected(task), found, choices=choices_of(task), included=True)
