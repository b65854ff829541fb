"""Judge `upstream_bbh`: the authors' rule for each of BIG-Bench Hard's 27 tasks, by its name.

Two tasks are read as numbers, six as truth values, seventeen as multiple choice (as
`upstream_choice` does), and `dyck_languages` and `word_sorting` as text. The tables are those of
google-deepmind/opro, `optimize_instructions.py`.
"""

from __future__ import annotations

from opro.errors import ConfigError
from opro.judges.upstream import Upstream
from opro.judges.upstream_match import choices_of, matches
from opro.judges.upstream_text import Form
from opro.types import Task

NUMBERS = ("object_counting", "multistep_arithmetic_two")
BOOLEANS = (
    "boolean_expressions",
    "causal_judgement",
    "formal_fallacies",
    "navigate",
    "sports_understanding",
    "web_of_lies",
)
TEXTS = ("dyck_languages", "word_sorting")


class UpstreamBbh(Upstream):
    """Gives 1 when the authors' normal form of the reply, read as its task asks, is right."""

    def __init__(self, *, boxed: bool = False) -> None:
        super().__init__(Form(), boxed)

    def check(self, task: Task) -> None:
        """Raise ConfigError for a missing answer, or a task that is none of BBH's."""
        super().check(task)
        if "task" not in task.extra:
            raise ConfigError(
                f"task {task.id!r}: judge=upstream_bbh is for data=bbh alone; elsewhere choose"
                " upstream_number, upstream_bool or upstream_choice"
            )

    def _form_of(self, task: Task) -> Form:
        name = task.extra["task"]
        return Form(number=name in NUMBERS, boolean=name in BOOLEANS)

    def _matches(self, task: Task, found: str) -> bool:
        name = task.extra["task"]
        choosing = name not in (*NUMBERS, *BOOLEANS, *TEXTS)
        return matches(
            self.expected(task),
            found,
            choices=choices_of(task) if choosing else None,
            included=name not in NUMBERS,
        )
