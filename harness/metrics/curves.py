"""Scores over SNR: the mean over a range of levels, and the level at which a share of the clean score is lost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from ...errors import UsageError
from .robustness import pair_ids
from .statistics import Floats, Interval, resampled_sums, sum_by_cluster


def mean_over_snr(means: Mapping[float, float]) -> float:
    """Area under the curve of mean score over SNR (dB), by trapezia, divided by the range: a mean score over the range.

    NaN with fewer than two levels. Compare only over the same levels.

    >>> mean_over_snr({0.0: 0.5, 10.0: 0.7, 20.0: 0.8})
    0.675
    """
    levels = sorted(means)
    if len(levels) < 2:
        return math.nan
    area = sum((b - a) * (means[a] + means[b]) / 2 for a, b in itertools.pairwise(levels))
    return area / (levels[-1] - levels[0])


@dataclass(frozen=True, slots=True)
class SnrAtLoss:
    """The highest SNR (dB) at which `share` of the clean score is lost, with its 95 % interval over `n` queries.

    inf: already lost at the highest level measured; −inf: not yet at the lowest; NaN if there is no clean score to
    lose. The ends of the interval may be infinite for the same reasons; they are NaN with fewer than two queries.
    """

    snr_db: float
    interval: Interval
    share: float
    n: int


def snr_at_loss(
    per_query: Mapping[float, Mapping[str, float]],
    clean: Mapping[str, float],
    *,
    share: float,
    clusters: Mapping[str, Hashable] | None = None,
    seed: int,
    resamples: int = 1000,
) -> SnrAtLoss:
    """Where, going down from the highest SNR, the mean first falls to (1 − share) of the clean mean.

    `per_query` maps SNR (dB) to per-query scores; between levels the mean is interpolated linearly. Queries are paired
    by id over all levels and `clean`, and resampled together, with `clusters` (id to label) whole clusters. Raises
    `DataError` if the ids differ.

    >>> scores = {20.0: {"a": 1.0, "b": 1.0}, 0.0: {"a": 0.6, "b": 0.6}}
    >>> round(snr_at_loss(scores, {"a": 1.0, "b": 1.0}, share=0.1, seed=0).snr_db, 6)
    15.0
    """
    if not 0 < share < 1:
        raise UsageError(f"share is {share}.", hint="Give a value in (0, 1), for example 0.1.")
    if len(per_query) < 2:
        raise UsageError(f"{len(per_query)} SNR level was given.", hint="A curve needs two levels or more.")
    levels = sorted(per_query, reverse=True)
    for level in levels:
        pair_ids(clean, per_query[level])
    rows = np.array([[clean[i], *(per_query[level][i] for level in levels)] for i in clean], dtype=np.float64)
    snr = np.array(levels)
    point = float(_crossing(rows.sum(axis=0)[None], snr, share)[0])
    drawn_rows = rows if clusters is None else sum_by_cluster(rows, [clusters[i] for i in clean])
    if len(drawn_rows) < 2:
        interval = Interval(math.nan, math.nan)
    else:
        drawn = _crossing(resampled_sums(drawn_rows, seed, resamples), snr, share)
        # Infinite ends are meant, so an order statistic is taken, not an interpolation.
        low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
        undefined = bool(np.isnan(drawn).any())
        interval = Interval(math.nan, math.nan) if undefined else Interval(float(low), float(high))
    return SnrAtLoss(point, interval, share, len(rows))


def _crossing(sums: Floats, snr: Floats, share: float) -> Floats:
    """(R,) first crossing for sums (R, 1 + L): clean, then levels from the highest SNR (L,) down."""
    excess = sums[:, 1:] - (1 - share) * sums[:, :1]
    below = excess <= 0
    first = np.where(below.any(axis=1), below.argmax(axis=1), len(snr))
    found = np.full(len(sums), -math.inf)
    found[first == 0] = math.inf
    inside = np.flatnonzero((first > 0) & (first < len(snr)))
    index = first[inside]
    above, under = excess[inside, index - 1], excess[inside, index]
    found[inside] = snr[index] + (snr[index - 1] - snr[index]) * (-under) / (above - under)
    found[sums[:, 0] <= 0] = math.nan
    return found
