"""From Hydra's multirun to a checked sweep: which jobs there will be, and what they need."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from opro.errors import ConfigError, OproError
from opro.job import Place
from opro.llms.base import LLM
from opro.provenance import fingerprint, refuse_secrets
from opro.setup.assembly import assemble
from opro.setup.composed import plain_config, raw_config, secrets_of, task_overrides
from opro.setup.hydra_errors import one_line
from opro.setup.planning import Plan, make_plan, render
from opro.sweeps.names import job_name
from opro.sweeps.parent import Sweep
from opro.sweeps.plan import PlannedJob, SweepPlan, known_keys
from opro.sweeps.sharing import check_limit, key_of

BASIC = "hydra._internal.core_plugins.basic_launcher.BasicLauncher"
EXTRAS = {
    "hydra_joblib_launcher": "joblib",
    "hydra_submitit_launcher": "submitit",
    "hydra_ray_launcher": "ray",
    "hydra_optuna_sweeper": "optuna",
}


def open_sweep(config: DictConfig) -> Sweep:
    """Check every job's configuration, then open the sweep; with `plan=true` print and exit.

    Raises:
        ConfigError: naming the job that can't work.
        SystemExit: after printing the plans.
    """
    for role in ("launcher", "sweeper"):
        _check_installed(config.hydra[role], role)
    asked = _asked(config)
    found = _Found()
    with contextlib.ExitStack() as stack:
        stack.callback(found.close)
        for job, name in zip(asked.jobs or [asked.fixed], asked.names or [""], strict=True):
            found.check(config, job, name)
        if any(one.get("plan") for one in found.configs):
            print(render(found.plans))
            if not asked.jobs:
                print("the sweeper draws its jobs one after the other: this is the plan of each")
            raise SystemExit(0)
        plan = _plan(config, asked, found)
        check_limit(plan.llms, plan.at_once, plan.launcher)
        if plan.jobs and config.hydra.launcher.get("n_jobs"):
            config.hydra.launcher.n_jobs = plan.at_once  # no worker without a job: see sweeps.job
        sweep = Sweep(plan)
        sweep.open()
        stack.pop_all()  # from here on the sweep closes what is open
    return sweep


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What a command line asks for.

    Attributes:
        keys: name the jobs, those of earlier starts first.
        jobs: each one's overrides; none when the sweeper draws them as it goes.
        names: of the jobs, in their order.
        fixed: the overrides that all jobs have in common.
    """

    folder: Path
    keys: tuple[str, ...]
    jobs: Sequence[Sequence[str]]
    names: Sequence[str]
    fixed: Sequence[str]


def _asked(config: DictConfig) -> _Asked:
    overrides = _parsed(config)
    folder = Path(config.hydra.runtime.cwd, config.hydra.sweep.dir)
    keys = known_keys(folder, _swept(config, overrides))
    jobs = _jobs(config, overrides)
    names = [job_name(job, keys) for job in jobs]
    return _Asked(folder=folder, keys=keys, jobs=jobs, names=names, fixed=_fixed(overrides))


class _Found:
    """What the check of the jobs finds; their data is let go of again."""

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.settings: list[dict[str, Any]] = []
        self.configs: list[Mapping[str, Any]] = []
        self.llms: dict[str, LLM] = {}
        self._first: Any = None

    @property
    def first(self) -> Any:
        """Return the first job's parts."""
        return self._first

    def check(self, config: DictConfig, overrides: Sequence[str], name: str) -> None:
        """Compose and build one job; a ConfigError names it."""
        loader = GlobalHydra.instance().config_loader()
        try:
            composed = loader.load_sweep_config(config, list(overrides))
            refuse_secrets(raw_config(composed))
            plain = plain_config(composed)
            assembly = assemble(plain, Path.cwd())
            place = Place(launch=Path.cwd(), folder=Path.cwd(), secrets=secrets_of(composed))
            settings = fingerprint(assembly, plain, place)
        except (ConfigError, HydraException, OmegaConfBaseException) as error:
            text = str(error) if isinstance(error, ConfigError) else one_line(error)
            raise ConfigError(f"{text} (job {name})" if name else text) from None
        plan = make_plan(assembly)
        self.plans.append(replace(plan, title=f"{name}: {plan.title}") if name else plan)
        self.settings.append(settings)
        self.configs.append(plain)
        for llm in assembly.llms:
            self.llms.setdefault(key_of(llm), llm)
        if self._first is None:
            self._first = assembly
            if not plain.get("plan"):
                with contextlib.suppress(OproError):  # the sweep tries again, and tells
                    assembly.tracker.share()  # gets ready while the other jobs are checked

    def close(self) -> None:
        """End what was started, when the sweep can't be opened."""
        if self._first is not None:
            self._first.tracker.close()


def _plan(config: DictConfig, asked: _Asked, found: _Found) -> SweepPlan:
    trainer = found.first.settings
    jobs = [
        PlannedJob(name=name, overrides=tuple(job), fingerprint=settings)
        for name, job, settings in zip(asked.names, asked.jobs, found.settings, strict=False)
    ]
    return SweepPlan(
        name=trainer.run_name,
        folder=asked.folder,
        command=_command(trainer.run_name),
        jobs=tuple(jobs),
        swept=asked.keys,
        settings=found.settings[0],
        launcher=_option(config, "launcher"),
        at_once=width(config.hydra.launcher, len(jobs)),
        stop_on_failure=trainer.stop_sweep_on_failure,
        tracker=found.first.tracker,
        llms=tuple(found.llms.values()),
    )


def width(launcher: Mapping[str, Any], jobs: int) -> int:
    """Return how many jobs a launcher runs at the same time, at most.

    Args:
        launcher: its configuration.
        jobs: how many there are; 0: unknown.
    """
    if launcher["_target_"] == BASIC:
        return 1
    ray = (launcher.get("ray") or {}).get("init") or {}
    limit = launcher.get("n_jobs") or launcher.get("array_parallelism") or ray.get("num_cpus")
    if limit is None:
        return max(1, jobs)
    limit = int(limit) if int(limit) > 0 else len(os.sched_getaffinity(0))
    return min(limit, jobs) if jobs else limit


def _parsed(config: DictConfig) -> list[Override]:
    params = OmegaConf.to_container(config.hydra.sweeper.get("params") or OmegaConf.create({}))
    assert isinstance(params, dict)
    lines = [f"{key!s}={value}" for key, value in params.items()]
    lines += task_overrides(config.hydra)
    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    return list(parser.parse_overrides(lines))


def _swept(config: DictConfig, overrides: Sequence[Override]) -> list[str]:
    found = [one.get_key_element() for one in overrides if one.is_sweep_override()]
    return list(dict.fromkeys(found))


def _jobs(config: DictConfig, overrides: Sequence[Override]) -> list[list[str]]:
    """Return each job's overrides; none when the sweeper draws them as it goes."""
    target = config.hydra.sweeper["_target_"]
    if target != f"{BasicSweeper.__module__}.{BasicSweeper.__qualname__}":
        return []
    batches = BasicSweeper.split_arguments(list(overrides), None)
    return [list(job) for batch in batches for job in batch]


def _fixed(overrides: Sequence[Override]) -> list[str]:
    return [one.input_line or "" for one in overrides if not one.is_sweep_override()]


def _option(config: DictConfig, role: str) -> str:
    return str(config.hydra.runtime.choices.get(f"hydra/{role}"))


def _check_installed(node: Mapping[str, Any], role: str) -> None:
    module = str(node["_target_"]).rpartition(".")[0]
    plugin = module.split(".")[1] if module.startswith("hydra_plugins.") else ""
    try:
        missing = importlib.util.find_spec(module) is None
    except ImportError:
        missing = True
    if missing:
        extra = EXTRAS.get(plugin)
        how = f"install the extra '{extra}' (pip install 'opro[{extra}]')" if extra else module
        raise ConfigError(f"hydra/{role}: its plugin {plugin} is not installed: {how}")


def _command(name: str) -> str:
    """Return the command that continues the sweep."""
    others = [one for one in sys.argv[1:] if not one.startswith("trainer.run_name=")]
    return shlex.join(["python", "-m", "opro.run", f"trainer.run_name={name}", *others])
