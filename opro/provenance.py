"""Where a number comes from: a run's settings, code version and fingerprint, free of secrets."""

from __future__ import annotations

import platform
import re
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opro import __version__
from opro.errors import ConfigError
from opro.records import RunInfo
from opro.setup.assembly import Assembly, Scoring
from opro.setup.config import flatten

if TYPE_CHECKING:
    from opro.job import Place

_SECRET_NAME = re.compile(
    r"(^|[._-])(api[._-]?key|secret|password|passwd|authorization|(access|auth|bearer)[._-]?token"
    r"|token|credentials?)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(r"(sk-|Bearer\s|ghp_|hf_|xox[bp]-)\S{8,}$")


def run_info(
    assembly: Assembly, config: Mapping[str, Any], place: Place, *, resumed: bool
) -> RunInfo:
    """Return what is known of a run before its first call."""
    place = replace(place, command=place.command or command(assembly, place, "opro.run"))
    initial = assembly.evolver.initial_instructions
    return scoring_info(assembly, config, place, initial, resumed=resumed)


def scoring_info(
    scoring: Scoring,
    config: Mapping[str, Any],
    place: Place,
    instructions: tuple[str, ...],
    *,
    resumed: bool,
) -> RunInfo:
    """Return what is known before the first call of whatever scores instructions."""
    params = flatten(masked({k: v for k, v in config.items() if k != "plan"}, place.secrets))
    params["data.digest"] = scoring.dataset.digest
    params["opro.version"] = __version__
    for role, llm in scoring.roles.items():
        params[f"{role}.model"] = masked(dict(llm.identity()), place.secrets).get("model")
    return RunInfo(
        name=place.name or scoring.settings.run_name,
        folder=place.folder,
        params=params,
        tags={
            "opro.command": place.command,
            "opro.overrides": " ".join(place.overrides),
            "opro.git_commit": _git_commit(),
            "opro.python": platform.python_version(),
            **place.tags,
        },
        dataset=scoring.dataset,
        initial_instructions=instructions,
        resumed=resumed,
    )


def record(config: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Return what makes the run again from its folder alone, free of secrets (`opro.sync`)."""
    return {
        "config": masked(config, place.secrets),
        "launch": str(place.launch),
        "overrides": list(place.overrides),
        "name": place.name,
        "command": place.command,
        "tags": dict(place.tags),
    }


def fingerprint(assembly: Assembly, config: Mapping[str, Any], place: Place) -> dict[str, Any]:
    """Return every setting that can change a score, flat; a resume must agree with all of them."""
    evolver = _settings(config["evolver"])
    evolver["initial_instructions"] = list(assembly.evolver.initial_instructions)
    trainer: dict[str, Any] = {"rescore": assembly.settings.rescore}
    if config["evolver"].get("params", {}).get("temperature_schedule", "constant") != "constant":
        trainer["epochs"] = assembly.settings.epochs  # the schedule's slope
    own = flatten(masked({"evolver": evolver, "trainer": trainer}, place.secrets))
    return {**own, **scoring_fingerprint(assembly, config, place)}


def scoring_fingerprint(
    scoring: Scoring, config: Mapping[str, Any], place: Place
) -> dict[str, Any]:
    """Return every setting that can change the score of a given instruction, flat."""
    parts: dict[str, Any] = {"template": config.get("template")}
    for role in ("agent", "judge"):
        parts[role] = _settings(config[role])
    for role, llm in scoring.roles.items():
        parts[f"{role}_llm"] = dict(llm.identity())
    parts["data"] = {"name": scoring.dataset.name, "digest": scoring.dataset.digest}
    return flatten(masked(parts, place.secrets))


def _settings(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part's settings with the name of its class: two classes may share their keys.

    The module is left out, so that a class may move; models are told by their identity.
    """
    own = {name: value for name, value in node.items() if name not in ("llm", "_target_")}
    return {"class": str(node["_target_"]).rpartition(".")[2], **own}


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
        literal = isinstance(value, str) and value != "" and "${" not in value
        named = _SECRET_NAME.search(key) and ".headers_env." not in key  # names of variables
        if literal and (named or _SECRET_VALUE.match(str(value))):
            raise ConfigError(
                f"{key}: a key in the configuration would be logged; keys come from the"
                " environment only: use llm.api_key_env=NAME, or ${oc.env:NAME} as the value"
            )


def command(scoring: Scoring, place: Place, module: str) -> str:
    """Return the command that continues what `module` runs."""
    name = f"trainer.run_name={scoring.settings.run_name}"
    others = [one for one in place.overrides if not one.startswith("trainer.run_name=")]
    return shlex.join(["python", "-m", module, *others, name])


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
