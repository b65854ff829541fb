"""The pieces that reports are put together from; everything here is deterministic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from opro.plain import cell
from opro.records import Scored
from opro.stats import Interval, mean_interval, scores_of
from opro.types import Evaluation, Kind

UNREADABLE = (Kind.UNPARSED, Kind.NO_RESPONSE, Kind.TRUNCATED, Kind.REFUSAL)
"""Kinds of runs that gave no answer to rate."""

UNREADABLE_SHARE = 0.3
"""From here on a low score says little about an instruction, so reports warn."""


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the cells must be safe already."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(parts: Iterable[str]) -> str:
    """Return the parts that aren't empty as one page, a blank line between them."""
    return "\n\n".join(part for part in parts if part) + "\n"


def origin(scored: Scored) -> str:
    """Return where an instruction comes from."""
    return "an initial instruction" if scored.step < 0 else f"made in step {scored.step}"


def score(value: float | None) -> str:
    """Return a score with three decimals; `unscored` for None."""
    return "unscored" if value is None else f"{value:.3f}"


def count(value: int | None) -> str:
    """Return a number with thousands marked; `unknown` for None, which is never 0."""
    return "unknown" if value is None else f"{value:,}"


def usd(value: float | None) -> str:
    """Return an amount of dollars; `unknown` for None, which is never 0."""
    return "unknown" if value is None else f"${value:.4f}"


def amount(n: int, noun: str) -> str:
    """Return `1 task`, `2 tasks`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def bounds(interval: Interval | None, *, signed: bool = False) -> str:
    """Return `low to high`, or a dash when there is no interval."""
    if interval is None:
        return "–"
    form = "+.3f" if signed else ".3f"
    return f"{interval.low:{form}} to {interval.high:{form}}"


def measured(evaluation: Evaluation | None) -> str:
    """Return mean and interval of an evaluation, or `not measured`."""
    if evaluation is None:
        return "not measured"
    interval = mean_interval(list(scores_of(evaluation).values()))
    if evaluation.mean is None or interval is None:
        return score(evaluation.mean)
    return f"{score(evaluation.mean)} ({bounds(interval)})"


def kinds(evaluation: Evaluation | None) -> str:
    """Return what became of the runs, e.g. `12 right, 6 wrong, 2 unparsed`."""
    if evaluation is None or not evaluation.results:
        return "–"
    return kinds_text(Counter(result.kind for result in evaluation.results))


def kinds_text(counts: Mapping[str, int]) -> str:
    """Return counts by kind in the order in which the kinds are defined."""
    parts = [f"{counts[kind]:,} {kind.value}" for kind in Kind if counts.get(kind)]
    return ", ".join(parts).replace("_", " ") or "–"


def unreadable_share(counts: Mapping[str, int]) -> float:
    """Return the share of runs without a readable answer; failed runs aren't counted at all."""
    total = sum(counts.get(kind, 0) for kind in Kind if kind is not Kind.ERROR)
    return sum(counts.get(kind, 0) for kind in UNREADABLE) / total if total else 0.0


def unreadable_warning(counts: Mapping[str, int]) -> str:
    """Return a warning when many runs gave no readable answer, else ''."""
    share = unreadable_share(counts)
    if share < UNREADABLE_SHARE:
        return ""
    bad = kinds_text({kind: counts.get(kind, 0) for kind in UNREADABLE})
    return (
        f"**Warning:** {share:.0%} of the runs gave no readable answer ({bad}). Low scores may "
        "then tell more about the judge's reading or the token limit than about the instructions."
    )


def ids(names: Iterable[str], limit: int = 12) -> str:
    """Return task ids as one cell; says how many it leaves out."""
    every = list(names)
    text = ", ".join(cell(name, 40) for name in every[:limit])
    rest = len(every) - limit
    return (f"{text} and {rest:,} more" if rest > 0 else text) or "none"
