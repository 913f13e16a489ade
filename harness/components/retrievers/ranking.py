"""The order of hits, the same for every retriever, trec_eval's: by score, best first, ties by id descending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import UsageError
from ....loaders.document_ids import DocumentIds
from ...protocols import Hit


def checked_k(k: int) -> None:
    """Raises `UsageError` unless at least one hit is asked for."""
    if k < 1:
        raise UsageError(f"a search needs k of at least 1, not {k}.")


@dataclass(frozen=True, slots=True)
class Best:
    positions: NDArray[np.int64]
    scores: NDArray[np.float64]


def best_of(candidates: NDArray[Any], scores: NDArray[np.float64], ranks: NDArray[np.int64], k: int) -> Best:
    """The best `k` of `candidates` ((C,) positions) by `scores` ((C,), finite), in trec_eval's order.

    `ranks` are the places of all ids among the sorted ids. Ties at the last place are settled by id like any other.

    >>> best_of(np.arange(3), np.array([1.0, 1.0, 2.0]), np.arange(3), 2).positions
    array([2, 1])
    """
    if len(candidates) > k:
        last = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = scores >= last
        candidates, scores = candidates[kept], scores[kept]
    order = np.lexsort((ranks[candidates], scores))[::-1][:k]
    return Best(candidates[order].astype(np.int64, copy=False), scores[order])


def merged(first: Best, second: Best, ranks: NDArray[np.int64], k: int) -> Best:
    """The best `k` of two sets of different documents."""
    if not len(first.positions):
        return Best(second.positions[:k], second.scores[:k])
    return best_of(
        np.concatenate([first.positions, second.positions]), np.concatenate([first.scores, second.scores]), ranks, k
    )


NOTHING = Best(np.zeros(0, dtype=np.int64), np.zeros(0))


def hits_of(found: Sequence[Best], ids: DocumentIds) -> list[list[Hit]]:
    """The hits of every query, for documents of a corpus with these ids."""
    if not found:
        return []
    names = ids.take(np.concatenate([best.positions for best in found]))
    hits: list[list[Hit]] = []
    start = 0
    for best in found:
        end = start + len(best.positions)
        hits.append(list(map(Hit, names[start:end], best.scores.tolist())))
        start = end
    return hits
