"""What is retrieved for: systems that search, metrics, depth, and the normalizer of the error rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....errors import DataError, UsageError
from ...evaluation.options import DEFAULT_DEPTH
from ...evaluation.plan import SpeechPlan, make_plan
from ...evaluation.task import Request
from ...metrics.registry import Metric, depth_of, parse_metric
from ...results.envelope import TEXT_CONDITION
from ...systems.system import System
from .summary import RATES, Statistics


def retrieval_plan(request: Request) -> SpeechPlan:
    """The plan; `text` is added by itself, but for precomputed runs. Raises `UsageError`, `DataError`."""
    for system in request.systems:
        if system.kind in ("transcriber", "answerer"):
            raise UsageError(
                f"{system.name} retrieves nothing, and this data is for retrieval.",
                hint=f"Add a retriever: '{system.name} + bm25'.",
            )
    request.options.refuse("option_orders", "baselines", "spoken", where="retrieval")
    chosen = metrics_of(request)
    depth_for(request, chosen)
    plan = make_plan(request, fits=_fits, with_text=True)
    for subset in dict.fromkeys(subset for subsets, _ in plan.configs.values() for subset in subsets):
        if not plan.data.has_corpus(subset):
            raise DataError(f"{subset} has no corpus to retrieve from.", hint="Choose configs of other subsets.")
    return plan


def _fits(system: System, condition: str) -> bool:
    """A precomputed run says what was retrieved for spoken queries; for typed ones only where that is asked for."""
    return condition != TEXT_CONDITION or all(one.precomputed_run is None for one in system.distinct)


def metrics_of(request: Request) -> list[Metric]:
    """The metrics, each once. Raises `UsageError` for what retrieval does not have, or if none is of a ranking."""
    found: dict[str, Metric] = {}
    for name in request.options.metrics or request.benchmark.metrics:
        metric = parse_metric(name)
        if not metric.is_ranking and (metric.family.name not in RATES or metric.kind):
            raise UsageError(f"{metric.name} does not apply to retrieval.", hint="For example ndcg_at_10, or wer.")
        found[metric.name] = metric
    if not any(metric.is_ranking for metric in found.values()):
        raise UsageError(
            f"{', '.join(found)}: none of these metrics is of a ranking.", hint="Name one more, for example ndcg_at_10."
        )
    return list(found.values())


def main_metric(metrics: Sequence[Metric]) -> Metric:
    """The first metric of a ranking: `text` has no other."""
    return next(metric for metric in metrics if metric.is_ranking)


def depth_for(request: Request, metrics: Sequence[Metric]) -> int:
    """How many documents are retrieved. Raises `UsageError` if the metrics look deeper than the depth given."""
    least, given = depth_of(metrics), request.options.depth
    if not given:
        return max(DEFAULT_DEPTH, least)
    if given < least:
        deepest = max(metrics, key=lambda metric: metric.depth)
        raise UsageError(
            f"the depth is {given}, and {deepest.name} looks at {least} documents.",
            hint=f"Give at least {least}, or leave --depth out.",
        )
    return given


def normalizer_of(request: Request, system: System, language: str) -> str:
    """The name of the text normalizer of a system's error rates, "" where there are no transcripts."""
    if system.kind != "cascade":
        return ""
    return request.options.normalizer or system.normalizer or request.benchmark.normalizer_of(language)


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
