"""What an evolver and the trainer record of a run, and what trackers and reports read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from opro.types import Dataset, Evaluation, Split, Usage

Status = Literal["scored", "unscored", "skipped", "duplicate", "failed"]
RunStatus = Literal["FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True, kw_only=True)
class Scored:
    """An instruction of the history with its training score.

    Attributes:
        step: the step that made it; -1 for an initial instruction.
        score: mean over the training tasks, in [0, 1]; None while unscored.
    """

    instruction: str
    md5: str
    step: int
    score: float | None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One optimizer call and what became of it.

    Attributes:
        index: 0 … n_candidates - 1.
        reply: the optimizer's raw reply; None when the call failed twice.
        instruction, md5: None when no instruction came out of the reply.
        status: `scored` joined the history; `unscored` had a run that failed twice; `skipped`
            was not run (see reason); `duplicate` was generated before; `failed` call.
        reason: empty for `scored`.
        evaluation: per-task results on the training tasks, when it was run.
    """

    index: int
    status: Status
    reason: str = ""
    reply: str | None = None
    instruction: str | None = None
    md5: str | None = None
    evaluation: Evaluation | None = None


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """One step.

    Attributes:
        step: 0, 1, …
        current: the step's rollouts: the initial instruction's at step 0, later a re-score of the
            best so far (never merged into its score); None where `trainer.rescore` is off.
        initial: evaluations of all initial instructions (step 0 only).
        exemplar_ids: ids of the training problems in the meta-prompt.
        meta_prompt: as sent.
        shown: how many earlier instructions the meta-prompt holds; `notices` says what was
            trimmed or why none passed.
        temperature: of the optimizer's calls.
        best: the best on training after this step.
        evaluated: means of what was scored on the side, by `<on what>/<md5>`, e.g.
            {"val/0cc1…": 0.4} or {"exemplars/new/0cc1…": 1.0}.
    """

    step: int
    current: Evaluation | None
    exemplar_ids: tuple[str, ...]
    meta_prompt: str
    shown: int
    temperature: float | None
    candidates: tuple[Candidate, ...]
    best: Scored
    initial: tuple[Evaluation, ...] = ()
    notices: tuple[str, ...] = ()
    evaluated: Mapping[str, float | None] = field(default_factory=dict)

    def count(self, *statuses: Status) -> int:
        """Return how many candidates ended in one of `statuses`."""
        return sum(candidate.status in statuses for candidate in self.candidates)


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What the run consumed so far.

    Attributes:
        by_role: usage of `optimizer`, `agent`, `judge`: answers that the run used.
        requests: sent on the wire by this process, retries included.
        cache_hits: answers served from the shared cache.
        replayed: answers taken from this run's journal.
        faults: attempts without a usable answer, by kind.
        kinds: scored runs by kind (`right`, `wrong`, `unparsed`, …) and `error`.
        seconds: wall time of this process's part of the run.
        models: answers by role and the model that the endpoint says it was.
        remarks: what was odd about answers or adapted for them, and how often.
    """

    by_role: Mapping[str, Usage]
    requests: int
    cache_hits: int
    replayed: int
    faults: Mapping[str, int]
    kinds: Mapping[str, int]
    seconds: float
    models: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    remarks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The winner beside the initial instruction on one split; None where not measured."""

    split: Split
    initial: Evaluation | None
    winner: Evaluation | None


@dataclass(frozen=True, kw_only=True)
class Validation:
    """One finalist's validation mean (None: unscored)."""

    candidate: Scored
    mean: float | None
    n: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A run's end result; everything but `totals.seconds` is a function of the journal.

    Attributes:
        initial, winner: with their training scores.
        select: the rule that chose the winner, after any fallback, e.g. `validation` or
            `train (budget spent before validation)`.
        finalists: validation means of the top_k, best on training first.
        comparisons: train always; val and test where measured.
        history: every scored instruction in order of joining, the initial ones first.
        spent: what the run had consumed after each of `steps`; empty when not recorded.
        stop_reason: `epochs`, `budget: calls`, `perfect training score`, …
    """

    initial: Scored
    winner: Scored
    select: str
    finalists: tuple[Validation, ...]
    comparisons: tuple[Comparison, ...]
    history: tuple[Scored, ...]
    steps: tuple[StepRecord, ...]
    stop_reason: str
    totals: Totals
    spent: tuple[Totals, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What is known of a run before its first call.

    Attributes:
        name: `trainer.run_name`; of a job of a sweep, the job's own.
        folder: absolute; holds journal.jsonl, state/, output/, report.md, …
        params: every setting that matters, flattened to dotted keys, free of secrets.
        tags: git commit, overrides, sweep, ….
        resumed: True when the journal already held answers.
    """

    name: str
    folder: Path
    params: Mapping[str, Any]
    tags: Mapping[str, str]
    dataset: Dataset
    initial_instructions: tuple[str, ...]
    resumed: bool = False

    @property
    def sweep(self) -> str:
        """The name of the sweep that it is a job of; '' for none."""
        return self.tags.get("opro.sweep", "")


@dataclass(frozen=True, kw_only=True)
class RunEnd:
    """How a run ended.

    Attributes:
        summary: None when it failed before the initial instruction was scored.
        error: one line (plus traceback for a bug) when FAILED.
    """

    status: RunStatus
    stop_reason: str
    summary: Summary | None
    error: str = ""
