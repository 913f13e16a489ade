"""How recognition errors become retrieval loss, and which part of the system causes it.

The shortfall splits in the retriever's part (1 − score with text) and the ASR's (score with text − with transcript).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import DataError
from .comparison import pair_ids
from .statistics import UNDEFINED, Floats, Interval, bootstrap_interval, mean_interval
from .stratified import unweighted_mean, unweighted_mean_interval

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval over `n` queries; NaN where it is undefined."""

    value: float
    interval: Interval
    n: int


@dataclass(frozen=True, slots=True)
class Attribution:
    """From recognition errors to retrieval loss, for one system and condition.

    `shortfall` = 1 − mean score with transcripts = `retriever` (1 − mean score with text) + `asr` (mean loss).
    `asr_share` = asr / shortfall, NaN without shortfall.

    Over queries with a reference: `slope` is the retrieval loss per unit of error rate (least squares with intercept),
    `rank_correlation` Spearman's rho of error rate and loss (ties averaged). `perfect` and `imperfect` are the mean
    scores of queries whose transcript is free of errors, or not; `perfect_fails` is the share of the former that find
    nothing (score 0), `imperfect_succeeds` the share of the latter that lose nothing.
    """

    n: int
    shortfall: Estimate
    retriever: Estimate
    asr: Estimate
    asr_share: float
    slope: Estimate
    rank_correlation: float
    perfect: Estimate
    perfect_fails: float
    imperfect: Estimate
    imperfect_succeeds: float


def _mean(values: Floats, seed: int, resamples: int) -> Estimate:
    if not len(values):
        return Estimate(math.nan, UNDEFINED, 0)
    return Estimate(float(values.mean()), mean_interval(values, seed=seed, resamples=resamples), len(values))


def _mean_of_means(
    ids: Sequence[str], values: Floats, subsets: Mapping[str, str] | None, seed: int, resamples: int
) -> Estimate:
    strata: dict[str, dict[str, float]] = {}
    for id_, value in zip(ids, values.tolist(), strict=True):
        strata.setdefault("" if subsets is None else subsets[id_], {})[id_] = value
    interval = unweighted_mean_interval(strata, seed=seed, resamples=resamples)
    return Estimate(unweighted_mean(strata), interval, len(ids))


def _share(found: Floats) -> float:
    return float(found.mean()) if len(found) else math.nan


def _slope(sums: Floats) -> Floats:
    """From sums of (x, y, x², xy, 1), shape (…, 5)."""
    x, y, xx, xy, n = np.moveaxis(sums, -1, 0)
    return np.asarray((n * xy - x * y) / (n * xx - x * x))


def _slope_estimate(rates: Floats, lost: Floats, seed: int, resamples: int) -> Estimate:
    n = len(rates)
    if n < 2 or float(np.ptp(rates)) == 0:
        return Estimate(math.nan, UNDEFINED, n)
    columns = np.column_stack([rates, lost, rates**2, rates * lost, np.ones(n)])
    interval = bootstrap_interval(columns, _slope, seed=seed, resamples=resamples)
    return Estimate(float(_slope(columns.sum(axis=0))), interval, n)


def rank_correlation(x: Floats, y: Floats) -> float:
    """Spearman's rho, ties averaged; NaN with fewer than two pairs or where one side is constant.

    >>> rank_correlation(np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.1, 0.4])).__round__(4)
    0.866
    """
    if len(x) < 2:
        return math.nan
    a, b = _average_ranks(x), _average_ranks(y)
    a, b = a - a.mean(), b - b.mean()
    spread = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / spread if spread else math.nan


def _average_ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse], dtype=np.float64)


def attribute(
    error_rates: Mapping[str, float],
    score_with_transcript: Mapping[str, float],
    score_with_text: Mapping[str, float],
    *,
    subsets: Mapping[str, str] | None = None,
    seed: int = 0,
    resamples: int = 1000,
) -> Attribution:
    """Attribute the shortfall of one system under one condition, from per-query error rates and scores in [0, 1].

    Error rates are NaN where there is none (not decoded, or an empty reference). All three are joined by id; different
    ids raise `DataError`. To leave out queries without a transcript, leave
    their ids out everywhere. `subsets` maps ids to subsets: the shortfall and its parts are then unweighted means over
    them, as scores are.

    >>> found = attribute(
    ...     {"a": 0.0, "b": 0.5}, {"a": 0.5, "b": 0.1}, {"a": 0.5, "b": 0.9})
    >>> round(found.retriever.value, 4), round(found.asr.value, 4), round(found.asr_share, 4)
    (0.3, 0.4, 0.5714)
    >>> round(found.slope.value, 4)
    1.6
    """
    ids = pair_ids(score_with_transcript, score_with_text)
    pair_ids(score_with_transcript, error_rates)
    spoken = np.array([score_with_transcript[i] for i in ids], dtype=np.float64)
    typed = np.array([score_with_text[i] for i in ids], dtype=np.float64)
    for values, what in ((spoken, "transcript"), (typed, "text")):
        bad = np.flatnonzero(~((values >= 0) & (values <= 1 + _TOLERANCE)))
        if len(bad):
            raise DataError(
                f"the score of {ids[bad[0]]!r} with {what} is {values[bad[0]]}.", hint="Give scores in [0, 1]."
            )
    lost = typed - spoken
    rates = np.array([error_rates[i] for i in ids], dtype=np.float64)
    scored = np.isfinite(rates)
    right = scored & (rates == 0)
    wrong = scored & (rates > 0)
    shortfall = _mean_of_means(ids, 1 - spoken, subsets, seed, resamples)
    asr = _mean_of_means(ids, lost, subsets, seed, resamples)
    return Attribution(
        n=len(ids),
        shortfall=shortfall,
        retriever=_mean_of_means(ids, 1 - typed, subsets, seed, resamples),
        asr=asr,
        asr_share=asr.value / shortfall.value if shortfall.value else math.nan,
        slope=_slope_estimate(rates[scored], lost[scored], seed, resamples),
        rank_correlation=rank_correlation(rates[scored], lost[scored]),
        perfect=_mean(spoken[right], seed, resamples),
        perfect_fails=_share((spoken[right] == 0).astype(np.float64)),
        imperfect=_mean(spoken[wrong], seed, resamples),
        imperfect_succeeds=_share((lost[wrong] <= 0).astype(np.float64)),
    )


@dataclass(frozen=True, slots=True)
class TokenClassLoss:
    """Mean retrieval loss by which reference tokens were transcribed wrongly.

    `key`: at least one key token (a number, a name) is wrong; `other`: errors in other tokens only; `none`: no error.
    """

    key: Estimate
    other: Estimate
    none: Estimate


def loss_by_token_class(
    wrong_tokens: Mapping[str, tuple[int, int]],
    score_with_transcript: Mapping[str, float],
    score_with_text: Mapping[str, float],
    *,
    seed: int = 0,
    resamples: int = 1000,
) -> TokenClassLoss:
    """Mean loss of queries with errors in key tokens, in other tokens only, in none.

    `wrong_tokens` maps ids to (errors in key tokens, errors elsewhere), see `key_token_errors`.

    >>> found = loss_by_token_class({"a": (1, 0), "b": (0, 1)}, {"a": 0.0, "b": 0.8}, {"a": 0.9, "b": 0.9})
    >>> round(found.key.value, 4), round(found.other.value, 4), found.none.n
    (0.9, 0.1, 0)
    """
    ids = pair_ids(score_with_transcript, score_with_text)
    pair_ids(score_with_transcript, wrong_tokens)
    lost = np.array([score_with_text[i] - score_with_transcript[i] for i in ids], dtype=np.float64)
    key = np.array([wrong_tokens[i][0] > 0 for i in ids])
    other = np.array([wrong_tokens[i][1] > 0 for i in ids])
    return TokenClassLoss(
        key=_mean(lost[key], seed, resamples),
        other=_mean(lost[other & ~key], seed, resamples),
        none=_mean(lost[~other & ~key], seed, resamples),
    )
