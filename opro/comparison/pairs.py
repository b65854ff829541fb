"""Whether two jobs' winners really differ: paired tests on the test tasks that both ran."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from opro.comparison.load import JobResult, Jobs, best_of
from opro.stats import Paired, holm, paired

ALL_PAIRS = 12
"""With more jobs only the best is compared with each of the others."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The winners of two jobs on the same test tasks.

    Attributes:
        paired: of (second - first).
        p_holm: the p-value, corrected for the number of pairs that were tested (Holm 1979).
    """

    first: JobResult
    second: JobResult
    paired: Paired
    p_holm: float


def compare_winners(jobs: Jobs) -> list[Pair]:
    """Return the tests between winners, the surest difference first.

    Jobs that chose the very same instruction aren't tested against each other, nor are jobs on
    different data; neither counts in the correction.
    """
    measured = [job for job in jobs.done if job.scores("test")]
    pairs = list(combinations(measured, 2))
    best = best_of(jobs)
    if len(measured) > ALL_PAIRS and best is not None:
        pairs = [(job, best[0]) for job in measured if job is not best[0]]
    found = []
    for first, second in pairs:
        if first.md5 != second.md5 and _data(first) == _data(second):
            test = paired(first.scores("test"), second.scores("test"))
            if test is not None:
                found.append((first, second, test))
    corrected = holm([test.p_value for _, _, test in found])
    rows = [
        Pair(first=first, second=second, paired=test, p_holm=p)
        for (first, second, test), p in zip(found, corrected, strict=True)
    ]
    return sorted(rows, key=lambda row: (row.p_holm, row.paired.p_value))


def _data(job: JobResult) -> object:
    return job.result.get("dataset", {}).get("name")
