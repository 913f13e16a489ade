"""Is one system better than another on the same queries? Paired permutation (Good 2005), Holm's correction (1979)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ...errors import DataError, UsageError
from .statistics import Floats, Interval, Method, difference_interval

EXACT_LIMIT = 16
"""With so many non-zero differences or fewer all 2^n sign patterns are tried."""
_TOLERANCE = 1e-12
_CHUNK_BITS = 32_000_000


@dataclass(frozen=True, slots=True)
class PermutationTest:
    difference: float
    p_value: float
    exact: bool
    n: int


def paired_permutation(
    a: ArrayLike, b: ArrayLike, clusters: Sequence[Hashable] | None = None, *, seed: int, permutations: int = 10_000
) -> PermutationTest:
    """Sign-flip test of mean(a) = mean(b), paired by position; with `clusters` whole clusters are flipped.

    Under the null hypothesis each pair could as well be the other way round. Exact with at most 16 non-zero
    differences, else `permutations` random patterns and p = (1 + as extreme) / (1 + permutations), which is never 0.
    Two equal systems have p = 1.

    >>> paired_permutation([1, 1, 1, 1, 1], [0, 0, 0, 0, 0], seed=0)
    PermutationTest(difference=1.0, p_value=0.0625, exact=True, n=5)
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.shape != right.shape or left.ndim != 1 or len(left) == 0:
        raise DataError(f"values have shapes {left.shape} and {right.shape}.", hint="Give one value each per item.")
    if permutations < 1:
        raise UsageError(f"permutations is {permutations}.", hint="Use 1 or more.")
    delta = left - right
    if not np.isfinite(delta).all():
        raise DataError(f"pair {int(np.argmin(np.isfinite(delta)))} holds a value that is not finite.")
    difference = float(delta.mean())
    if clusters is not None:
        delta = _sum_by_label(delta, clusters)
    n = len(delta)
    moving = delta[delta != 0]
    exact = len(moving) <= EXACT_LIMIT
    observed = abs(float(moving.sum()))
    limit = observed - _TOLERANCE * float(np.abs(moving).sum())
    if exact:
        patterns = np.arange(2 ** len(moving), dtype=np.uint32)
        bits = (patterns[:, None] >> np.arange(len(moving), dtype=np.uint32)) & 1
        extreme = int((np.abs((1.0 - 2.0 * bits) @ moving) >= limit).sum())
        p_value = extreme / len(patterns)
    else:
        p_value = (1 + _count_extreme(moving, limit, seed, permutations)) / (1 + permutations)
    return PermutationTest(difference, p_value, exact, n)


def _count_extreme(moving: Floats, limit: float, seed: int, permutations: int) -> int:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    # Equal sizes flip together: how many of them turn is binomial, which is the same distribution and cheaper.
    sizes, repeats = np.unique(np.abs(moving), return_counts=True)
    extreme, step = 0, max(1, _CHUNK_BITS // len(sizes))
    for start in range(0, permutations, step):
        turned = rng.binomial(repeats, 0.5, size=(min(step, permutations - start), len(sizes)))
        extreme += int((np.abs((repeats - 2.0 * turned) @ sizes) >= limit).sum())
    return extreme


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjustment of a family of p-values, in the order given; NaN stays NaN and does not count.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    for name, p in p_values.items():
        if not (math.isnan(p) or 0 <= p <= 1):
            raise DataError(f"the p-value of {name!r} is {p}.", hint="p-values lie in [0, 1].")
    ranked = sorted((name for name, p in p_values.items() if not math.isnan(p)), key=p_values.__getitem__)
    adjusted = dict.fromkeys(p_values, math.nan)
    highest = 0.0
    for place, name in enumerate(ranked):
        highest = max(highest, min(1.0, (len(ranked) - place) * p_values[name]))
        adjusted[name] = highest
    return adjusted


def detectable_difference(standard_error: float, *, significance: float = 0.05, power: float = 0.8) -> float:
    """The true difference that a two-sided test of an estimate with this standard error finds with the given power.

    (z(1 − significance / 2) + z(power)) · standard error; NaN stays NaN.

    >>> round(detectable_difference(0.01), 4)
    0.028
    """
    if not (0 < significance < 1 and 0 < power < 1):
        raise UsageError(f"significance is {significance}, power {power}.", hint="Both lie in (0, 1).")
    z = NormalDist().inv_cdf
    return (z(1 - significance / 2) + z(power)) * standard_error


def minimum_detectable_difference(
    differences: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    significance: float = 0.05,
    power: float = 0.8,
) -> float:
    """The true mean difference that a two-sided paired test on these items finds with the given power.

    `detectable_difference` with the `standard_error` of the paired `differences`.

    >>> round(minimum_detectable_difference([0.1, -0.1] * 50), 4)
    0.0282
    """
    return detectable_difference(standard_error(differences, clusters), significance=significance, power=power)


def standard_error(differences: ArrayLike, clusters: Sequence[Hashable] | None = None) -> float:
    """Standard error of the mean: s / √n with s the sample standard deviation, or that of the clusters' sums.

    NaN with fewer than two items or clusters.

    >>> round(standard_error([0.1, -0.1, 0.1, -0.1]), 4)
    0.0577
    """
    delta = np.asarray(differences, dtype=np.float64)
    n = len(delta)
    if clusters is not None:
        # The mean is the sum over clusters by the number of items.
        delta = _sum_by_label(delta - (delta.mean() if n else 0.0), clusters)
    return math.nan if len(delta) < 2 else float(delta.std(ddof=1)) * math.sqrt(len(delta)) / n


def _sum_by_label(values: Floats, labels: Sequence[Hashable]) -> Floats:
    if len(labels) != len(values):
        raise UsageError(f"{len(labels)} cluster labels for {len(values)} items.", hint="Give one label per item.")
    codes: dict[Hashable, int] = {}
    index = [codes.setdefault(label, len(codes)) for label in labels]
    return np.bincount(index, weights=values).astype(np.float64)


def pair_ids(a: Mapping[str, object], b: Mapping[str, object], on: Literal["all", "intersection"] = "all") -> list[str]:
    """The ids that both have, in the order of `a`. Others raise `DataError`, unless `on` is "intersection"."""
    common = [id_ for id_ in a if id_ in b]
    if on == "all" and (len(common) != len(a) or len(common) != len(b)):
        odd = next((i for i in a if i not in b), None) or next(i for i in b if i not in a)
        raise DataError(
            f"the two sets of items differ ({len(a)} and {len(b)}, {len(common)} in common); {odd!r} is in one only.",
            hint='Score the same items, or compare on="intersection".',
        )
    if not common:
        raise DataError("the two sets have no item in common.", hint="Check that the ids are of the same data set.")
    return common


@dataclass(frozen=True, slots=True)
class Comparison:
    """mean(a) − mean(b) on `n` common queries: 95 % interval, p-value, and the difference that n could detect."""

    difference: float
    interval: Interval
    p_value: float
    exact: bool
    minimum_detectable: float
    n: int


def compare(
    a: Mapping[str, float],
    b: Mapping[str, float],
    *,
    on: Literal["all", "intersection"] = "all",
    clusters: Mapping[str, Hashable] | None = None,
    seed: int = 0,
    resamples: int = 1000,
    permutations: int = 10_000,
    method: Method = "percentile",
) -> Comparison:
    """Compare two systems' per-query scores, paired by id; different ids are an error unless `on="intersection"`.

    >>> found = compare({"a": 1.0, "b": 0.5}, {"b": 0.5, "a": 0.0})
    >>> found.difference, found.p_value, found.n
    (0.5, 1.0, 2)
    """
    ids = pair_ids(a, b, on)
    left, right = np.array([a[i] for i in ids]), np.array([b[i] for i in ids])
    labels = None if clusters is None else [clusters[i] for i in ids]
    test = paired_permutation(left, right, labels, seed=seed, permutations=permutations)
    return Comparison(
        difference=test.difference,
        interval=difference_interval(left, right, labels, seed=seed, resamples=resamples, method=method),
        p_value=test.p_value,
        exact=test.exact,
        minimum_detectable=minimum_detectable_difference(left - right, labels),
        n=len(ids),
    )
