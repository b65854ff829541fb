"""What all data sets share: settings of the splits, and `load` on top of reading rows."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from opro.data.base import Data
from opro.data.rows import Row, Source, digest
from opro.data.splits import DrawName, Plan, SplitSpec, divide
from opro.errors import ConfigError
from opro.types import Dataset, Split, Task


@dataclass(kw_only=True)
class Loader(Data):
    """A data set that makes its rows in `read`; the splits follow from opro.data.splits.

    A subclass is a keyword-only dataclass, too: its fields are the keys of its YAML file.
    Annotations must be real types there (no `from __future__ import annotations`), because the
    configuration is checked against those of inherited fields as well.

    Attributes:
        step_size: see Data.
        seed: of every draw.
        train, val, test: see opro.data.splits.
        draw: `port` draws with Python's generator and keeps equal questions together;
            `upstream` is the authors' draw, row for row.
    """

    step_size: Annotated[int, Field(ge=1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    train: SplitSpec = None
    val: SplitSpec = None
    test: SplitSpec = None
    draw: DrawName = "port"

    @abstractmethod
    def read(self) -> Source:
        """Return all rows in the data's own order. Raises ConfigError naming file and line."""

    def load(self) -> Dataset:
        """Read, check and split; see Data."""
        found = self.read()
        if not found.rows:
            raise ConfigError(f"data.path={found.source}: 0 rows")
        return self._divided(found)

    def outline(self) -> Dataset | None:
        """Divide as many invented rows as the published files have; see Data."""
        found = None if getattr(self, "path", None) is not None else self.published()
        return None if found is None else self._divided(found)

    def published(self) -> Source | None:
        """Return rows of invented content, as many as the published files have; None: unknown."""
        return None

    def _divided(self, found: Source) -> Dataset:
        plan = Plan(train=self.train, val=self.val, test=self.test, draw=self.draw, seed=self.seed)
        splits = divide(found.rows, plan)
        return Dataset(
            name=found.name,
            **splits,
            digest=digest([splits["train"], splits["val"], splits["test"]]),
            source=found.source + _left_out(found.rows, splits),
        )


def _left_out(rows: Sequence[Row], splits: Mapping[Split, Sequence[Task]]) -> str:
    """Return a note on rows that are in no split because another row has their content."""
    placed = {task.id for tasks in splits.values() for task in tasks}
    held = {row.key for row in rows if row.task.id in placed}
    count = sum(row.task.id not in placed and row.key in held for row in rows)
    return f" ({count} rows left out: a split has their question already)" if count else ""
