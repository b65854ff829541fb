"""The two ways of drawing a split at random; both leave every global generator alone."""

import random
from collections.abc import Sequence, Set
from typing import Protocol

from opro.data.rows import Row
from opro.errors import ConfigError


class Draw(Protocol):
    """Draws without replacement; called for train, then val, then test, where they are drawn."""

    def pick(self, rows: Sequence[Row], size: int, taken: Set[str], key: str) -> list[Row]:
        """Return `size` of `rows`, in any order.

        Args:
            rows: those in no split yet.
            size: how many; at most `len(rows)`.
            taken: contents that another split holds; no row with one of them is returned.
            key: the setting, for messages (`data.train=50`).

        Raises:
            ConfigError: so many can't be drawn.
        """
        ...


class PortDraw:
    """Shuffles the distinct questions with `random.Random(seed)` and takes the first ones.

    Rows of equal content are taken or left together; those that no longer fit are passed over.
    A larger count with the same seed therefore adds rows and keeps (nearly) all others.
    """

    def __init__(self, seed: int) -> None:
        """Keep the seed; each split is drawn by a generator of its own."""
        self._seed = seed

    def pick(self, rows: Sequence[Row], size: int, taken: Set[str], key: str) -> list[Row]:
        """See Draw."""
        groups: dict[str, list[Row]] = {}
        for row in rows:
            if row.key not in taken:
                groups.setdefault(row.key, []).append(row)
        shuffled = list(groups.values())
        random.Random(self._seed).shuffle(shuffled)
        picked: list[Row] = []
        for group in shuffled:
            if len(picked) + len(group) <= size:
                picked += group
        if len(picked) < size:
            why = "equal questions stay together and out of the other splits"
            raise ConfigError(f"{key}: only {len(picked)} of {size} rows can be drawn ({why})")
        return picked


class UpstreamDraw:
    """The authors' draw: NumPy's legacy generator, one for all splits, over single rows.

    Theirs lets a question that the data holds twice fall into two splits. Here the later split
    goes without it, so val and test may be a few rows short of `size`; train is always theirs.

    Source: google-deepmind/opro, optimize_instructions.py (`np.random.seed(0)`, then `choice`).
    """

    def __init__(self, seed: int) -> None:
        """Start the generator that every split goes on with."""
        import numpy  # late: a tenth of a second that only this draw needs

        self._generator = numpy.random.RandomState(seed)

    def pick(self, rows: Sequence[Row], size: int, taken: Set[str], key: str) -> list[Row]:
        """See Draw."""
        indices = self._generator.choice(len(rows), size=size, replace=False)
        return [rows[index] for index in indices if rows[index].key not in taken]
