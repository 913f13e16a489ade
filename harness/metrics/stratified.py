"""The unweighted mean of the subsets' means, as SQuTR (arXiv 2602.12783) aggregates; resampled within subsets."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Unpack

import numpy as np

from ...errors import DataError
from .comparison import Comparison, detectable_difference, pair_ids, paired_permutation, standard_error
from .statistics import Bootstrap, Floats, Interval, Method, stratified_interval

Strata = Mapping[str, Mapping[str, float]]
Labels = Mapping[str, Mapping[str, Hashable]]
"""By subset and query id, what is drawn together (a speaker)."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What is lost against a baseline: positive is a loss, negative a gain.

    `absolute` = mean(baseline) − mean(condition), `relative` = absolute / mean(baseline) (NaN if the baseline's mean is
    0), each with its paired bootstrap interval; `n` queries.
    """

    absolute: float
    relative: float
    interval_absolute: Interval
    interval_relative: Interval
    n: int


def unweighted_mean(strata: Strata) -> float:
    """The mean of the subsets' means; empty subsets are left out; NaN if nothing is left.

    >>> unweighted_mean({"fiqa": {"q1": 1.0, "q2": 0.0}, "nq": {"q1": 0.0}})
    0.25
    """
    means = [math.fsum(scores.values()) / len(scores) for scores in strata.values() if scores]
    return math.fsum(means) / len(means) if means else math.nan


def _labels(ids: Mapping[str, Sequence[str]], clusters: Labels | None) -> list[list[Hashable]] | None:
    if clusters is None:
        return None
    return [[clusters[subset][id_] for id_ in own] for subset, own in ids.items()]


def _mean_of_means(sums: Floats, column: int) -> Floats:
    """From sums (…, S, m), the last column the number of queries."""
    return np.asarray((sums[..., column] / sums[..., -1]).mean(axis=-1))


def unweighted_mean_interval(strata: Strata, clusters: Labels | None = None, **drawing: Unpack[Bootstrap]) -> Interval:
    """The interval of `unweighted_mean`; undefined if any subset has fewer than two queries (or clusters).

    >>> unweighted_mean_interval({"fiqa": {"q1": 0.5, "q2": 0.5}}, seed=0)
    Interval(low=0.5, high=0.5)
    """
    filled = {subset: list(scores) for subset, scores in strata.items() if scores}
    return stratified_interval(
        [np.array([[strata[subset][i], 1.0] for i in ids]) for subset, ids in filled.items()],
        lambda sums: _mean_of_means(sums, 0),
        _labels(filled, clusters),
        **drawing,
    )


def _paired(a: Strata, b: Strata, on: Literal["all", "intersection"]) -> dict[str, list[str]]:
    """The ids that both sides have, by subset."""
    if set(a) != set(b):
        raise DataError(
            f"the two sides have the subsets {sorted(a)} and {sorted(b)}.", hint="Compare runs on the same subsets."
        )
    ids = {subset: pair_ids(a[subset], b[subset], on) for subset in a if a[subset] or b[subset]}
    if not ids:
        raise DataError("the two sides have no query in common.", hint="Check that the ids are of the same data set.")
    return ids


def unweighted_loss(
    condition: Strata,
    baseline: Strata,
    clusters: Labels | None = None,
    *,
    on: Literal["all", "intersection"] = "all",
    **drawing: Unpack[Bootstrap],
) -> Loss:
    """The loss between two `unweighted_mean`s, of scores where more is better, paired by query within each subset.

    Raises `DataError` if subsets or queries differ.

    >>> found = unweighted_loss({"fiqa": {"q1": 0.5, "q2": 0.4}}, {"fiqa": {"q1": 1.0, "q2": 0.8}}, seed=0)
    >>> round(found.absolute, 6), round(found.relative, 6)
    (0.45, 0.5)
    """
    ids = _paired(condition, baseline, on)
    tables = [np.array([[baseline[s][i], condition[s][i], 1.0] for i in own]) for s, own in ids.items()]
    totals = np.stack([table.sum(axis=0) for table in tables])
    there, here = float(_mean_of_means(totals, 0)), float(_mean_of_means(totals, 1))

    def lost(sums: Floats) -> Floats:
        return _mean_of_means(sums, 0) - _mean_of_means(sums, 1)

    def lost_share(sums: Floats) -> Floats:
        return np.asarray(lost(sums) / _mean_of_means(sums, 0))

    shown = [
        stratified_interval(tables, statistic, _labels(ids, clusters), **drawing) for statistic in (lost, lost_share)
    ]
    return Loss(
        absolute=there - here,
        relative=(there - here) / there if there else math.nan,
        interval_absolute=shown[0],
        interval_relative=shown[1],
        n=sum(map(len, tables)),
    )


def compare_strata(
    a: Strata,
    b: Strata,
    clusters: Labels | None = None,
    *,
    on: Literal["all", "intersection"] = "all",
    seed: int = 0,
    resamples: int = 1000,
    permutations: int = 10_000,
    method: Method = "percentile",
) -> Comparison:
    """`comparison.compare` for the unweighted mean over subsets: a query weighs as much as its subset's size makes it.

    >>> found = compare_strata({"fiqa": {"q1": 1.0}, "nq": {"q1": 0.5, "q2": 0.5}},
    ...                        {"fiqa": {"q1": 0.0}, "nq": {"q1": 0.5, "q2": 0.5}})
    >>> found.difference, found.p_value, found.n
    (0.5, 1.0, 3)
    """
    ids = _paired(a, b, on)
    n = sum(map(len, ids.values()))
    weights = {subset: n / (len(ids) * len(own)) for subset, own in ids.items()}
    left = np.array([a[s][i] * weights[s] for s, own in ids.items() for i in own])
    right = np.array([b[s][i] * weights[s] for s, own in ids.items() for i in own])
    # Equal ids of two subsets may carry equal labels: a speaker of both is flipped in both.
    labels = None if clusters is None else [clusters[s][i] for s, own in ids.items() for i in own]
    test = paired_permutation(left, right, labels, seed=seed, permutations=permutations)
    interval = unweighted_loss(b, a, clusters, on=on, seed=seed, resamples=resamples, method=method).interval_absolute
    # The variance of a mean of means: within subsets only.
    variance = 0.0
    for subset, own in ids.items():
        delta = np.array([a[subset][i] - b[subset][i] for i in own])
        own_labels = None if clusters is None else [clusters[subset][i] for i in own]
        variance += (standard_error(delta, own_labels) / len(ids)) ** 2
    return Comparison(
        difference=test.difference,
        interval=interval,
        p_value=test.p_value,
        exact=test.exact,
        minimum_detectable=detectable_difference(math.sqrt(variance)),
        n=n,
    )
