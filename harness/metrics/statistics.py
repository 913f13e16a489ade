"""Intervals by bootstrap over items or clusters of them, paired, vectorized and seeded.

Everything reported is a function of sums over items, so one routine resamples column sums: ratios are never averaged.
Efron & Tibshirani, An Introduction to the Bootstrap, 1993 (percentile: chapter 13, BCa: chapter 14).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Required, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import DataError, UsageError
from .error_counts import ErrorCounts, counts_array

Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""From column sums, shape (…, m), to the statistic, shape (…)."""
Counts = Iterable[ErrorCounts] | NDArray[np.int64]
Method = Literal["percentile", "bca"]

_CHUNK = 4_000_000
"""Random indices held at once (int64: 32 MB)."""


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float


class Bootstrap(TypedDict, total=False):
    """How an interval is drawn; the defaults are those of `stratified_interval`."""

    seed: Required[int]
    resamples: int
    confidence: float
    method: Method


UNDEFINED = Interval(math.nan, math.nan)


def bootstrap_interval(
    columns: ArrayLike, statistic: Statistic, clusters: Sequence[object] | None = None, **drawing: Unpack[Bootstrap]
) -> Interval:
    """Interval of `statistic(sums)`, with sums the column sums of `columns` (n, m) over resampled rows or clusters.

    The same arguments give the same interval on every run. With fewer than two rows (or clusters) nothing is known
    about spread: both ends are NaN. Constant data give an interval of width 0. If the statistic is undefined (NaN or
    infinite, for instance a ratio to 0) for the data or for any resample, both ends are NaN. `method="bca"` corrects
    bias and skew; where its correction is undefined (no spread) it is the percentile interval.

    Raises `DataError` if a value is not finite, `UsageError` for options out of range.
    """
    return stratified_interval(
        [columns], lambda sums: statistic(sums[..., 0, :]), None if clusters is None else [clusters], **drawing
    )


def stratified_interval(
    strata: Sequence[ArrayLike],
    statistic: Statistic,
    clusters: Sequence[Sequence[object]] | None = None,
    *,
    seed: int,
    resamples: int = 1000,
    confidence: float = 0.95,
    method: Method = "percentile",
) -> Interval:
    """As `bootstrap_interval`, over S strata (subsets), each resampled by itself at its own size.

    `strata` are arrays (n_s, m), `clusters` the labels of each; `statistic` gets sums (…, S, m). Both ends are NaN if
    any stratum has fewer than two rows or clusters, or there is none. BCa's acceleration is that of several samples
    (Davison & Hinkley, Bootstrap Methods and their Application, 1997, equation 5.28).
    """
    if resamples < 1 or not 0 < confidence < 1:
        raise UsageError(
            f"resamples is {resamples} and confidence {confidence}.", hint="Use >= 1 and a value in (0, 1)."
        )
    tables = [np.asarray(columns, dtype=np.float64) for columns in strata]
    for data in tables:
        if data.ndim != 2:
            raise UsageError(f"columns have shape {data.shape}.", hint="Give an array of shape (n, m).")
        if not np.isfinite(data).all():
            raise DataError(f"row {int(np.argmin(np.isfinite(data).all(axis=1)))} holds a value that is not finite.")
    if clusters is not None:
        tables = [sum_by_cluster(data, labels) for data, labels in zip(tables, clusters, strict=True)]
    if min((len(data) for data in tables), default=0) < 2:
        return UNDEFINED
    totals = np.stack([data.sum(axis=0) for data in tables])
    with np.errstate(divide="ignore", invalid="ignore"):
        point = float(statistic(totals))
        drawn = [resampled_sums(data, seed, resamples, stream=place) for place, data in enumerate(tables)]
        replicates = statistic(np.stack(drawn, axis=1))
        if not (math.isfinite(point) and np.isfinite(replicates).all()):
            return UNDEFINED
        tail = (1 - confidence) / 2
        quantiles = (tail, 1 - tail)
        if method == "bca":
            quantiles = _bca_quantiles(point, replicates, _influences(tables, totals, statistic), quantiles)
    low, high = np.quantile(replicates, quantiles)
    return Interval(float(low), float(high))


def _influences(tables: Sequence[Floats], totals: Floats, statistic: Statistic) -> Floats:
    """By the jackknife: what each row adds to the statistic, up to a factor that all rows share."""
    found = []
    for place, data in enumerate(tables):
        without = np.repeat(totals[None], len(data), axis=0)
        without[:, place] -= data
        left = statistic(without)
        found.append((left.mean() - left) * (len(data) - 1) / len(data))
    return np.concatenate(found)


def sum_by_cluster(data: Floats, clusters: Sequence[object]) -> Floats:
    """(c, m) sums of the rows (n, m) of each of c clusters, in order of appearance."""
    if len(clusters) != len(data):
        raise UsageError(f"{len(clusters)} cluster labels for {len(data)} items.", hint="Give one label per item.")
    codes: dict[object, int] = {}
    index = np.array([codes.setdefault(label, len(codes)) for label in clusters], dtype=np.intp)
    sums = np.zeros((len(codes), data.shape[1]))
    np.add.at(sums, index, data)
    return sums


def resampled_sums(data: Floats, seed: int, resamples: int, stream: int = 0) -> Floats:
    """(resamples, m) column sums of rows drawn with replacement; another `stream` of one seed draws independently.

    Only the multiset of rows matters. Rows that repeat are drawn together: how often each distinct row is drawn is
    multinomial, which is the same distribution and much cheaper when there are few distinct rows (error counts, nDCG).
    """
    entropy = np.random.SeedSequence(seed, spawn_key=(stream,) if stream else ())
    rng = np.random.Generator(np.random.PCG64(entropy))
    n = len(data)
    # A constant column (mostly one that counts rows) has the same sum in every resample.
    varying = np.flatnonzero((data != data[0]).any(axis=0)).tolist()
    sums = np.empty((resamples, data.shape[1]))
    sums[:] = n * data[0]
    if not varying:
        return sums
    if len(varying) == 1:
        values, repeats = np.unique(data[:, varying[0]], return_counts=True)
        distinct = values[:, None]
    else:
        distinct, repeats = np.unique(data[:, varying], axis=0, return_counts=True)
    if len(distinct) * 8 <= n:
        drawn = rng.multinomial(n, repeats / n, size=resamples)
        sums[:, varying] = drawn.astype(np.float64) @ distinct
        return sums
    step = max(1, _CHUNK // n)
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        rows = rng.integers(0, n, size=(stop - start, n))
        for column in varying:
            sums[start:stop, column] = data[:, column][rows].sum(axis=1)
    return sums


def _bca_quantiles(
    point: float, replicates: Floats, influences: Floats, quantiles: tuple[float, float]
) -> tuple[float, float]:
    from scipy.special import ndtr, ndtri

    # Ties at the point estimate count half, so that discrete statistics are not called biased.
    below = (np.count_nonzero(replicates < point) + 0.5 * np.count_nonzero(replicates == point)) / len(replicates)
    if not 0 < below < 1 or not np.isfinite(influences).all():
        return quantiles
    spread = float((influences**2).sum())
    if spread == 0:
        return quantiles
    acceleration = float((influences**3).sum()) / (6 * spread**1.5)
    bias = float(ndtri(below))
    z = bias + ndtri(np.asarray(quantiles))
    low, high = ndtr(bias + z / (1 - acceleration * z))
    return float(low), float(high)


def _column(values: ArrayLike, what: str) -> Floats:
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1:
        raise UsageError(f"{what} have shape {column.shape}.", hint="Give one number per item.")
    return column


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[Floats, Floats]:
    left, right = _column(a, "values"), _column(b, "values")
    if len(left) != len(right):
        raise DataError(f"{len(left)} values against {len(right)}.", hint="Paired values must be of the same items.")
    return left, right


def mean_interval(
    values: ArrayLike, clusters: Sequence[object] | None = None, **drawing: Unpack[Bootstrap]
) -> Interval:
    """Interval of the mean of `values` (n,). See `bootstrap_interval` for n < 2 and constant values.

    >>> mean_interval([0.5, 0.5, 0.5], seed=0)
    Interval(low=0.5, high=0.5)
    >>> mean_interval([1.0], seed=0)
    Interval(low=nan, high=nan)
    """
    column = _column(values, "values")
    return bootstrap_interval(
        np.column_stack([column, np.ones_like(column)]), lambda sums: sums[..., 0] / sums[..., 1], clusters, **drawing
    )


def difference_interval(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[object] | None = None,
    *,
    relative: bool = False,
    **drawing: Unpack[Bootstrap],
) -> Interval:
    """Interval of mean(a) − mean(b), paired by position; `relative`: of (mean(a) − mean(b)) / mean(b).

    >>> difference_interval([0.9, 0.4, 0.7], [0.8, 0.3, 0.6], seed=0).low.__round__(6)
    0.1
    """
    left, right = _pair(a, b)
    if relative:
        columns = np.column_stack([left - right, right])
    else:
        columns = np.column_stack([left - right, np.ones_like(left)])
    return bootstrap_interval(columns, lambda sums: sums[..., 0] / sums[..., 1], clusters, **drawing)


def _errors_and_lengths(counts: Counts) -> Floats:
    table = counts_array(counts)
    return np.column_stack([table[:, :3].sum(axis=1), table[:, 3]]).astype(np.float64)


def corpus_rate_interval(
    counts: Counts, clusters: Sequence[object] | None = None, **drawing: Unpack[Bootstrap]
) -> Interval:
    """Interval of the corpus rate Σerrors / Σlength: counts are resampled, rates never averaged.

    >>> corpus_rate_interval([ErrorCounts(1, 0, 0, 4)] * 10, seed=0)
    Interval(low=0.25, high=0.25)
    """
    return bootstrap_interval(
        _errors_and_lengths(counts), lambda sums: sums[..., 0] / sums[..., 1], clusters, **drawing
    )
