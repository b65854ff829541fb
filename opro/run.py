"""Entry point: `python -m opro.run`, one search or, with `-m`, a sweep of them."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.experimental.callback import Callback
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from opro.errors import ConfigError, OproError

if TYPE_CHECKING:
    from opro.job import Place

_PACKAGE = Path(__file__).resolve().parent
CONF = next(path for path in (_PACKAGE / "conf", _PACKAGE.parent / "conf") if path.is_dir())
"""The configuration tree: inside an installed package, beside it in a checkout."""

LITERAL = ("evolver.initial_instructions", "judge.rubric", "judge.template")
"""Texts for models: taken as they stand, so that `${…}` in them is never resolved."""


class Preflight(Callback):
    """Hydra's callback: refuses a wrong configuration before any folder or run is made."""

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Check the one job's configuration; with `plan=true`, print the plan and end."""
        _or_exit(lambda: _check([config]))


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def _main(config: DictConfig) -> float | None:
    from opro import job  # late: --help needs none of it

    global _started, _status
    _started = True
    place = _place(config)
    os.chdir(place.launch)  # whatever hydra.job.chdir says, paths are the launch folder's
    outcome = job.run(plain_config(config), place)
    _status = max(_status, outcome.status)
    return outcome.value


_status = 0
_started = False


def main() -> int:
    """Run the command line and return its exit status.

    Returns:
        0 done; 1 failed; 2 a configuration that can't work; 3 done, but not fully tracked;
        130 or 143 stopped by Ctrl-C or SIGTERM.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # so that errors reach us instead of Hydra's printer
    try:
        _main()
    except (HydraException, OmegaConfBaseException) as error:
        return _fail(_one_line(error), 2)
    except ValueError as error:
        if _started:  # a bug of ours; Hydra's own come before any job
            raise
        return _fail(_one_line(error), 2)
    except ConfigError as error:
        return _fail(str(error), 2)
    except OproError as error:
        return _fail(str(error), 1)
    return _status


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
    whole = OmegaConf.create(raw)
    resolved: dict[str, Any] = {}
    try:
        for key in whole:
            if key != "hydra":
                part = whole[key]
                is_node = OmegaConf.is_config(part)
                resolved[str(key)] = OmegaConf.to_container(part, resolve=True) if is_node else part
    except OmegaConfBaseException as error:
        raise ConfigError(_one_line(error)) from None
    for key, value in kept.items():
        *path, last = key.split(".")
        node = resolved
        for part in path:
            node = node[part]
        node[last] = value
    return resolved


def _check(configs: Sequence[DictConfig]) -> None:
    from opro.assembly import assemble
    from opro.planning import make_plan, render
    from opro.provenance import refuse_secrets

    plans = []
    for config in configs:
        raw: Any = OmegaConf.to_container(config, resolve=False)
        refuse_secrets({key: value for key, value in raw.items() if key != "hydra"})
        assembly = assemble(plain_config(config), Path.cwd())
        plans.append(make_plan(assembly))
    if any(config.get("plan") for config in configs):
        print(render(plans))
        raise SystemExit(0)


def _place(config: DictConfig) -> Place:
    from opro.job import Place

    hydra_config = HydraConfig.get()
    raw: Any = OmegaConf.to_container(config, resolve=False)
    return Place(
        launch=Path(hydra_config.runtime.cwd),
        folder=Path(hydra_config.runtime.output_dir),
        overrides=tuple(hydra_config.overrides.task),
        secrets=_secrets(raw, plain_config(config)),
    )


def _secrets(raw: Any, resolved: Any) -> dict[str, str]:
    """Return the values that came from the environment, each with the text that asked for it."""
    if isinstance(raw, dict):
        pairs = [(raw[key], resolved.get(key)) for key in raw]
    elif isinstance(raw, list):
        pairs = list(zip(raw, resolved, strict=True))
    elif isinstance(raw, str) and "oc.env:" in raw and isinstance(resolved, str) and resolved:
        return {resolved: raw}
    else:
        return {}
    return {k: v for one, other in pairs for k, v in _secrets(one, other).items()}


def _or_exit(check: Any) -> None:
    """Run a check in a callback, where Hydra would turn an exception into a warning."""
    try:
        check()
    except OproError as error:
        raise SystemExit(_fail(str(error), 2)) from None
    except Exception:
        traceback.print_exc()
        raise SystemExit(1) from None


def _fail(message: str, status: int) -> int:
    print(f"opro: {message}", file=sys.stderr)
    return status


def _one_line(error: Exception) -> str:
    """Return Hydra's or OmegaConf's error as one line, with the nearest known name."""
    from opro.hydra_errors import one_line

    return one_line(error)


if __name__ == "__main__":
    sys.exit(main())
