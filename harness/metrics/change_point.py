"""From which value of a column (a reverberation time) on a transcriber loses: a change point with its interval.

    errors in the room − clean errors ≈ slope · reference length · max(0, x − τ)

by least squares weighted with the reference length, over a grid of τ (Hudson 1966), tested with the largest statistic
over all τ (Westfall & Young, Resampling-Based Multiple Testing, 1993).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import DataError, UsageError
from .statistics import UNDEFINED, Floats, Interval, sum_by_cluster

METHOD = "hinge from zero, least squares weighted by reference length"
STEP = 0.01
BEYOND = 0.05
"""A threshold has at least this share of the pairs beyond it."""
LEVEL = 0.05
_CHUNK = 4_000_000


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """Where the loss begins: `threshold` with its 95 % interval, and the `slope` beyond it (rate per unit of x).

    0 means that it grows from the smallest x on. The threshold is NaN, and so are interval and slope, where the test
    finds no growing loss (`p_value` above 0.05) or there is nothing to fit. An upper end of infinity: some resamples
    lose nothing anywhere. `n` pairs.
    """

    threshold: float
    interval: Interval
    slope: float
    p_value: float
    n: int

    @property
    def found(self) -> bool:
        """Whether there is a change point."""
        return math.isfinite(self.threshold)


def change_point(
    x: ArrayLike,
    extra_errors: ArrayLike,
    lengths: ArrayLike,
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
    resamples: int = 1000,
    permutations: int = 10_000,
) -> ChangePoint:
    """The change point of the loss over `x` (n,), at least 0 and finite, with errors (n,) that the room added.

    `lengths` (n,) are those of the references, `clusters` label the utterances: they are resampled and change sides
    together. The interval is the percentile bootstrap's, at the grid's resolution of 0.01. The p-value is one-sided
    (rooms that help are no loss) and never 0; NaN with fewer than two utterances.

    >>> x = np.linspace(0.2, 1.2, 101)
    >>> found = change_point(x, 20 * np.maximum(0.0, x - 0.7), np.full(101, 10.0), range(101), permutations=999)
    >>> round(found.threshold, 2), round(found.slope, 2), found.p_value
    (0.7, 2.0, 0.001)
    """
    place, lost, length = (np.asarray(values, dtype=np.float64) for values in (x, extra_errors, lengths))
    if not place.shape == lost.shape == length.shape or place.ndim != 1 or len(place) != len(clusters):
        raise DataError(f"x, errors, lengths and clusters have {len(place)}, {len(lost)}, {len(length)} rows.")
    if resamples < 1 or permutations < 1:
        raise UsageError(f"{resamples} resamples and {permutations} permutations.", hint="Use 1 or more.")
    bad = np.flatnonzero(~np.isfinite(place) | ~np.isfinite(lost) | ~np.isfinite(length) | (place < 0) | (length < 0))
    if len(bad):
        raise DataError(f"pair {int(bad[0])} holds a value that is not finite or below 0.")
    n = len(place)
    nothing = ChangePoint(math.nan, UNDEFINED, math.nan, math.nan, n)
    grid = threshold_grid(place)
    if not len(grid):
        return nothing
    beyond = np.maximum(0.0, place[:, None] - grid)
    # Σ length · z · (errors / length) and Σ length · z²: all that a fit at each threshold needs.
    across, square = lost[:, None] * beyond, length[:, None] * beyond**2
    width = len(grid)
    table = sum_by_cluster(np.hstack([across, square]), clusters)
    if len(table) < 2 or not (table[:, width:].sum(axis=0) > 0).all():
        return nothing
    sums = table.sum(axis=0)
    statistics = _statistics(sums[None], width)[0]
    best = int(statistics.argmax())
    if statistics[best] <= 0:
        return ChangePoint(math.nan, UNDEFINED, math.nan, 1.0, n)
    p_value = _p_value(table[:, :width], sums[width:], float(statistics[best]), seed, permutations)
    if p_value > LEVEL:
        return ChangePoint(math.nan, UNDEFINED, math.nan, p_value, n)
    drawn = _drawn_thresholds(table, grid, seed, resamples)
    # An end may be infinite, so an order statistic is taken, not an interpolation.
    low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
    slope = float(sums[best] / sums[width + best])
    return ChangePoint(float(grid[best]), Interval(float(low), float(high)), slope, p_value, n)


def threshold_grid(x: NDArray[np.float64]) -> Floats:
    """Thresholds from 0 on, `STEP` apart, each with at least `BEYOND` of the pairs above it; empty without pairs.

    >>> threshold_grid(np.array([0.02, 0.03])).round(2).tolist()
    [0.0, 0.01, 0.02]
    """
    if not len(x):
        return np.zeros(0)
    least = max(1, math.ceil(BEYOND * len(x)))
    highest = float(np.sort(x)[len(x) - least])
    grid = np.arange(0, round(highest / STEP) + 1) * STEP
    return np.asarray(grid[[int((x > value).sum()) >= least for value in grid]], dtype=np.float64)


def _statistics(sums: Floats, width: int) -> Floats:
    """(R, G): by how much each threshold's line lowers the squared error, as a root with the slope's sign."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = sums[:, :width] / np.sqrt(sums[:, width:])
    # A resample may have no pair beyond a threshold: nothing is explained there.
    return np.asarray(np.where(np.isfinite(found), found, 0.0))


def _p_value(across: Floats, square: Floats, observed: float, seed: int, permutations: int) -> float:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(1,))))
    limit = observed * (1 - 1e-12)
    extreme, step = 0, max(1, _CHUNK // len(across))
    for start in range(0, permutations, step):
        signs = rng.integers(0, 2, size=(min(step, permutations - start), len(across))) * 2.0 - 1.0
        extreme += int(((signs @ across / np.sqrt(square)).max(axis=1) >= limit).sum())
    return (1 + extreme) / (1 + permutations)


def _drawn_thresholds(table: Floats, grid: Floats, seed: int, resamples: int) -> Floats:
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(2,))))
    n, width = len(table), len(grid)
    drawn = np.empty(resamples)
    step = max(1, _CHUNK // n)
    for start in range(0, resamples, step):
        times = rng.multinomial(n, np.full(n, 1 / n), size=min(step, resamples - start)).astype(np.float64)
        statistics = _statistics(times @ table, width)
        places = statistics.argmax(axis=1)
        found = np.where(statistics.max(axis=1) > 0, grid[places], math.inf)
        drawn[start : start + len(found)] = found
    return drawn
