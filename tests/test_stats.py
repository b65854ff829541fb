"""Intervals, paired tests and Holm's correction, against scipy and published numbers."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from scipy import stats as reference

from opro.stats import holm, mean_interval, paired, scores_of, sign_test
from opro.types import Evaluation, Kind, Rollout, TaskResult, Verdict


def by_id(scores):
    return {f"t{i}": score for i, score in enumerate(scores)}


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (20, 20), (1, 1), (9, 20), (131, 261)])
def test_wilson_equals_scipy(hits, n):
    ours = mean_interval([1.0] * hits + [0.0] * (n - hits))
    theirs = reference.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    assert ours.method == "Wilson"
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert (ours.n, ours.level) == (n, 0.95)


def test_fractional_scores_get_a_t_interval():
    scores = [0.1, 0.5, 0.75, 1.0, 0.3]
    ours = mean_interval(scores, level=0.9)
    low, high = reference.t.interval(0.9, 4, loc=sum(scores) / 5, scale=reference.sem(scores))
    assert ours.method == "Student t"
    assert (ours.low, ours.high) == pytest.approx((low, high))


def test_t_interval_stays_on_the_scale():
    interval = mean_interval([0.0, 0.01, 0.9])
    assert interval.low == 0.0
    assert interval.high == 1.0


@pytest.mark.parametrize("scores", [[], [0.4]])
def test_too_few_scores_have_no_interval(scores):
    assert mean_interval(scores) is None


@pytest.mark.parametrize(("better", "worse"), [(0, 0), (1, 0), (7, 2), (2, 7), (40, 40), (300, 2)])
def test_sign_test_equals_scipy(better, worse):
    expected = 1.0
    if better + worse:
        expected = reference.binomtest(better, better + worse).pvalue
    assert sign_test(better, worse) == pytest.approx(expected, rel=1e-9)


def test_binary_scores_use_mcnemar():
    first = by_id([0, 0, 0, 0, 1, 1, 1, 0, 0, 0])
    second = by_id([1, 1, 1, 1, 1, 1, 0, 1, 0, 0])
    result = paired(first, second)
    assert result.test == "exact McNemar"
    assert (result.n, result.better, result.worse) == (10, 5, 1)
    assert result.difference == pytest.approx(0.4)
    assert result.p_value == pytest.approx(2 * (1 + 6) / 64)
    # By hand: counts 5.5 and 1.5 of 12.
    spread = math.sqrt((7 / 12 - (4 / 12) ** 2) / 12)
    assert result.interval.low == pytest.approx(1 / 3 - 1.959964 * spread, abs=1e-6)
    assert result.interval.high == pytest.approx(1 / 3 + 1.959964 * spread, abs=1e-6)


def test_few_fractional_scores_are_tested_exactly():
    first = by_id([0.2, 0.4, 0.1, 0.9, 0.5])
    second = by_id([0.5, 0.3, 0.6, 1.0, 0.7])
    gains = [second[t] - first[t] for t in first]
    means = [
        sum(g * s for g, s in zip(gains, signs, strict=True))
        for signs in itertools.product((1, -1), repeat=5)
    ]
    extreme = sum(abs(m) >= abs(sum(gains)) - 1e-12 for m in means)
    result = paired(first, second)
    assert result.test == "sign-flip permutation"
    assert result.p_value == pytest.approx(extreme / 32)


def test_many_fractional_scores_are_seeded_and_order_blind_to_global_rng():
    rng = random.Random(3)
    first = by_id([rng.random() for _ in range(60)])
    second = by_id([min(1.0, s + 0.1 * rng.random()) for s in first.values()])
    one = paired(first, second)
    random.random()
    assert paired(first, second) == one
    assert one.p_value < 0.001
    assert one.interval.low > 0


def test_only_shared_tasks_are_compared():
    result = paired({"a": 0.0, "b": 1.0}, {"b": 1.0, "c": 1.0})
    assert (result.n, result.difference, result.p_value) == (1, 0.0, 1.0)
    assert paired({"a": 0.0}, {"b": 1.0}) is None


def test_equal_fractional_scores_have_p_one():
    same = by_id([0.5, 0.25, 1.0])
    result = paired(same, same)
    assert (result.p_value, result.difference) == (1.0, 0.0)


def test_one_fractional_pair_shows_nothing():
    result = paired({"a": 0.5, "b": 1.0}, {"a": 0.7})
    assert (result.n, result.interval, result.p_value) == (1, None, 1.0)


def test_coverage_of_the_paired_interval_is_near_its_level():
    rng = random.Random(11)
    hits = 0
    for _ in range(400):
        first = by_id([float(rng.random() < 0.5) for _ in range(30)])
        second = by_id([float(rng.random() < 0.7) for _ in range(30)])
        interval = paired(first, second).interval
        hits += interval.low <= 0.2 <= interval.high
    assert 0.91 <= hits / 400 <= 0.99


def test_holm_is_monotone_and_keeps_the_order_given():
    # Worked by hand: 4 * .005, 3 * .01, 2 * .03, 1 * .04 (raised to .06).
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_failed_runs_are_left_out_not_zero():
    good = TaskResult(
        task_id="a", rollout=Rollout(output="1"), verdict=Verdict(score=1.0, kind=Kind.RIGHT)
    )
    bad = TaskResult(task_id="b", rollout=Rollout(output="", kind=Kind.ERROR), verdict=None)
    evaluation = Evaluation(
        instruction="x", md5="m", results=(good, bad), mean=None, n=2, failed=("b",)
    )
    assert scores_of(evaluation) == {"a": 1.0}
