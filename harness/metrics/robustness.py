"""How steady a system is over conditions: σ as SQuTR (arXiv 2602.12783) publishes it, and the SNR at a given loss."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import UsageError
from .attribution import Estimate
from .registry import Better
from .statistics import UNDEFINED, Floats, Interval, resampled_sums, stratified_interval

Item = tuple[float, float]
"""A value and its weight: a score and 1, or errors and reference length, summed over what is drawn together."""
Items = Mapping[str, Mapping[str, Item]]
"""By subset and item id, of one condition. Its mean is Σ value / Σ weight, averaged unweighted over subsets."""


@dataclass(frozen=True, slots=True)
class Stability:
    """Sample standard deviations (ddof 1) over conditions: by language, and over all language × condition means."""

    within: Mapping[str, Estimate]
    pooled: Estimate


@dataclass(frozen=True, slots=True)
class _Paired:
    tables: Sequence[Floats]

    @property
    def n(self) -> int:
        return sum(map(len, self.tables))

    @property
    def conditions(self) -> int:
        return int(self.tables[0].shape[1]) // 2


def _paired(conditions: Sequence[Items]) -> _Paired | None:
    """None where they have no item in common."""
    tables = []
    for subset, first in conditions[0].items():
        ids = [id_ for id_ in first if all(id_ in own.get(subset, ()) for own in conditions)]
        rows = [[own[subset][id_][part] for part in (0, 1) for own in conditions] for id_ in ids]
        if rows:
            tables.append(np.array(rows, dtype=np.float64))
    return _Paired(tables) if tables else None


def _means(sums: Floats, conditions: int) -> Floats:
    """(…, K) from the sums of each subset (…, S, 2 K or wider)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((sums[..., :conditions] / sums[..., conditions : 2 * conditions]).mean(axis=-2))


def stability(scores: Mapping[tuple[str, str], Items], *, seed: int, resamples: int = 1000) -> Stability:
    """σ of every language and pooled, each with its 95 % interval; `scores` is by (language, condition).

    Items that a condition of the language lacks are left out. Intervals resample items within a subset, the same ones
    in all conditions. `text` is no condition. NaN where fewer than two conditions are left.

    >>> found = stability({("en", "clean"): {"s": {"a": (0.5, 1)}}, ("en", "snr_0"): {"s": {"a": (0.3, 1)}}}, seed=0)
    >>> round(found.within["en"].value, 4), round(found.pooled.value, 4)
    (0.1414, 0.1414)
    """
    names = sorted({language for language, condition in scores if condition != "text"})
    paired = {
        name: _paired(
            [own for (language, condition), own in scores.items() if language == name and condition != "text"]
        )
        for name in names
    }
    languages = {name: one for name, one in paired.items() if one is not None}
    within = {name: _sigma([one], seed, resamples) for name, one in languages.items()}
    return Stability(within, _sigma(list(languages.values()), seed, resamples))


def _sigma(languages: Sequence[_Paired], seed: int, resamples: int) -> Estimate:
    width = max((2 * one.conditions for one in languages), default=0)
    tables = [np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for one in languages for rows in one.tables]

    def statistic(sums: Floats) -> Floats:
        means, first = [], 0
        for one in languages:
            means.append(_means(sums[..., first : first + len(one.tables), :], one.conditions))
            first += len(one.tables)
        return np.asarray(np.std(np.concatenate(means, axis=-1), axis=-1, ddof=1))

    n = sum(one.n for one in languages)
    if sum(one.conditions for one in languages) < 2:
        return Estimate(math.nan, UNDEFINED, n)
    value = float(statistic(np.stack([rows.sum(axis=0) for rows in tables])))
    interval = stratified_interval(tables, statistic, seed=seed, resamples=resamples)
    return Estimate(value, interval if math.isfinite(value) else UNDEFINED, n)


@dataclass(frozen=True, slots=True)
class SnrAtLoss:
    """The highest SNR (dB) at which a given loss is reached, with its 95 % interval over `n` items.

    inf: already at the highest level measured; −inf: not yet at the lowest; NaN if there is no clean score to lose a
    share of. The ends of the interval may be infinite for the same reasons; they are NaN where a subset has fewer than
    two items.
    """

    snr_db: float
    interval: Interval
    n: int


def snr_at_loss(
    levels: Mapping[float, Items],
    clean: Items,
    *,
    loss: float,
    relative: bool = True,
    better: Better = "higher",
    seed: int,
    resamples: int = 1000,
) -> SnrAtLoss:
    """Where, going down from the highest SNR, the mean is first worse than `clean` by `loss`.

    `levels` maps SNR (dB) to its items; between levels the mean is interpolated linearly. `loss` is a share of the
    clean mean (`relative`), or in units of the metric. `better` is the metric's direction: an error rate ("lower")
    loses by rising. Items that a level lacks are left out; the others are resampled together.

    >>> scores = {20.0: {"s": {"a": (1.0, 1)}}, 0.0: {"s": {"a": (0.6, 1)}}}
    >>> round(snr_at_loss(scores, {"s": {"a": (1.0, 1)}}, loss=0.1, seed=0).snr_db, 6)
    15.0
    >>> errors = {20.0: {"s": {"a": (1, 20)}}, 0.0: {"s": {"a": (9, 20)}}}
    >>> clean = {"s": {"a": (1, 20)}}
    >>> round(snr_at_loss(errors, clean, loss=0.1, relative=False, better="lower", seed=0).snr_db, 6)
    15.0
    """
    if not (0 < loss < 1 or (loss > 0 and better == "lower")):
        raise UsageError(f"the loss is {loss}.", hint="Give a value in (0, 1), for example 0.1.")
    if len(levels) < 2:
        raise UsageError(f"{len(levels)} SNR level was given.", hint="A curve needs two levels or more.")
    snr = np.array(sorted(levels, reverse=True))
    paired = _paired([clean, *(levels[level] for level in snr.tolist())])
    if paired is None:
        return SnrAtLoss(math.nan, UNDEFINED, 0)

    def crossing(sums: Floats) -> Floats:
        means = _means(sums, paired.conditions)
        return _crossing(means if better != "lower" else -means, snr, loss, relative=relative)

    point = float(crossing(np.stack([rows.sum(axis=0) for rows in paired.tables])[None])[0])
    interval = UNDEFINED
    if min(map(len, paired.tables)) > 1:
        sums = [resampled_sums(rows, seed, resamples, stream=place) for place, rows in enumerate(paired.tables)]
        drawn = crossing(np.stack(sums, axis=1))
        if not np.isnan(drawn).any():
            # Infinite ends are meant, so an order statistic is taken, not an interpolation.
            low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf")
            interval = Interval(float(low), float(high))
    return SnrAtLoss(point, interval, paired.n)


def _crossing(means: Floats, snr: Floats, loss: float, *, relative: bool) -> Floats:
    """(R,) first crossing for means (R, 1 + L), more is better: clean, then levels from the highest SNR (L,) down."""
    clean = means[:, :1]
    excess = means[:, 1:] - (clean - (loss * np.abs(clean) if relative else loss))
    below = excess <= 0
    first = np.where(below.any(axis=1), below.argmax(axis=1), len(snr))
    found = np.full(len(means), -math.inf)
    found[first == 0] = math.inf
    inside = np.flatnonzero((first > 0) & (first < len(snr)))
    index = first[inside]
    above, under = excess[inside, index - 1], excess[inside, index]
    found[inside] = snr[index] + (snr[index - 1] - snr[index]) * (-under) / (above - under)
    undefined = ~np.isfinite(means).all(axis=1) | (relative & (means[:, 0] == 0))
    found[undefined] = math.nan
    return found
