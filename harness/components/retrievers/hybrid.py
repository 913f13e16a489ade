"""Hybrid retrieval: the rankings of several retrievers fused into one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

from ....errors import UsageError, unknown_name
from ...protocols import ComponentSpec, DocumentLookup, Hit, Retriever, Setting
from .composite import Composite, checked_rankings
from .fusion import METHODS, NORMALISATIONS, RRF_CONSTANT, Method, Normalization, checked_weights, fuse
from .ranking import checked_k


class HybridRetriever(Composite):
    """`parts` (retrievers or their names) fused by `method`: `rrf` by reciprocal ranks, `score` by scores.

    `weights` are one per part (None: all 1). `constant` is that of reciprocal rank fusion, `normalization` what scores
    go through before they are added (`fusion.score_fusion`). A document that a part did not find gets from that part
    less than any that it found, by either method. Of every part the best `depth` documents are fused, or as
    many as are asked for, if that is more.
    """

    def __init__(
        self,
        *,
        parts: Sequence[Retriever | str],
        method: Method = "rrf",
        weights: Sequence[float] | None = None,
        constant: float = RRF_CONSTANT,
        normalization: Normalization = "min-max",
        depth: int = 100,
    ) -> None:
        if isinstance(parts, str) or len(parts) < 2:
            raise UsageError("a hybrid combines at least two retrievers.", hint="Give their names as a list.")
        if method not in METHODS:
            raise unknown_name("fusion method", method, METHODS)
        if normalization not in NORMALISATIONS:
            raise unknown_name("normalization", normalization, NORMALISATIONS)
        if not (math.isfinite(constant) and constant > -1):
            raise UsageError(f"reciprocal rank fusion needs a constant above -1, not {constant}.")
        self._weights = checked_weights(weights, len(parts))
        super().__init__(parts, depth)
        self._method: Method = method
        self._constant = float(constant)
        self._normalization: Normalization = normalization

    @cached_property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            "depth": self._depth,
            "method": self._method,
            "parts": self._part_settings(),
            "weights": self._weights,
        }
        if self._method == "rrf":
            settings["constant"] = self._constant
        else:
            settings["normalization"] = self._normalization
            settings["absent"] = "below"
        names = ", ".join(part.spec.name for part in self._parts)
        return ComponentSpec("retriever", "hybrid", f"{self._method}({names})", settings=settings)

    def combine(
        self, queries: Sequence[str], rankings: Sequence[Sequence[Sequence[Hit]]], documents: DocumentLookup, *, k: int
    ) -> list[list[Hit]]:
        checked_k(k)
        checked_rankings(queries, rankings, self._parts)
        return [
            fuse(
                [of_part[i] for of_part in rankings],
                method=self._method,
                k=k,
                weights=self._weights,
                constant=self._constant,
                normalization=self._normalization,
            )
            if query.strip()
            else []
            for i, query in enumerate(queries)
        ]
