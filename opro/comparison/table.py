"""The comparison as text: which setting won, by how much, at what cost, and how sure that is."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from opro.comparison.load import SPLITS, JobResult, Jobs, best_of
from opro.comparison.pairs import Pair
from opro.plain import cell, plain
from opro.reports import markdown as md
from opro.stats import mean_interval
from opro.types import Split

ALPHA = 0.05
MAX_PAIRS = 30
HEADERS = (
    "job", "train", "val", "test", "calls", "from cache", "requests", "tokens", "cost", "time",
    "winner",
)  # fmt: skip


def cells(job: JobResult) -> list[str]:
    """Return a job's row as plain text, see `HEADERS`."""
    if job.winner is None:
        dashes = ["–"] * (len(HEADERS) - 2)
        return [job.name, *dashes, f"{job.note.status}: {job.note.error}"]
    return [
        job.name,
        *(_score(job, split) for split in SPLITS),
        md.count(_int(job.used("calls"))),
        md.count(int(job.total("cache_hits"))),
        md.count(int(job.total("requests"))),
        md.count(_int(job.used("tokens"))),
        md.usd(job.used("usd")),
        f"{job.total('seconds'):.0f} s",
        job.winner,
    ]


def headline(jobs: Jobs, pairs: Sequence[Pair]) -> list[str]:
    """Return the one look: the best job, its scores, and how sure they are."""
    found = best_of(jobs)
    lines = [f"{len(jobs.done)} of {len(jobs.jobs)} jobs have a result."]
    if found is None:
        return lines
    best, split = found
    name = {"val": "validation", "train": "training"}.get(split, split)
    text = f"Best by {name} score: {best.name} with {md.score(best.mean(split))}"
    if best.mean("test") is not None:
        text += f"; on the test tasks {_score(best, 'test')}"
    cost = md.usd(best.used("usd"))
    calls = md.count(_int(best.used("calls")))
    lines.append(f"{text}; {calls} calls, cost {cost}.")
    ours = [pair for pair in pairs if best in (pair.first, pair.second)]
    if ours:
        ahead = sum(_favours(pair, best) for pair in ours)
        behind = sum(pair.p_holm <= ALPHA for pair in ours) - ahead
        lines.append(
            f"On the test tasks its winner is better than {ahead} and worse than {behind} of"
            f" {len(ours)} other winners by more than noise (p ≤ {ALPHA} after Holm's correction"
            f" for {len(pairs)} tests)."
        )
    elif len(jobs.done) > 1:
        lines.append("Winners were not tested against each other: no test tasks, or one winner.")
    return lines


def report(jobs: Jobs, pairs: Sequence[Pair]) -> str:
    """Return the comparison as Markdown; model text in it is shown literally."""
    rows = [[cell(one, 120) for one in cells(job)] for job in jobs.jobs]
    parts = [
        f"# Sweep {jobs.sweep.name}",
        *(cell(line, 500) for line in headline(jobs, pairs)),
        md.table(HEADERS, rows),
        "Scores are the winner's, with 95 % intervals. Calls, tokens and cost are of the answers"
        " that a job used, whoever paid for them; requests are what it sent itself.",
    ]
    if pairs:
        parts += ["## Winners against each other, on the test tasks", _pair_table(pairs)]
    return md.page(parts)


def pair_cells(pair: Pair) -> list[str]:
    """Return one test's row: jobs, difference with interval, p, corrected p, test."""
    test = pair.paired
    return [
        pair.second.name,
        pair.first.name,
        f"{test.difference:+.3f} ({md.bounds(test.interval, signed=True)})",
        f"{test.better} / {test.worse} of {test.n}",
        f"{test.p_value:.4f}",
        f"{pair.p_holm:.4f}",
        test.test,
    ]


PAIR_HEADERS = ("winner of", "against", "difference", "better / worse", "p", "p (Holm)", "test")


def as_csv(jobs: Jobs) -> str:
    """Return one row per job, numbers unrounded, for other programs."""
    out = io.StringIO()
    writer = csv.writer(out)
    swept = list(jobs.sweep.swept)
    bounds = [f"{split}_{end}" for split in SPLITS for end in ("mean", "low", "high", "n")]
    names = ["calls", "tokens", "usd", "requests", "cache_hits", "seconds"]
    writer.writerow(["job", "status", *swept, *bounds, *names, "winner_md5", "winner"])
    for job in jobs.jobs:
        numbers = [job.used(name) for name in names[:3]] + [job.total(name) for name in names[3:]]
        scores = [value for split in SPLITS for value in _numbers(job, split)]
        settings = [job.value_of(key) for key in swept]
        row = [job.name, job.note.status, *settings, *scores, *numbers, job.md5, job.winner or ""]
        writer.writerow(["" if one is None else one for one in row])
    return out.getvalue()


def as_text(jobs: Jobs, pairs: Sequence[Pair]) -> str:
    """Return the comparison for a terminal: the table without winners' texts, the headline."""
    shown = [0, 1, 2, 3, 4, 5, 7, 8, 9]
    table = [[HEADERS[i] for i in shown]]
    for job in jobs.jobs:
        row = [plain(one, 70) for one in cells(job)]
        table.append([row[i] for i in shown] if job.winner is not None else [row[0], row[-1]])
    widths = [max(len(row[i]) for row in table if len(row) > 2) for i in range(len(shown))]
    widths[0] = max(len(row[0]) for row in table)
    lines = [
        "  ".join(f"{one:<{w}}" for one, w in zip(row, widths, strict=False)).rstrip()
        for row in table
    ]
    return "\n".join([*lines, *headline(jobs, pairs)])


def _pair_table(pairs: Sequence[Pair]) -> str:
    rows = [[cell(one, 90) for one in pair_cells(pair)] for pair in pairs[:MAX_PAIRS]]
    text = md.table(PAIR_HEADERS, rows)
    left = len(pairs) - MAX_PAIRS
    return f"{text}\n\n{left} more with a larger p are left out." if left > 0 else text


def _favours(pair: Pair, job: JobResult) -> bool:
    gain = pair.paired.difference if job is pair.second else -pair.paired.difference
    return pair.p_holm <= ALPHA and gain > 0


def _score(job: JobResult, split: Split) -> str:
    mean, low, high, n = _numbers(job, split)
    if mean is None:
        return "–"
    return f"{mean:.3f}" if low is None else f"{mean:.3f} ({low:.3f} to {high:.3f})"


def _numbers(job: JobResult, split: Split) -> list[float | None]:
    scores = list(job.scores(split).values())
    interval = mean_interval(scores) if scores else None
    bounds = [None, None] if interval is None else [interval.low, interval.high]
    return [job.mean(split), *bounds, float(len(scores)) if scores else None]


def _int(value: float | None) -> int | None:
    return None if value is None else int(value)
