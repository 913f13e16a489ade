"""Robustness: what a condition costs, paired by query, and how scores spread over conditions."""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...errors import DataError
from .statistics import Interval, Method, difference_interval


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


def pair_ids(a: Mapping[str, object], b: Mapping[str, object], on: Literal["all", "intersection"] = "all") -> list[str]:
    """The ids that both have, in the order of `a`.

    With `on="all"` different id sets raise `DataError` naming one; `on="intersection"` keeps what both have, and raises
    only if that is nothing.
    """
    common = [id_ for id_ in a if id_ in b]
    if on == "all" and (len(common) != len(a) or len(common) != len(b)):
        odd = next((i for i in a if i not in b), None) or next(i for i in b if i not in a)
        raise DataError(
            f"the two sets of items differ ({len(a)} and {len(b)}, {len(common)} in common); {odd!r} is in one only.",
            hint='Score the same items, or compare on="intersection".',
        )
    if not common:
        raise DataError("the two sets have no item in common.", hint="Check that the ids are of the same data set.")
    return common


def loss(
    per_query_condition: Mapping[str, float],
    per_query_baseline: Mapping[str, float],
    *,
    on: Literal["all", "intersection"] = "all",
    clusters: Mapping[str, Hashable] | None = None,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
) -> Loss:
    """Loss of one condition against a baseline (`clean` or `text`), of scores where more is better.

    Paired by query id. `clusters` maps ids to what is drawn together (a speaker).

    >>> found = loss({"a": 0.5, "b": 0.4}, {"a": 1.0, "b": 0.8})
    >>> round(found.absolute, 6), round(found.relative, 6), found.n
    (0.45, 0.5, 2)
    """
    ids = pair_ids(per_query_condition, per_query_baseline, on)
    condition = [per_query_condition[i] for i in ids]
    baseline = [per_query_baseline[i] for i in ids]
    labels = None if clusters is None else [clusters[i] for i in ids]
    # mean(baseline) - mean(condition), and the same over mean(baseline): the sign is turned once, here.
    shown = [
        difference_interval(
            condition, baseline, labels, relative=relative, seed=seed, resamples=resamples, method=method
        )
        for relative in (False, True)
    ]
    n = len(ids)
    absolute = (math.fsum(baseline) - math.fsum(condition)) / n
    mean = math.fsum(baseline) / n
    return Loss(
        absolute=absolute,
        relative=absolute / mean if mean else math.nan,
        interval_absolute=_negated(shown[0]),
        interval_relative=_negated(shown[1]),
        n=n,
    )


def loss_by_group(
    per_query_condition: Mapping[str, float],
    per_query_baseline: Mapping[str, float],
    groups: Mapping[str, str],
    *,
    clusters: Mapping[str, Hashable] | None = None,
    seed: int = 0,
    resamples: int = 1000,
    method: Method = "percentile",
) -> dict[str, Loss]:
    """The loss of each group of queries (a noise family, a speaker, an RT60 bin), groups in sorted order.

    `groups` maps every query id to its group; "" leaves a query out. `clusters` as in `loss`. Raises `DataError` if
    the ids differ.

    >>> found = loss_by_group({"a": 0.5, "b": 1.0}, {"a": 1.0, "b": 1.0}, {"a": "babble", "b": "pink"})
    >>> {group: lost.absolute for group, lost in found.items()}
    {'babble': 0.5, 'pink': 0.0}
    """
    members: dict[str, list[str]] = {}
    pair_ids(per_query_condition, groups)
    for id_ in pair_ids(per_query_condition, per_query_baseline):
        if groups[id_]:
            members.setdefault(groups[id_], []).append(id_)
    return {
        group: loss(
            {i: per_query_condition[i] for i in members[group]},
            {i: per_query_baseline[i] for i in members[group]},
            clusters=clusters,
            seed=seed,
            resamples=resamples,
            method=method,
        )
        for group in sorted(members)
    }


def bin_label(value: float, edges: Sequence[float], unit: str = "") -> str:
    """The bin [low, high) of `edges` (ascending) that holds `value`, as a label; "" for NaN.

    >>> bin_label(0.42, (0.2, 0.4, 0.8), "s"), bin_label(0.1, (0.2, 0.4)), bin_label(9, (0.2, 0.4))
    ('0.4-0.8 s', '<0.2', '>=0.4')
    """
    if math.isnan(value):
        return ""
    suffix = f" {unit}" if unit else ""
    place = bisect.bisect_right(edges, value)
    if place == 0:
        return f"<{edges[0]:g}{suffix}"
    if place == len(edges):
        return f">={edges[-1]:g}{suffix}"
    return f"{edges[place - 1]:g}-{edges[place]:g}{suffix}"


def _negated(interval: Interval) -> Interval:
    return Interval(-interval.high, -interval.low)


def _sample_std(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else math.nan


def sigma_within(means: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Sample standard deviation (ddof 1) over conditions, per language.

    `means` maps (language, condition) to a mean score. `text` is not a condition of the air and is left out. NaN for a
    language with fewer than two conditions.

    >>> sigma_within({("en", "clean"): 0.5, ("en", "high_noise"): 0.3, ("en", "text"): 0.9})["en"].__round__(4)
    0.1414
    """
    by_language: dict[str, list[float]] = {}
    for (language, condition), mean in means.items():
        values = by_language.setdefault(language, [])
        if condition != "text":
            values.append(mean)
    return {language: _sample_std(values) for language, values in by_language.items()}


def sigma_pooled(means: Mapping[tuple[str, str], float]) -> float:
    """Sample standard deviation (ddof 1) over all language × condition means, as SQuTR (arXiv 2602.12783) publishes it.

    It mixes the difference between languages with that between conditions: read it beside `sigma_within`.

    >>> sigma_pooled({("en", "clean"): 0.5, ("zh", "clean"): 0.7}).__round__(4)
    0.1414
    """
    return _sample_std([mean for (_, condition), mean in means.items() if condition != "text"])
