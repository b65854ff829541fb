"""The composed configuration as plain containers, with the texts for models left alone."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from opro.errors import ConfigError
from opro.setup.hydra_errors import one_line

LITERAL = ("evolver.initial_instructions", "instructions", "judge.rubric", "judge.template")
"""Texts for models: taken as they stand, so that `${…}` in them is never resolved."""


def raw_config(config: DictConfig) -> dict[str, Any]:
    """Return the configuration before interpolations are resolved, without Hydra's own part."""
    raw: Any = OmegaConf.to_container(config, resolve=False)
    return {str(key): value for key, value in raw.items() if key != "hydra"}


def plain_config(config: DictConfig) -> dict[str, Any]:
    """Return the configuration as plain containers: resolved, but for `LITERAL` texts.

    Raises:
        ConfigError: an interpolation that can't be resolved.
    """
    raw: Any = OmegaConf.to_container(config, resolve=False)
    kept = {}
    for key in LITERAL:
        *path, last = key.split(".")
        node = raw
        for part in path:
            node = node.get(part) or {}
        if isinstance(node, dict) and last in node:
            kept[key] = node.pop(last)
    resolved = _resolved(raw, config)
    for key, value in kept.items():
        *path, last = key.split(".")
        node = resolved
        for part in path:
            node = node[part]
        node[last] = value
    return resolved


def task_overrides(hydra_config: Any) -> list[str]:
    """Return the command line's overrides as they were typed: `${…}` in them stays."""
    raw: Any = OmegaConf.to_container(hydra_config.overrides.task, resolve=False)
    return [str(one) for one in raw]


def secrets_of(config: DictConfig) -> dict[str, str]:
    """Return the values that came from the environment, each with the text that asked for it."""
    return _secrets(raw_config(config), plain_config(config))


def _resolved(raw: Any, config: DictConfig) -> dict[str, Any]:
    whole = OmegaConf.create(raw)
    OmegaConf.copy_cache(from_config=config, to_config=whole)  # `${now:…}` stays what it was
    resolved: dict[str, Any] = {}
    try:
        for key in whole:
            if key != "hydra":
                part = whole[key]
                is_node = OmegaConf.is_config(part)
                resolved[str(key)] = OmegaConf.to_container(part, resolve=True) if is_node else part
    except OmegaConfBaseException as error:
        raise ConfigError(one_line(error)) from None
    return resolved


def _secrets(raw: Any, resolved: Any) -> dict[str, str]:
    if isinstance(raw, dict):
        pairs = [(raw[key], resolved.get(key)) for key in raw]
    elif isinstance(raw, list):
        pairs = list(zip(raw, resolved, strict=True))
    elif isinstance(raw, str) and "oc.env:" in raw and isinstance(resolved, str) and resolved:
        return {resolved: raw}
    else:
        return {}
    return {k: v for one, other in pairs for k, v in _secrets(one, other).items()}
