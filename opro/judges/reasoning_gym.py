"""Judge `reasoning_gym`: the scorer of the task's own data set in the package reasoning-gym.

A task names its data set in `extra["dataset"]`, carries the generated entry (question, answer,
metadata) in `extra["entry"]` and, where the data set was made with parameters of its own, those in
`extra["params"]`. The answer rated is what the last complete `<answer>…</answer>` holds, else the
whole output. Many of these scorers give partial credit; only a full score counts as right.

Rule: some scorers raise on an answer of the wrong form (`prime_factorization` on any word). Such an
output is unparsed; that the scorer works at all on this entry was seen before the run.

A few scorers hand the answer to SymPy's parser, which evaluates it. A model that one wouldn't let
run Python here shouldn't be rated by those.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

from opro.errors import ConfigError, nearest
from opro.judges.base import Ask, Judge
from opro.types import Kind, Rollout, Task, Verdict

Scorer = Callable[[str, Mapping[str, Any]], float]


class ReasoningGym(Judge):
    """Gives the score of the data set's own scorer.

    Args:
        answer_tag: the tag whose content is rated; None rates the whole output.
    """

    def __init__(self, *, answer_tag: str | None = "answer") -> None:
        self._tag = answer_tag

    def check(self, task: Task) -> None:
        """Raise ConfigError without package, data set or entry, or for an unreadable entry."""
        for key in ("dataset", "entry"):
            if key not in task.extra:
                raise ConfigError(
                    f"task {task.id!r}: no extra[{key!r}]: judge=reasoning_gym goes with "
                    "data=reasoning_gym"
                )
        score = _scorer_of(task)
        known = task.extra["entry"].get("answer")
        try:
            score("" if known is None else str(known), task.extra["entry"])
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise ConfigError(
                f"task {task.id!r}: {task.extra['dataset']} can't score its own answer: {why}"
            ) from error

    def judge(self, task: Task, rollout: Rollout, ask: Ask | None) -> Verdict:
        """Extract the answer and hand it to the scorer."""
        answer = self._extract(rollout.output)
        try:
            score = float(_scorer_of(task)(answer, task.extra["entry"]))
        except Exception as error:
            why = f"the scorer could not read the answer ({type(error).__name__})"
            return self.failed(task, Kind.UNPARSED, why)
        return self.verdict(task, answer, score)

    def expected(self, task: Task) -> str:
        """Return the entry's answer, or '' for a task with many right answers."""
        known = super().expected(task) or task.extra.get("entry", {}).get("answer")
        return "" if known is None else str(known)

    def _extract(self, output: str) -> str:
        if self._tag is None:
            return output.strip()
        end = output.rfind(f"</{self._tag}>")
        start = output.rfind(f"<{self._tag}>", 0, max(end, 0))
        if start < 0:
            return output.strip()
        return output[start + len(self._tag) + 2 : end].strip()


def _scorer_of(task: Task) -> Scorer:
    params = json.dumps(dict(task.extra.get("params") or {}), sort_keys=True)
    return _scorer(task.extra["dataset"], params)


@functools.lru_cache(maxsize=256)
def _scorer(name: str, params: str) -> Scorer:
    """Return the scorer of a data set with parameters (JSON), built once.

    Raises:
        ConfigError: without the package, or when it knows no such data set.
    """
    try:
        from reasoning_gym.factory import DATASETS, create_dataset
    except ImportError as error:
        raise ConfigError(
            f"judge=reasoning_gym: the package is missing ({error}); pip install reasoning-gym"
        ) from None
    if name not in DATASETS:
        raise ConfigError(f"dataset={name}: reasoning-gym has none such{nearest(name, DATASETS)}")
    return create_dataset(name, **json.loads(params)).score_answer  # type: ignore[no-any-return]
