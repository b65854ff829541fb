"""The instructions that joined the search, and how they rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from opro.records import Scored
from opro.types import Evaluation


class History:
    """Every instruction with its training scores, in order of joining."""

    def __init__(self) -> None:
        self._entries: list[Scored] = []
        self._scores: list[tuple[float | None, ...]] = []
        self.best_evaluation: Evaluation | None = None

    @property
    def all(self) -> tuple[Scored, ...]:
        """Every instruction, the unscored ones too."""
        return tuple(self._entries)

    @property
    def best(self) -> Scored:
        """The best on training; ties go to the earliest. The first one while none is scored."""
        ranked = self.ranked()
        return ranked[0] if ranked else self._entries[0]

    def join(self, evaluation: Evaluation, step: int) -> None:
        """Add an instruction with its results on all training tasks, in the data's order."""
        entry = Scored(
            instruction=evaluation.instruction,
            md5=evaluation.md5,
            step=step,
            score=evaluation.mean,
        )
        self._entries.append(entry)
        self._scores.append(tuple(result.score for result in evaluation.results))
        if self.best_evaluation is None or self.best is entry:
            self.best_evaluation = evaluation

    def ranked(self) -> list[Scored]:
        """Return the scored instructions, best first; ties in order of joining."""
        scored = [entry for entry in self._entries if entry.score is not None]
        return sorted(scored, key=lambda entry: -(entry.score or 0.0))

    def shown(self, most: int, threshold: float) -> list[Scored]:
        """Return what the meta-prompt shows: the `most` best at or above `threshold`, worst first.

        Sorted by score ascending (stable), the last `most` kept, then those below left out.
        """
        scored = [entry for entry in self._entries if entry.score is not None]
        kept = sorted(scored, key=lambda entry: entry.score or 0.0)[-most:]
        return [entry for entry in kept if (entry.score or 0.0) >= threshold]

    def scores(self, index: int) -> tuple[float | None, ...]:
        """Return the per-task scores of the entry that joined as number `index`."""
        return self._scores[index]

    def wrong(self, md5s: Collection[str] | None = None) -> Counter[int]:
        """Return how many instructions score 0 on each training task, by its position.

        Args:
            md5s: count these only; None counts all that joined.
        """
        counts: Counter[int] = Counter()
        for entry, scores in zip(self._entries, self._scores, strict=True):
            if md5s is None or entry.md5 in md5s:
                counts.update(at for at, score in enumerate(scores) if score == 0.0)
        return counts


def finalists(ranked: Sequence[Scored], top_k: int) -> list[Scored]:
    """Return the `top_k` best texts; one that joined twice (as its own copy) counts once."""
    chosen: dict[str, Scored] = {}
    for entry in ranked:
        chosen.setdefault(entry.md5, entry)
    return list(chosen.values())[:top_k]
