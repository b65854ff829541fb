"""The frozen records that cross a boundary between parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

Position = tuple[str | int, ...]
"""Where in the run something happened, e.g. `(3, "optimizer", 2)`; the journal's key."""

Split = Literal["train", "val", "test"]


class Kind(StrEnum):
    """What became of one run of an agent on a task. All but ERROR are scored."""

    RIGHT = "right"  # the judge's full score
    WRONG = "wrong"  # an answer was found and isn't fully right
    NO_RESPONSE = "no_response"  # empty or blank
    TRUNCATED = "truncated"  # cut off by the token limit before an answer
    REFUSAL = "refusal"  # the provider's refusal or content filter
    UNPARSED = "unparsed"  # text, but no answer in it
    LIMIT = "limit"  # the agent ran into a limit of its task (turns, seconds, memory)
    ERROR = "error"  # infrastructure: run once more, then unscored; never a 0


@dataclass(frozen=True, kw_only=True)
class Task:
    """One problem of a data set.

    Attributes:
        id: unique and stable within the data set.
        fields: what may be shown to a model, in order; never holds the answer.
        answer: the expected answer as the data set states it; None when the judge needs none.
        extra: what only the agent or judge needs (choices, image, check command, …).
    """

    id: str
    fields: Mapping[str, Any]
    answer: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def text(self, field_name: str | None = None) -> str:
        """Return one field as text, or all: the bare value if single, else `name: value` lines."""
        if field_name is not None:
            return str(self.fields[field_name])
        if len(self.fields) == 1:
            return str(next(iter(self.fields.values())))
        return "\n".join(f"{name}: {value}" for name, value in self.fields.items())


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The loaded tasks of a run.

    Attributes:
        name: for people, e.g. `gsm8k`.
        train, val, test: disjoint; val and test may be empty.
        digest: sha256 (hex) over the content and order of the three splits.
        source: where it was read from, for the record.
    """

    name: str
    train: tuple[Task, ...]
    val: tuple[Task, ...] = ()
    test: tuple[Task, ...] = ()
    digest: str = ""
    source: str = ""

    def split(self, name: Split) -> tuple[Task, ...]:
        """Return the tasks of one split."""
        return {"train": self.train, "val": self.val, "test": self.test}[name]


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One chat message; role is `system`, `user` or `assistant`."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One model call, complete but for what the endpoint's settings add.

    Attributes:
        messages: the conversation so far.
        temperature: None leaves it to the endpoint.
        max_tokens: None leaves it to the endpoint.
        sample: which sample of an equal request this is (part of the cache's key).
        again: 1 when a failed run asks once more, so that it isn't served the first answer.
        ordinal: the call's number among the calls of its role that the algorithm makes in
            sequence (the optimizer's step × n_candidates + k); `llm=scripted` picks by it.
    """

    messages: tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    sample: int = 0
    again: int = 0
    ordinal: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What calls consumed; None is unknown, never 0.

    Attributes:
        calls: answers received.
        prompt_tokens, completion_tokens: as the endpoint reports them.
        usd: by the configured prices.
    """

    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usd: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Completion:
    """What the endpoint really answered.

    Attributes:
        text: the message's content, byte for byte; '' when null.
        finish_reason: as reported (`stop`, `length`, `content_filter`, …), or None.
        refusal: the provider's refusal text, or None.
        model: the model name that the endpoint reports, or None.
        usage: one call's usage.
        seconds: wall time of the answered attempt.
        attempts: requests sent until this answer, retries included.
        cached: served from the shared cache, so nothing was sent.
        notes: what was adapted (a parameter left out, a larger cap), for the record.
    """

    text: str
    finish_reason: str | None = None
    refusal: str | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    attempts: int = 1
    cached: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rollout:
    """What one run of the agent on one task gave.

    Attributes:
        output: the agent's raw output.
        kind: None when the output is for the judge to rate; else the judge isn't asked for
            a kind: ERROR (infrastructure), or the agent's own end (LIMIT, TRUNCATED, REFUSAL, …).
        reason: why, for kinds other than None; shown to the optimizer as feedback.
        score: the score in [0, 1], when the run was checked in its own environment
            (a container's check); the judge `environment` reports it.
        trajectory: messages, commands and outputs of a run of several turns, clipped.
    """

    output: str
    kind: Kind | None = None
    reason: str = ""
    score: float | None = None
    trajectory: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """A judge's rating of one output.

    Attributes:
        score: in [0, 1].
        kind: RIGHT, WRONG, UNPARSED, NO_RESPONSE, …; never ERROR.
        answer: the answer found in the output, as text; None when none was.
        feedback: one or two sentences for the optimizer that name the expected answer.
    """

    score: float
    kind: Kind
    answer: str | None = None
    feedback: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskResult:
    """One task's outcome under one instruction; `verdict` is None when the run failed twice."""

    task_id: str
    rollout: Rollout
    verdict: Verdict | None

    @property
    def score(self) -> float | None:
        """The score, or None for a run that failed."""
        return None if self.verdict is None else self.verdict.score

    @property
    def kind(self) -> Kind:
        """The verdict's kind; ERROR for a run that failed."""
        return Kind.ERROR if self.verdict is None else self.verdict.kind


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """One instruction on a list of tasks, in the tasks' order.

    Attributes:
        md5: of the instruction's UTF-8 bytes.
        results: one per task; empty where the caller may see the mean alone (validation).
        mean: the mean score; None when any run failed twice (unscored, never 0).
        n: how many tasks were run.
        failed: ids of the tasks whose run failed twice.
        cut: the budget was spent before all runs were done; then the mean is None.
    """

    instruction: str
    md5: str
    results: tuple[TaskResult, ...]
    mean: float | None
    n: int
    failed: tuple[str, ...] = ()
    cut: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle column by column: result by result took ten times as long."""
        rows = [(one.task_id, one.rollout, one.verdict) for one in self.results]
        rest = {**self.__dict__, "results": ()}
        return _evaluation, (rest, tuple(zip(*rows, strict=True)))


def _evaluation(rest: dict[str, Any], columns: tuple[tuple[Any, ...], ...]) -> Evaluation:
    results = tuple(
        TaskResult(task_id=task_id, rollout=rollout, verdict=verdict)
        for task_id, rollout, verdict in zip(*columns, strict=True)
    )
    return Evaluation(**{**rest, "results": results})
