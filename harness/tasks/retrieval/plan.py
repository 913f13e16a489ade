"""What is retrieved for: systems that search, metrics, depth, and the normalizer of the error rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ....errors import DataError, SqutrError, UsageError
from ...components.retrievers.route import is_route
from ...evaluation.options import DEFAULT_DEPTH
from ...evaluation.plan import SpeechPlan, make_plan
from ...evaluation.task import Request
from ...metrics.registry import Metric, depth_of, parse_metric
from ...results.envelope import TEXT_CONDITION
from ...systems.system import System


@dataclass(frozen=True, slots=True)
class Fitted:
    """A threshold, and what it was fitted on: `n` spoken queries, by this metric."""

    threshold: float
    n: int
    metric: str


@dataclass(frozen=True, slots=True)
class RetrievalPlan(SpeechPlan):
    """`fitting` is the plan of the held-out queries and the systems that have a threshold to fit, None if none has.

    `fitted` has what came of that, by system and language, once it is done.
    """

    fitting: RetrievalPlan | None = None
    fitted: dict[tuple[str, str], Fitted | SqutrError] = field(default_factory=dict)

    def threshold(self, system: System, language: str) -> float | None:
        """The threshold of a system's route. Raises why it was not fitted."""
        found = self.fitting_of(system, language)
        if found is not None:
            return found.threshold
        retriever = system.for_language(language).searcher
        return retriever.threshold if is_route(retriever) else None

    def fitting_of(self, system: System, language: str) -> Fitted | None:
        """What was fitted, None for a threshold that was given. Raises why it was not fitted."""
        found = self.fitted.get((system.name, language))
        if isinstance(found, SqutrError):
            raise found
        return found


def retrieval_plan(request: Request) -> RetrievalPlan:
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
    open_ = [system for system in request.systems if _is_open(system)]
    if open_ and not request.options.dev_fraction:
        raise UsageError(
            f"the threshold of {open_[0].name} is auto, and there are no queries to fit it on.",
            hint="Hold some out: --dev-fraction 0.2, or give the threshold as a number.",
        )
    made = make_plan(request, fits=_fits, with_text=True)
    plan = RetrievalPlan(made.request, made.data, made.configs, made.runnable, made.dev, fitting=_fitting(made, open_))
    for subset in dict.fromkeys(subset for subsets, _ in plan.configs.values() for subset in subsets):
        if not plan.data.has_corpus(subset):
            raise DataError(f"{subset} has no corpus to retrieve from.", hint="Choose configs of other subsets.")
    return plan


def _is_open(system: System) -> bool:
    """Whether it has a route whose threshold is to be fitted."""
    return any(is_route(one.searcher) and one.searcher.threshold is None for one in system.distinct)


def _fitting(plan: SpeechPlan, systems: Sequence[System]) -> RetrievalPlan | None:
    """What these systems do with the held-out queries: all configs of audio that they are evaluated on."""
    if not systems or plan.dev is None:
        return None
    spoken = {name: own for name, own in plan.configs.items() if own[1] != TEXT_CONDITION}
    runnable = {s.name: [name for name in plan.runnable[s.name] if name in spoken] for s in systems}
    return RetrievalPlan(replace(plan.request, systems=systems), plan.dev, spoken, runnable)


def _fits(system: System, condition: str) -> bool:
    """A precomputed run says what was retrieved for spoken queries; for typed ones only where that is asked for."""
    return condition != TEXT_CONDITION or all(one.precomputed_run is None for one in system.distinct)


def metrics_of(request: Request) -> list[Metric]:
    """The metrics, each once. Raises `UsageError` for what retrieval does not have, or if none is of a ranking."""
    found: dict[str, Metric] = {}
    for name in request.options.metrics or request.benchmark.metrics:
        metric = parse_metric(name)
        if not metric.is_ranking and (metric.family.name not in ("wer", "cer") or metric.kind):
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
