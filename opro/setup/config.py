"""From a composed configuration to checked parts: every wrong value is one line."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import json
import typing
from collections.abc import Mapping
from typing import Any, NotRequired

from pydantic import ConfigDict, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from opro.errors import ConfigError, nearest

Node = Mapping[str, Any]


def build(node: Node | None, key: str, **runtime: Any) -> Any:
    """Build the object that `node` describes.

    The arguments are checked against the type hints of the target's `__init__` as YAML gives
    them: no string is taken for a number, no 1 for true, no unknown key is ignored.

    Args:
        node: `_target_` (a dotted path to a class) and its arguments.
        key: where the node stands in the configuration, for messages (`evolver`).
        runtime: arguments that no configuration holds (an LLM, a folder); passed when the
            target takes them.

    Raises:
        ConfigError: naming the key, the value and what is allowed.
    """
    if not isinstance(node, Mapping) or not isinstance(node.get("_target_"), str):
        raise ConfigError(f"{key}={node!r}: choose one of the options in conf/{key}/")
    target = _locate(node["_target_"], key)
    parameters = inspect.signature(target.__init__).parameters
    given = {name: value for name, value in runtime.items() if name in parameters}
    config = {name: value for name, value in node.items() if name != "_target_"}
    values = _checked(target, config, set(given), key)
    return target(**values, **given)


def _locate(path: str, key: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{key}._target_={path}: can't be imported: {error}") from None


def _checked(target: Any, config: dict[str, Any], skip: set[str], key: str) -> dict[str, Any]:
    hints = _hints(target, skip)
    try:
        text = json.dumps(config)
    except TypeError as error:
        raise ConfigError(f"{key}: {error}") from None
    # A TypedDict, since a model's own attributes would clash with arguments of the same name.
    shape = _make_shape(target.__name__, hints)
    shape.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    try:
        checked: dict[str, Any] = TypeAdapter(shape).validate_json(text, strict=True)
    except ValidationError as error:
        raise ConfigError(_line(error, config, key, hints)) from None
    return checked


_make_shape: Any = TypedDict
"""Its functional form, with names that are known at run time only."""


def _hints(target: Any, skip: set[str]) -> dict[str, Any]:
    """Return the types of the target's keyword arguments, those with a default NotRequired."""
    hints = typing.get_type_hints(target.__init__, include_extras=True)
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    found: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(target.__init__).parameters.items())[1:]:
        if parameter.kind in named and name not in skip:
            hint = hints.get(name, Any)
            required = parameter.default is inspect.Parameter.empty
            found[name] = hint if required else NotRequired[hint]
    return found


def _line(error: ValidationError, config: Node, key: str, hints: Node) -> str:
    first = error.errors()[0]
    parts = [str(part) for part in first["loc"]]
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        known = _known(hints, parts[:-1])
        name = ".".join([key, *parts])
        hint = nearest(parts[-1], known) or _deeper(hints, parts[-1], key)
        return f"{name}: unknown key{hint}; known are: {', '.join(sorted(known))}"
    if first["type"] == "missing":
        return f"{'.'.join([key, *parts])}: required, but not set"
    name, value = _value(config, parts, key)
    return f"{name}={value}: {first['msg'][:1].lower()}{first['msg'][1:]}"


def _known(hints: Node, parts: list[str]) -> list[str]:
    """Return the known names at a place, looking through nested dataclasses."""
    names: dict[str, Any] = dict(hints)
    for part in parts:
        for option in _options(names.get(part)):
            if hasattr(option, "__dataclass_fields__"):
                names = _fields(option)
                break
        else:
            return []
    return list(names)


def _fields(kind: Any) -> dict[str, Any]:
    """Return a dataclass's fields with their types, each as far as it can be resolved."""
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except NameError:  # an annotation of a library's own, for type checkers only
        hints = {}
    return {one.name: hints.get(one.name, Any) for one in dataclasses.fields(kind)}


def _deeper(hints: Node, name: str, key: str) -> str:
    """Return a hint at a key of that name one level down, or ''."""
    places = {leaf: f"{key}.{part}.{leaf}" for part in hints for leaf in _known(hints, [part])}
    close = difflib.get_close_matches(name, list(places), n=1)
    return f" (did you mean '{places[close[0]]}'?)" if close else ""


def _options(hint: Any) -> list[Any]:
    """Return a hint and all that its brackets hold."""
    return [hint, *(inner for arg in typing.get_args(hint) for inner in _options(arg))]


def _value(config: Node, parts: list[str], key: str) -> tuple[str, str]:
    """Return the dotted name and the shown value of the offending setting."""
    at: Any = config
    path = [key]
    for part in parts:
        step = part if isinstance(at, Mapping) else int(part) if part.isdigit() else None
        try:
            at = at[step]
        except (KeyError, IndexError, TypeError):
            break  # pydantic's own marker (a union's branch), not a key of ours
        path.append(part)
    shown = json.dumps(at, ensure_ascii=False)
    return ".".join(path), shown if len(shown) <= 80 else f"{shown[:77]}…"


def flatten(node: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one flat dict of dotted keys; lists and scalars are leaves."""
    if not isinstance(node, Mapping) or (prefix and not node):
        return {prefix: node}
    flat: dict[str, Any] = {}
    for name, value in node.items():
        flat.update(flatten(value, f"{prefix}.{name}" if prefix else str(name)))
    return flat
