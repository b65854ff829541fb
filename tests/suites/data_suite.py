"""What every data set must do; one function for one promise, each given a way to make it anew."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from omegaconf import OmegaConf

from opro.data.base import Data
from opro.data.rows import content, digest
from opro.errors import ConfigError
from opro.setup.config import build
from opro.types import Dataset, Task

Make = Callable[[], Data]
SPLIT_KEYS = ("step_size", "seed", "train", "val", "test")


def from_yaml(path: Path, /, **settings: object) -> Data:
    """Build the data set of one YAML file, checked as a run's configuration is."""
    node = _node(path)
    return build({**node, **settings}, "data")


def _node(path: Path) -> dict:
    """Return a file's own settings; the seed is the run's, the judge another group's."""
    whole = OmegaConf.create({"seed": 0, "data": OmegaConf.load(path)})
    node = OmegaConf.to_container(whole.data, resolve=True)
    node.pop("defaults", None)
    return node


def check_yaml(path: Path) -> None:
    """Hold that the file shows every setting, the shared ones too, each with a comment."""
    node = _node(path)
    keys = [key for key in node if key != "_target_"]
    arguments = inspect.signature(type(from_yaml(path))).parameters
    assert set(keys) == set(arguments)
    assert set(SPLIT_KEYS) <= set(keys)
    assert node["step_size"] is None
    assert all(argument.kind is argument.KEYWORD_ONLY for argument in arguments.values())
    assert all("#" in line for line in path.read_text("utf-8").splitlines())


def check_unset(make: Make) -> None:
    """Hold that a data set which lacks its files says so by its key, in one line."""
    with pytest.raises(ConfigError, match=r"^data\.path=null: give ") as caught:
        make().load()
    assert "\n" not in str(caught.value)


def check_contract(make: Make) -> None:
    """Hold everything that opro.data.base and opro.types promise of a loaded data set."""
    state, legacy = random.getstate(), numpy.random.get_state()[1].tolist()
    data = make()
    found = data.load()
    assert random.getstate() == state
    assert numpy.random.get_state()[1].tolist() == legacy
    assert isinstance(data, Data) and data.step_size is None
    assert isinstance(found, Dataset) and found.name and found.source and found.train
    check_tasks(found)
    check_disjoint(found)
    check_same(found, make().load())


def check_tasks(found: Dataset) -> None:
    """Hold that each task has an id and something to show."""
    for task in (*found.train, *found.val, *found.test):
        assert isinstance(task, Task)
        assert isinstance(task.id, str) and task.id and task.id == task.id.strip()
        assert task.fields and task.text().strip()
        assert all(isinstance(name, str) and name for name in task.fields)
        assert task.answer is None or str(task.answer).strip()


def check_disjoint(found: Dataset) -> None:
    """Hold that no two splits share an id or a question, and that ids are unique."""
    splits = (found.train, found.val, found.test)
    ids = [task.id for tasks in splits for task in tasks]
    assert len(set(ids)) == len(ids)
    held = [{content(task.fields) for task in tasks} for tasks in splits]
    assert sum(map(len, held)) == len(set.union(*held))


def check_same(found: Dataset, again: Dataset) -> None:
    """Hold that loading twice gives the same, and that the digest covers what it should."""
    assert [task.id for task in found.train] == [task.id for task in again.train]
    assert found.digest == again.digest
    assert len(found.digest) == 64
    assert found.digest == digest([found.train, found.val, found.test])
    assert found.digest != digest([found.train[::-1][:-1], found.val, found.test])
