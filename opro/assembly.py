"""Builds and checks every part of a run from its configuration; spends nothing."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opro import template
from opro.agents.base import Agent
from opro.config import build
from opro.data.base import Data
from opro.errors import ConfigError, nearest
from opro.evolvers.base import Evolver
from opro.judges.base import Judge
from opro.llms.base import LLM
from opro.settings import TrainerSettings
from opro.trackers.base import Tracker
from opro.types import Dataset

ROLES = ("evolver", "data", "llm", "agent", "judge", "trainer", "tracker")
OTHERS = ("seed", "template", "plan", "experiment")


@dataclass(frozen=True, kw_only=True)
class Assembly:
    """The parts of a run, checked against each other.

    Attributes:
        optimizer, agent_llm, judge_llm: may be one object in several roles; the latter two are
            None where the agent or the judge asks no model.
        step_size: tasks per step.
        notices: what was adapted, for the user.
    """

    settings: TrainerSettings
    dataset: Dataset
    evolver: Evolver
    agent: Agent
    judge: Judge
    optimizer: LLM
    agent_llm: LLM | None
    judge_llm: LLM | None
    tracker: Tracker
    step_size: int
    notices: tuple[str, ...]

    @property
    def llms(self) -> list[LLM]:
        """Return the distinct models."""
        found = {id(one): one for one in (self.optimizer, self.agent_llm, self.judge_llm) if one}
        return list(found.values())


def assemble(config: Mapping[str, Any], launch: Path) -> Assembly:
    """Build all parts; raise ConfigError, one line, for the first thing that can't work.

    Args:
        config: resolved, as `opro.run` composes it.
        launch: the folder the run was started from; relative paths are relative to it.
    """
    _check_top(config)
    settings: TrainerSettings = build(config["trainer"], "trainer")
    agent: Agent = build(_without_llm(config, "agent"), "agent", launch_folder=launch)
    judge: Judge = build(_without_llm(config, "judge"), "judge", launch_folder=launch)
    optimizer = _llm(config.get("llm"), "llm")
    tracker: Tracker = build(config["tracker"], "tracker", launch_folder=launch)
    evolver: Evolver = build(_read_files(config["evolver"], launch), "evolver")
    data: Data = build(config["data"], "data", launch_folder=launch)
    dataset = data.load()
    _check_dataset(dataset)
    tasks = dataset.train + dataset.val + dataset.test
    agent.check(tasks)
    judge.prepare(tasks)
    for task in tasks:
        judge.check(task)
    step_size = len(dataset.train) if data.step_size is None else data.step_size
    notices = evolver.setup(dataset, step_size=step_size, steps=settings.epochs)
    return Assembly(
        settings=settings,
        dataset=dataset,
        evolver=evolver,
        agent=agent,
        judge=judge,
        optimizer=optimizer,
        agent_llm=_role(config, "agent", optimizer) if agent.needs_llm else None,
        judge_llm=_role(config, "judge", optimizer) if judge.needs_llm else None,
        tracker=tracker,
        step_size=step_size,
        notices=notices,
    )


def _check_top(config: Mapping[str, Any]) -> None:
    known = [*ROLES, *OTHERS]
    for key in config:
        if key not in known:
            raise ConfigError(f"{key}: unknown key{nearest(key, known)}")
    for role in ROLES:
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
    return {**node, "initial_instructions": [_text(text, launch) for text in texts]}


def _text(text: Any, launch: Path) -> Any:
    if not isinstance(text, str) or not text.startswith("@"):
        return text
    path = launch / text[1:]
    try:
        return path.read_text("utf-8-sig").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"evolver.initial_instructions: {text}: {error}") from None


def _check_dataset(dataset: Dataset) -> None:
    if not dataset.train:
        raise ConfigError(f"data.train: the training split of {dataset.name} is empty")
