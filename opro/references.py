"""Which instruction a user means: a text, a file, a run's winner, a prompt of the registry."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opro import template
from opro.errors import ConfigError, nearest
from opro.setup.assembly import instruction_file
from opro.trackers.base import Tracker

KEY = "instructions"
RUNS = "mlruns/runs"
_PREFIX = re.compile(r"(text|run|initial|mlflow|prompt):", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Referred:
    """An instruction and how the user named it."""

    label: str
    text: str


class Finder:
    """Finds the instructions that references mean.

    A reference is `@path` (a file), `run:NAME` (the winner of a run of opro.run: its name, or its
    folder), `initial:NAME` (what that run started from), `mlflow:RUN_ID` (the winner of an MLflow
    run), `prompt:NAME`, `prompt:NAME@alias` or `prompt:NAME/version` (the Prompt Registry; its
    latest version where none is named), `text:…` (the text behind the colon), or else the
    instruction itself.

    Args:
        launch: relative paths are relative to it.
        tracker: keeps runs and prompts.
    """

    def __init__(self, launch: Path, tracker: Tracker) -> None:
        self._launch = launch
        self._kinds: dict[str, Callable[[str], str]] = {
            "text": lambda text: text,
            "run": lambda name: self._of_run(name, "winner"),
            "initial": lambda name: self._of_run(name, "initial"),
            "mlflow": tracker.winner_of,
            "prompt": tracker.prompt,
        }

    def find(self, references: Sequence[str]) -> list[Referred]:
        """Return the instructions in the order given.

        Raises:
            ConfigError: one that isn't there, or can't be an instruction.
        """
        return [self._find(reference) for reference in references]

    def _find(self, reference: str) -> Referred:
        prefix = _PREFIX.match(reference)
        if reference.startswith("@"):
            text = instruction_file(reference, self._launch, KEY)
        elif prefix is None:
            text = reference
        else:
            text = self._kinds[prefix[1]](reference[prefix.end() :])
        # The empty instruction is a fair baseline, so only a text's form counts.
        reason = template.fault(text) if text.strip() else None
        if reason is not None:
            raise ConfigError(f"{KEY}: {reference[:60]!r}: {reason}")
        return Referred(label=reference, text=text)

    def _of_run(self, name: str, what: str) -> str:
        runs = self._launch / RUNS
        found = [path for path in (runs / name, self._launch / name) if path.is_dir()]
        if not found or not name:
            known = sorted(path.name for path in runs.iterdir()) if runs.is_dir() else []
            shown = ", ".join(known[-10:]) or "none"
            hint = nearest(name, known)
            raise ConfigError(f"{KEY}: run:{name}: no such run{hint}; in {RUNS} are: {shown}")
        path = found[0] / "result.json"
        try:
            return str(json.loads(path.read_text("utf-8"))[what]["instruction"])
        except FileNotFoundError:
            raise ConfigError(f"{KEY}: run:{name}: not finished: {path} isn't there") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{KEY}: run:{name}: {path} can't be read: {error}") from None
