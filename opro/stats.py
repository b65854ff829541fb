"""How sure a mean score is, and whether one instruction really beats another.

Scores of 0 and 1 get exact or near-exact rules from the standard library; fractional scores use
scipy (imported only then, since its import takes about a second).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from typing import Literal

from opro.types import Evaluation

RESAMPLES = 9_999
"""Sign flips drawn when there are too many (more than 2**13) to try them all."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A two-sided confidence interval.

    Attributes:
        n: how many scores (or pairs) it rests on.
        level: coverage aimed at, e.g. 0.95.
        method: the rule, for the reader.
    """

    low: float
    high: float
    n: int
    level: float
    method: Literal["Wilson", "Student t", "Agresti-Min"]


@dataclass(frozen=True, kw_only=True)
class Paired:
    """Two evaluations compared on the tasks that both have a score for.

    Attributes:
        n: tasks compared.
        difference: mean of (second - first).
        interval: of the difference; None for fewer than two tasks with fractional scores.
        p_value: two-sided; 1.0 when no task differs.
        test: the rule, for the reader.
        better, worse: tasks on which the second scored higher, lower.
    """

    n: int
    difference: float
    interval: Interval | None
    p_value: float
    test: Literal["exact McNemar", "sign-flip permutation"]
    better: int
    worse: int


def scores_of(evaluation: Evaluation) -> dict[str, float]:
    """Return the scores by task id; tasks whose run failed are left out."""
    return {r.task_id: r.score for r in evaluation.results if r.score is not None}


def mean_interval(scores: Sequence[float], level: float = 0.95) -> Interval | None:
    """Return the confidence interval of the mean of `scores` (in [0, 1]).

    Scores of 0 and 1 only: Wilson's score interval (Wilson 1927; recommended for all n by Brown,
    Cai and DasGupta 2001). Otherwise Student's t interval, cut to [0, 1]. None when there is no
    score, or a single fractional one.
    """
    n = len(scores)
    if n and _binary(scores):
        low, high = _wilson(sum(scores), n, level)
        return Interval(low=low, high=high, n=n, level=level, method="Wilson")
    if n < 2:
        return None
    half = _t_half_width(scores, level)
    low, high = max(0.0, fmean(scores) - half), min(1.0, fmean(scores) + half)
    return Interval(low=low, high=high, n=n, level=level, method="Student t")


def paired(
    first: Mapping[str, float], second: Mapping[str, float], level: float = 0.95, seed: int = 0
) -> Paired | None:
    """Compare `second` with `first` on the tasks that both hold; None when they share none.

    Scores of 0 and 1 only: the exact McNemar test (McNemar 1947), a sign test over the tasks on
    which the two differ, with the adjusted Wald interval of Agresti and Min (2005, Statistics in
    Medicine 24:729), which adds 1/2 to each of the four counts. Otherwise the sign-flip
    permutation test of the mean difference (Fisher 1935), exact for up to 13 tasks that differ and
    else drawn `RESAMPLES` times from `seed`, with Student's t interval. The interval and the test
    are different rules, so in a close case one may exclude 0 and the other not.

    Args:
        first: score by task id, e.g. of the initial instruction.
        second: score by task id, e.g. of the winner.
        level: the interval's coverage.
        seed: of the drawn sign flips.
    """
    ids = [task for task in first if task in second]
    if not ids:
        return None
    gains = [second[task] - first[task] for task in ids]
    better, worse = sum(g > 0 for g in gains), sum(g < 0 for g in gains)
    common = {"n": len(ids), "better": better, "worse": worse}
    if _binary([first[task] for task in ids]) and _binary([second[task] for task in ids]):
        return Paired(
            **common,
            difference=(better - worse) / len(ids),
            interval=_agresti_min(better, worse, len(ids), level),
            p_value=sign_test(better, worse),
            test="exact McNemar",
        )
    return Paired(
        **common,
        difference=fmean(gains),
        interval=_t_interval(gains, level),
        p_value=_sign_flips([gain for gain in gains if gain], seed),
        test="sign-flip permutation",
    )


def sign_test(better: int, worse: int) -> float:
    """Return the two-sided exact p-value of a fair coin giving `better` against `worse`."""
    n = better + worse
    tail = sum(math.comb(n, k) for k in range(min(better, worse) + 1))
    return min(1.0, float(2 * tail / 2**n))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number (Holm 1979), in the order given.

    Rejecting where the result is at most alpha keeps the chance of any false rejection at alpha,
    whatever the tests' dependence.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = largest
    return corrected


def _binary(scores: Sequence[float]) -> bool:
    return all(score in (0.0, 1.0) for score in scores)


def _wilson(successes: float, n: int, level: float) -> tuple[float, float]:
    z2 = _z(level) ** 2
    share = successes / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    return low, 1.0 if successes == n else min(1.0, centre + half)


def _agresti_min(better: int, worse: int, n: int, level: float) -> Interval:
    total, up, down = n + 2, better + 0.5, worse + 0.5
    difference = (up - down) / total
    half = _z(level) * math.sqrt((up + down) / total - difference**2) / math.sqrt(total)
    low, high = max(-1.0, difference - half), min(1.0, difference + half)
    return Interval(low=low, high=high, n=n, level=level, method="Agresti-Min")


def _t_interval(gains: Sequence[float], level: float) -> Interval | None:
    if len(gains) < 2:
        return None
    middle, half = fmean(gains), _t_half_width(gains, level)
    low, high = max(-1.0, middle - half), min(1.0, middle + half)
    return Interval(low=low, high=high, n=len(gains), level=level, method="Student t")


def _z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)


def _t_half_width(values: Sequence[float], level: float) -> float:
    from scipy import stats

    quantile = float(stats.t.ppf((1 + level) / 2, len(values) - 1))
    return quantile * stdev(values) / math.sqrt(len(values))


def _sign_flips(gains: Sequence[float], seed: int) -> float:
    if len(gains) < 2:  # both signs of one difference are equally extreme
        return 1.0
    import numpy
    from scipy import stats

    result = stats.permutation_test(
        (numpy.asarray(gains),),
        lambda sample, axis: numpy.mean(sample, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        rng=numpy.random.default_rng(seed),
    )
    return float(result.pvalue)
