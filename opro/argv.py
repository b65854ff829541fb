"""A command line as a list in the configuration: its placeholders, its program, its environment.

No shell ever sees it: an item stays one argument, whatever characters a path has.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from opro.errors import ConfigError, nearest

_PLACE = re.compile(r"\{(\w+)\}")


def check_argv(command: Sequence[str], env: Sequence[str], key: str, known: Sequence[str]) -> None:
    """Refuse a command that can't be started.

    Args:
        command: the program and its arguments.
        env: the names of the variables that it gets.
        key: where it stands in the configuration, e.g. `agent.command`.
        known: the names of its placeholders.

    Raises:
        ConfigError: no program, one that isn't found, or a misspelt placeholder.
    """
    if not command or not command[0].strip():
        raise ConfigError(f"{key}={list(command)}: give the program and its arguments as a list")
    for item in command:
        if "\0" in item:
            raise ConfigError(f"{key}: {item!r} holds a NUL character")
        for name in _PLACE.findall(item):
            hint = nearest(name, known)
            if name not in known and hint:
                raise ConfigError(f"{key}: {item!r}: unknown placeholder{hint}")
    program = absolute(command)[0]
    if shutil.which(program, path=environment(env).get("PATH", os.defpath)) is None:
        raise ConfigError(f"{key}: the program {command[0]!r} isn't found or can't be executed")


def absolute(command: Sequence[str]) -> list[str]:
    """Return the command with a program given by a relative path made absolute.

    Relative to the folder that the run was started from, since it runs in another.
    """
    program = command[0]
    if "/" in program and not _PLACE.search(program):
        program = str(Path(program).expanduser().absolute())
    return [program, *command[1:]]


def fill(command: Sequence[str], places: Mapping[str, str]) -> list[str]:
    """Return the command with every `{name}` of `places` replaced, in one pass."""
    return [_PLACE.sub(lambda match: places.get(match[1], match[0]), item) for item in command]


def environment(names: Sequence[str]) -> dict[str, str]:
    """Return those variables of our own environment that are named and set."""
    return {name: os.environ[name] for name in names if name in os.environ}
