"""Hydra's and OmegaConf's errors, each in one line with the nearest known name."""

from __future__ import annotations

import yaml  # type: ignore[import-untyped]

from opro.errors import nearest

BrokenFile: type[Exception] = yaml.YAMLError
"""What reading a configuration file raises that is no YAML."""


def one_line(error: BaseException) -> str:
    """Return what is wrong with a command line or a configuration, for a person."""
    options = getattr(error, "options", None)
    if options is not None:  # a group has no such option
        return _missing_option(str(error.missing_cfg_file), options)  # type: ignore[attr-defined]
    cause = error.__cause__ or error
    parent = getattr(cause, "parent_node", None)
    if parent is not None and "not in" in str(cause):
        return _unknown_key(cause, parent)
    if isinstance(error, BrokenFile):
        return _broken_file(error)
    text = _head(str(cause))
    key = getattr(cause, "full_key", None)
    if key:
        return f"{key}: {text}"
    return text if cause is error else f"{_head(str(error))} {text}"


def _head(text: str) -> str:
    """Return the first line, and the second one where the first only leads up to it."""
    first, *others = text.splitlines()
    return f"{first} {others[0].strip()}" if first.endswith(":") and others else first


def _broken_file(error: BaseException) -> str:
    """Return file and line of what is no YAML, in one line."""
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return " ".join(str(error).split())
    what = getattr(error, "problem", None) or "it can't be read"
    return f"{mark.name}:{mark.line + 1}: not YAML: {what}"


def _missing_option(path: str, options: list[str]) -> str:
    group, _, name = path.rpartition("/")
    allowed = ", ".join(sorted(options)) or "none"
    return f"{group}={name}: no such option{nearest(name, options)}; there are: {allowed}"


def _unknown_key(cause: BaseException, parent: object) -> str:
    try:
        known = sorted(str(key) for key in parent)  # type: ignore[attr-defined]
    except TypeError:
        known = []
    full, key = getattr(cause, "full_key", ""), str(getattr(cause, "key", ""))
    if not known:  # a mapping of the user's own, as `llm.extra_body`
        return f"{full}: not there yet; add it by a plus sign: +{full}=…"
    return f"{full}: unknown key{nearest(key, known)}; known are: {', '.join(known)}"
