"""Thresholds of routes, fitted on queries that are held out from all scores."""

from __future__ import annotations

import math

from ....errors import DataError, ModelError, SqutrError, StorageError
from ...components.retrievers.route import fitted_threshold
from ...metrics.registry import Metric
from ...results.envelope import TEXT_CONDITION
from ...systems.system import System
from .outputs import Stages, retrieved_rows
from .plan import Fitted, RetrievalPlan
from .routing import NO_CONFIDENCE, route_of
from .scoring import ranking_values


def fit_thresholds(plan: RetrievalPlan, dev: RetrievalPlan, stages: Stages, metric: Metric) -> None:
    """Fit the threshold of every route that has none, per language, and note it in the plan; or why it failed."""
    for system in dev.systems:
        for language in dict.fromkeys(dev.language(subset) for subset, _ in dev.cells(system)):
            route = route_of(system, language)
            if route is None or route.threshold is not None:
                continue
            try:
                plan.fitted[system.name, language] = _fitted(dev, stages, system, language, metric)
            except StorageError:
                raise
            except SqutrError as error:
                plan.fitted[system.name, language] = error


def _fitted(dev: RetrievalPlan, stages: Stages, system: System, language: str, metric: Metric) -> Fitted:
    """By the metric over all conditions of audio; subsets weigh the same, as they do in scores."""
    by_subset: dict[str, list[tuple[float, float, float]]] = {}
    for cell in dev.cells(system):
        if dev.language(cell[0]) != language or cell[1] == TEXT_CONDITION:
            continue
        parts = [retrieved_rows(dev, stages, system, cell, part) for part in (0, 1)]
        low, high = (ranking_values(rows, dev.qrels(cell[0]), [metric]).per_query[metric.name] for rows in parts)
        for one in parts[0]:
            # What was not decoded finds nothing either way; a query without relevant documents has no score.
            if one.transcript is None or one.error or not one.transcript.text.strip() or one.query.id not in low:
                continue
            confidence = one.transcript.confidence
            if math.isnan(confidence):
                raise ModelError(f"query {one.query.id!r} of {' under '.join(cell)}: {NO_CONFIDENCE}.")
            by_subset.setdefault(cell[0], []).append((confidence, low[one.query.id], high[one.query.id]))
    rows = [(c, a / len(own), b / len(own)) for own in by_subset.values() for c, a, b in own]
    if not rows:
        raise DataError(
            f"no held-out query in {language!r} can be used to fit the threshold of {system.name}.",
            hint="Hold out more, or give the threshold as a number.",
        )
    confidences, below, otherwise = zip(*rows, strict=True)
    return Fitted(fitted_threshold(confidences, below, otherwise), len(rows), metric.name)
