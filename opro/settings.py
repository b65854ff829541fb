"""The trainer's settings (`trainer`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from opro.budget import Limits
from opro.types import Split


@dataclass(frozen=True, kw_only=True)
class ScoringSettings:
    """What `conf/trainer/evaluation.yaml` documents line by line."""

    run_name: Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[\w.,=+@-]+$")]
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 32
    backend: Literal["threads", "dask", "ray"] = "threads"
    cluster: Annotated[str, Field(min_length=1)] | None = None
    budget: Limits = field(default_factory=Limits)


@dataclass(frozen=True, kw_only=True)
class TrainerSettings(ScoringSettings):
    """What `conf/trainer/default.yaml` documents line by line."""

    epochs: Annotated[int, Field(ge=0)] = 4
    rescore: bool = True
    compare: list[Split] = field(default_factory=list)
    resume_mode: Literal["auto", "disable", "replay"] = "auto"
    max_failed_steps: Annotated[int, Field(ge=1)] = 3
    stop_sweep_on_failure: bool = False
    stop_at_score: Annotated[float, Field(gt=0, le=1)] | None = None


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """What `conf/evaluate.yaml` documents line by line."""

    instructions: Annotated[list[str], Field(min_length=1)]
    split: Literal["train", "val", "test", "all"] = "test"
    repeats: Annotated[int, Field(ge=1, le=10_000)] = 1
