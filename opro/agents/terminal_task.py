"""What a task of `agent=terminal` says of itself, in the columns beside its shown fields.

check       a script for `sh` in /work, run when the agent is done: exit code 0 is a score of
            1, any other 0, unless its last line is `SCORE: x` with x from 0 to 1 (required)
files       path under /work → text, written before the agent begins
setup       a script for `sh` in /work, run after that
image       the image; none: `agent.image`
network     true: on Docker's default bridge; none: no network but loopback
read_only   false: all of the image may be written where the user's rights allow it
limits      any of `agent.limits`, in place of the agent's
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import Field, TypeAdapter, ValidationError

from opro.agents.container import MAX_SCRIPT
from opro.errors import ConfigError
from opro.types import Task

SPARE_MB = 8
"""Memory that full folders must leave for processes; without it not even a check could start."""
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one run may use; `conf/agent/terminal.yaml` says each in a line."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    turns: Annotated[int, Field(ge=1, le=1000)] = 10
    seconds: Seconds = 60.0
    command_seconds: Seconds = 20.0
    check_seconds: Seconds = 20.0
    output_bytes: Count = 1_000_000
    memory_mb: Annotated[int, Field(ge=16)] = 128
    cpus: Annotated[float, Field(ge=0.01)] = 1.0
    pids: Annotated[int, Field(ge=8)] = 64
    workdir_mb: Annotated[int, Field(ge=1)] = 32


@dataclass(frozen=True, kw_only=True)
class TerminalTask:
    """The columns of a task, checked."""

    check: Annotated[str, Field(min_length=1)]
    files: dict[str, str] = field(default_factory=dict)
    setup: str = ""
    image: str | None = None
    network: bool = False
    read_only: bool = True
    limits: Limits = field(default_factory=Limits)


_SHAPE = TypeAdapter(TerminalTask)
COLUMNS = tuple(TerminalTask.__dataclass_fields__)


def read_task(task: Task, image: str, limits: Limits) -> TerminalTask:
    """Return the task with the agent's image and limits where it names none.

    Raises:
        ConfigError: naming the task, the column and what is wrong with it.
    """
    where = f"agent=terminal: task {task.id!r}"
    for name in task.extra:
        # Other columns are welcome, but not a misspelt `netwrk: true` without effect.
        close = difflib.get_close_matches(name, COLUMNS, n=1, cutoff=0.8)
        if name not in COLUMNS and close:
            raise ConfigError(f"{where}: column {name!r}: did you mean {close[0]!r}?")
    if "check" not in task.extra:
        raise ConfigError(
            f"{where} has no column 'check' with the script that rates it"
            " (data=terminal_demo has tasks that do)"
        )
    found = {name: value for name, value in task.extra.items() if name in COLUMNS}
    own = found.get("limits") or {}
    if isinstance(own, Mapping):
        found["limits"] = {**asdict(limits), **own}
    found["image"] = found.get("image") or image
    try:
        read = _SHAPE.validate_json(json.dumps(found), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        column = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{where}: {column}: {first['msg'].lower()}") from None
    if read.limits.memory_mb < 2 * read.limits.workdir_mb + SPARE_MB:
        raise ConfigError(
            f"{where}: limits.memory_mb={read.limits.memory_mb}: /work and /tmp lie in memory, so"
            f" give at least 2 * workdir_mb + {SPARE_MB}, here"
            f" {2 * read.limits.workdir_mb + SPARE_MB}"
        )
    _check_paths(read.files, where)
    for name, script in (("check", read.check), ("setup", read.setup)):
        if "\0" in script or len(script.encode("utf-8", "replace")) > MAX_SCRIPT:
            raise ConfigError(f"{where}: {name}: at most {MAX_SCRIPT} bytes, no NUL")
    return read


def _check_paths(files: Mapping[str, str], where: str) -> None:
    for path in files:
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or path.endswith("/") or ".." in parts or "\0" in path:
            raise ConfigError(f"{where}: files: {path!r} is no path of a file under /work")
