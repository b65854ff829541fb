"""Whether what comes back can be trusted: what a run warns of, and what must end it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from opro.errors import RunError, ScoreError
from opro.judges.base import JudgeFailed
from opro.records import StepRecord, Totals
from opro.types import Evaluation, Kind, TaskResult

MOST = 0.5
"""A share of the runs above this is most of them."""

_HINTS: Mapping[Kind, str] = {
    Kind.TRUNCATED: "cut off before an answer could be read; is agent.max_tokens too low?",
    Kind.UNPARSED: "the judge finds no answer in them; look at the journal before you trust 0",
    Kind.NO_RESPONSE: "the endpoint answers with nothing",
    Kind.REFUSAL: "the model refuses",
}


def warnings(rollouts: Sequence[Evaluation]) -> Iterator[str]:
    """Yield what to say when most answers can't be read: it looks like a bad instruction."""
    results = _results(rollouts)
    for kind, hint in _HINTS.items():
        share = sum(result.kind is kind for result in results) / max(1, len(results))
        if share > MOST:
            yield f"{share:.0%} of the answers are {kind.value}: {hint}"


def hopeless(rollouts: Sequence[Evaluation]) -> RunError | None:
    """Return why no instruction could fare better, by the initial ones' runs; None: one could.

    Either the judge raises on every task, or most answers spent their whole token limit before
    any text, as reasoning models do.
    """
    results = _results(rollouts)
    reason = results[0].rollout.reason if results else ""
    if all(one.rollout.reason.startswith(JudgeFailed.HEAD) for one in results) and results:
        return ScoreError(f"the judge failed on every task; the first: {reason}")
    empty = sum(one.kind is Kind.TRUNCATED and not one.rollout.output.strip() for one in results)
    share = empty / max(1, len(results))
    if share > MOST:
        return RunError(
            f"{share:.0%} of the answers spent their token limit before any text: raise"
            " agent.max_tokens (under another trainer.run_name, as it changes the scores)"
        )
    return None


def cause_of_failure(record: StepRecord) -> str | None:
    """Return why a step brought nothing that could be scored; None when it did, or might have.

    Nothing means: every run failed; or every optimizer call failed or was cut off before an
    instruction; or no instruction so far has a score, since each had a run that failed twice.
    """
    rolled = record.initial or ((record.current,) if record.current is not None else ())
    run = [one.evaluation for one in record.candidates if one.evaluation is not None]
    for evaluations in (rolled, run):
        if evaluations and all(len(one.failed) == one.n for one in evaluations):
            return _first_reason(evaluations)
    if record.candidates and all(one.status == "failed" for one in record.candidates):
        return record.candidates[0].reason
    if record.candidates and all(one.reason == "truncated" for one in record.candidates):
        return "every reply was cut off by its token limit; raise evolver.params.max_tokens"
    every = [*rolled, *run]
    if record.best.score is None and any(one.failed for one in every):
        return f"no instruction could be scored: {_first_reason(every)}"
    return None


class Remarks:
    """Picks out of a run's totals what hasn't been said yet."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def fresh(self, totals: Totals) -> list[str]:
        """Return the new remarks on the endpoints' answers, each once."""
        found = [one for one in totals.remarks if one not in self._said]
        self._said.update(found)
        return found


def _results(rollouts: Sequence[Evaluation]) -> list[TaskResult]:
    return [result for one in rollouts for result in one.results]


def _first_reason(evaluations: Sequence[Evaluation]) -> str:
    return next(one.rollout.reason for one in _results(evaluations) if one.score is None)
