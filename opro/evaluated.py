"""What `opro.evaluate` finds out, for reports and trackers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from opro.records import Totals
from opro.stats import Interval, Paired, holm, mean_interval, paired
from opro.types import Evaluation, Kind, Split


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run: `score` is None when it failed twice, and `reason` says why."""

    task_id: str
    split: Split
    repeat: int
    score: float | None
    kind: Kind
    answer: str | None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One instruction on the tasks.

    Attributes:
        labels: where it came from, as the user wrote it; several when they were the same text.
        rows: every run that took place, by repeat, then in the tasks' order.
        scores: by task id, the mean over its repeats; tasks with a run that failed twice, or
            that a spent budget left out, have none.
        n: how many tasks there are.
        failed: ids of the tasks with a run that failed twice.
    """

    labels: tuple[str, ...]
    instruction: str
    md5: str
    rows: tuple[Row, ...]
    scores: Mapping[str, float]
    n: int
    failed: tuple[str, ...]

    @property
    def mean(self) -> float | None:
        """The mean over all tasks; None when one has no score (unscored, never 0)."""
        return None if len(self.scores) < self.n else self.partial

    @property
    def partial(self) -> float | None:
        """The mean over the tasks that have a score."""
        scores = self.scores.values()
        return math.fsum(scores) / len(scores) if scores else None

    @property
    def interval(self) -> Interval | None:
        """Of the mean, with the tasks (not the runs) as the sample."""
        return mean_interval(list(self.scores.values()))

    @property
    def kinds(self) -> Counter[str]:
        """What became of the runs."""
        return Counter(row.kind.value for row in self.rows)

    @property
    def repeat_means(self) -> list[float | None]:
        """The mean of each repeat; None for one that isn't whole."""
        by_repeat: dict[int, list[float | None]] = {}
        for row in self.rows:
            by_repeat.setdefault(row.repeat, []).append(row.score)
        return [_whole_mean(scores, self.n) for _, scores in sorted(by_repeat.items())]


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """Two instructions on the tasks that both have a score for.

    Attributes:
        first, second: their places in `Evaluated.measured`.
        paired: of second against first.
        corrected: the p-value for all contrasts together (Holm).
    """

    first: int
    second: int
    paired: Paired
    corrected: float


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """A whole evaluation.

    Attributes:
        split: `train`, `val`, `test` or `all`.
        tasks: how many.
        repeats: runs of each task under each instruction.
        contrasts: of every pair of instructions.
        stop_reason: `done`, or `budget: …`.
    """

    split: str
    tasks: int
    repeats: int
    measured: tuple[Measured, ...]
    totals: Totals
    stop_reason: str
    contrasts: tuple[Contrast, ...] = field(default=())


def measure(
    labels: tuple[str, ...], parts: Sequence[tuple[int, Split, Evaluation]], n: int
) -> Measured:
    """Put one instruction's evaluations together.

    Args:
        labels: see Measured.
        parts: repeat, split and what it gave, for every repeat of every split.
        n: how many tasks the splits have together.
    """
    rows = [
        Row(
            task_id=result.task_id,
            split=split,
            repeat=repeat,
            score=result.score,
            kind=result.kind,
            answer=None if result.verdict is None else result.verdict.answer,
            reason=result.rollout.reason,
        )
        for repeat, split, evaluation in parts
        for result in evaluation.results
    ]
    repeats = len({repeat for repeat, _, _ in parts})
    found: dict[str, list[float | None]] = {}
    for row in rows:
        found.setdefault(row.task_id, []).append(row.score)
    means = {task_id: _whole_mean(scores, repeats) for task_id, scores in found.items()}
    first = parts[0][2]
    return Measured(
        labels=labels,
        instruction=first.instruction,
        md5=first.md5,
        rows=tuple(rows),
        scores={task_id: mean for task_id, mean in means.items() if mean is not None},
        n=n,
        failed=tuple(dict.fromkeys(row.task_id for row in rows if row.score is None)),
    )


def contrasts(measured: Sequence[Measured]) -> tuple[Contrast, ...]:
    """Compare every two instructions, the p-values corrected for their number."""
    found = [
        (first, second, paired(measured[first].scores, measured[second].scores))
        for first, second in combinations(range(len(measured)), 2)
    ]
    known = [(first, second, test) for first, second, test in found if test is not None]
    corrected = holm([test.p_value for _, _, test in known])
    return tuple(
        Contrast(first=first, second=second, paired=test, corrected=p)
        for (first, second, test), p in zip(known, corrected, strict=True)
    )


def _whole_mean(scores: Sequence[float | None], wanted: int) -> float | None:
    known = [score for score in scores if score is not None]
    return math.fsum(known) / wanted if len(known) == wanted else None
