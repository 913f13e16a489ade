"""Exact search with sparse vectors. Sums are float64, in the order of the query's entries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ranking import Best, best_of

_SUMS = 1 << 25
_MOST_THREADS = 8


def search_products(
    queries: Any, by_term: Any, ranks: NDArray[np.int64], *, k: int, threads: int | None = None
) -> list[Best]:
    """At most `k` documents per row of `queries` ((Q, V) csr_array float64), ties by id descending.

    `by_term` is the (V, N) csr_array float64 of the documents' weights, one row per term; `ranks` ((N,)) are the places
    of the documents' ids. A document whose sum is not above 0 is not found. `threads` share the queries (None: one per
    core, 8 at most, as each holds a number per document); results do not depend on it.
    """
    workers = threads or min(os.cpu_count() or 1, _MOST_THREADS)
    blocks = list(query_blocks(queries, by_term, _SUMS // workers))

    def search(block: slice) -> list[Best]:
        products = queries[block] @ by_term
        found = []
        for start, end in zip(products.indptr, products.indptr[1:], strict=False):
            documents, scores = products.indices[start:end], products.data[start:end]
            if len(scores) and scores.min() <= 0:
                documents, scores = documents[scores > 0], scores[scores > 0]
            found.append(best_of(documents, scores, ranks, k))
        return found

    if min(workers, len(blocks)) <= 1:
        return [best for block in blocks for best in search(block)]
    with ThreadPoolExecutor(min(workers, len(blocks))) as pool:
        return [best for part in pool.map(search, blocks) for best in part]


def query_blocks(queries: Any, by_term: Any, sums_at_once: int) -> Iterator[slice]:
    """Rows of `queries` in blocks whose products hold at most that many sums (a single query may hold more)."""
    touched = np.diff(by_term.indptr)[queries.indices]
    sums = np.concatenate([[0], np.cumsum(touched, dtype=np.int64)])[queries.indptr]
    start = 0
    while start < queries.shape[0]:
        end = int(np.searchsorted(sums, sums[start] + sums_at_once, side="right")) - 1
        end = min(max(end, start + 1), queries.shape[0])
        yield slice(start, end)
        start = end
