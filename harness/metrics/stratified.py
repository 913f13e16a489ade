"""Means over several subsets: the unweighted mean of the subsets' means, as SQuTR (arXiv 2602.12783) aggregates.

Queries are resampled within their subset, so that every resample has all subsets at their own size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ...errors import DataError
from .robustness import Loss, loss, pair_ids
from .statistics import UNDEFINED, Floats, Interval, mean_interval

Strata = Mapping[str, Mapping[str, float]]
"""Scores by subset and query id."""


def unweighted_mean(strata: Strata) -> float:
    """The mean of the subsets' means; empty subsets are left out; NaN if nothing is left.

    >>> unweighted_mean({"fiqa": {"q1": 1.0, "q2": 0.0}, "nq": {"q1": 0.0}})
    0.25
    """
    means = [math.fsum(scores.values()) / len(scores) for scores in strata.values() if scores]
    return math.fsum(means) / len(means) if means else math.nan


def unweighted_mean_interval(strata: Strata, *, seed: int, resamples: int = 1000) -> Interval:
    """The 95 % percentile interval of `unweighted_mean`; undefined if any subset has fewer than two queries.

    >>> unweighted_mean_interval({"fiqa": {"q1": 0.5, "q2": 0.5}}, seed=0)
    Interval(low=0.5, high=0.5)
    """
    filled = [np.array(list(scores.values())) for scores in strata.values() if scores]
    if not filled:
        return UNDEFINED
    if len(filled) == 1:
        return mean_interval(filled[0], seed=seed, resamples=resamples)
    if min(values.size for values in filled) < 2:
        return UNDEFINED
    means = np.mean([_resampled_means(v[:, None], seed + i, resamples)[:, 0] for i, v in enumerate(filled)], axis=0)
    return _percentiles(means)


def unweighted_loss(condition: Strata, baseline: Strata, *, seed: int, resamples: int = 1000) -> Loss:
    """The loss between two `unweighted_mean`s, paired by query within each subset; see `robustness.loss`.

    Raises `DataError` if subsets or queries differ.

    >>> found = unweighted_loss({"fiqa": {"q1": 0.5, "q2": 0.4}}, {"fiqa": {"q1": 1.0, "q2": 0.8}}, seed=0)
    >>> round(found.absolute, 6), round(found.relative, 6)
    (0.45, 0.5)
    """
    if set(condition) != set(baseline):
        raise DataError(
            f"the two sides have the subsets {sorted(condition)} and {sorted(baseline)}.",
            hint="Compare runs on the same subsets.",
        )
    filled = {subset: scores for subset, scores in condition.items() if scores or baseline[subset]}
    if len(filled) == 1:
        (subset,) = filled
        return loss(condition[subset], baseline[subset], seed=seed, resamples=resamples)
    pairs = []
    for subset, scores in filled.items():
        ids = pair_ids(scores, baseline[subset])
        pairs.append(np.array([[baseline[subset][i], scores[i]] for i in ids]))
    if not pairs:
        raise DataError("the two sides have no query in common.", hint="Check that the ids are of the same data set.")
    there, here = np.mean([pair.mean(axis=0) for pair in pairs], axis=0)
    absolute = float(there - here)
    if min(len(pair) for pair in pairs) < 2:
        shown = (UNDEFINED, UNDEFINED)
    else:
        drawn = np.mean([_resampled_means(pair, seed + i, resamples) for i, pair in enumerate(pairs)], axis=0)
        lost = drawn[:, 0] - drawn[:, 1]
        positive = bool((drawn[:, 0] > 0).all())
        shown = (_percentiles(lost), _percentiles(lost / drawn[:, 0]) if positive else UNDEFINED)
    return Loss(
        absolute=absolute,
        relative=absolute / float(there) if there else math.nan,
        interval_absolute=shown[0],
        interval_relative=shown[1],
        n=sum(len(pair) for pair in pairs),
    )


def _resampled_means(rows: Floats, seed: int, resamples: int) -> Floats:
    """(resamples, m) means of rows (n, m) drawn with replacement."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    return np.stack([rows[rng.integers(0, len(rows), size=len(rows))].mean(axis=0) for _ in range(resamples)])


def _percentiles(values: Floats) -> Interval:
    low, high = np.quantile(values, [0.025, 0.975])
    return Interval(float(low), float(high))
