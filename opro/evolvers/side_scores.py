"""What the authors' loop can score on the side: recorded, and without a say in the search."""

from __future__ import annotations

from collections.abc import Sequence

from opro.evolvers.base import Context
from opro.evolvers.history import History
from opro.evolvers.params import OPROParams
from opro.records import Candidate


class SideScores:
    """Scores on the step's exemplars alone, and on validation every few steps.

    Args:
        params: `exemplar_scores` and `eval_every`; both are off by default.
        history: the search's, to which the step's new instructions have been added.
    """

    def __init__(self, params: OPROParams, history: History) -> None:
        self._params = params
        self._history = history
        self._validated: dict[str, float | None] = {}

    def scores(
        self, ctx: Context, candidates: Sequence[Candidate], ids: Sequence[str]
    ) -> dict[str, float | None]:
        """Score what this step asks for.

        Returns:
            Means by `exemplars/new/<md5>`, `exemplars/old/<md5>` and `val/<md5>`.
        """
        new = [one.instruction or "" for one in candidates if one.status == "scored"]
        means: dict[str, float | None] = {}
        for name, texts in (("new", new), ("old", self._before(ctx.step))):
            if self._params.exemplar_scores in (name, "both") and ids and texts:
                phase = f"exemplars/{name}"
                for one in ctx.run_agent(texts, phase=phase, task_ids=ids):
                    means[f"{phase}/{one.md5}"] = one.mean
        every = self._params.eval_every
        if every and ctx.step % every == 0:
            means.update(self._validate(ctx, candidates))
        return means

    def _before(self, step: int) -> list[str]:
        """Return the instructions that had joined before a step, each text once."""
        entries = (one for one in self._history.all if one.step < step and one.score is not None)
        return [one.instruction for one in {one.md5: one for one in entries}.values()]

    def _validate(self, ctx: Context, candidates: Sequence[Candidate]) -> dict[str, float | None]:
        """Score on validation whatever this step wrote that has a training score, each text once.

        A duplicate of an earlier step counts, too, as in the authors' loop; what was validated
        before keeps that mean.
        """
        texts = {one.md5: one.instruction for one in self._history.all if one.score is not None}
        wanted = list(dict.fromkeys(one.md5 for one in candidates if one.md5 in texts))
        fresh = [texts[md5] for md5 in wanted if md5 is not None and md5 not in self._validated]
        if fresh:
            for one in ctx.run_agent(fresh, phase="periodic validation", split="val"):
                self._validated[one.md5] = one.mean
        return {f"val/{md5}": self._validated[md5] for md5 in wanted if md5 is not None}
