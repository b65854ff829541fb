"""BIG-Bench Hard: 27 tasks of 146 to 250 questions each (6,511 in all), no split of their own.

The answers are of several forms (a letter in brackets, yes or no, a number, words), so one judge
rarely suits several tasks at once. Three questions (one in movie_recommendation, two in
ruin_names) list options that were cut at commas, so that the answer is a text and no letter; they
have no `choices`. Four questions stand twice in their task, two of them with both answers.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opro.data import files
from opro.data.loader import Loader
from opro.data.rows import Row, Source
from opro.errors import ConfigError, nearest
from opro.types import Task

TASKS = tuple(
    """
    boolean_expressions causal_judgement date_understanding disambiguation_qa dyck_languages
    formal_fallacies geometric_shapes hyperbaton logical_deduction_five_objects
    logical_deduction_seven_objects logical_deduction_three_objects movie_recommendation
    multistep_arithmetic_two navigate object_counting penguins_in_a_table
    reasoning_about_colored_objects ruin_names salient_translation_error_detection snarks
    sports_understanding temporal_sequences tracking_shuffled_objects_five_objects
    tracking_shuffled_objects_seven_objects tracking_shuffled_objects_three_objects web_of_lies
    word_sorting
    """.split()
)
WANTED = (
    "the folder with one JSON file per task, e.g. navigate.json (data/BIG-Bench-Hard-data of "
    "google-deepmind/opro, bbh of suzgunmirac/BIG-Bench-Hard)"
)
_SHORTER = {"causal_judgement": 187, "penguins_in_a_table": 146, "snarks": 178}
_OPTION = re.compile(r"^\(([A-Z])\) ?(.*)$", re.MULTILINE)


@dataclass(kw_only=True)
class Bbh(Loader):
    """One, several or all tasks, in the order given; the field is `input`.

    A task's id is `bbh-<task>-<index in its file>`; extra holds `task`, and `choices` (texts,
    A first) where the answer is one of the listed letters.

    Attributes:
        tasks: a name, a list of names, or `all`.
    """

    path: str | None = None
    tasks: str | list[str] = "all"

    def read(self) -> Source:
        """See Loader."""
        base = files.folder(self.path, WANTED)
        rows = [row for name in self._names() for row in _task(base, name)]
        return Source(name=self._short(), source=str(base), rows=rows)

    def published(self) -> Source:
        """See Loader; the invented questions have the mean length of the true ones."""
        rows = [
            Row(task=_made(name, index, f"{name} {index:340}", "(A)"), where="published")
            for name in self._names()
            for index in range(_SHORTER.get(name, 250))
        ]
        return Source(name=self._short(), source="the published sizes", rows=rows)

    def _short(self) -> str:
        names = self._names()
        return f"bbh/{names[0]}" if len(names) == 1 else f"bbh ({len(names)} tasks)"

    def _names(self) -> list[str]:
        wanted = [self.tasks] if isinstance(self.tasks, str) else self.tasks
        if wanted == ["all"]:
            return list(TASKS)
        for name in wanted:
            if name not in TASKS:
                allowed = f"allowed are all, {', '.join(TASKS)}"
                raise ConfigError(
                    f"data.tasks={name}: no such task{nearest(name, TASKS)}; {allowed}"
                )
        if not wanted or len(set(wanted)) < len(wanted):
            raise ConfigError(f"data.tasks={wanted}: one name or more, each once, are wanted")
        return wanted


def _task(base: Path, name: str) -> Iterator[Row]:
    path = files.member(base, (f"{name}.json",), WANTED)
    document = files.json_document(path)
    examples = document.get("examples") if isinstance(document, dict) else None
    if not isinstance(examples, list):
        raise ConfigError(f"{path}:1: a list 'examples' is wanted")
    for index, example in enumerate(examples):
        where = f"{path}: examples[{index}]"
        found = example if isinstance(example, dict) else {}
        question, answer = found.get("input"), found.get("target")
        if not isinstance(question, str) or not isinstance(answer, str) or not question.strip():
            raise ConfigError(f"{where}: 'input' and 'target' are wanted, both text")
        yield Row(task=_made(name, index, question, answer), where=where)


def _made(name: str, index: int, question: str, answer: str) -> Task:
    listed = question.partition("Options:")[2]
    choices = {letter: text.strip() for letter, text in _OPTION.findall(listed)}
    extra: dict[str, Any] = {"task": name}
    if answer.strip("()") in choices:
        extra["choices"] = list(choices.values())
    return Task(id=f"bbh-{name}-{index}", fields={"input": question}, answer=answer, extra=extra)
