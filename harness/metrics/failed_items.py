"""Error rates over the items that have a transcript, and what the items that failed could make of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bounds = tuple[float, float]


def rate_bounds(errors: ArrayLike, lengths: ArrayLike, *, macro: bool = False) -> Bounds | None:
    """The rate if failed items had no error, and if all their words were deleted; None where none failed.

    `errors` (n,) are NaN for failed items, `lengths` (n,) are reference lengths, of these too. `macro` bounds the mean
    of the items' own rates, of items with a reference. (0, 1) if all items failed, None without a reference token. The
    rate over the others is never below the first bound, and above the second only where it is above 1.

    >>> rate_bounds([1, 0, np.nan], [4, 6, 10])
    (0.05, 0.55)
    >>> rate_bounds([1, 0, np.nan], [4, 6, 10], macro=True)
    (0.08333333333333333, 0.4166666666666667)
    >>> rate_bounds([1, 0], [4, 6]) is None, rate_bounds([np.nan], [10])
    (True, (0.0, 1.0))
    """
    found = np.asarray(errors, dtype=np.float64)
    least, most = np.where(np.isnan(found), 0.0, found), np.where(np.isnan(found), lengths, found)
    return _bounds(least, most, found, lengths, macro)


def loss_bounds(errors: ArrayLike, baseline: ArrayLike, lengths: ArrayLike, *, macro: bool = False) -> Bounds | None:
    """The least and the largest that a rate can lose against a baseline, failed items of both sides included.

    Errors (n,) are NaN where an item failed: it has then none, or as many as its reference is long, whichever makes the
    loss smaller or larger. None where none failed, or without a reference token.

    >>> loss_bounds([1, np.nan], [0, 1], [4, 6])
    (0.0, 0.6)
    """
    here, there = np.asarray(errors, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    least = np.where(np.isnan(here), 0.0, here) - np.where(np.isnan(there), lengths, there)
    most = np.where(np.isnan(here), lengths, here) - np.where(np.isnan(there), 0.0, there)
    return _bounds(least, most, here - there, lengths, macro)


def _bounds(
    least: NDArray[np.float64], most: NDArray[np.float64], known: NDArray[np.float64], lengths: ArrayLike, macro: bool
) -> Bounds | None:
    weights = np.asarray(lengths, dtype=np.float64)
    if not np.isnan(known).any() or not weights.sum():
        return None
    if macro:
        kept = weights > 0
        least, most, weights = least[kept] / weights[kept], most[kept] / weights[kept], np.ones(int(kept.sum()))
    total = float(weights.sum())
    return float(least.sum()) / total, float(most.sum()) / total
