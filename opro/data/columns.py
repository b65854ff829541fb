"""Which columns of a user's table are the id, the answer, the split and the shown fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opro.data.rows import Row
from opro.errors import ConfigError, nearest
from opro.types import Split, Task

SPLIT_NAMES: dict[str, Split] = {
    "train": "train",
    "val": "val",
    "validation": "val",
    "test": "test",
}


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The roles of a table's columns; a key whose value is null counts as absent.

    Attributes:
        id_field: None numbers the rows, so that ids hold as long as no row is put in between.
        answer_field: None when the judge needs no answer.
        split_field: its values are train, val (or validation) and test.
        fields: the columns shown, in this order; all others are in `extra`. None shows all but
            id, answer and split.
    """

    id_field: str | None
    answer_field: str | None
    split_field: str | None
    fields: list[str] | None

    def check(self) -> None:
        """Refuse roles that would show the answer or nothing."""
        if self.fields is not None and not self.fields:
            raise ConfigError("data.fields=[]: null (all) or one column or more is wanted")
        if self.answer_field is not None and self.answer_field in (self.fields or ()):
            raise ConfigError(f"data.fields={self.fields}: {self.answer_field!r} is the answer")

    def row(self, record: Mapping[str, Any], where: str, number: str, native: Split | None) -> Row:
        """Return the row of one record.

        Args:
            record: column → value.
            where: for messages.
            number: the id where no column holds it.
            native: the split, where no column holds it.

        Raises:
            ConfigError: a missing column, id, answer or split, or nothing to show.
        """
        present = {name: value for name, value in record.items() if value is not None}
        answer = self._value(present, "answer_field", where)
        if self.split_field is not None:
            native = _split(self._value(present, "split_field", where), where)
        shown = self._shown(present, where)
        roles = {self.id_field, self.answer_field, self.split_field, *shown}
        task = Task(
            id=number if self.id_field is None else self._id(present, where),
            fields=shown,
            answer=answer,
            extra={name: value for name, value in present.items() if name not in roles},
        )
        return Row(task=task, where=where, native=native)

    def _id(self, record: Mapping[str, Any], where: str) -> str:
        value = self._value(record, "id_field", where)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ConfigError(f"{where}: the id {value!r} is neither text nor a whole number")
        return str(value).strip()

    def _value(self, record: Mapping[str, Any], role: str, where: str) -> Any:
        column: str | None = getattr(self, role)
        if column is None:
            return None
        value = _column(record, column, f"data.{role}", where)
        if isinstance(value, str) and not value.strip():
            raise ConfigError(f"{where}: {column!r} (data.{role}) is blank")
        return value

    def _shown(self, record: Mapping[str, Any], where: str) -> dict[str, Any]:
        hidden = {self.id_field, self.answer_field, self.split_field}
        names = self.fields or [name for name in record if name not in hidden]
        shown = {name: _column(record, name, "data.fields", where) for name in names}
        if not any(str(value).strip() for value in shown.values()):
            what = ", ".join(names) or "no column is left"
            raise ConfigError(f"{where}: nothing to show the model ({what}: data.fields)")
        return shown


def _column(record: Mapping[str, Any], name: str, key: str, where: str) -> Any:
    if name not in record:
        have = ", ".join(record) or "none"
        hint = nearest(name, record)
        raise ConfigError(f"{where}: no value for {key}={name}{hint}; columns here: {have}")
    return record[name]


def _split(value: Any, where: str) -> Split:
    name = str(value).strip()
    if name not in SPLIT_NAMES:
        raise ConfigError(f"{where}: split {name!r}; allowed are train, val, test")
    return SPLIT_NAMES[name]
