"""Means over subsets: intervals that resample within subsets, with clusters and BCa like all others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError
from squtr.harness.metrics.comparison import compare, minimum_detectable_difference
from squtr.harness.metrics.statistics import Interval, Method, bootstrap_interval, mean_interval, stratified_interval
from squtr.harness.metrics.stratified import compare_strata, unweighted_loss, unweighted_mean, unweighted_mean_interval


def scores(seed: int, sizes: tuple[int, ...], mean: float = 0.5) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(seed)
    return {
        f"s{place}": {f"q{i}": float(value) for i, value in enumerate(rng.beta(4 * mean, 4 * (1 - mean), size))}
        for place, size in enumerate(sizes)
    }


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_one_subset_is_no_stratum(method: Method) -> None:
    own = scores(1, (60,))
    values = list(own["s0"].values())
    assert unweighted_mean_interval(own, seed=3, method=method) == mean_interval(values, seed=3, method=method)
    other = scores(2, (60,))
    one = unweighted_loss(own, other, seed=3, method=method)
    delta = [other["s0"][i] - own["s0"][i] for i in own["s0"]]
    assert one.absolute == pytest.approx(np.mean(delta))
    assert one.relative == pytest.approx(np.sum(delta) / sum(other["s0"].values()))
    expected = mean_interval(delta, seed=3, method=method)
    assert [one.interval_absolute.low, one.interval_absolute.high] == pytest.approx(
        [expected.low, expected.high], abs=0.02
    )


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_width_is_that_of_a_mean_of_means(method: Method) -> None:
    own = scores(5, (400, 50))
    found = unweighted_mean_interval(own, seed=0, resamples=4000, method=method)
    variance = sum(np.var(list(s.values()), ddof=1) / len(s) for s in own.values()) / 4
    assert found.high - found.low == pytest.approx(2 * 1.96 * math.sqrt(variance), rel=0.06)
    assert found.low < unweighted_mean(own) < found.high


def test_bca_corrects_skew_in_the_direction_of_one_sample() -> None:
    rng = np.random.default_rng(0)
    data = [rng.lognormal(0, 1, (40, 1)), rng.lognormal(0, 1, (60, 1))]
    columns = [np.column_stack([d, np.ones(len(d))]) for d in data]

    def statistic(sums: np.ndarray) -> np.ndarray:
        return np.asarray((sums[..., 0] / sums[..., 1]).mean(axis=-1))

    plain, better = (
        stratified_interval(columns, statistic, seed=0, resamples=4000, method=m) for m in ("percentile", "bca")
    )
    # Skewed to the right: both ends move up.
    assert better.low > plain.low
    assert better.high > plain.high


@given(st.integers(0, 50))
def test_a_split_into_equal_strata_halves_nothing(seed: int) -> None:
    """Two equal constant strata: no spread, whatever the seed."""
    own = {"a": dict.fromkeys("xyz", 0.25), "b": dict.fromkeys("xyz", 0.75)}
    assert unweighted_mean_interval(own, seed=seed) == Interval(0.5, 0.5)


def test_strata_are_drawn_independently() -> None:
    same = {"a": {str(i): float(i % 7) for i in range(40)}}
    both = {"a": same["a"], "b": same["a"]}
    one, two = unweighted_mean_interval(same, seed=0), unweighted_mean_interval(both, seed=0)
    # Were both drawn alike, the mean of two equal subsets would vary as one does.
    assert two.high - two.low < 0.85 * (one.high - one.low)


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(1)
    own, labels = {}, {}
    for subset in "ab":
        offsets = rng.normal(0, 1, 10)
        own[subset] = {str(i): float(offsets[i % 10] + rng.normal(0, 0.1)) for i in range(100)}
        labels[subset] = {str(i): i % 10 for i in range(100)}
    narrow, wide = (unweighted_mean_interval(own, clusters, seed=0) for clusters in (None, labels))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
    zero = {subset: dict.fromkeys(values, 0.0) for subset, values in own.items()}
    lost = [unweighted_loss(zero, own, clusters, seed=0).interval_absolute for clusters in (None, labels)]
    assert lost[1].high - lost[1].low > 2 * (lost[0].high - lost[0].low)
    found = [compare_strata(own, zero, clusters) for clusters in (None, labels)]
    assert found[1].minimum_detectable > 2 * found[0].minimum_detectable
    assert found[1].interval == pytest.approx(lost[1]) or found[1].interval == lost[1]


def test_small_and_empty_strata() -> None:
    assert math.isnan(unweighted_mean_interval({"a": {"x": 1.0}}, seed=0).low)
    assert math.isnan(unweighted_mean_interval({"a": {"x": 1.0, "y": 0.5}, "b": {"x": 1.0}}, seed=0).low)
    assert math.isnan(unweighted_mean_interval({}, seed=0).low)
    assert unweighted_mean_interval({"a": {"x": 1.0, "y": 1.0}, "b": {}}, seed=0) == Interval(1.0, 1.0)
    with pytest.raises(DataError, match="subsets"):
        unweighted_loss({"a": {"x": 1.0}}, {"b": {"x": 1.0}}, seed=0)
    with pytest.raises(DataError, match="in one only"):
        unweighted_loss({"a": {"x": 1.0}}, {"a": {"y": 1.0}}, seed=0)
    with pytest.raises(DataError, match="no query"):
        unweighted_loss({"a": {}}, {"a": {}}, seed=0)


def test_comparison_of_one_subset_is_the_plain_one() -> None:
    a, b = scores(1, (50,)), scores(2, (50,))
    assert compare_strata(a, b, seed=4).p_value == compare(a["s0"], b["s0"], seed=4).p_value
    assert compare_strata(a, b).minimum_detectable == pytest.approx(compare(a["s0"], b["s0"]).minimum_detectable)


def test_comparison_over_subsets_weighs_them_equally() -> None:
    a, b = scores(1, (300, 20)), scores(2, (300, 20))
    found = compare_strata(a, b)
    assert found.difference == pytest.approx(unweighted_mean(a) - unweighted_mean(b))
    assert found.interval.low < found.difference < found.interval.high
    assert found.n == 320
    turned = compare_strata(b, a)
    assert turned.difference == pytest.approx(-found.difference)
    assert turned.p_value == pytest.approx(found.p_value)


def test_one_item_per_cluster_detects_as_items_do() -> None:
    values = np.random.default_rng(0).normal(size=40)
    plain = minimum_detectable_difference(values)
    # Around the known mean the sums have the same spread.
    assert minimum_detectable_difference(values, list(range(40))) == pytest.approx(plain)
    assert minimum_detectable_difference(np.repeat(values, 3), [i // 3 for i in range(120)]) == pytest.approx(plain)


def test_seeds_and_shapes() -> None:
    columns = np.column_stack([np.arange(30.0), np.ones(30)])

    def mean(sums: np.ndarray) -> np.ndarray:
        return np.asarray(sums[..., 0] / sums[..., 1])

    assert bootstrap_interval(columns, mean, seed=1) == bootstrap_interval(columns, mean, seed=1)
    assert bootstrap_interval(columns, mean, seed=1) != bootstrap_interval(columns, mean, seed=2)
