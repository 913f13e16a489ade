"""Hybrid retrieval: several retrievers, one ranking."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import UsageError, unknown_name
from ..protocols import ComponentSpec, DocumentLookup, Hit, Retriever, Setting
from .composite import Composite, retriever_of
from .fusion import METHODS, NORMALISATIONS, RRF_CONSTANT, Method, Normalisation, checked_weights, fuse
from .ranking import checked_k

DEPTH = 100
"""Hits of every part that are fused, if more are not asked for."""


class HybridRetriever(Composite):
    """Fuses the rankings of two or more retrievers.

    `parts` are retrievers, or names such as `bm25`. `method` is `rrf` (reciprocal ranks, with `constant`) or `score`
    (the weighted sum of scores after `normalisation`: `min-max`, `z` or `none`), both in `fusion`. `weights` are one
    per part, all 1 by default. `depth` is how many hits of every part are fused at least.

    Raises `UsageError` for fewer than two parts or equal ones, weights that do not fit, or an unknown method.
    """

    def __init__(
        self,
        *,
        parts: Sequence[Retriever | str],
        method: Method = "rrf",
        weights: Sequence[float] | None = None,
        depth: int = DEPTH,
        constant: float = RRF_CONSTANT,
        normalisation: Normalisation = "min-max",
    ) -> None:
        if isinstance(parts, str) or len(parts) < 2:
            raise UsageError("a hybrid combines at least two retrievers.", hint="Give a list of them as parts.")
        if method not in METHODS:
            raise unknown_name("fusion method", method, METHODS)
        if normalisation not in NORMALISATIONS:
            raise unknown_name("normalisation", normalisation, NORMALISATIONS)
        checked_k(depth)
        super().__init__([retriever_of(part) for part in parts])
        self._method: Method = method
        self._weights = checked_weights(weights, len(parts))
        self._depth = depth
        self._constant = constant
        self._normalisation: Normalisation = normalisation

    @property
    def spec(self) -> ComponentSpec:
        """What decides the ranking: the parts' specs and how they are fused."""
        specs = [part.spec for part in self.parts]
        if len({spec.fingerprint for spec in specs}) < len(specs):
            raise UsageError("two parts of a hybrid are the same retriever.", hint="Leave one out.")
        how: dict[str, Setting] = (
            {"constant": self._constant} if self._method == "rrf" else {"normalisation": self._normalisation}
        )
        settings: dict[str, Setting] = {
            "depth": self._depth,
            "method": self._method,
            "parts": [spec.as_dict() for spec in specs],
            "weights": self._weights,
            **how,
        }
        name = f"{self._method}({', '.join(spec.name for spec in specs)})"
        return ComponentSpec("retriever", "hybrid", name, settings=settings)

    def part_depth(self, k: int) -> int:
        """At least `depth`."""
        return max(k, self._depth)

    def combine(
        self,
        queries: Sequence[str],
        rankings: Sequence[Sequence[Sequence[Hit]]],
        documents: DocumentLookup,
        *,
        k: int,
    ) -> list[list[Hit]]:
        """The fusion of the parts' rankings, query by query. A part that found nothing adds nothing."""
        return [
            fuse(
                [part[i] for part in rankings],
                method=self._method,
                k=k,
                weights=self._weights,
                constant=self._constant,
                normalisation=self._normalisation,
            )
            for i in range(len(queries))
        ]
