"""Where a number comes from: a run's settings, code version and fingerprint, free of secrets."""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opro import __version__
from opro.assembly import Assembly
from opro.config import flatten
from opro.errors import ConfigError
from opro.records import RunInfo

if TYPE_CHECKING:
    from opro.job import Place

_SECRET = re.compile(
    r"(^|[._-])(api[._-]?key|secret|password|passwd|authorization|(access|auth|bearer)[._-]?token"
    r"|token|credentials?)$",
    re.IGNORECASE,
)


def run_info(
    assembly: Assembly, config: Mapping[str, Any], place: Place, *, resumed: bool
) -> RunInfo:
    """Return what is known of a run before its first call."""
    params = flatten(masked({k: v for k, v in config.items() if k != "plan"}, place.secrets))
    params["data.digest"] = assembly.dataset.digest
    params["opro.version"] = __version__
    for role, llm in _models(assembly).items():
        params[f"{role}.model"] = masked(dict(llm.identity()), place.secrets).get("model")
    return RunInfo(
        name=assembly.settings.run_name,
        folder=place.folder,
        params=params,
        tags={
            "opro.command": _command(assembly, place),
            "opro.overrides": " ".join(place.overrides),
            "opro.git_commit": _git_commit(),
            "opro.python": platform.python_version(),
            **place.tags,
        },
        dataset=assembly.dataset,
        initial_instructions=assembly.evolver.initial_instructions,
        resumed=resumed,
    )


def fingerprint(assembly: Assembly, config: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Return every setting that can change a score, flat; a resume must agree with all of them."""
    parts: dict[str, Any] = {"template": config.get("template")}
    for role in ("evolver", "agent", "judge"):
        parts[role] = {k: v for k, v in config[role].items() if k not in ("llm", "_target_")}
    parts["evolver"]["initial_instructions"] = list(assembly.evolver.initial_instructions)
    parts["trainer"] = {"rescore": assembly.settings.rescore}
    if config["evolver"].get("params", {}).get("temperature_schedule", "constant") != "constant":
        parts["trainer"]["epochs"] = assembly.settings.epochs  # the schedule's slope
    for role, llm in _models(assembly).items():
        parts[f"{role}_llm"] = dict(llm.identity())
    parts["data"] = {"name": assembly.dataset.name, "digest": assembly.dataset.digest}
    return flatten(masked(parts, place.secrets))


def masked(value: Any, secrets: Mapping[str, str]) -> Any:
    """Return a copy in which values from the environment stand as their `${oc.env:…}` again."""
    if isinstance(value, Mapping):
        return {key: masked(item, secrets) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item, secrets) for item in value]
    if isinstance(value, str):
        for secret, raw in secrets.items():
            value = value.replace(secret, raw)
    return value


def refuse_secrets(raw: Mapping[str, Any]) -> None:
    """Raise ConfigError for a setting that is named like a key and holds one literally.

    Args:
        raw: the configuration before interpolations are resolved.
    """
    for key, value in flatten(raw).items():
        literal = isinstance(value, str) and value and "${" not in value
        if literal and _SECRET.search(key):
            raise ConfigError(
                f"{key}: a key in the configuration would be logged; keys come from the"
                " environment only: use llm.api_key_env=NAME, or ${oc.env:NAME} as the value"
            )


def _models(assembly: Assembly) -> dict[str, Any]:
    found = {
        "optimizer": assembly.optimizer,
        "agent": assembly.agent_llm,
        "judge": assembly.judge_llm,
    }
    return {role: llm for role, llm in found.items() if llm is not None}


def _command(assembly: Assembly, place: Place) -> str:
    """Return the command that continues this run."""
    name = f"trainer.run_name={assembly.settings.run_name}"
    others = [one for one in place.overrides if not one.startswith("trainer.run_name=")]
    return shlex.join(["python", "-m", "opro.run", *others, name])


def _git_commit() -> str:
    """Return the commit of the code that runs, `+changes` when its tree differs; '' without git."""
    folder = Path(__file__).parent
    try:
        head = _git(folder, "rev-parse", "HEAD")
        dirty = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{head}+changes" if dirty else head


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()
