"""The run's report.md, for a person; `render_step` makes the one of each step.

Both are a function of the journal: no clock, no path, no count that differs when a run is resumed
or replayed. Model-made text appears only through `opro.plain`.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from opro.plain import cell, fence
from opro.records import RunInfo, StepRecord, Summary
from opro.reports import markdown as md
from opro.reports.result import against_initial, constant_answer, two_sentences
from opro.reports.step import STATE, render_step
from opro.types import Evaluation

__all__ = ["render_run", "render_step"]

MAX_ROWS = 50
"""Instructions, steps or reasons that a table shows; what is left out is counted below it."""


MAX_REASONS = 5
"""Reasons of failed runs that the report shows."""


def render_run(summary: Summary, info: RunInfo) -> str:
    """Return the run's report.md; `curve.png` is expected beside it."""
    parts = [
        f"# OPRO on {cell(info.dataset.name)}",
        two_sentences(summary, info.dataset),
        md.unreadable_warning(summary.totals.kinds),
        "## The chosen instruction",
        fence(summary.winner.instruction, rest=f"ADAPTER.md and {STATE}"),
        _chosen(summary),
        "## Against the initial instruction",
        against_initial(summary),
        constant_answer(summary, info.dataset),
        "## Best so far, step by step",
        "![Scores of the instructions over the steps](curve.png)",
        _curve(summary),
        "## Instructions, best first",
        _ranking(summary),
        "## Finalists",
        _finalists(summary),
        "## Replies that were not scored",
        _not_scored(summary),
        "## Runs by outcome",
        f"{md.kinds_text(summary.totals.kinds)}. Failed runs (error) were run once more.",
        _failures(summary),
        _remarks(summary),
        "## What it cost",
        _cost(summary),
        "## Where to find what",
        f"`ADAPTER.md` is the chosen instruction; `{STATE}` holds every instruction with its score "
        "on each task; `output/` has meta-prompt, replies and report of each step; "
        "`journal.jsonl` is every model answer that the scores rest on.",
    ]
    return md.page(parts)


def _chosen(summary: Summary) -> str:
    origin, rule = md.origin(summary.winner), cell(summary.select, 120)
    return f"md5 {summary.winner.md5}, {origin}, chosen by: {rule}."


def _curve(summary: Summary) -> str:
    shown = summary.steps
    if len(shown) > MAX_ROWS:
        last = shown[-1].step
        shown = tuple(s for s in shown if s.best.step == s.step or s.step == last)[-MAX_ROWS:]
    text = md.table(
        ("step", "best so far", "", "best of the step", "mean of the step", "problems shown"),
        [_curve_row(record) for record in shown],
    )
    left_out = len(summary.steps) - len(shown)
    if left_out:
        text += f"\n\n{md.amount(left_out, 'step')} without a new best, or older, not shown."
    return text if summary.steps else "No step was finished."


def _curve_row(record: StepRecord) -> tuple[str, ...]:
    means = [c.evaluation.mean for c in record.candidates if c.evaluation]
    known = [mean for mean in means if mean is not None]
    best = record.best.score or 0.0
    return (
        str(record.step),
        md.score(record.best.score) + (" (new)" if record.best.step == record.step else ""),
        "█" * round(10 * best) + "░" * (10 - round(10 * best)),
        f"{max(known):.3f}" if known else "–",
        f"{sum(known) / len(known):.3f}" if known else "–",
        md.ids(record.exemplar_ids, limit=5),
    )


def _evaluations(summary: Summary) -> dict[str, Evaluation]:
    found = {e.md5: e for record in summary.steps for e in record.initial}
    for record in summary.steps:
        found.update((c.md5, c.evaluation) for c in record.candidates if c.evaluation and c.md5)
    return found


def _ranking(summary: Summary) -> str:
    evaluations = _evaluations(summary)
    scored = [s for s in summary.history if s.score is not None]
    ranked = sorted(scored, key=lambda s: -(s.score or 0.0))  # stable: the earliest first
    rows = [
        (
            str(rank),
            md.score(s.score),
            "initial" if s.step < 0 else str(s.step),
            md.kinds(evaluations.get(s.md5)),
            cell(s.instruction, 100),
            s.md5[:8],
        )
        for rank, s in enumerate(ranked[:MAX_ROWS], start=1)
    ]
    text = md.table(("rank", "train score", "step", "runs", "instruction", "md5"), rows)
    if len(ranked) > MAX_ROWS:
        text += f"\n\n{len(ranked) - MAX_ROWS:,} more are in {STATE}."
    return text


def _finalists(summary: Summary) -> str:
    if not summary.finalists:
        return "None: no instruction was run on validation tasks."
    rows = [
        (
            f"**{f.candidate.md5[:8]}**"
            if f.candidate.md5 == summary.winner.md5
            else f.candidate.md5[:8],
            md.score(f.candidate.score),
            md.score(f.mean),
            str(f.n),
            cell(f.candidate.instruction, 60),
        )
        for f in summary.finalists
    ]
    return md.table(("md5", "train score", "validation score", "tasks", "instruction"), rows)


def _not_scored(summary: Summary) -> str:
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in summary.steps:
        for c in record.candidates:
            if c.status != "scored":
                places[c.status, c.reason].append(f"{record.step}/{c.index}")
    if not places:
        return "Every reply gave a new instruction that was scored."
    ranked = sorted(places.items(), key=lambda item: (-len(item[1]), item[0]))
    rows = [
        (status, cell(reason, 120) if reason else "–", str(len(where)), md.ids(where, limit=6))
        for (status, reason), where in ranked[:MAX_ROWS]
    ]
    text = md.table(("outcome", "reason", "replies", "step/reply"), rows)
    if len(ranked) > MAX_ROWS:
        text += f"\n\n{len(ranked) - MAX_ROWS:,} rarer reasons are in {STATE}."
    return text


def _failures(summary: Summary) -> str:
    found = _evaluations(summary).values()
    failed = Counter(task for evaluation in found for task in evaluation.failed)
    if not failed:
        return ""
    names = md.ids(task for task, _ in failed.most_common())
    runs = [run for evaluation in found for run in evaluation.results if run.score is None]
    reasons = Counter(run.rollout.reason for run in runs).most_common(MAX_REASONS)
    rows = [(cell(reason, 200), str(count)) for reason, count in reasons]
    text = f"Tasks whose run failed twice, which left an instruction unscored: {names}."
    return f"{text}\n\n{md.table(('why', 'runs'), rows)}" if rows else text


def _remarks(summary: Summary) -> str:
    lines = [f"- {cell(text, 200)} ({n:,})" for text, n in summary.totals.remarks.items()]
    head = ["What was odd about answers, or adapted for them:", ""]
    return "\n".join([*head, *lines]) if lines else ""


def _cost(summary: Summary) -> str:
    if not summary.totals.by_role:
        return "No model was asked."
    rows = [
        (
            cell(role),
            md.count(usage.calls),
            md.count(usage.prompt_tokens),
            md.count(usage.completion_tokens),
            md.usd(usage.usd),
        )
        for role, usage in sorted(summary.totals.by_role.items())
    ]
    text = md.table(("role", "answers", "prompt tokens", "completion tokens", "cost"), rows)
    return f"{text}\n\nOnly answers that the run used are counted; unknown is not 0."
