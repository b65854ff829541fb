"""Refuses a wrong configuration before any folder or run is made; prints the plan if asked."""

from __future__ import annotations

from pathlib import Path

from omegaconf import DictConfig

from opro.evaluation import prepare
from opro.provenance import refuse_secrets
from opro.setup.assembly import assemble
from opro.setup.composed import plain_config, raw_config
from opro.setup.planning import make_plan, render


def search(config: DictConfig) -> None:
    """Check a search's configuration; with `plan=true`, print the plan and end.

    Raises:
        ConfigError: one line.
        SystemExit: 0, after the plan.
    """
    refuse_secrets(raw_config(config))
    plan = make_plan(assemble(plain_config(config), Path.cwd()))
    _end_with(config, render([plan]))


def evaluation(config: DictConfig) -> None:
    """Check an evaluation's configuration; otherwise as `search`."""
    refuse_secrets(raw_config(config))
    _end_with(config, prepare(plain_config(config), Path.cwd()).plan())


def _end_with(config: DictConfig, plan: str) -> None:
    if config.get("plan"):
        print(plan)
        raise SystemExit(0)
