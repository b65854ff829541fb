"""What a run found, and how far that can be trusted: the part of the report read first."""

from __future__ import annotations

from collections import Counter

from opro.plain import cell
from opro.records import Comparison, Summary
from opro.reports import markdown as md
from opro.stats import Paired, paired, scores_of
from opro.types import Dataset, Evaluation, Split

MAX_LABELS = 20
"""With more distinct answers than this a constant answer isn't worth comparing with."""

SAME = "the same one"

SPLITS: tuple[Split, ...] = ("train", "val", "test")


def two_sentences(summary: Summary, dataset: Dataset) -> str:
    """Return what happened, in two sentences."""
    tried = sum(scored.step >= 0 and scored.score is not None for scored in summary.history)
    first = (
        f"In {md.amount(len(summary.steps), 'step')} the search scored "
        f"{md.amount(tried, 'new instruction')} on "
        f"{md.amount(len(dataset.train), 'training task')} and stopped because of: "
        f"{cell(summary.stop_reason, 120)}."
    )
    return f"{first} {_result(summary)}"


def _result(summary: Summary) -> str:
    winner, initial = summary.winner, summary.initial
    if winner.md5 == initial.md5:
        return f"The initial instruction ({md.score(initial.score)}) is still the chosen one."
    text = (
        f"The chosen instruction scores {md.score(winner.score)} in training, the initial one "
        f"{md.score(initial.score)}"
    )
    test = _comparison(summary, "test")
    if test is None or test.winner is None or test.initial is None:
        return (
            f"{text}; neither was compared on test tasks, and a training score is too high by "
            "nature, since the winner was picked by it."
        )
    result = _paired(test)
    p_value = "" if result is None else f", p {_equals(_p(result.p_value))}"
    return (
        f"{text}; on {md.amount(test.winner.n, 'test task')} it is {md.score(test.winner.mean)} "
        f"against {md.score(test.initial.mean)}{p_value}."
    )


def sure(summary: Summary) -> list[str]:
    """Return one line of plain text for each measured split: score, initial score, difference."""
    lines = []
    for split in SPLITS:
        _, tasks, initial, chosen, difference, _, p_value = _row(summary, split)
        if chosen == "not measured":
            lines.append(f"{split}: not measured")
            continue
        if difference == SAME:
            lines.append(f"{split}: {chosen} on {tasks} tasks, still the initial instruction")
            continue
        line = f"{split}: {chosen} on {tasks} tasks; initial {initial}"
        if difference != "–":
            line += f"; difference {difference}"
        lines.append(line if p_value == "–" else f"{line}, p {_equals(p_value)}")
    return lines


def _equals(p_value: str) -> str:
    return p_value if p_value.startswith("<") else f"= {p_value}"


def against_initial(summary: Summary) -> str:
    """Return the table of the winner beside the initial instruction, split by split."""
    rows = [_row(summary, split) for split in SPLITS]
    headers = ("split", "tasks", "initial", "chosen", "difference", "better / worse", "p")
    if summary.winner.md5 == summary.initial.md5:
        return f"{md.table(headers, rows)}\n\nIn brackets: 95% intervals."
    notes = [
        "In brackets: 95% intervals. Differences are paired by task.",
        *sorted({_rule(r) for s in SPLITS if (r := _paired(_comparison(summary, s)))}),
        "The winner was picked by its scores on train (and on val, where finalists were "
        "validated), so these rows flatter it; the test row doesn't.",
    ]
    return f"{md.table(headers, rows)}\n\n{' '.join(notes)}"


def _row(summary: Summary, split: Split) -> tuple[str, ...]:
    comparison = _comparison(summary, split)
    if comparison is None:
        mean = next((f for f in summary.finalists if f.candidate.md5 == summary.winner.md5), None)
        if split == "val" and mean is not None:
            return (split, str(mean.n), "not measured", md.score(mean.mean), "–", "–", "–")
        return (split, "–", "not measured", "not measured", "–", "–", "–")
    shown = comparison.winner or comparison.initial
    cells = (
        split,
        str(shown.n) if shown else "–",
        md.measured(comparison.initial),
        md.measured(comparison.winner),
    )
    if summary.winner.md5 == summary.initial.md5:
        return (*cells, SAME, "–", "–")
    return (*cells, *_difference(comparison))


def _difference(comparison: Comparison) -> tuple[str, str, str]:
    result = _paired(comparison)
    if result is not None:
        interval = md.bounds(result.interval, signed=True)
        counts = f"{result.better} / {result.worse}"
        return (f"{result.difference:+.3f} ({interval})", counts, _p(result.p_value))
    first, second = comparison.initial, comparison.winner
    if first is None or second is None or first.mean is None or second.mean is None:
        return ("–", "–", "–")
    return (f"{second.mean - first.mean:+.3f}", "–", "–")


def _comparison(summary: Summary, split: Split) -> Comparison | None:
    return next((c for c in summary.comparisons if c.split == split), None)


def _paired(comparison: Comparison | None) -> Paired | None:
    if comparison is None or comparison.initial is None or comparison.winner is None:
        return None
    return paired(scores_of(comparison.initial), scores_of(comparison.winner))


def _rule(result: Paired) -> str:
    method = "no interval" if result.interval is None else f"{result.interval.method} interval"
    return f"Test: {result.test}, {method}."


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def constant_answer(summary: Summary, dataset: Dataset) -> str:
    """Return what always giving the most common answer would score; '' unless labels are few."""
    tasks = dataset.train + dataset.val + dataset.test
    labels = Counter(str(task.answer) for task in tasks if task.answer is not None)
    if not labels or len(labels) > MAX_LABELS or 2 * len(labels) > len(tasks):
        return ""
    lines = []
    for split in SPLITS:
        answers = Counter(str(t.answer) for t in dataset.split(split) if t.answer is not None)
        if answers:
            label, n = min(answers.items(), key=lambda item: (-item[1], item[0]))
            lines.append(f"{n / answers.total():.3f} on {split} ({cell(label, 40)})")
    text = f"Always giving the most common answer would score {', '.join(lines)}."
    return f"{text} {_same_answer(summary)}".rstrip()


def _same_answer(summary: Summary) -> str:
    for split in reversed(SPLITS):
        comparison = _comparison(summary, split)
        if comparison is None or comparison.winner is None or not comparison.winner.results:
            continue
        label, share = _most_common_answer(comparison.winner)
        if label is not None:
            where = f"{share:.0%} of the {split} tasks"
            return f"Under the chosen instruction the answer was {cell(label, 40)} on {where}."
    return ""


def _most_common_answer(evaluation: Evaluation) -> tuple[str | None, float]:
    found = Counter(
        r.verdict.answer for r in evaluation.results if r.verdict and r.verdict.answer is not None
    )
    if not found:
        return None, 0.0
    label, n = min(found.items(), key=lambda item: (-item[1], item[0]))
    return label, n / len(evaluation.results)
