"""How `data.train`, `data.val` and `data.test` pick rows: one rule for every data set.

A split's setting is one of

- `null`: every row whose native split (a column of the file, a file of its own) it is. Where the
  data states none, val and test are empty and train is all that the others leave.
- a count (`50`) or a fraction (`0.5`, above 0 and up to 1, of the pool before anything is taken
  from it, rounded down): drawn with `data.seed`, without replacement. `0` is an empty val or test.
- `rest`: all of the pool that no other split took.
- any other text: a file of task ids, one a line.

A split's pool is its native rows; if it has none, the native train rows; if the data states no
split at all, all rows. Files of ids are served first, then whole native val and test splits, then
the draws (train, val, test), then what takes the rest. Within a split the data's order holds.

No two splits share a question, that is, content equal but for case and blanks. Draws and `rest`
leave such rows out. A file of ids or a whole split that holds one is refused: there the data
itself leaks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from opro.data import files
from opro.data.draws import Draw, PortDraw, UpstreamDraw
from opro.data.rows import Row
from opro.errors import ConfigError, nearest
from opro.types import Split, Task

SplitSpec = int | float | str | None
DrawName = Literal["port", "upstream"]
REST = "rest"
NAMES: tuple[Split, ...] = get_args(Split)
ALLOWED = "null, a count, a fraction above 0 and up to 1, 'rest' or a file of ids"
_DRAWS: dict[DrawName, type[PortDraw] | type[UpstreamDraw]] = {
    "port": PortDraw,
    "upstream": UpstreamDraw,
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings of a division: the three splits', the draw's name and its seed."""

    train: SplitSpec
    val: SplitSpec
    test: SplitSpec
    draw: DrawName
    seed: int

    def spec(self, name: Split) -> SplitSpec:
        """Return one split's setting."""
        return {"train": self.train, "val": self.val, "test": self.test}[name]

    def key(self, name: Split) -> str:
        """Return one split's setting as messages name it."""
        spec = self.spec(name)
        return f"data.{name}={'null' if spec is None else spec}"


def divide(rows: Sequence[Row], plan: Plan) -> dict[Split, tuple[Task, ...]]:
    """Return the tasks of the three splits; train is never empty.

    Raises:
        ConfigError: ids used twice, a setting that can't be met, splits that share a question.
    """
    for name in NAMES:
        _check(plan.spec(name), name, plan)
    division = _Division(rows, plan)
    division.run()
    return division.tasks()


def _check(spec: SplitSpec, name: Split, plan: Plan) -> None:
    """Refuse what no split can be."""
    wrong = isinstance(spec, bool) or spec == ""
    if isinstance(spec, int):
        wrong = wrong or spec < (1 if name == "train" else 0)
    elif isinstance(spec, float):
        wrong = not 0 < spec <= 1
    if wrong:
        raise ConfigError(f"{plan.key(name)}: allowed are {ALLOWED}")


class _Division:
    """The rows that have found their split so far."""

    def __init__(self, rows: Sequence[Row], plan: Plan) -> None:
        self._rows = rows
        self._plan = plan
        self._by_id = _unique(rows)
        self._natives = {row.native for row in rows} - {None}
        self._split: dict[str, Split] = {}  # task id → its split
        self._holder: dict[str, Row] = {}  # content → the first row that brought it to a split

    def run(self) -> None:
        """Serve the splits in the order that the module's text states."""
        specs = {name: self._plan.spec(name) for name in NAMES}
        for name, spec in specs.items():
            if isinstance(spec, str) and spec != REST:
                self._put(name, self._listed(name, spec))
        for name in NAMES[1:]:
            if specs[name] is None:
                free = self._free(name)
                self._put(name, [row for row in free if row.native == name])
        draw = _DRAWS[self._plan.draw](self._plan.seed)
        for name, spec in specs.items():
            if isinstance(spec, int | float):
                self._put(name, self._drawn(name, spec, draw))
        for name, spec in specs.items():
            if spec == REST:
                left = self._free(name)
                self._put(name, [row for row in left if row.key not in self._holder])
        if specs["train"] is None:
            self._put("train", self._free("train"))

    def tasks(self) -> dict[Split, tuple[Task, ...]]:
        """Return the splits in the data's order; refuse one that was asked for and is empty."""
        found: dict[Split, list[Task]] = {name: [] for name in NAMES}
        for row in self._rows:
            if row.task.id in self._split:
                found[self._split[row.task.id]].append(row.task)
        for name, tasks in found.items():
            if not tasks and (name == "train" or self._plan.spec(name) not in (None, 0)):
                raise ConfigError(f"{self._plan.key(name)}: no row is left for it")
        return {name: tuple(tasks) for name, tasks in found.items()}

    def _pool(self, name: Split) -> list[Row]:
        if not self._natives:
            return list(self._rows)
        wanted = name if name in self._natives else "train"
        return [row for row in self._rows if row.native == wanted]

    def _free(self, name: Split) -> list[Row]:
        return [row for row in self._pool(name) if row.task.id not in self._split]

    def _drawn(self, name: Split, spec: int | float, draw: Draw) -> list[Row]:
        key, pool, free = self._plan.key(name), self._pool(name), self._free(name)
        # 0.29 * 100 is 28.999…: the small number makes that 29, as a person would.
        size = spec if isinstance(spec, int) else int(spec * len(pool) + 1e-9)
        if size > len(free):
            have = f"{len(free)} of its pool's {len(pool)} rows are free"
            raise ConfigError(f"{key}: {size} rows are wanted, {have}")
        return draw.pick(free, size, self._holder.keys(), key) if size else []

    def _listed(self, name: Split, spec: str) -> list[Row]:
        path = files.resolve(spec)
        if not path.is_file():
            raise ConfigError(f"{self._plan.key(name)}: no such file; allowed are {ALLOWED}")
        lines: dict[str, int] = {}
        for number, line in files.lines(path):
            task_id = line.strip()
            where = f"{path}:{number}: id {task_id!r}"
            if task_id not in self._by_id:
                raise ConfigError(f"{where} is no task's{nearest(task_id, self._by_id)}")
            if task_id in lines:
                raise ConfigError(f"{where} is on line {lines[task_id]} already")
            if task_id in self._split:
                raise ConfigError(f"{where} is in data.{self._split[task_id]} already")
            lines[task_id] = number
        return [self._by_id[task_id] for task_id in lines]

    def _put(self, name: Split, rows: Sequence[Row]) -> None:
        for row in rows:
            other = self._holder.get(row.key)
            if other is not None and self._split[other.task.id] != name:
                there = f"{other.task.id!r} ({other.where}) of data.{self._split[other.task.id]}"
                here = f"task {row.task.id!r} ({row.where}) has the content of"
                raise ConfigError(f"{self._plan.key(name)}: {here} {there}; drop one of them")
            if row.task.id not in self._split:
                self._split[row.task.id] = name
                self._holder.setdefault(row.key, row)


def _unique(rows: Sequence[Row]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for row in rows:
        first = found.setdefault(row.task.id, row)
        if first is not row:
            raise ConfigError(f"{row.where}: id {row.task.id!r} is used at {first.where} already")
    return found
