"""Two systems on the same items, metric by metric, with Holm's correction; error rates as ratios of sums."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ...errors import DataError, UsageError, unknown_name
from .comparison import Comparison, compare, detectable_difference, holm, pair_ids, paired_permutation, standard_error
from .statistics import Interval, Method, bootstrap_interval
from .stratified import compare_strata

Items = Mapping[str, Mapping[str, float]]
"""Numbers by item id and field; NaN where a field does not apply to the item."""
RATE_FIELDS = {
    "wer": ("word_errors", "word_reference_length"),
    "cer": ("char_errors", "char_reference_length"),
    "mixed": ("mixed_errors", "mixed_reference_length"),
    # What a condition changes against `clean`, of the same utterances.
    "delta_wer": ("delta_word_errors", "word_reference_length"),
    "delta_cer": ("delta_char_errors", "char_reference_length"),
}
_NOT_METRICS = frozenset(
    {"substitutions", "deletions", "insertions", "reference_length", "loop", "hallucination", "empty", "truncated"}
)
_CUT_OFF = re.compile(r"_at_[1-9]\d*$")
On = Literal["all", "intersection"]


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric of two systems: the values `a` and `b`, and their `comparison`. `p_holm` is NaN until corrected.

    `left_out` items have the metric on one side only: they failed on the other, or it lacks them (`on="intersection"`).
    """

    metric: str
    a: float
    b: float
    comparison: Comparison
    p_holm: float
    left_out: int


@dataclass(frozen=True, slots=True)
class _Setup:
    subsets: Mapping[str, str] | None
    clusters: Mapping[str, Hashable] | None
    on: On
    seed: int
    resamples: int
    permutations: int
    method: Method


def metric_names(a: Items, b: Items) -> list[str]:
    """What can be compared: error rates from their counts, ranking metrics, or else every field that both sides have.

    >>> metric_names({"u": {"word_errors": 1, "word_reference_length": 4}}, {"u": {"word_errors": 0,
    ...     "word_reference_length": 4}})
    ['wer', 'wer_macro']
    """
    fields = [field for field in _fields(a) if field in set(_fields(b))]
    rates = [
        name
        for rate, (errors, length) in RATE_FIELDS.items()
        if errors in fields and length in fields
        for name in (rate, f"{rate}_macro")
    ]
    ranking = [field for field in fields if _CUT_OFF.search(field)]
    counted = {field for pair in RATE_FIELDS.values() for field in pair} | _NOT_METRICS
    return rates + ranking or [field for field in fields if field not in counted]


def _fields(items: Items) -> list[str]:
    return list(dict.fromkeys(field for row in items.values() for field, value in row.items() if not math.isnan(value)))


def compare_items(
    a: Items,
    b: Items,
    metrics: Sequence[str] | None = None,
    *,
    subsets: Mapping[str, str] | None = None,
    clusters: Mapping[str, Hashable] | None = None,
    on: On = "all",
    seed: int = 0,
    resamples: int = 1000,
    permutations: int = 10_000,
    method: Method = "percentile",
) -> list[MetricComparison]:
    """Compare two systems on each of `metrics` (None: all of `metric_names`), with p-values corrected over them.

    `subsets` maps ids to subsets, over whose means ranking metrics are averaged unweighted; `clusters` ids to what is
    flipped and resampled together. An item whose value is NaN on both sides is left out of that metric, and one that
    failed on a side (a reference length, and errors of NaN) out of the error rates of both. Other differences between
    the two sets of ids raise `DataError`, or are left out with `on="intersection"`. Raises `DataError` if the reference
    lengths of an utterance differ, `UnknownNameError` for a metric.

    >>> rows = {"q1": {"ndcg_at_10": 1.0}, "q2": {"ndcg_at_10": 0.5}}
    >>> found = compare_items(rows, {"q1": {"ndcg_at_10": 0.0}, "q2": {"ndcg_at_10": 0.5}})
    >>> found[0].metric, found[0].a, found[0].b, found[0].comparison.n
    ('ndcg_at_10', 0.75, 0.25, 2)
    """
    pair_ids(a, b, on)
    known = metric_names(a, b)
    if not known:
        raise DataError("the two sides have no metric in common.", hint="Score both with the same metrics.")
    for name in metrics or ():
        if name not in known:
            raise unknown_name("metric", name, known)
    setup = _Setup(subsets, clusters, on, seed, resamples, permutations, method)
    return correct([_compare(name, a, b, setup) for name in metrics or known])


def _compare(name: str, a: Items, b: Items, setup: _Setup) -> MetricComparison:
    failed = [_failed(side, name) for side in (a, b)]
    if any(failed):
        a, b = ({id_: row for id_, row in side.items() if id_ not in failed[0] | failed[1]} for side in (a, b))
    found = (_compare_rate if name in RATE_FIELDS else _compare_mean)(name, a, b, setup)
    return replace(found, left_out=found.left_out + len(failed[0] ^ failed[1]))


def _failed(items: Items, metric: str) -> set[str]:
    """The items that failed on a side; none of a metric that is no error rate."""
    if metric.removesuffix("_macro") not in RATE_FIELDS:
        return set()
    errors, length = RATE_FIELDS[metric.removesuffix("_macro")]
    return {
        id_
        for id_, row in items.items()
        if math.isnan(row.get(errors, 0.0)) and not math.isnan(row.get(length, math.nan))
    }


def correct(found: Sequence[MetricComparison]) -> list[MetricComparison]:
    adjusted = holm({str(place): one.comparison.p_value for place, one in enumerate(found)})
    return [replace(one, p_holm=adjusted[str(place)]) for place, one in enumerate(found)]


def _values(items: Items, metric: str) -> dict[str, float]:
    rate = RATE_FIELDS.get(metric.removesuffix("_macro")) if metric.endswith("_macro") else None
    if rate is None:
        values = {id_: row.get(metric, math.nan) for id_, row in items.items()}
    else:
        values = {id_: _ratio(row, *rate) for id_, row in items.items()}
    infinite = next((id_ for id_, value in values.items() if math.isinf(value)), None)
    if infinite is not None:
        raise DataError(f"{metric} of {infinite!r} is infinite.", hint="Give finite numbers.")
    return {id_: value for id_, value in values.items() if not math.isnan(value)}


def _ratio(row: Mapping[str, float], errors: str, length: str) -> float:
    long = row.get(length, math.nan)
    return row.get(errors, math.nan) / long if long else math.nan


def _pairs(metric: str, a: Mapping[str, object], b: Mapping[str, object], on: On) -> tuple[list[str], int]:
    try:
        ids = pair_ids(a, b, on)
    except DataError as error:
        raise DataError(f"{metric}: {error.message}", hint=error.hint) from error
    return ids, len(a) + len(b) - 2 * len(ids)


def _labels(ids: Sequence[str], clusters: Mapping[str, Hashable] | None) -> dict[str, Hashable] | None:
    if clusters is None:
        return None
    absent = next((id_ for id_ in ids if id_ not in clusters), None)
    if absent is not None:
        raise DataError(f"id {absent!r} has no cluster.", hint="Give a label for every id.")
    return {id_: clusters[id_] for id_ in ids}


def _compare_mean(name: str, a: Items, b: Items, setup: _Setup) -> MetricComparison:
    left, right = _values(a, name), _values(b, name)
    ids, left_out = _pairs(name, left, right, setup.on)
    labels = _labels(ids, setup.clusters)
    strata: dict[str, list[str]] = {}
    for id_ in ids:
        strata.setdefault("" if setup.subsets is None or name.endswith("_macro") else setup.subsets[id_], []).append(
            id_
        )
    if len(strata) == 1:
        test = compare(
            {i: left[i] for i in ids},
            {i: right[i] for i in ids},
            clusters=labels,
            seed=setup.seed,
            resamples=setup.resamples,
            permutations=setup.permutations,
            method=setup.method,
        )
    else:
        test = compare_strata(
            {s: {i: left[i] for i in own} for s, own in strata.items()},
            {s: {i: right[i] for i in own} for s, own in strata.items()},
            None if labels is None else {s: {i: labels[i] for i in own} for s, own in strata.items()},
            seed=setup.seed,
            resamples=setup.resamples,
            permutations=setup.permutations,
            method=setup.method,
        )
    means = [
        math.fsum(math.fsum(side[i] for i in own) / len(own) for own in strata.values()) / len(strata)
        for side in (left, right)
    ]
    return MetricComparison(name, means[0], means[1], test, math.nan, left_out)


def _compare_rate(name: str, a: Items, b: Items, setup: _Setup) -> MetricComparison:
    errors, length = RATE_FIELDS[name]
    sides = [
        {i: row for i, row in side.items() if not math.isnan(row.get(errors, math.nan) + row.get(length, math.nan))}
        for side in (a, b)
    ]
    ids, left_out = _pairs(name, sides[0], sides[1], setup.on)
    lengths = np.array([sides[0][i][length] for i in ids])
    other = np.array([sides[1][i][length] for i in ids])
    if (lengths != other).any():
        odd = int(np.argmax(lengths != other))
        raise DataError(
            f"{name}: the reference of {ids[odd]!r} has {lengths[odd]:g} tokens on one side and "
            f"{other[odd]:g} on the other.",
            hint="Score both with the same references, normalizer and unit.",
        )
    total = float(lengths.sum())
    if not total:
        raise UsageError(f"{name} is undefined: all references are empty.", hint="Choose other metrics.")
    wrong = [np.array([side[i][errors] for i in ids]) for side in sides]
    labels = _labels(ids, setup.clusters)
    listed = None if labels is None else list(labels.values())
    delta = wrong[0] - wrong[1]
    test = paired_permutation(wrong[0], wrong[1], listed, seed=setup.seed, permutations=setup.permutations)
    interval: Interval = bootstrap_interval(
        np.column_stack([delta, lengths]),
        lambda sums: sums[..., 0] / sums[..., 1],
        listed,
        seed=setup.seed,
        resamples=setup.resamples,
        method=setup.method,
    )
    # To first order the rates differ by the mean of (difference of errors − rate difference · length) / mean length.
    difference = float(delta.sum()) / total
    spread = standard_error((delta - difference * lengths) / (total / len(ids)), listed)
    comparison = Comparison(difference, interval, test.p_value, test.exact, detectable_difference(spread), len(ids))
    rates = [float(side.sum()) / total for side in wrong]
    return MetricComparison(name, rates[0], rates[1], comparison, math.nan, left_out)
