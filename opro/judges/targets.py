"""The checks of a task's expected answer that several judges share."""

from __future__ import annotations

from opro.errors import ConfigError
from opro.types import Task


def required(task: Task, judge: str) -> str:
    """Return the task's answer as text.

    Raises:
        ConfigError: when there is none or it is blank, so that no output could ever be right.
    """
    text = "" if task.answer is None else str(task.answer)
    if not text.strip():
        raise ConfigError(
            f"task {task.id!r}: answer={task.answer!r}, but judge={judge} needs one; "
            "name the answer's column in data or choose a judge without answers"
        )
    return text
