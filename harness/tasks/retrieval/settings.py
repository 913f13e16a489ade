"""What is computed of every run of an evaluation of retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...evaluation.task import Request
from ...metrics.registry import Metric
from .plan import depth_for, metrics_of
from .summary import Statistics


@dataclass(frozen=True, slots=True)
class Settings:
    metrics: Sequence[Metric]
    depth: int
    statistics: Statistics

    @classmethod
    def of(cls, request: Request) -> Settings:
        metrics, options = metrics_of(request), request.options
        statistics = Statistics(metrics, options.seed, options.resamples)
        return cls(metrics, depth_for(request, metrics), statistics)
