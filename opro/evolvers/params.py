"""The settings of OPRO (`evolver.params`)."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from opro.evolvers.meta_prompt import Slot, Style

Count = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class OPROParams:
    """What `conf/evolver/opro.yaml` documents line by line, with the bounds it is checked by."""

    n_candidates: Count = 8
    max_num_instructions: Count = 20
    score_threshold: Fraction = 0.0
    num_score_buckets: Count | None = 100
    num_exemplars: NonNegative = 3
    question_field: str | None = None
    success_score: Fraction = 1.0
    max_instruction_chars: NonNegative = 0
    select: Literal["validation", "train"] = "validation"
    top_k: Count = 3
    max_tokens: Count | None = None
    temperature: Annotated[float, Field(ge=0, le=5, allow_inf_nan=False)] = 1.0
    temperature_schedule: Literal["constant", "linear_increase"] = "constant"
    temperature_end: Annotated[float, Field(ge=0, le=5, allow_inf_nan=False)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    meta_prompt: Style = "gpt"
    instruction_position: Slot = "Q_begin"
    include_qa: bool = False
    exemplars_first: bool = False
    task_description: str | None = None
    exemplar_answer: Literal["agent", "gold"] = "agent"
    exemplar_sampler: Literal["port", "upstream"] = "port"
    exemplar_criterion: Literal[
        "random", "accumulated_most_frequent", "current_most_frequent", "constant"
    ] = "random"
    reply_prefix: str | None = None
    reply_parsing: Literal["upstream", "strict"] = "upstream"
    reject_truncated: bool = False
    reject_patterns: list[str] = field(default_factory=list)
    think_tags: list[str] = field(default_factory=lambda: ["think", "thinking"])
    dedupe_initial: bool = False
    eval_every: NonNegative = 0
    exemplar_scores: Literal["none", "new", "old", "both"] = "none"
