"""One step's report.md: what the optimizer saw, what it wrote, and how that scored."""

from __future__ import annotations

from opro.plain import cell, fence
from opro.records import Candidate, StepRecord
from opro.reports import markdown as md
from opro.transcript import one_run

STATE = "state/opro.json"


def render_step(record: StepRecord) -> str:
    """Return one step's report.md."""
    parts = [
        f"# Step {record.step}",
        _step_sentences(record),
        *[f"**Note:** {cell(notice, 300)}" for notice in record.notices],
        "## Instructions of this step",
        md.table(
            ("reply", "score", "outcome", "runs", "instruction"),
            [_candidate_row(candidate) for candidate in record.candidates],
        ),
        "## What the optimizer saw",
        _meta_prompt(record),
        "## Scores beside the candidates",
        _other_scores(record),
        "## The new instructions in full",
        *[
            text
            for c in record.candidates
            if c.status in ("scored", "unscored")
            for text in _full(c)
        ],
        *one_run(record),
    ]
    return md.page(parts)


def _step_sentences(record: StepRecord) -> str:
    scores = [c.evaluation.mean for c in record.candidates if c.evaluation]
    known = [value for value in scores if value is not None]
    first = (
        f"{md.amount(len(record.candidates), 'optimizer call')} gave "
        f"{md.amount(len(known), 'new scored instruction')}"
    )
    first += f", the best at {max(known):.3f}." if known else "."
    best = record.best
    if best.step == record.step:
        second = f"That is a new best: {md.score(best.score)}"
    else:
        second = f"The best so far stays {md.score(best.score)}, {md.origin(best)}"
    return f"{first} {second} (md5 {best.md5[:8]})."


def _candidate_row(candidate: Candidate) -> tuple[str, ...]:
    evaluation = candidate.evaluation
    outcome = candidate.status + (f": {cell(candidate.reason, 120)}" if candidate.reason else "")
    shown = candidate.instruction if candidate.instruction is not None else candidate.reply
    return (
        str(candidate.index),
        md.score(evaluation.mean) if evaluation else "–",
        outcome,
        md.kinds(evaluation),
        "–" if shown is None else cell(shown),
    )


def _meta_prompt(record: StepRecord) -> str:
    temperature = "the endpoint's own" if record.temperature is None else f"{record.temperature:g}"
    return (
        f"{md.amount(record.shown, 'earlier instruction')} and "
        f"{md.amount(len(record.exemplar_ids), 'training problem')} "
        f"({md.ids(record.exemplar_ids)}), asked at temperature {temperature}. The meta-prompt and "
        "the raw replies lie beside this file."
    )


def _other_scores(record: StepRecord) -> str:
    rows = [("initial instruction", md.measured(e), md.kinds(e)) for e in record.initial]
    if record.current is not None and record.step > 0:
        again = "the best, scored once more (its own score stays)"
        rows.append((again, md.measured(record.current), md.kinds(record.current)))
    for name, mean in record.evaluated.items():
        what, md5 = name.rsplit("/", 1)
        rows.append((f"instruction {md5[:8]} on {what}", md.score(mean), "–"))
    if not rows:
        return "None in this step."
    return md.table(("what", "mean (95% interval)", "runs"), rows)


def _full(candidate: Candidate) -> list[str]:
    score = md.score(candidate.evaluation.mean if candidate.evaluation else None)
    head = f"Reply {candidate.index}, score {score}, md5 {candidate.md5}:"
    return [head, fence(candidate.instruction or "", rest=STATE)]
