"""Which training problems a meta-prompt shows, and with which answers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from opro.evolvers.meta_prompt import Exemplar
from opro.evolvers.params import OPROParams
from opro.types import Evaluation, Kind, Task, TaskResult


def draw_port(params: OPROParams, step: int, current: Evaluation) -> list[str]:
    """Return the ids of `num_exemplars` of the current instruction's runs that did not fail.

    Drawn with `random.Random(seed * 100003 + step)`; all of them, in the data's order, when
    there are no more than that.
    """
    ids = [result.task_id for result in current.results if result.kind is not Kind.ERROR]
    if len(ids) <= params.num_exemplars:
        return ids
    return random.Random(params.seed * 100003 + step).sample(ids, params.num_exemplars)


def draw_upstream(
    params: OPROParams, step: int, train: Sequence[Task], wrong: Counter[int]
) -> list[str]:
    """Return the ids of the problems that the authors' code would show at this step.

    Args:
        params: `exemplar_criterion` and `num_exemplars`.
        step: the seed of numpy's legacy generator (0 for the criterion `constant`).
        train: the training tasks in the data's order.
        wrong: how often the instructions in question answered wrong (score 0), by position in
            `train`: all so far, or those shown now for `current_most_frequent`. The authors
            break ties by a Python set's order and, for that criterion, go on with the generator
            that drew the split; here ties are in the data's order and the step number seeds.
    """
    from numpy.random import RandomState  # late: 0.1 s that the port's sampler doesn't need

    count = params.num_exemplars
    generator = RandomState(0 if params.exemplar_criterion == "constant" else step)
    if params.exemplar_criterion in ("random", "constant"):
        pool = list(range(len(train)))
    elif params.exemplar_criterion == "accumulated_most_frequent":
        pool = _most_to_least(wrong)
        if len(pool) <= count:
            return [train[at].id for at in pool]
    else:
        top = max(wrong.values(), default=0)
        pool = [at for at in sorted(wrong) if wrong[at] == top]
        if len(pool) < count:
            return [train[at].id for at in _most_to_least(wrong)[:count]]
    size = min(count, len(pool))
    if size == 0:
        return []
    chosen = generator.choice(pool, size=size, replace=False)
    return [train[at].id for at in sorted(int(at) for at in chosen)]


def show(
    params: OPROParams, ids: Sequence[str], tasks: Mapping[str, Task], current: Evaluation | None
) -> list[Exemplar]:
    """Return the problems as the meta-prompt shows them.

    The answer is the gold answer (`exemplar_answer: gold`), or the agent's own where its score
    reaches `success_score`, else the judge's feedback, which holds the fail reason of a run
    without an answer.
    """
    results = {} if current is None else {result.task_id: result for result in current.results}
    return [
        Exemplar(
            question=tasks[task_id].text(params.question_field),
            answer=_answer(params, tasks[task_id], results.get(task_id)),
        )
        for task_id in ids
    ]


def _answer(params: OPROParams, task: Task, result: TaskResult | None) -> str:
    if params.exemplar_answer == "gold":
        return str(task.answer)
    if result is None or result.verdict is None:
        return "" if result is None else result.rollout.reason.partition("\n")[0]
    verdict = result.verdict
    if verdict.score >= params.success_score:
        return result.rollout.output.strip() if verdict.answer is None else verdict.answer
    return verdict.feedback


def _most_to_least(wrong: Counter[int]) -> list[int]:
    return sorted(wrong, key=lambda at: (-wrong[at], at))
