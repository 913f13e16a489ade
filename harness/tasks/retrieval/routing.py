"""Which part of a route searches for a query, and the thresholds that are fitted on queries that are not scored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ....errors import ModelError
from ...components.retrievers.route import RouteRetriever, chosen_part, is_route
from ...evaluation.inference import Cell, Inferred
from ...evaluation.store import Ranking
from ...systems.system import System
from .plan import RetrievalPlan

if TYPE_CHECKING:
    from .outputs import Stages

NO_CONFIDENCE = "its transcript comes without a confidence, and the retriever is chosen by that"


def route_of(system: System, language: str) -> RouteRetriever | None:
    retriever = system.for_language(language).searcher
    return retriever if is_route(retriever) else None


def route_parts(
    plan: RetrievalPlan, system: System, cell: Cell, rows: Sequence[Inferred], part: int | None = None
) -> list[int | None]:
    """Which part searches for each row of spoken queries: 0 alone where there is no route, `part` where one is given.

    None is a row whose transcript has no confidence. Raises `ModelError` if no row has one, and why no threshold was
    fitted.
    """
    route = route_of(system, plan.language(cell[0]))
    if route is None or part is not None:
        return [part or 0] * len(rows)
    threshold = plan.threshold(system, plan.language(cell[0]))
    worded = [bool(one.transcript.text.strip()) for one in rows]
    told = [not math.isnan(one.transcript.confidence) for one in rows]
    if any(worded) and not any(t for w, t in zip(worded, told, strict=True) if w):
        name = system.components(plan.language(cell[0]))["transcriber"]["name"]
        raise ModelError(
            f"{name} does not tell how confident it is, and {route.spec.name} needs to know.",
            hint="Take another transcriber or backend, or a retriever that does not choose by confidence.",
        )
    # Nothing is searched with an empty transcript, whichever part it is.
    return [
        1 if not has_words else chosen_part(one.transcript.confidence, threshold) if known else None
        for one, has_words, known in zip(rows, worded, told, strict=True)
    ]


def typed_rankings(plan: RetrievalPlan, stages: Stages, system: System, subset: str) -> Mapping[str, Ranking]:
    """The rankings of typed queries: their confidence is 1, which is below no threshold."""
    return stages.rankings(plan, system, subset)[-1]
