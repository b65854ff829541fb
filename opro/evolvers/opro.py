"""OPRO: the optimizer model reads old instructions with their scores and writes new ones.

Yang et al., "Large Language Models as Optimizers", ICLR 2024, arXiv:2309.03409.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from opro.errors import BudgetExceeded, CallFailed
from opro.evolvers import checks, exemplars, meta_prompt
from opro.evolvers.base import Choice, Context, Evolver, PlannedCalls
from opro.evolvers.candidates import Sieve
from opro.evolvers.history import History, finalists
from opro.evolvers.params import OPROParams
from opro.evolvers.plan import plan
from opro.evolvers.side_scores import SideScores
from opro.evolvers.state import State
from opro.records import Candidate, Scored, StepRecord, Validation
from opro.types import Completion, Dataset, Evaluation, Message, Request


class OPROEvolver(Evolver):
    """The authors' loop with the port's selection; `params` switches between the two."""

    def __init__(
        self, *, params: OPROParams, initial_instructions: list[str], name: str = "opro"
    ) -> None:
        self.name = name
        self.params = params
        self._initial = tuple(initial_instructions)
        self._history = History()
        self._sieve = Sieve(params, self._initial)
        self._current: Evaluation | None = None
        self._state = State()
        self._side = SideScores(params, self._history)

    @property
    def initial_instructions(self) -> tuple[str, ...]:
        """The instructions of step -1."""
        return self._initial

    @property
    def history(self) -> tuple[Scored, ...]:
        """Every instruction that joined, in order."""
        return self._history.all

    def setup(self, dataset: Dataset, *, step_size: int, steps: int) -> tuple[str, ...]:
        """Refuse what can't work; see `Evolver.setup`."""
        return checks.check(self.params, self._initial, dataset, step_size)

    def plan(self, dataset: Dataset, *, steps: int, rescore: bool) -> list[PlannedCalls]:
        """Return the calls when nothing is skipped; see `Evolver.plan`."""
        return plan(self.params, len(self._initial), dataset, steps=steps, rescore=rescore)

    def rollout_instructions(self, step: int) -> tuple[str, ...]:
        """Return the initial instructions, later the best so far."""
        return self._initial if step == 0 else (self._history.best.instruction,)

    def step(self, ctx: Context, rollouts: Sequence[Evaluation]) -> StepRecord:
        """Run one OPRO step; see `Evolver.step`."""
        if ctx.step == 0:
            for evaluation in rollouts:
                self._history.join(evaluation, -1)
        # The initial instructions' best at step 0, later the one re-scored; without that pass
        # the best's own results.
        fresh = rollouts[0] if ctx.step > 0 and rollouts else None
        self._current = fresh or self._history.best_evaluation
        record = StepRecord(
            step=ctx.step,
            current=self._current if rollouts else None,
            exemplar_ids=(),
            meta_prompt="",
            shown=0,
            temperature=self._temperature(ctx),
            candidates=(),
            best=self._history.best,
            initial=tuple(rollouts) if ctx.step == 0 else (),
        )
        if rollouts and all(len(one.failed) == one.n for one in rollouts):
            notice = "every run of the current instruction failed; no new one was asked for"
            record = replace(record, notices=(notice,))
        else:
            record = self._generate(ctx, record)
        self._state.add(record, self._history)
        return record

    def _generate(self, ctx: Context, record: StepRecord) -> StepRecord:
        params = self.params
        shown = self._history.shown(params.max_num_instructions, params.score_threshold)
        ids = self._draw(ctx)
        notices = [] if shown else ["no instruction reaches score_threshold; none is shown"]
        text, replies, trimmed = self._ask(ctx, shown, ids, record.temperature)
        if trimmed:
            notices.append(f"the {trimmed} worst instructions left out: the context is too small")
        candidates = self._score(ctx, self._sieve.sift(replies))
        return replace(
            record,
            exemplar_ids=tuple(ids),
            meta_prompt=text,
            shown=len(shown) - trimmed,
            candidates=tuple(candidates),
            best=self._history.best,
            notices=tuple(notices),
            evaluated=self._side.scores(ctx, candidates, ids),
        )

    def _draw(self, ctx: Context) -> list[str]:
        params = self.params
        if params.num_exemplars == 0 or params.meta_prompt == "instructions_only":
            return []
        if params.exemplar_sampler == "port":
            assert self._current is not None  # set by `step`
            return exemplars.draw_port(params, ctx.step, self._current)
        shown: set[str] | None = None
        if params.exemplar_criterion == "current_most_frequent":
            threshold = params.score_threshold if ctx.step > 0 else 0.0  # as the authors do
            kept = self._history.shown(params.max_num_instructions, threshold)
            shown = {one.md5 for one in kept}
        wrong = self._history.wrong(shown)
        return exemplars.draw_upstream(params, ctx.step, ctx.dataset.train, wrong)

    def _ask(
        self, ctx: Context, shown: Sequence[Scored], ids: Sequence[str], temperature: float | None
    ) -> tuple[str, list[Completion | CallFailed], int]:
        """Ask for new instructions, showing fewer old ones when the context is too small."""
        trimmed = 0
        while True:
            text = self._write(ctx, shown[trimmed:], ids)
            phase = "optimizer" if trimmed == 0 else f"optimizer, {trimmed} left out"
            replies = ctx.ask(self._requests(ctx, text, temperature), phase=phase)
            kinds = {one.kind for one in replies if isinstance(one, CallFailed)}
            left = len(shown) - trimmed
            overflow = len(kinds) == 1 and "context_overflow" in kinds
            if not overflow or left <= 1:
                return text, replies, trimmed
            trimmed += left // 2

    def _write(self, ctx: Context, shown: Sequence[Scored], ids: Sequence[str]) -> str:
        params = self.params
        tasks = {task.id: task for task in ctx.dataset.train}
        layout = meta_prompt.Layout(
            style=params.meta_prompt,
            slot=params.instruction_position,
            include_qa=params.include_qa,
            exemplars_first=params.exemplars_first,
            num_score_buckets=params.num_score_buckets,
            description=params.task_description or "problems",
        )
        pairs = [(one.instruction, one.score) for one in shown if one.score is not None]
        return meta_prompt.write(layout, pairs, exemplars.show(params, ids, tasks, self._current))

    def _requests(self, ctx: Context, text: str, temperature: float | None) -> list[Request]:
        first = ctx.step * self.params.n_candidates
        messages = [Message(role="user", content=text)]
        if self.params.reply_prefix:
            messages.append(Message(role="assistant", content=self.params.reply_prefix))
        return [
            Request(
                messages=tuple(messages),
                temperature=temperature,
                max_tokens=self.params.max_tokens,
                sample=first + index,
                ordinal=first + index,
            )
            for index in range(self.params.n_candidates)
        ]

    def _temperature(self, ctx: Context) -> float:
        params = self.params
        if params.temperature_schedule == "constant" or params.temperature_end is None:
            return params.temperature
        rise = params.temperature_end - params.temperature
        return params.temperature + ctx.step / ctx.steps * rise

    def _score(self, ctx: Context, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Run what passed the sieve on every training task; it joins the history in order."""
        texts = [one.instruction or "" for one in candidates if one.status == "scored"]
        evaluations = iter(ctx.run_agent(texts, phase="candidates"))
        return [
            self._scored(one, next(evaluations), ctx.step) if one.status == "scored" else one
            for one in candidates
        ]

    def _scored(self, candidate: Candidate, evaluation: Evaluation, step: int) -> Candidate:
        self._history.join(evaluation, step)
        if evaluation.mean is not None:
            return replace(candidate, evaluation=evaluation)
        failed = ", ".join(evaluation.failed[:3])
        reason = f"{len(evaluation.failed)} of {evaluation.n} runs failed twice: {failed}"
        if evaluation.cut:
            reason = "the budget was spent before all its runs were done"
        return replace(candidate, status="unscored", reason=reason, evaluation=evaluation)

    def finalize(self, ctx: Context) -> Choice:
        """Return the best on training, or of the top_k the best on validation."""
        ranked = self._history.ranked()
        if not ranked:
            return Choice(winner=self._history.best, select="none (nothing could be scored)")
        if self.params.select == "train":
            return Choice(winner=ranked[0], select="train")
        chosen = finalists(ranked, self.params.top_k)
        try:
            texts = [one.instruction for one in chosen]
            evaluations = ctx.run_agent(texts, phase="validation", split="val")
        except BudgetExceeded:
            return Choice(winner=ranked[0], select="train (budget spent before validation)")
        table = tuple(
            Validation(candidate=one, mean=evaluation.mean, n=evaluation.n)
            for one, evaluation in zip(chosen, evaluations, strict=True)
        )
        rated = [row for row in table if row.mean is not None]
        if not rated:
            select = "train (no validation run could be scored)"
            return Choice(winner=ranked[0], select=select, finalists=table)
        best = max(rated, key=lambda row: row.mean or 0.0)  # max keeps the first of equals
        return Choice(winner=best.candidate, select="validation", finalists=table)

    def state(self) -> str:
        """Return `state/opro.json`; see `State`."""
        return self._state.document(self._history.best if self.history else None)
