"""What a run would do and cost, before it does: `plan=true` and the warning on small budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opro.evolvers.base import PlannedCalls
from opro.setup.assembly import Assembly

CHARS_PER_TOKEN = 4.0
"""A common rule of thumb for English text; good enough for an estimate, and said to be one."""
ANSWER_TOKENS = 200
"""Assumed length of an answer where no `max_tokens` bounds it."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """An upper bound of a run's calls, and an estimate of its tokens and cost.

    Attributes:
        title: the run in short.
        rows: calls by purpose.
        tokens: estimated, by role.
        usd: estimated; None where an endpoint has no price.
        warning: what `trainer.budget.calls` affords, a warning if under two steps; '' without it.
    """

    title: str
    rows: tuple[PlannedCalls, ...]
    tokens: dict[str, int]
    usd: float | None
    warning: str

    def count(self, role: str) -> int:
        """Return the calls of one role."""
        return sum(row.count for row in self.rows if row.role == role)

    @property
    def calls(self) -> int:
        """All planned calls and runs together, for the progress bar."""
        return sum(row.count for row in self.rows)


def make_plan(assembly: Assembly) -> Plan:
    """Return the plan of a run in which nothing is skipped."""
    settings, dataset = assembly.settings, assembly.dataset
    rows = assembly.evolver.plan(dataset, steps=settings.epochs, rescore=settings.rescore)
    for split in settings.compare:
        count = 2 * len(dataset.split(split))
        if count:
            purpose = f"winner and initial on {split}"
            rows.append(PlannedCalls(purpose=purpose, role="agent", count=count))
    tokens, usd = _estimate(assembly, rows)
    runs = sum(row.count for row in rows if row.role == "agent")
    if assembly.judge_llm is not None:
        count = runs * assembly.judge.max_calls
        rows.append(PlannedCalls(purpose="calls of the judge", role="judge", count=count))
    sizes = f"{len(dataset.train)} train, {len(dataset.val)} val, {len(dataset.test)} test"
    if not assembly.tasks_known:
        sizes += "; data.path=null, so counted by the published sizes"
    return Plan(
        title=f"{settings.epochs} steps on {dataset.name} ({sizes})",
        rows=tuple(rows),
        tokens=tokens,
        usd=usd,
        warning=_budget_warning(assembly),
    )


def render(plans: Sequence[Plan]) -> str:
    """Return the plans side by side, one column each, as text for a terminal."""
    purposes = list(dict.fromkeys(row.purpose for plan in plans for row in plan.rows))
    roles = list(dict.fromkeys(role for plan in plans for role in plan.tokens))
    lines = [f"plan {number}: {plan.title}" for number, plan in enumerate(plans, 1)]
    table = [("", *(f"plan {number}" for number in range(1, len(plans) + 1)))]
    table.append(("optimizer calls", *(f"{plan.count('optimizer'):,}" for plan in plans)))
    table.append(("scorer calls", *(f"{plan.count('agent'):,}" for plan in plans)))
    for purpose in purposes:
        cells = [sum(r.count for r in plan.rows if r.purpose == purpose) for plan in plans]
        if purpose != "write new instructions":
            table.append((f"  {purpose}", *(f"{cell:,}" for cell in cells)))
    for role in roles:
        cells = [plan.tokens.get(role, 0) for plan in plans]
        table.append((f"tokens of the {role}, roughly", *(f"{cell:,}" for cell in cells)))
    costs = ["unknown" if plan.usd is None else f"{plan.usd:,.2f}" for plan in plans]
    table.append(("cost in USD, roughly", *costs))
    lines += [f"{name:<36}" + "".join(f"{cell:>14}" for cell in cells) for name, *cells in table]
    if any(plan.usd is None for plan in plans):
        lines.append("cost is unknown where llm.price isn't set")
    return "\n".join(lines + [plan.warning for plan in plans if plan.warning])


def _budget_warning(assembly: Assembly) -> str:
    settings, dataset, evolver = assembly.settings, assembly.dataset, assembly.evolver
    per_run = assembly.agent.max_calls if assembly.agent_llm is not None else 0
    per_run += assembly.judge.max_calls if assembly.judge_llm is not None else 0

    def calls(steps: int) -> int:
        rows = evolver.plan(dataset, steps=steps, rescore=settings.rescore)
        return sum(row.count * (1 if row.role == "optimizer" else per_run) for row in rows)

    start = per_run * len(dataset.train) * len(evolver.initial_instructions)
    step = calls(3) - calls(2)
    budget = settings.budget.calls
    if budget is None or step <= 0:
        return ""
    affordable = max(0, budget - start) // step
    few = affordable < min(2, settings.epochs)
    return (
        f"{'warning: ' if few else ''}trainer.budget.calls={budget} affords {affordable} steps:"
        f" {start} calls score the initial instructions, each step takes up to {step}"
    )


def _estimate(
    assembly: Assembly, rows: Sequence[PlannedCalls]
) -> tuple[dict[str, int], float | None]:
    """Return tokens by role and the cost, from the lengths of the training tasks."""
    train = assembly.dataset.train
    question = sum(len(task.text()) for task in train) / len(train) / CHARS_PER_TOKEN
    params = getattr(assembly.evolver, "params", None)
    shown = getattr(params, "max_num_instructions", 20) * 40 + 200
    meta_prompt = shown + getattr(params, "num_exemplars", 3) * (question + 20)
    written = getattr(params, "max_tokens", None) or ANSWER_TOKENS
    answer = getattr(assembly.agent, "max_tokens", None) or ANSWER_TOKENS
    optimizer = sum(row.count for row in rows if row.role == "optimizer")
    runs = sum(row.count for row in rows if row.role == "agent") * assembly.agent.max_calls
    sizes = (
        ("optimizer", assembly.optimizer, optimizer, meta_prompt, written),
        ("agent", assembly.agent_llm, runs, question + 40, answer),
    )
    tokens: dict[str, int] = {}
    usd: float | None = 0.0
    for role, llm, calls, prompt, completion in sizes:
        if llm is not None and calls:
            tokens[role] = round(calls * (prompt + completion))
            cost = llm.price.usd(round(calls * prompt), round(calls * completion))
            usd = None if usd is None or cost is None else usd + cost
    return tokens, usd
