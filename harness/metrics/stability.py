"""How scores spread over conditions: σ within a language and pooled, as SQuTR (arXiv 2602.12783) publishes it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .attribution import Estimate
from .statistics import UNDEFINED, Floats, stratified_interval

Item = tuple[float, float]
"""A value and its weight: a score and 1, or the errors and the reference length of an utterance."""
Scores = Mapping[tuple[str, str], Mapping[str, Mapping[str, Item]]]
"""(language, condition) to subset to item id to `Item`."""


@dataclass(frozen=True, slots=True)
class Stability:
    """Sample standard deviations (ddof 1) over conditions: by language, and over all language × condition means.

    The pooled one mixes the difference between languages with that between conditions: read it beside the other.
    """

    within: Mapping[str, Estimate]
    pooled: Estimate


@dataclass(frozen=True, slots=True)
class _Language:
    """`strata` (n, 2 K) have the values and the weights of the items of a subset under K conditions."""

    name: str
    strata: Sequence[Floats]
    n: int

    @property
    def conditions(self) -> int:
        return self.strata[0].shape[1] // 2


def stability(scores: Scores, *, seed: int, resamples: int = 1000) -> Stability:
    """σ of every language and pooled, each with its 95 % interval.

    A condition's mean is Σ value / Σ weight, averaged unweighted over subsets. Items that a condition of the language
    lacks are left out. Intervals resample items within a subset, the same ones in all conditions. `text` is no
    condition. NaN where fewer than two conditions are left.

    >>> found = stability({("en", "clean"): {"s": {"a": (0.5, 1)}}, ("en", "snr_0"): {"s": {"a": (0.3, 1)}}}, seed=0)
    >>> round(found.within["en"].value, 4), round(found.pooled.value, 4)
    (0.1414, 0.1414)
    """
    names = sorted({language for language, condition in scores if condition != "text"})
    languages = [one for name in names if (one := _language(name, scores)) is not None]
    within = {one.name: _sigma([one], seed, resamples) for one in languages}
    return Stability(within, _sigma(languages, seed, resamples))


def _language(name: str, scores: Scores) -> _Language | None:
    conditions = [own for (language, condition), own in scores.items() if language == name and condition != "text"]
    subsets = [subset for subset in conditions[0] if all(subset in own for own in conditions)]
    strata = []
    for subset in subsets:
        ids = [id_ for id_ in conditions[0][subset] if all(id_ in own[subset] for own in conditions)]
        rows = [
            [*(own[subset][id_][0] for own in conditions), *(own[subset][id_][1] for own in conditions)] for id_ in ids
        ]
        if rows:
            strata.append(np.array(rows, dtype=np.float64))
    return _Language(name, strata, sum(map(len, strata))) if strata else None


def _sigma(languages: Sequence[_Language], seed: int, resamples: int) -> Estimate:
    places = sum(one.conditions for one in languages)
    width = max((2 * one.conditions for one in languages), default=0)
    tables = [np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for one in languages for rows in one.strata]

    def statistic(sums: Floats) -> Floats:
        means, first = [], 0
        for one in languages:
            own = sums[..., first : first + len(one.strata), :]
            k = one.conditions
            with np.errstate(divide="ignore", invalid="ignore"):
                means.append((own[..., :k] / own[..., k : 2 * k]).mean(axis=-2))
            first += len(one.strata)
        return np.asarray(np.std(np.concatenate(means, axis=-1), axis=-1, ddof=1))

    n = sum(one.n for one in languages)
    if places < 2:
        return Estimate(math.nan, UNDEFINED, n)
    value = float(statistic(np.stack([rows.sum(axis=0) for rows in tables])))
    interval = stratified_interval(tables, statistic, seed=seed, resamples=resamples)
    return Estimate(value, interval if math.isfinite(value) else UNDEFINED, n)

