"""Builds and checks every part of a run from its configuration; spends nothing."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from opro import template
from opro.agents.base import Agent
from opro.data.base import Data
from opro.errors import ConfigError, nearest
from opro.evolvers.base import Evolver
from opro.judges.base import Judge
from opro.llms.base import LLM
from opro.remote_worker import AgentSpec
from opro.settings import ScoringSettings, TrainerSettings
from opro.setup.config import build
from opro.trackers.apart import placed
from opro.trackers.base import Tracker
from opro.types import Dataset

ROLES = ("evolver", "data", "llm", "agent", "judge", "trainer", "tracker")
OTHERS = ("seed", "template", "plan", "experiment")


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """The parts that score instructions, checked against each other.

    Attributes:
        llm: the model of `llm`, which the roles without one of their own follow.
        agent_llm, judge_llm: None where the agent or the judge asks no model; may be one object.
        agent_spec: what another machine builds the agent from.
        tasks_known: False when the tasks are an outline only, good for counting (`plan=true`).
    """

    settings: ScoringSettings
    dataset: Dataset
    agent: Agent
    judge: Judge
    llm: LLM
    agent_llm: LLM | None
    judge_llm: LLM | None
    tracker: Tracker
    agent_spec: AgentSpec
    tasks_known: bool = True

    @property
    def roles(self) -> dict[str, LLM]:
        """Return the models by the role that they are asked in."""
        found = {"agent": self.agent_llm, "judge": self.judge_llm}
        return {role: llm for role, llm in found.items() if llm is not None}

    @property
    def llms(self) -> list[LLM]:
        """Return the distinct models."""
        return list({id(one): one for one in self.roles.values()}.values())


@dataclass(frozen=True, kw_only=True)
class Assembly(Scoring):
    """The parts of a run, checked against each other.

    Attributes:
        step_size: tasks per step.
        notices: what was adapted, for the user.
    """

    settings: TrainerSettings
    evolver: Evolver
    step_size: int
    notices: tuple[str, ...]

    @property
    def optimizer(self) -> LLM:
        """The model that writes new instructions."""
        return self.llm

    @property
    def roles(self) -> dict[str, LLM]:
        """Return the models by the role that they are asked in."""
        return {"optimizer": self.optimizer, **super().roles}


def assemble(config: Mapping[str, Any], launch: Path) -> Assembly:
    """Build all parts of a run; raise ConfigError, one line, for the first that can't work.

    Args:
        config: resolved, as `opro.run` composes it.
        launch: the folder the run was started from; relative paths are relative to it.
    """
    check_top(config, ROLES, OTHERS)
    evolver: Evolver = build(_read_files(config["evolver"], launch), "evolver")
    scoring, data = scoring_parts(config, launch)
    settings = scoring.settings
    assert isinstance(settings, TrainerSettings)
    size = len(scoring.dataset.train) if data.step_size is None else data.step_size
    notices = evolver.setup(scoring.dataset, step_size=size, steps=settings.epochs)
    assembly = Assembly(
        **{field.name: getattr(scoring, field.name) for field in fields(scoring)},
        evolver=evolver,
        step_size=size,
        notices=notices,
    )
    _check_prices(assembly)
    return assembly


def scoring_parts(config: Mapping[str, Any], launch: Path) -> tuple[Scoring, Data]:
    """Build and check what scores instructions: everything but the evolver; spends nothing."""
    settings: ScoringSettings = build(config["trainer"], "trainer")
    _check_backend(settings)
    agent_node = _without_llm(config, "agent")
    agent: Agent = build(agent_node, "agent", launch_folder=launch)
    judge: Judge = build(_without_llm(config, "judge"), "judge", launch_folder=launch)
    llm = _llm(config.get("llm"), "llm")
    tracker = placed(build(config["tracker"], "tracker", launch_folder=launch))
    data: Data = build(config["data"], "data", launch_folder=launch)
    outline = data.outline() if config.get("plan") else None
    dataset = data.load() if outline is None else outline
    _check_dataset(dataset)
    if outline is None:
        _check_tasks(dataset, agent, judge)
    scoring = Scoring(
        settings=settings,
        dataset=dataset,
        agent=agent,
        judge=judge,
        llm=llm,
        agent_llm=_role(config, "agent", llm) if agent.needs_llm else None,
        judge_llm=_role(config, "judge", llm) if judge.needs_llm else None,
        tracker=tracker,
        agent_spec=AgentSpec(
            node=agent_node, launch=launch, tasks=dataset.train + dataset.val + dataset.test
        ),
        tasks_known=outline is None,
    )
    _check_prices(scoring)
    return scoring, data


def _check_backend(settings: ScoringSettings) -> None:
    package = {"threads": "threading", "dask": "distributed", "ray": "ray"}[settings.backend]
    if importlib.util.find_spec(package) is None:
        raise ConfigError(
            f"trainer.backend={settings.backend}: needs the package {package}, of the extra"
            f" {settings.backend!r} (pip install 'opro[{settings.backend}]')"
        )
    if settings.backend == "threads" and settings.cluster is not None:
        raise ConfigError(
            f"trainer.cluster={settings.cluster}: has no effect with trainer.backend=threads;"
            " choose dask or ray"
        )


def _check_prices(scoring: Scoring) -> None:
    """Refuse a bound on the cost where it can't be known."""
    bound = scoring.settings.budget.usd
    for role, llm in scoring.roles.items():
        known = llm.tells_cost or None not in (llm.price.prompt, llm.price.completion)
        if bound is not None and not known:
            key = "llm" if llm is scoring.llm else f"{role}.llm"
            raise ConfigError(
                f"{key}.price: trainer.budget.usd={bound:g} needs the price of each model (0 for a"
                f" free one), and that of {llm.model} is unknown"
            )


def _check_tasks(dataset: Dataset, agent: Agent, judge: Judge) -> None:
    tasks = dataset.train + dataset.val + dataset.test
    agent.check(tasks)
    judge.prepare(tasks)
    for task in tasks:
        judge.check(task)


def check_top(config: Mapping[str, Any], roles: Sequence[str], others: Sequence[str]) -> None:
    """Refuse an unknown key at the configuration's top, and a role without an option."""
    known = [*roles, *others]
    for key in config:
        if key not in known:
            raise ConfigError(f"{key}: unknown key{nearest(key, known)}")
    for role in roles:
        if config.get(role) is None:
            raise ConfigError(f"{role}=null: choose one of the options in conf/{role}/")
    template.check_name(config.get("template"))


def _without_llm(config: Mapping[str, Any], role: str) -> dict[str, Any]:
    return {name: value for name, value in config[role].items() if name != "llm"}


def _llm(node: Mapping[str, Any] | None, key: str) -> LLM:
    with _naming(key):
        llm: LLM = build(node, key)
        llm.check()
    return llm


@contextlib.contextmanager
def _naming(key: str) -> Iterator[None]:
    """Let a model's own errors, which say `llm.`, name the role that they are about."""
    try:
        yield
    except ConfigError as error:
        text = str(error)
        raise ConfigError(
            text if key == "llm" else re.sub(r"(?<![\w.])llm\.", f"{key}.", text)
        ) from None


def _role(config: Mapping[str, Any], role: str, optimizer: LLM) -> LLM:
    node = config[role].get("llm")
    return optimizer if node is None else _llm(node, f"{role}.llm")


def _read_files(node: Mapping[str, Any], launch: Path) -> dict[str, Any]:
    """Replace each initial instruction `@path` by the file's text."""
    texts = node.get("initial_instructions")
    if not isinstance(texts, list):
        return dict(node)
    key = "evolver.initial_instructions"
    return {**node, "initial_instructions": [_text(text, launch, key) for text in texts]}


def _text(text: Any, launch: Path, key: str) -> Any:
    is_file = isinstance(text, str) and text.startswith("@")
    return instruction_file(text, launch, key) if is_file else text


def instruction_file(reference: str, launch: Path, key: str) -> str:
    """Return the text of the file that `@path` names, without a line break at its end.

    Raises:
        ConfigError: naming `key` and why the file can't be read.
    """
    try:
        return (launch / reference[1:]).read_text("utf-8-sig").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{key}: {reference}: {error}") from None


def _check_dataset(dataset: Dataset) -> None:
    if not dataset.train:
        raise ConfigError(f"data.train: the training split of {dataset.name} is empty")
