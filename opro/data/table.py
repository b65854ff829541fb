"""Files of the user's own: JSON lines, CSV or TSV, in UTF-8.

Values of JSON stay what they are; a cell of CSV or TSV is always text. Whole files are read into
memory, so this is for thousands of tasks, not for millions.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from opro.data import files
from opro.data.columns import Columns
from opro.data.loader import Loader
from opro.data.rows import Row, Source
from opro.errors import ConfigError
from opro.types import Split


@dataclass(kw_only=True)
class Table(Loader):
    """Rows of one file, or of one file per split.

    Attributes:
        path: a file, or {train: file, val: file, test: file}, where train may stand alone.
            `pkg://opro/…` is a file inside the package.
        id_field, answer_field, split_field, fields: see opro.data.columns.
    """

    path: str | dict[Split, str] | None = None
    id_field: str | None = None
    answer_field: str | None = "answer"
    split_field: str | None = None
    fields: list[str] | None = None

    @abstractmethod
    def records(self, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """Yield each record with the number of its first line."""

    def read(self) -> Source:
        """See Loader."""
        paths = self._paths()
        columns = Columns(
            id_field=self.id_field,
            answer_field=self.answer_field,
            split_field=self.split_field,
            fields=self.fields,
        )
        columns.check()
        rows = [row for native, path in paths for row in self._rows(path, columns, native)]
        name = "+".join(path.stem for _, path in paths)
        return Source(name=name, source=", ".join(str(path) for _, path in paths), rows=rows)

    def _rows(self, path: Path, columns: Columns, native: Split | None) -> Iterator[Row]:
        for number, (line, record) in enumerate(self.records(path), start=1):
            yield columns.row(record, f"{path}:{line}", f"{native or 'row'}-{number:05}", native)

    def _paths(self) -> list[tuple[Split | None, Path]]:
        if not self.path:
            raise ConfigError(f"data.path={self.path or 'null'}: give a file, or one per split")
        if isinstance(self.path, str):
            return [(None, _file(self.path, "data.path"))]
        if self.split_field is not None:
            taken = "data.path names a file per split already"
            raise ConfigError(f"data.split_field={self.split_field}: {taken}")
        return [(name, _file(path, f"data.path.{name}")) for name, path in self.path.items()]


class Jsonl(Table):
    """One JSON object a line; lines may differ in their keys."""

    def records(self, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """See Table."""
        return files.json_lines(path)


class Csv(Table):
    """A line of column names, then rows of as many cells, separated by commas."""

    delimiter: ClassVar[str] = ","

    def records(self, path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """See Table."""
        rows = iter(files.cells(path, self.delimiter))
        line, header = next(rows, (1, []))
        _check_header(header, f"{path}:{line}")
        for line, row in rows:
            if len(row) != len(header):
                counts = f"{len(row)} cells, but {len(header)} columns"
                raise ConfigError(f"{path}:{line}: {counts} ({', '.join(header)})")
            yield line, dict(zip(header, row, strict=True))


class Tsv(Csv):
    """The same, separated by tabs."""

    delimiter: ClassVar[str] = "\t"


def _check_header(header: list[str], where: str) -> None:
    for number, name in enumerate(header, start=1):
        if not name.strip() or header.index(name) + 1 < number:
            problem = "is there twice" if name.strip() else "has no name"
            raise ConfigError(f"{where}: column {number} {name!r} {problem}")


def _file(path: str, key: str) -> Path:
    found = files.resolve(path)
    if not found.is_file():
        kind = "a folder, not a file" if found.is_dir() else "no such file"
        raise ConfigError(f"{key}={path}: {kind}")
    return found
