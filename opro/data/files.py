"""Reading text files so that every complaint names the file and the line.

UTF-8 with or without a byte-order mark, LF or CRLF; blank lines are skipped but counted.
"""

import csv
import importlib.resources
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opro.errors import ConfigError

PACKAGE = "pkg://"


def resolve(path: str) -> Path:
    """Return the file or folder that `path` means; it need not exist.

    `pkg://opro/data/demo.jsonl` is a file shipped inside the package `opro`, `~` the home folder,
    and all else relative to the current folder.
    """
    if path.startswith(PACKAGE):
        package, _, rest = path.removeprefix(PACKAGE).partition("/")
        try:
            return Path(str(importlib.resources.files(package))) / rest
        except (ImportError, ValueError):
            raise ConfigError(f"{path}: no package {package!r} is installed") from None
    return Path(path).expanduser()


def folder(path: str | None, wanted: str) -> Path:
    """Return the folder `data.path`, or raise ConfigError saying what is `wanted` there."""
    if path is None:
        raise ConfigError(f"data.path=null: give {wanted}")
    found = resolve(path)
    if not found.is_dir():
        kind = "a file" if found.exists() else "no such folder"
        raise ConfigError(f"data.path={path}: {kind}; give {wanted}")
    return found


def member(base: Path, names: tuple[str, ...], wanted: str) -> Path:
    """Return the first of `names` that is a file in `base`; ConfigError when none is."""
    for name in names:
        if (base / name).is_file():
            return base / name
    raise ConfigError(f"data.path={base}: no {' or '.join(names)} in it; give {wanted}")


def text(path: Path) -> str:
    """Return the file's text without its byte-order mark, line ends untouched."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"data.path={path}: can't be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text: {error.reason}") from None


def lines(path: Path) -> Iterator[tuple[int, str]]:
    r"""Yield each line that isn't blank with its number from 1.

    A line ends at `\n` alone: U+2028 and its like may stand inside a JSON string.
    """
    for number, line in enumerate(text(path).split("\n"), start=1):
        if line.strip():
            yield number, line.removesuffix("\r")


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each line's JSON object with the line's number."""
    for number, line in lines(path):
        value = _parsed(line, path, number)
        if not isinstance(value, dict):
            kind = type(value).__name__
            raise ConfigError(
                f"{path}:{number}: a JSON object is wanted on each line, not a {kind}"
            )
        yield number, value


def json_document(path: Path) -> Any:
    """Return the value of a file that is one JSON document."""
    return _parsed(text(path), path, 1)


def _parsed(source: str, path: Path, first: int) -> Any:
    try:
        return json.loads(source, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        line = first + error.lineno - 1
        raise ConfigError(f"{path}:{line}: not JSON: {error.msg}, column {error.colno}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}:{first}: not JSON: {error}") from None


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def cells(path: Path, delimiter: str) -> list[tuple[int, list[str]]]:
    """Return the cells of each row with the number of its first line.

    A cell in double quotes may hold the delimiter, line ends and doubled quotes. Every cell is
    text: `None`, `NA` and `007` stay what they are.
    """
    source = text(path)
    limit = csv.field_size_limit()
    try:
        csv.field_size_limit(max(limit, len(source)))  # a whole document may be one cell
        return list(_rows(source, path, delimiter))
    finally:
        csv.field_size_limit(limit)


def _rows(source: str, path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(source, newline=""), delimiter=delimiter, strict=True)
    first = 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield first, row
            first = reader.line_num + 1
    except csv.Error as error:
        raise ConfigError(f"{path}:{first}: {error}") from None
