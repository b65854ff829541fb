"""reasoning-gym: about a hundred generators of verifiable puzzles, offline and seeded.

Most make a task in a millisecond; knight_swap, futoshiki, arc_agi and zebra_puzzles take a tenth
of a second to seconds each. Easy generators repeat questions, and equal ones stay in one split.
Task i is made from the number seed + i, so that seeds less than `size` apart share tasks.
"""

import dataclasses
import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from opro.data.loader import Loader
from opro.data.rows import Row, Source
from opro.errors import ConfigError, nearest
from opro.types import Task


@dataclass(kw_only=True)
class ReasoningGym(Loader):
    """`size` tasks of one generator; the field is `question`, the answer as the library has it.

    The judge `reasoning_gym` rates with the library's own scorer, for which extra holds
    `dataset` (the generator's name) and `entry` (the library's whole record). The answer is None
    where many answers are right. Ids name the seed: `leg_counting-seed0-7`.

    Attributes:
        name: the generator.
        size: how many tasks are made in all.
        seed: of the generator, and of the draw of the splits.
        params: further settings of the generator, by its own names.
    """

    name: str = "leg_counting"
    size: Annotated[int, Field(ge=1)] = 200
    params: dict[str, Any] = field(default_factory=dict)

    def read(self) -> Source:
        """See Loader."""
        rows = [self._row(index, entry) for index, entry in enumerate(self._generated())]
        source = f"reasoning-gym {self.name} (seed {self.seed}, size {self.size})"
        return Source(name=f"reasoning_gym/{self.name}", source=source, rows=rows)

    def _generated(self) -> list[dict[str, Any]]:
        try:
            factory = importlib.import_module("reasoning_gym.factory")  # late: it takes a second
        except ImportError:
            fix = "pip install reasoning-gym"
            raise ConfigError(f"data=reasoning_gym: a package is missing; {fix}") from None
        _known("data.name", self.name, factory.DATASETS)
        settings = {item.name for item in dataclasses.fields(factory.DATASETS[self.name][1])}
        for key in self.params:
            _known("data.params", key, settings - {"seed", "size"})
        try:
            made = factory.create_dataset(self.name, seed=self.seed, size=self.size, **self.params)
            return list(made)
        except (AssertionError, ValueError, TypeError) as error:
            why = " ".join(str(error).split())
            raise ConfigError(f"data.params={self.params}: {self.name} refuses: {why}") from None

    def _row(self, index: int, entry: dict[str, Any]) -> Row:
        task = Task(
            id=f"{self.name}-seed{self.seed}-{index}",
            fields={"question": entry["question"]},
            answer=entry["answer"],
            extra={"dataset": self.name, "entry": entry},
        )
        return Row(task=task, where=f"{self.name}[{index}]")


def _known(key: str, name: str, names: Iterable[str]) -> None:
    known = sorted(names)
    if name not in known:
        hint = nearest(name, known)
        raise ConfigError(f"{key}={name}: unknown{hint}; allowed are {', '.join(known)}")
