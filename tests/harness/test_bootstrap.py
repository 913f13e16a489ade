"""Intervals and tests: golden values, agreement with scipy, determinism, coverage, edge cases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UsageError
from squtr.harness.metrics.comparison import compare, holm, minimum_detectable_difference, paired_permutation
from squtr.harness.metrics.error_counts import ErrorCounts
from squtr.harness.metrics.statistics import (
    Interval,
    bootstrap_interval,
    corpus_rate_interval,
    difference_interval,
    mean_interval,
    resampled_sums,
)

VALUES = st.lists(st.floats(0, 1, width=32), min_size=2, max_size=30)


def is_undefined(interval: Interval) -> bool:
    return math.isnan(interval.low) and math.isnan(interval.high)


@given(VALUES, st.integers(0, 2**32))
def test_an_interval_lies_within_the_data_and_is_deterministic(values: list[float], seed: int) -> None:
    interval = mean_interval(values, seed=seed, resamples=200)
    assert min(values) - 1e-9 <= interval.low <= interval.high <= max(values) + 1e-9
    assert interval == mean_interval(values, seed=seed, resamples=200)


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_scipy_agrees(method: str) -> None:
    # Skewed data, many resamples: the two differ by Monte Carlo error only.
    values = np.random.default_rng(0).gamma(0.6, size=80)
    ours = mean_interval(values, seed=1, resamples=40_000, method=method)  # type: ignore[arg-type]
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, n_resamples=40_000, method=method.replace("bca", "BCa"), rng=np.random.default_rng(2)
    ).confidence_interval
    width = theirs.high - theirs.low
    assert abs(ours.low - theirs.low) < 0.02 * width
    assert abs(ours.high - theirs.high) < 0.02 * width


def test_bca_of_a_ratio_agrees_with_scipy() -> None:
    rng = np.random.default_rng(5)
    lengths = rng.integers(2, 30, 60)
    errors = rng.binomial(lengths, 0.1)
    counts = [ErrorCounts(int(e), 0, 0, int(n)) for e, n in zip(errors, lengths, strict=True)]
    ours = corpus_rate_interval(counts, seed=1, resamples=40_000, method="bca")
    theirs = scipy.stats.bootstrap(
        (errors, lengths),
        lambda e, n, axis: e.sum(axis) / n.sum(axis),
        paired=True,
        vectorized=True,
        n_resamples=40_000,
        method="BCa",
        rng=np.random.default_rng(2),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert abs(ours.low - theirs.low) < 0.02 * width
    assert abs(ours.high - theirs.high) < 0.02 * width


def test_bca_of_symmetric_shares_is_symmetric() -> None:
    # Many resamples tie with the estimate; ties must not count as bias.
    interval = mean_interval([0.0] * 8 + [1.0] * 8, seed=0, resamples=20_000, method="bca")
    assert interval.low + interval.high == pytest.approx(1.0, abs=0.01)


def test_drawing_equal_rows_together_changes_nothing() -> None:
    few = np.repeat([[0.0], [1.0]], [300, 100], axis=0)
    many = few + np.linspace(0, 1e-9, 400)[:, None]
    together = resampled_sums(few, 1, 20_000)[:, 0]
    apart = resampled_sums(many, 2, 20_000)[:, 0]
    assert together.mean() == pytest.approx(100, abs=0.3)
    assert apart.mean() == pytest.approx(100, abs=0.3)
    assert together.std() == pytest.approx(math.sqrt(400 * 0.25 * 0.75), rel=0.03)
    assert apart.std() == pytest.approx(together.std(), rel=0.03)


def test_coverage_is_near_its_name() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for trial in range(300):
        interval = mean_interval(rng.normal(0.5, 0.2, 60), seed=trial, resamples=400)
        hits += interval.low <= 0.5 <= interval.high
    assert 0.90 <= hits / 300 <= 0.985


def test_one_item_constant_items_no_item() -> None:
    for method in ("percentile", "bca"):
        assert is_undefined(mean_interval([0.4], seed=0, method=method))  # type: ignore[arg-type]
        assert is_undefined(mean_interval([], seed=0, method=method))  # type: ignore[arg-type]
        constant = mean_interval([0.25] * 20, seed=0, method=method)  # type: ignore[arg-type]
        assert constant == Interval(0.25, 0.25)
    assert is_undefined(corpus_rate_interval([ErrorCounts(1, 0, 0, 2)], seed=0))
    # One speaker: nothing is known about how speakers differ.
    assert is_undefined(mean_interval([0.1, 0.9], ["s", "s"], seed=0))


def test_a_ratio_to_zero_is_undefined() -> None:
    assert is_undefined(difference_interval([0.0, 0.0], [0.0, 0.0], relative=True, seed=0))
    assert is_undefined(corpus_rate_interval([ErrorCounts(0, 0, 1, 0)] * 3, seed=0))


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    speakers = np.repeat(np.arange(20), 25)
    values = rng.normal(0, 1, 20)[speakers] + rng.normal(0, 0.1, 500)
    alone = mean_interval(values, seed=0)
    clustered = mean_interval(values, list(speakers), seed=0)
    assert clustered.high - clustered.low > 3 * (alone.high - alone.low)


def test_corpus_rates_are_resampled_as_counts() -> None:
    # One long perfect utterance among short bad ones: the mean of rates is 0.9, the corpus rate 9/109.
    counts = [ErrorCounts(1, 0, 0, 1)] * 9 + [ErrorCounts(0, 0, 0, 100)]
    interval = corpus_rate_interval([*counts, *counts], seed=0)
    assert interval.low < 9 / 109 < interval.high


def test_bad_input() -> None:
    with pytest.raises(DataError, match="row 1 holds a value that is not finite"):
        mean_interval([0.5, math.nan], seed=0)
    with pytest.raises(DataError, match="2 values against 1"):
        difference_interval([1.0, 2.0], [1.0], seed=0)
    with pytest.raises(UsageError, match="cluster labels"):
        mean_interval([1.0, 2.0], ["a"], seed=0)
    with pytest.raises(UsageError, match="confidence"):
        mean_interval([1.0, 2.0], seed=0, confidence=1.0)
    with pytest.raises(UsageError, match="shape"):
        bootstrap_interval([1.0, 2.0], lambda s: s[..., 0], seed=0)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_exact_permutation_agrees_with_brute_force(differences: list[int]) -> None:
    observed = abs(sum(differences))
    signs = list(itertools.product((1, -1), repeat=len(differences)))
    extreme = sum(abs(sum(s * d for s, d in zip(pattern, differences, strict=True))) >= observed for pattern in signs)
    found = paired_permutation(differences, [0] * len(differences), seed=0)
    assert found.exact
    assert found.p_value == pytest.approx(extreme / len(signs))


def test_random_permutation_agrees_with_scipy() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(60), rng.random(60) - 0.08
    ours = paired_permutation(a, b, seed=1, permutations=40_000)
    theirs = scipy.stats.permutation_test(
        (a, b), lambda x, y, axis: (x - y).mean(axis), permutation_type="samples", n_resamples=40_000, rng=1
    )
    assert not ours.exact
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=0.01)
    # Few distinct values take the binomial way.
    c, d = np.repeat([1.0, 0.0, 0.5], 40), np.repeat([0.0, 1.0, 0.25], [30, 50, 40])
    ours = paired_permutation(c, d, seed=1, permutations=40_000)
    theirs = scipy.stats.permutation_test(
        (c, d), lambda x, y, axis: (x - y).mean(axis), permutation_type="samples", n_resamples=40_000, rng=1
    )
    assert ours.p_value == pytest.approx(theirs.pvalue, abs=0.01)


def test_permutation_edges() -> None:
    assert paired_permutation([0.5, 0.5], [0.5, 0.5], seed=0).p_value == 1.0
    assert paired_permutation([1.0] * 50, [0.0] * 50, seed=0).p_value == pytest.approx(1 / 10_001)
    # Two clusters can give no p below 1/2.
    assert paired_permutation([1.0] * 50, [0.0] * 50, ["a", "b"] * 25, seed=0).p_value == 0.5
    with pytest.raises(DataError, match="shapes"):
        paired_permutation([1.0], [1.0, 2.0], seed=0)
    with pytest.raises(DataError, match="not finite"):
        paired_permutation([math.nan], [1.0], seed=0)


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), min_size=1, max_size=8))
def test_holm(p_values: dict[str, float]) -> None:
    adjusted = holm(p_values)
    assert list(adjusted) == list(p_values)
    m = len(p_values)
    for name, p in p_values.items():
        assert p <= adjusted[name] <= min(1.0, m * p) + 1e-12
        # The definition: the largest (m - rank) p over all that are at most as large.
        smaller = sorted(q for q in p_values.values() if q <= p)
        assert adjusted[name] == pytest.approx(min(1.0, max((m - i) * q for i, q in enumerate(smaller))))


def test_holm_leaves_what_is_undefined_out() -> None:
    adjusted = holm({"a": 0.02, "b": math.nan})
    assert adjusted["a"] == 0.02
    assert math.isnan(adjusted["b"])
    with pytest.raises(DataError, match="p-value of 'a'"):
        holm({"a": 1.2})


def test_the_detectable_difference_is_detected_that_often() -> None:
    rng = np.random.default_rng(0)
    n = 200
    size = minimum_detectable_difference(rng.normal(0, 1, n))
    found = sum(scipy.stats.ttest_1samp(rng.normal(size, 1, n), 0).pvalue < 0.05 for _ in range(400)) / 400
    assert 0.72 < found < 0.88
    assert math.isnan(minimum_detectable_difference([0.1]))


def test_compare() -> None:
    rng = np.random.default_rng(0)
    base = {f"q{i}": float(v) for i, v in enumerate(rng.random(100))}
    better = {id_: value + 0.05 + 0.02 * float(rng.standard_normal()) for id_, value in base.items()}
    found = compare(better, base)
    assert found.interval.low < found.difference < found.interval.high
    assert found.p_value < 0.001
    assert found.minimum_detectable < 0.01
    with pytest.raises(DataError, match="differ"):
        compare(better, base | {"x": 1.0})
    assert compare(better, base | {"x": 1.0}, on="intersection").n == 100
