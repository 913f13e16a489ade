"""A retriever chosen by query, by the confidence that the transcriber has in its transcript."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property
from typing import Literal, TypeGuard

from ....errors import UsageError
from ....loaders.corpus import as_corpus
from ....loaders.records import Document
from ...protocols import ComponentSpec, Hit, Retriever
from .composite import loaded_part

AUTO = "auto"
TYPED = 1.0
"""The confidence of a query that was typed."""


class RouteRetriever:
    """`below` searches for queries whose transcript has a confidence below `threshold`, `otherwise` for all others.

    Both are retrievers or their names. The confidence is the geometric mean probability of the transcript's tokens
    (`Transcript.confidence`), of a typed query 1. `threshold` is in [0, 1], or "auto": fitted on a part of the queries
    that is not scored (`squtr evaluate --dev-fraction`). A query whose transcript has no confidence fails.

    In a chain it is the whole retriever, and no part of another: which part searches is no matter of the text alone.
    """

    def __init__(
        self, *, below: Retriever | str, otherwise: Retriever | str, threshold: float | Literal["auto"]
    ) -> None:
        if isinstance(threshold, str) and threshold != AUTO:
            raise UsageError(f"the threshold of a route is {threshold!r}.", hint="Give a number in [0, 1], or auto.")
        if not isinstance(threshold, str) and not 0 <= threshold <= 1:
            raise UsageError(f"the threshold of a route is {threshold}.", hint="Give a number in [0, 1], or auto.")
        self.routed: tuple[Retriever, Retriever] = (loaded_part(below), loaded_part(otherwise))
        self.threshold: float | None = None if isinstance(threshold, str) else float(threshold)
        if self.routed[0].spec.fingerprint == self.routed[1].spec.fingerprint:
            raise UsageError("both ways of a route are the same retriever.", hint="Give that retriever alone.")

    @cached_property
    def spec(self) -> ComponentSpec:
        shown = AUTO if self.threshold is None else self.threshold
        below, otherwise = (part.spec for part in self.routed)
        settings = {
            "parts": [below.as_dict(), otherwise.as_dict()],
            "rule": "confidence < threshold ? parts[0] : parts[1]",
            "threshold": shown,
        }
        name = f"route(confidence < {shown:g}" if isinstance(shown, float) else f"route(confidence < {shown}"
        return ComponentSpec("retriever", "route", f"{name} ? {below.name} : {otherwise.name})", settings=settings)

    def supports(self, language: str) -> bool:
        return all(part.supports(language) for part in self.routed)

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        corpus = as_corpus(documents)
        for part in self.routed:
            part.index(corpus, language=language)

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """As for typed queries. Raises `UsageError` where the threshold is not fitted."""
        return self.routed[chosen_part(TYPED, self.threshold)].search(queries, k=k)


def is_route(retriever: object) -> TypeGuard[RouteRetriever]:
    return isinstance(retriever, RouteRetriever)


def chosen_part(confidence: float, threshold: float | None) -> int:
    """0 below the threshold, else 1. Raises `UsageError` for a confidence or threshold that is not known."""
    if threshold is None:
        raise UsageError(
            "the threshold of a route is auto, and was not fitted.",
            hint="Fit it on queries that are not scored: squtr evaluate --dev-fraction 0.2, or give a number.",
        )
    if math.isnan(confidence):
        raise UsageError("a transcript has no confidence.", hint="Take a transcriber that tells it.")
    return 0 if confidence < threshold else 1


def fitted_threshold(confidences: Sequence[float], below: Sequence[float], otherwise: Sequence[float]) -> float:
    """The threshold in [0, 1] with the highest sum of scores, of ties the lowest; 0.0 for no queries.

    Query i has a confidence in [0, 1] and scores `below[i]` and `otherwise[i]` by either retriever; a query of weight w
    comes with scores times w. What is tried are 0 (no query is below), the middles between neighboring confidences, and
    1 (every query is below that has less).

    >>> fitted_threshold([0.2, 0.4, 0.9], [1.0, 1.0, 0.0], [0.0, 0.5, 1.0])
    0.65
    """
    levels = sorted(set(confidences))
    candidates = [0.0, *((a + b) / 2 for a, b in itertools.pairwise(levels)), 1.0]
    best = (-math.inf, 0.0)
    for threshold in candidates:
        pairs = zip(confidences, below, otherwise, strict=True)
        total = math.fsum(low if confidence < threshold else high for confidence, low, high in pairs)
        # Sums that differ by rounding alone are ties.
        if total > best[0] + 1e-12 * max(1.0, abs(best[0])) or best[0] == -math.inf:
            best = (total, threshold)
    return best[1]
