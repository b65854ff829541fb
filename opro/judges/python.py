"""Judge `python`: a function of the user's own, `module:function(task, output)`.

The function is called for every output that isn't blank (a blank one scores 0 as `no_response`),
from many threads at once. It returns a score in [0, 1] (True is 1), or a dict with `score` and, as
it likes, `answer` (text found in the output; else the whole output), `feedback` (for the optimizer)
and `kind` (`wrong`, `unparsed`, …). Where it raises, that run has failed: no score, and the
instruction stays unscored. If it raises on every task of the first instruction, the search stops
with the traceback.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from opro.errors import ConfigError, ScoreError, nearest
from opro.judges.base import Ask, Judge
from opro.types import Kind, Rollout, Task, Verdict

_KEYS = ("score", "answer", "feedback", "kind")
_KINDS = tuple(kind.value for kind in Kind if kind is not Kind.ERROR)


class Python(Judge):
    """Gives what the user's function returns.

    Args:
        function: `module:function`.
        launch_folder: where the module is looked for, after the packages installed; None: the
            current folder.

    Raises:
        ConfigError: when the function can't be imported or doesn't take (task, output).
    """

    def __init__(self, *, function: str, launch_folder: Path | None = None) -> None:
        self._name = function
        self._function = _load(function, launch_folder or Path.cwd())

    def judge(self, task: Task, rollout: Rollout, ask: Ask | None) -> Verdict:
        """Call the function; raises ScoreError when it returns anything else than promised."""
        given = self._function(task, rollout.output)
        found = dict(given) if isinstance(given, Mapping) else {"score": given}
        self._check(found, given)
        score = float(found["score"])
        kind = Kind(found.get("kind") or (Kind.RIGHT if score >= 1.0 else Kind.WRONG))
        whole = rollout.output.strip() if kind in (Kind.RIGHT, Kind.WRONG) else None
        answer = found.get("answer", whole)
        feedback = found.get("feedback") or self._sentence(f"the scorer gave {score:g}", task)
        return Verdict(
            score=score,
            kind=kind,
            answer=None if answer is None else str(answer),
            feedback=str(feedback),
        )

    def _check(self, found: Mapping[str, Any], given: object) -> None:
        where = f"judge.function={self._name}"
        if not isinstance(found.get("score"), Real) and not _is_flag(found.get("score")):
            raise ScoreError(f"{where}: returned {given!r:.200}, not a number or a dict with one")
        for key in found:
            if key not in _KEYS:
                hint = nearest(str(key), _KEYS)
                raise ScoreError(f"{where}: unknown key {key!r}{hint}; known are {_KEYS}")
        if (found.get("kind") or "wrong") not in _KINDS:
            raise ScoreError(f"{where}: kind={found['kind']!r} is none of {', '.join(_KINDS)}")


def _is_flag(score: object) -> bool:
    """Return whether `score` is a NumPy bool, which is no Real."""
    return type(score).__name__ in ("bool", "bool_")


def _load(name: str, folder: Path) -> Callable[[Task, str], Any]:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute.isidentifier():
        raise ConfigError(f"judge.function={name}: must be written module:function")
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last, so that a file of the user's shadows no package
    try:
        function = getattr(importlib.import_module(module_name), attribute)
    except Exception as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(f"judge.function={name}: can't be imported: {why}") from error
    try:
        inspect.signature(function).bind(None, "")
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"judge.function={name}: must be a function of (task, output): {error}"
        ) from None
    return function  # type: ignore[no-any-return]
