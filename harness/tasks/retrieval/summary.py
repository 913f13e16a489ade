"""From the per-item scores of a run to its scores, losses and groups, with intervals.

Over several subsets, ranking metrics are the unweighted mean of the subsets' means (as published). Error rates are
computed over all utterances with a transcript: corpus rates from summed counts, macro rates as the mean of the
utterances' own rates; where some failed, with bounds. In a group of a breakdown all items weigh the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...evaluation.groups import group_members
from ...metrics.error_counts import ErrorCounts
from ...metrics.failed_items import Bounds, rate_bounds
from ...metrics.registry import Metric, metric_of
from ...metrics.statistics import Interval, corpus_rate_interval, mean_interval
from ...metrics.stratified import unweighted_loss, unweighted_mean, unweighted_mean_interval
from ...results.envelope import Group, Loss, Score
from .columns import RATES
from .scoring import SubsetScores, Values

Scored = Mapping[str, SubsetScores]
"""By subset."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What is computed, and how intervals are drawn."""

    metrics: Sequence[Metric]
    seed: int
    resamples: int

    def scores(self, strata: Mapping[str, Values]) -> dict[str, Score]:
        """The metrics over subsets, without those that do not apply (words in Chinese, no transcripts)."""
        found: dict[str, Score] = {}
        rewritten = [metric_of(metric.name.replace(name, f"{name}_rewritten")) for metric in self.metrics
                     for name in ("wer", "cer") if metric.family.name == name]  # fmt: skip
        for metric in (*self.metrics, *rewritten):
            score = self._ranking_score(strata, metric) if metric.is_ranking else self._rate(strata, metric)
            if score is not None:
                found[metric.name] = score
        return found

    def _ranking_score(self, strata: Mapping[str, Values], metric: Metric) -> Score:
        values = _by_subset(strata, metric)
        interval = unweighted_mean_interval(values, _labels(strata), seed=self.seed, resamples=self.resamples)
        return _score(unweighted_mean(values), interval, sum(map(len, values.values())))

    def _rate(self, strata: Mapping[str, Values], metric: Metric) -> Score | None:
        unit = RATES[metric.family.name]
        counted = {subset: own.errors.get(unit, {}) for subset, own in strata.items()}
        failed = [length for own in strata.values() for length in own.failed.get(unit, {}).values()]
        pairs = [(strata[s].clusters[id_], count) for s, own in counted.items() for id_, count in own.items()]
        bounds = _rate_bounds([count for _, count in pairs], failed, metric)
        if metric.macro:
            pairs = [(cluster, count) for cluster, count in pairs if count.reference_length > 0]
        if not pairs:
            return None if bounds is None else Score(value=None, n=0, bounds=bounds)
        counts = [count for _, count in pairs]
        labels = None if _labels(strata) is None else [cluster for cluster, _ in pairs]
        if not metric.macro:
            interval = corpus_rate_interval(counts, labels, seed=self.seed, resamples=self.resamples)
            return _score(sum(counts, ErrorCounts.zero()).rate, interval, len(counts), bounds)
        rates = np.array([count.rate for count in counts])
        interval = mean_interval(rates, labels, seed=self.seed, resamples=self.resamples)
        return _score(float(rates.mean()), interval, rates.size, bounds)

    def losses(self, strata: Mapping[str, Values], baseline: Mapping[str, Values]) -> dict[str, Loss]:
        """What is lost against a baseline per ranking metric, paired by item and aggregated as the scores are."""
        found: dict[str, Loss] = {}
        for metric in self.metrics:
            here = _by_subset(strata, metric)
            if not any(here.values()):
                continue
            there = {
                subset: {id_: _paired(baseline[subset], metric, id_, strata[subset].clusters) for id_ in own}
                for subset, own in here.items()
            }
            lost = unweighted_loss(here, there, _labels(strata), seed=self.seed, resamples=self.resamples)
            found[metric.name] = Loss(
                absolute=_score(lost.absolute, lost.interval_absolute, lost.n),
                relative=_score(lost.relative, lost.interval_relative, lost.n),
            )
        return found

    def groups(
        self,
        scored: Scored,
        baselines: Mapping[str, Scored],
        breakdowns: Sequence[str],
        edges: Mapping[str, Sequence[float]],
    ) -> dict[str, list[Group]]:
        """The groups of every breakdown that says something of these rows; of a single subset too."""
        found = {
            "subset": [
                self._group(
                    Group(label=subset, n=len(own.rows), clusters=0, counts=_failed(own.rows)),
                    {subset: own.values},
                    {name: {subset: other[subset].values} for name, other in baselines.items()},
                )
                for subset, own in scored.items()
            ]
        }
        places = [(subset, str(row["id"])) for subset, own in scored.items() for row in own.rows]
        spoken = [row for own in scored.values() for row in own.spoken if row is not None]
        if len(spoken) < len(places):
            return found
        whole = {name: _pooled(other, None) for name, other in baselines.items()}
        rows = [row for own in scored.values() for row in own.rows]
        for breakdown in breakdowns:
            members = group_members(spoken, breakdown, edges) if breakdown != "subset" else []
            if members:
                found[breakdown] = [
                    self._group(
                        Group(
                            label=one.label,
                            low=one.low,
                            high=one.high,
                            n=len(one.rows),
                            clusters=0,
                            counts=_failed([rows[place] for place in one.rows]),
                        ),
                        _pooled(scored, [places[row] for row in one.rows]),
                        whole,
                    )
                    for one in members
                ]
        return found

    def _group(
        self, group: Group, strata: Mapping[str, Values], baselines: Mapping[str, Mapping[str, Values]]
    ) -> Group:
        return group.model_copy(
            update={
                "clusters": sum(len(set(own.clusters.values())) for own in strata.values()),
                "scores": self.scores(strata),
                "losses": {name: self.losses(strata, other) for name, other in baselines.items()},
            }
        )


def _failed(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    failed = sum(bool(row["error"]) for row in rows)
    return {"failed": failed} if failed else {}


def _by_subset(strata: Mapping[str, Values], metric: Metric) -> dict[str, Mapping[str, float]]:
    """A ranking metric's values; {} of another metric."""
    return {subset: own.ranking.get(metric.name, {}) for subset, own in strata.items()}


def _labels(strata: Mapping[str, Values]) -> dict[str, Mapping[str, str]] | None:
    """What is drawn together, None where every item is drawn alone."""
    if all(id_ == cluster for own in strata.values() for id_, cluster in own.clusters.items()):
        return None
    return {subset: own.clusters for subset, own in strata.items()}


def _paired(baseline: Values, metric: Metric, id_: str, clusters: Mapping[str, str]) -> float:
    """The baseline's value of the same row, or of its utterance where the baseline has one row for all RIRs."""
    values = baseline.ranking[metric.name]
    return values[id_] if id_ in values else values[clusters[id_]]


def _pooled(scored: Scored, places: Sequence[tuple[str, str]] | None) -> dict[str, Values]:
    """The values of items (subset and id; None: all) of all subsets as one stratum, ids led by their subset."""
    own = {subset: None if places is None else {i for s, i in places if s == subset} for subset in scored}

    def taken(part: str, name: str = "") -> dict[str, Any]:
        found: dict[str, Any] = {}
        for subset, one in scored.items():
            table = getattr(one.values, part)
            table = table.get(name, {}) if name else table
            kept = own[subset]
            found |= {f"{subset}/{id_}": value for id_, value in table.items() if kept is None or id_ in kept}
        return found

    names = {name for one in scored.values() for name in one.values.ranking}
    clusters = {id_: f"{id_.partition('/')[0]}/{cluster}" for id_, cluster in taken("clusters").items()}
    ranking = {name: taken("ranking", name) for name in names}
    errors, failed = ({unit: taken(part, unit) for unit in RATES.values()} for part in ("errors", "failed"))
    return {"": Values(ranking, errors, clusters, failed)}


def _rate_bounds(counts: Sequence[ErrorCounts], failed: Sequence[int], metric: Metric) -> Bounds | None:
    errors = [float(count.errors) for count in counts] + [math.nan] * len(failed)
    return rate_bounds(errors, [count.reference_length for count in counts] + list(failed), macro=metric.macro)


def _score(value: float, interval: Interval, n: int, bounds: Bounds | None = None) -> Score:
    return Score.of(value, interval.low, interval.high, n, bounds=bounds)
