"""Data sets of Hugging Face's `datasets` library: a local folder, or a name on the hub.

A folder written by `save_to_disk` needs no network, a name on the hub does. Everything is read
into memory. Labels that the library stores as numbers with names become the names.
"""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from opro.data import files
from opro.data.columns import SPLIT_NAMES, Columns
from opro.data.loader import Loader
from opro.data.rows import Row, Source
from opro.errors import ConfigError
from opro.types import Split

_MARKS = ("dataset_dict.json", "state.json")  # what save_to_disk leaves in a folder


@dataclass(kw_only=True)
class Hf(Loader):
    """Rows of a data set, with the library's own splits as native ones.

    Attributes:
        path: a folder, or the hub's `owner/name`.
        config: the data set's configuration, where it has several.
        splits: ours → theirs, e.g. {train: train_sft}; null takes train, val or validation, and
            test as they are. A data set without splits is one pool.
        id_field, answer_field, fields: see opro.data.columns.
    """

    path: str | None = None
    config: str | None = None
    splits: dict[Split, str] | None = None
    id_field: str | None = None
    answer_field: str | None = "answer"
    fields: list[str] | None = None

    def read(self) -> Source:
        """See Loader."""
        columns = Columns(
            id_field=self.id_field,
            answer_field=self.answer_field,
            split_field=None,
            fields=self.fields,
        )
        columns.check()
        if self.path is None:
            raise ConfigError("data.path=null: give a save_to_disk folder or a name on the hub")
        found = self._loaded(self.path)
        parts = self._parts(found) if isinstance(found, dict) else [(None, found)]
        rows = [row for native, part in parts for row in _rows(part, columns, native)]
        return Source(name=self.path.rstrip("/").rpartition("/")[2], source=self.path, rows=rows)

    def _loaded(self, path: str) -> Any:
        """Return a Dataset, or a DatasetDict where it has splits."""
        try:
            datasets = importlib.import_module("datasets")  # late: it takes a second
        except ImportError:
            raise ConfigError("data=hf: a package is missing; pip install datasets") from None
        folder = files.resolve(path)
        if path.startswith(("/", "./", "../", "~")) and not folder.is_dir():
            raise ConfigError(f"data.path={path}: no such folder")
        try:
            if any((folder / mark).is_file() for mark in _MARKS):
                return datasets.load_from_disk(str(folder))
            return datasets.load_dataset(str(folder) if folder.is_dir() else path, self.config)
        except (OSError, ValueError) as error:  # the library's own errors derive from these
            why = " ".join(str(error).split())
            raise ConfigError(f"data.path={path}: can't be loaded: {why}") from None

    def _parts(self, found: dict[str, Any]) -> list[tuple[Split | None, Any]]:
        theirs = ", ".join(found)
        if self.splits is None:
            if unknown := [name for name in found if name not in SPLIT_NAMES]:
                say = f"say which is which, it has {theirs}"
                raise ConfigError(f"data.splits=null: {unknown[0]!r} is no split of ours; {say}")
            return [(SPLIT_NAMES[name], part) for name, part in found.items()]
        for ours, name in self.splits.items():
            if name not in found:
                raise ConfigError(f"data.splits.{ours}={name}: allowed are {theirs}")
        return [(ours, found[name]) for ours, name in self.splits.items()]


def _rows(part: Any, columns: Columns, native: Split | None) -> Iterator[Row]:
    labels = {name: kind for name, kind in part.features.items() if hasattr(kind, "int2str")}
    for number, record in enumerate(part, start=1):
        for name, kind in labels.items():
            value = record[name]
            # -1 is the library's mark for a hidden label
            record[name] = None if value is None or value < 0 else kind.int2str(value)
        number_id = f"{native or 'row'}-{number:05}"
        yield columns.row(record, f"{native or 'row'} {number}", number_id, native)
