"""What a loader makes of a file before the splits are known, and the fingerprint of the result."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from opro.errors import ConfigError
from opro.types import Split, Task


@dataclass(frozen=True, kw_only=True)
class Row:
    """One task and where it comes from.

    Attributes:
        where: for messages, e.g. `train.jsonl:12`.
        native: the split that the data itself states; None when it states none.
    """

    task: Task
    where: str
    native: Split | None = None

    @cached_property
    def key(self) -> str:
        """The content: two rows of equal key are one question and never in two splits."""
        return content(self.task.fields)


@dataclass(frozen=True, kw_only=True)
class Source:
    """All rows of a data set, in its order.

    Attributes:
        name: of the data set, for people.
        source: the file, folder or generator read, for people.
        rows: either every row has a native split, or none has.
    """

    name: str
    source: str
    rows: Sequence[Row]


def content(fields: Mapping[str, Any]) -> str:
    """Return the fields' values with case and runs of blanks levelled; names don't count."""
    return "\n".join(" ".join(str(value).split()).casefold() for value in fields.values())


def digest(splits: Sequence[Sequence[Task]]) -> str:
    """Return the sha256 (hex) over ids, fields, answers and extras, in the given order.

    The fields' order counts, since a model sees it; the order of keys deeper down doesn't.

    Raises:
        ConfigError: a value is of a type that can't be written as JSON.
    """
    hasher = hashlib.sha256()
    for tasks in splits:
        hasher.update(f"{len(tasks)} tasks\n".encode())
        for task in tasks:
            hasher.update(_line(task).encode("utf-8", "surrogatepass"))
    return hasher.hexdigest()


def _line(task: Task) -> str:
    parts = [task.id, list(task.fields.items()), task.answer, dict(task.extra)]
    try:
        return json.dumps(parts, ensure_ascii=False, sort_keys=True, default=_plain) + "\n"
    except (TypeError, ValueError) as error:
        raise ConfigError(f"task {task.id!r}: no fingerprint can be made: {error}") from None


def _plain(value: Any) -> Any:
    """Return a stand-in for what JSON lacks: bytes and arrays or images by hash, dates by text."""
    if isinstance(value, bytes):
        return hashlib.sha256(value).hexdigest()
    if hasattr(value, "tobytes"):
        return hashlib.sha256(value.tobytes()).hexdigest()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"a value of type {type(value).__name__}")
