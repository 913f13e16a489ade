"""Ranks with their uncertainty: what a table may say about which system is better.

A score of a config is the unweighted mean of its subsets' means over queries. Queries are resampled with replacement
inside each subset, the same for all systems (a paired bootstrap; Efron and Tibshirani 1993). From the resampled scores
follow the interval of each rank, as Goldstein and Spiegelhalter (1996, doi 10.2307/2983325) ask of league tables, and
the covariance of the scores, by which two systems are told apart or share a rank.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..harness.metrics.registry import metric_of
from .entry import Entry, difference

RESAMPLES = 1000
LEVEL = 0.95
_CHUNK = 50

Items = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Values by entry id, subset and query id, of one config and metric."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """One system of a table.

    `rank` is one more than the number of systems that are better beyond chance, so systems that cannot be told apart
    from the best share rank 1. `low` and `high` are the 95 % interval of the rank over resampled queries, `mean` its
    mean. None where there are no values of single queries to resample: `position` is then all that is known.
    """

    entry: Entry
    value: float
    position: int
    rank: int | None
    low: int | None
    high: int | None
    mean: float | None


@dataclass(frozen=True, slots=True)
class Table:
    """Systems that may share a table on a config and a metric, best first; `partial` are those of a part of the items.

    `n` is how many queries all resampled systems have in common.
    """

    config: str
    metric: str
    rows: tuple[Ranked, ...]
    partial: tuple[Ranked, ...]
    n: int


def lower_is_better(metric: str) -> bool:
    """Whether a smaller value is the better one, by the registry.

    >>> lower_is_better("wer"), lower_is_better("mcqa_unparsed"), lower_is_better("ndcg_at_10")
    (True, True, False)
    """
    return metric_of(metric).better == "lower"


def comparable_groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Entries that may share a table together: one benchmark version, one data set. In order of first appearance.

    Whole and partial entries of the same data share a group: a table lists partial ones separately.
    """
    groups: list[list[Entry]] = []
    for entry in entries:
        home = next((group for group in groups if not _differ(group[0], entry)), None)
        if home is None:
            groups.append([entry])
        else:
            home.append(entry)
    return groups


def _differ(a: Entry, b: Entry) -> bool:
    if a.ranked != b.ranked or (a.who == "published") != (b.who == "published"):
        return True
    reason = difference(a, b)
    return bool(reason) and reason != "one side covers all items and the other a part"


def rank(
    entries: Sequence[Entry], items: Items, *, config: str, metric: str, resamples: int = RESAMPLES, seed: int = 0
) -> Table:
    """The table of one config and metric.

    `entries` without that score are left out, partial ones listed separately. Systems with values of single queries are
    resampled on the queries that all of them have; the others (published, imported) have a position only. In an error
    rate all words of a failed item count as deleted (`Score.bounds`; values of `items` must, too): a system that leaves
    out what is hard must not gain by it.

    Raises `DataError` for entries that may not share a table.
    """
    scored = [entry for entry in entries if _value(entry, config, metric) is not None]
    whole = [entry for entry in scored if not entry.coverage[config].partial]
    for entry in scored[1:]:
        if _differ(scored[0], entry):
            raise DataError(
                f"{scored[0].system} and {entry.system} cannot share a table: {difference(scored[0], entry)}.",
                hint="Rank each group of comparable_groups alone.",
            )
    sign = -1.0 if lower_is_better(metric) else 1.0
    order = sorted(whole, key=lambda e: (-sign * (e.scores[config][metric].ordered_by or 0.0), e.system, e.id))
    known = [entry for entry in order if items.get(entry.id)]
    found, n = _resampled(known, items, sign, resamples, seed)
    rows = [_ranked(entry, position, config, metric, found.get(entry.id)) for position, entry in enumerate(order, 1)]
    partial = [_ranked(entry, 0, config, metric, None) for entry in scored if entry.coverage[config].partial]
    return Table(config, metric, tuple(rows), tuple(partial), n)


def _value(entry: Entry, config: str, metric: str) -> float | None:
    score = entry.scores.get(config, {}).get(metric)
    return None if score is None else score.value


@dataclass(frozen=True, slots=True)
class _Place:
    rank: int
    low: int
    high: int
    mean: float


def _ranked(entry: Entry, position: int, config: str, metric: str, place: _Place | None) -> Ranked:
    value = _value(entry, config, metric) or 0.0
    if place is None:
        return Ranked(entry, value, position, None, None, None, None)
    return Ranked(entry, value, position, place.rank, place.low, place.high, place.mean)


def _resampled(
    entries: Sequence[Entry], items: Items, sign: float, resamples: int, seed: int
) -> tuple[dict[str, _Place], int]:
    """The places of these entries, and the number of queries that they share."""
    if not entries:
        return {}, 0
    matrices = _matrices([items[entry.id] for entry in entries])
    n = sum(matrix.shape[1] for matrix in matrices)
    if not n:
        return {}, 0
    means = sign * np.mean([matrix.mean(axis=1) for matrix in matrices], axis=0)
    drawn = sign * _resampled_means(matrices, resamples, seed)
    better = _better(means, drawn)
    ranks = _ranks(drawn)
    tail = (1 - LEVEL) / 2
    lows = np.quantile(ranks, tail, axis=0, method="lower")
    highs = np.quantile(ranks, 1 - tail, axis=0, method="higher")
    places = {
        entry.id: _Place(int(1 + better[:, i].sum()), int(lows[i]), int(highs[i]), float(ranks[:, i].mean()))
        for i, entry in enumerate(entries)
    }
    return places, n


def _matrices(values: Sequence[Mapping[str, Mapping[str, float]]]) -> list[NDArray[np.float64]]:
    """One (systems, queries) matrix per subset, of the queries that all systems have with a finite value."""
    subsets = [s for s in values[0] if all(s in own for own in values)]
    matrices = []
    for subset in subsets:
        common = [
            id_ for id_ in values[0][subset] if all(math.isfinite(own[subset].get(id_, math.nan)) for own in values)
        ]
        if common:
            matrices.append(np.array([[own[subset][id_] for id_ in common] for own in values], dtype=np.float64))
    return matrices


def _resampled_means(matrices: Sequence[NDArray[np.float64]], resamples: int, seed: int) -> NDArray[np.float64]:
    """(resamples, systems) means over subsets of means over resampled queries, the same queries for all systems."""
    generator = np.random.default_rng(seed)
    total = np.zeros((resamples, matrices[0].shape[0]))
    for matrix in matrices:
        size = matrix.shape[1]
        for start in range(0, resamples, _CHUNK):
            rows = min(_CHUNK, resamples - start)
            counts = generator.multinomial(size, np.full(size, 1 / size), size=rows)
            total[start : start + rows] += counts @ matrix.T / size
    return total / len(matrices)


def _ranks(drawn: NDArray[np.float64]) -> NDArray[np.int64]:
    """(resamples, systems) ranks from 1; equal values share the better one."""
    ranks = np.empty(drawn.shape, dtype=np.int64)
    for i, row in enumerate(drawn):
        ordered = np.sort(row)
        ranks[i] = 1 + row.size - np.searchsorted(ordered, row, side="right")
    return ranks


def _better(means: NDArray[np.float64], drawn: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(systems, systems): whether the first is better than the second beyond chance.

    By the paired difference over its bootstrap standard error, two-sided at 5 %, with Holm's correction over all pairs
    of the table (Holm 1979).
    """
    count = means.size
    apart = np.zeros((count, count), dtype=bool)
    if count < 2:
        return apart
    covariance = np.atleast_2d(np.cov(drawn, rowvar=False))
    variance = np.diag(covariance)[:, None] + np.diag(covariance)[None, :] - 2 * covariance
    gaps = means[:, None] - means[None, :]
    upper = np.triu_indices(count, 1)
    spread = np.sqrt(np.maximum(variance[upper], 0.0))
    gap = np.abs(gaps[upper])
    # A difference that never varies is certain, or nothing.
    scores = np.divide(gap, spread, out=np.where(gap > 1e-12, np.inf, 0.0), where=spread > 1e-12)
    p_values = np.array([math.erfc(score / math.sqrt(2)) for score in scores])
    order = np.argsort(p_values, kind="stable")
    passed = p_values[order] <= (1 - LEVEL) / (p_values.size - np.arange(p_values.size))
    rejected = order[: p_values.size if passed.all() else int(np.argmin(passed))]
    for place in rejected:
        i, j = int(upper[0][place]), int(upper[1][place])
        apart[(i, j) if gaps[i, j] > 0 else (j, i)] = True
    return apart


@dataclass(frozen=True, slots=True)
class Robustness:
    """How much one system loses on a config against a baseline, beside what it had: weak but stable shows as that."""

    entry: Entry
    before: float
    lost: float
    low: float | None
    high: float | None
    relative: float | None


def robustness(entries: Sequence[Entry], *, config: str, metric: str, baseline: str = "clean") -> list[Robustness]:
    """The losses of these entries on a config, the smallest first; entries without that loss are left out."""
    scope = config.partition("_")[0]
    found = []
    for entry in entries:
        loss = entry.losses.get(config, {}).get(baseline, {}).get(metric)
        before = _value(entry, f"{scope}_{baseline}", metric)
        if loss is None or loss.absolute.value is None or before is None:
            continue
        found.append(
            Robustness(entry, before, loss.absolute.value, loss.absolute.low, loss.absolute.high, loss.relative.value)
        )
    return sorted(found, key=lambda row: (row.lost, row.entry.system, row.entry.id))


def pareto(points: Mapping[str, tuple[float, float]], *, lower_score_is_better: bool = False) -> list[str]:
    """The ids of those that none beats in both speed and score, the fastest first. `points` are (speed, score) by id.

    Higher speed is better. Equal points are all kept.

    >>> pareto({"a": (1.0, 0.9), "b": (5.0, 0.7), "c": (4.0, 0.6), "d": (1.0, 0.8)})
    ['b', 'a']
    """
    sign = -1.0 if lower_score_is_better else 1.0
    found: list[str] = []
    best = -math.inf
    fastest = sorted(points.items(), key=lambda point: (-point[1][0], -sign * point[1][1], point[0]))
    for id_, (speed, score) in fastest:
        tied = bool(found) and points[found[-1]] == (speed, score)
        if sign * score > best or tied:
            found.append(id_)
            best = max(best, sign * score)
    return found
