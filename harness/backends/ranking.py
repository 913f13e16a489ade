"""The order of hits, the same for every retriever: trec_eval's.

Hits are sorted by score, best first, and documents with the same score by id, the larger id (by code points) first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, UsageError
from ...loaders.records import Document
from ..protocols import Hit


def checked_ids(documents: Sequence[Document]) -> list[str]:
    """The ids of a corpus. Raises `DataError` if it is empty or an id occurs twice."""
    if not documents:
        raise DataError("the corpus holds no documents.", hint="Check the corpus file of this subset.")
    seen: dict[str, int] = {}
    for position, document in enumerate(documents):
        first = seen.setdefault(document.id, position)
        if first != position:
            raise DataError(
                f"document id {document.id!r} occurs twice, at positions {first} and {position} of the corpus.",
                hint="Ids must be unique within a subset.",
            )
    return list(seen)


def checked_k(k: int) -> None:
    """Raises `UsageError` unless at least one hit is asked for."""
    if k < 1:
        raise UsageError(f"a search needs k of at least 1, not {k}.")


def id_ranks(ids: Sequence[str]) -> NDArray[np.int64]:
    """(N,) the place of each id among all sorted ids.

    >>> id_ranks(["b", "a", "c"])
    array([1, 0, 2])
    """
    ranks = np.empty(len(ids), dtype=np.int64)
    ranks[sorted(range(len(ids)), key=ids.__getitem__)] = np.arange(len(ids))
    return ranks


def top_hits(
    candidates: NDArray[np.int64], scores: NDArray[np.float64], ids: Sequence[str], ranks: NDArray[np.int64], k: int
) -> list[Hit]:
    """The best `k` of `candidates` ((C,) positions in `ids`) by `scores` ((C,), finite), in trec_eval's order.

    `ranks` is `id_ranks(ids)`. Ties at the last place are settled by id like any other.

    >>> ids = ["a", "b", "c"]
    >>> [hit.document_id for hit in top_hits(np.arange(3), np.array([1.0, 1.0, 2.0]), ids, id_ranks(ids), 2)]
    ['c', 'b']
    """
    if len(candidates) > k:
        last = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = scores >= last
        candidates, scores = candidates[kept], scores[kept]
    order = np.lexsort((ranks[candidates], scores))[::-1][:k]
    return [Hit(ids[candidates[i]], float(scores[i])) for i in order]
