"""What OPRO refuses before any call."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opro import template
from opro.errors import ConfigError, nearest
from opro.evolvers.params import OPROParams
from opro.types import Dataset


def check(
    params: OPROParams, initial: Sequence[str], dataset: Dataset, step_size: int
) -> tuple[str, ...]:
    """Raise ConfigError for what can't work; return notices on what is adapted."""
    _check_initial(initial)
    if step_size < len(dataset.train):
        raise ConfigError(
            f"data.step_size={step_size}: OPRO scores on the whole training split"
            f" ({len(dataset.train)} tasks); set it to null"
        )
    needs_val = {
        "evolver.params.select=validation": params.select == "validation",
        f"evolver.params.eval_every={params.eval_every}": params.eval_every > 0,
    }
    for setting, needed in needs_val.items():
        if needed and not dataset.val:
            raise ConfigError(f"{setting}: needs data.val, which is empty")
    _check_fields(params, dataset)
    _check_patterns(params)
    if params.temperature_schedule != "constant" and params.temperature_end is None:
        raise ConfigError(
            "evolver.params.temperature_end=null: temperature_schedule=linear_increase needs it"
        )
    return _notices(params, dataset)


def _check_initial(initial: Sequence[str]) -> None:
    if not initial:
        raise ConfigError("evolver.initial_instructions=[]: give at least one")
    if len(set(initial)) < len(initial):
        raise ConfigError("evolver.initial_instructions: two of them are the same")
    for text in initial:
        # The empty instruction is a fair start (the authors use it), so only its form counts.
        reason = template.fault(text) if text.strip() else None
        if reason:
            raise ConfigError(f"evolver.initial_instructions: {text[:40]!r}: {reason}")


def _check_fields(params: OPROParams, dataset: Dataset) -> None:
    field = params.question_field
    for task in dataset.train:
        if field is not None and field not in task.fields:
            raise ConfigError(
                f"evolver.params.question_field={field}: task {task.id!r} has no such field"
                f"{nearest(field, task.fields)}; it has: {', '.join(task.fields)}"
            )
        if params.exemplar_answer == "gold" and task.answer is None:
            raise ConfigError(
                f"evolver.params.exemplar_answer=gold: task {task.id!r} has no answer"
            )


def _check_patterns(params: OPROParams) -> None:
    for pattern in params.reject_patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(
                f"evolver.params.reject_patterns: {pattern!r} is no regular expression: {error}"
            ) from None


def _notices(params: OPROParams, dataset: Dataset) -> tuple[str, ...]:
    notices = []
    if params.num_exemplars > len(dataset.train):
        notices.append(
            f"evolver.params.num_exemplars={params.num_exemplars} is capped at the"
            f" {len(dataset.train)} training tasks"
        )
    if params.temperature == 0.0 and params.n_candidates > 1:
        notices.append("evolver.params.temperature=0.0: a step's candidates may all be the same")
    return tuple(notices)
