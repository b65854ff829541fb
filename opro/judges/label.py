"""Judge `label`: one label of a known set, found as whole words in any case.

Rule for reading an output:
1. The last label right behind a cue (`label: x`, `the answer is x`, `<category>x</category>`, see
   `opro.judges.cues`) is the answer.
2. Else, when exactly one distinct label occurs in the output, it is the answer.
3. Else, when several distinct labels occur, `several` decides: `none` (the output is unparsed),
   `first` or `last` (by place).
4. Else the output is unparsed.

A label's words may be apart by blanks, `_` or `-`. The longest label wins at a place, so
`very negative` isn't `negative`. A label behind `not` or inside a hyphenated word (`non-urgent`)
doesn't count, unless the longer form is a label itself.

The labels are `labels`; where that is null, a task's own `extra["labels"]` (a list), else the
distinct answers of all tasks, case ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from opro.errors import ConfigError, nearest
from opro.judges.base import Ask, Judge
from opro.judges.label_reader import Several, reader
from opro.judges.targets import required
from opro.judges.words import fold
from opro.types import Rollout, Task, Verdict

MAX_LABELS = 50
"""More distinct answers than this are no label set."""


class Label(Judge):
    """Gives 1 to an output whose one label is the expected one, else 0."""

    def __init__(
        self,
        *,
        labels: Annotated[list[str], Field(min_length=2)] | None = None,
        several: Several = "none",
        cues: Annotated[list[str], Field(min_length=1)] | None = None,
    ) -> None:
        self._set = () if labels is None else _distinct(labels)
        self._learned: tuple[str, ...] = ()
        self._several = several
        self._cues = tuple(cues or ("label", "answer", "category", "class", "classification"))

    def prepare(self, tasks: Sequence[Task]) -> None:
        """Take the answers of all tasks as the labels, where none are set.

        Raises:
            ConfigError: when they are too many to be a set of labels.
        """
        if self._set:
            return
        answers = (str(task.answer) for task in tasks if task.answer is not None)
        known = {fold(answer): answer for answer in sorted(answers, reverse=True)}
        if len(known) > MAX_LABELS:
            raise ConfigError(
                f"judge.labels=null: the tasks have {len(known)} different answers, too many for "
                f"labels (at most {MAX_LABELS}); set judge.labels or choose another judge"
            )
        self._learned = tuple(sorted(answer for answer in known.values() if answer.strip()))

    def check(self, task: Task) -> None:
        """Raise ConfigError when the answer isn't one of the labels."""
        answer = required(task, "label")
        labels = self._of(task)
        if fold(answer) not in map(fold, labels):
            raise ConfigError(
                f"task {task.id!r}: answer={answer!r} is none of judge.labels "
                f"[{', '.join(labels)}]{nearest(answer, labels)}"
            )

    def judge(self, task: Task, rollout: Rollout, ask: Ask | None) -> Verdict:
        """Read the one label of the output."""
        labels = self._of(task)
        found = reader(labels, self._cues).read(rollout.output, self._several) if labels else None
        right = found is not None and fold(found) == fold(self.expected(task))
        return self.verdict(task, found, float(right))

    def _of(self, task: Task) -> tuple[str, ...]:
        own = task.extra.get("labels")
        if not self._set and isinstance(own, list | tuple) and own:
            return tuple(map(str, own))
        return self._set or self._learned


def _distinct(labels: list[str]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for label in labels:
        other = seen.setdefault(fold(label), label)
        if not label.strip() or other is not label:
            raise ConfigError(f"judge.labels: {label!r} is blank or given twice (case ignored)")
    return tuple(labels)
