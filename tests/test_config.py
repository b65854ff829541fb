"""A wrong value is one line that names the key, the value and what is allowed."""

from __future__ import annotations

import pytest

from opro.errors import ConfigError
from opro.settings import TrainerSettings
from opro.setup.config import build, flatten

TARGET = "opro.settings.TrainerSettings"


def made(**values: object) -> TrainerSettings:
    return build({"_target_": TARGET, "run_name": "x", **values}, "trainer")


def test_values_are_taken_as_they_are() -> None:
    settings = made(epochs=3, budget={"calls": 10, "usd": 1}, compare=["val", "test"])
    assert (settings.epochs, settings.budget.calls, settings.budget.usd) == (3, 10, 1.0)
    assert settings.compare == ["val", "test"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": "four"}, r'^trainer.epochs="four": input should be a valid integer'),
        ({"epochs": True}, r"^trainer.epochs=true: input should be a valid integer"),
        ({"epochs": 1.5}, r"^trainer.epochs=1.5: input should be a valid integer"),
        ({"epochs": -1}, r"^trainer.epochs=-1: input should be greater than or equal to 0"),
        ({"rescore": "false"}, r'^trainer.rescore="false": input should be a valid boolean'),
        ({"rescore": 1}, r"^trainer.rescore=1: input should be a valid boolean"),
        ({"epoch": 3}, r"^trainer.epoch: unknown key \(did you mean 'epochs'\?\); known are: ba"),
        ({"budget": {"call": 3}}, r"^trainer.budget.call: unknown key \(did you mean 'calls'"),
        ({"budget": {"usd": "1"}}, r'^trainer.budget.usd="1": input should be a valid number'),
        ({"budget": {"usd": float("nan")}}, r"^trainer.budget.usd=NaN: input should be"),
        ({"compare": ["dev"]}, r'^trainer.compare.0="dev": input should be \'train\', \'val\''),
        ({"run_name": "../x"}, r'^trainer.run_name="../x": string should match pattern'),
        ({"resume_mode": "yes"}, r'^trainer.resume_mode="yes": input should be \'auto\''),
    ],
)
def test_a_wrong_value_is_one_line(values: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        made(**values)
    assert "\n" not in str(caught.value)


def test_what_is_required_and_what_can_be_imported() -> None:
    with pytest.raises(ConfigError, match="^trainer.run_name: required, but not set"):
        build({"_target_": TARGET}, "trainer")
    with pytest.raises(ConfigError, match="^llm._target_=no.such.Thing: can't be imported"):
        build({"_target_": "no.such.Thing"}, "llm")
    with pytest.raises(ConfigError, match="^llm=None: choose one of the options in conf/llm/"):
        build(None, "llm")


def test_flatten_keeps_lists_and_empty_mappings_as_leaves() -> None:
    assert flatten({"a": {"b": 1, "c": [1, 2], "d": {}}, "e": None}) == {
        "a.b": 1,
        "a.c": [1, 2],
        "a.d": {},
        "e": None,
    }
