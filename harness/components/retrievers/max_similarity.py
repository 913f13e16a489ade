"""MaxSim, exactly: the sum, over a query's tokens, of the largest inner product with one of a document's tokens.

Numbers are multiples of 2**-20 (`on_grid`), so float64 holds all products and sums without rounding: scores do not
depend on order, blocks, threads or devices. Float32 products only choose candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .ranking import NOTHING, Best, best_of

_GRID = 2.0**20
_UNIT_ROUNDOFF = 2.0**-24
_PRODUCTS = 1 << 24


def on_grid(vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    return np.asarray(np.rint(np.asarray(vectors, dtype=np.float64) * _GRID) / _GRID, dtype=np.float32)


def best_of_block(
    queries: Sequence[NDArray[np.float32]],
    vectors: NDArray[np.float16],
    lengths: NDArray[np.int32],
    ranks: NDArray[np.int64],
    *,
    floors: Sequence[float],
    k: int,
    longest: float,
    device: str = "cpu",
) -> list[Best]:
    """For each query, the documents of a block that can be among its best `k`, with exact scores; at most `k`.

    `queries` are (q, D) each and `vectors` (T, D), all on the grid and no vector longer than `longest`; document i has
    `lengths[i]` ((n,)) of the vectors. `ranks` ((n,)) are the places of the documents' ids, `floors` the scores of the
    k-th best document found elsewhere (-inf if there are fewer). `device` computes the float32 products.
    """
    there = np.flatnonzero(lengths)
    if not len(there):
        return [NOTHING for _ in queries]
    own = lengths[there].astype(np.int64)
    starts = np.cumsum(own) - own
    rough = _rough(queries, vectors, own, starts, device)
    best = []
    for query, scores, floor in zip(queries, rough, floors, strict=True):
        # A float32 inner product is off by at most D * 2**-24 times both lengths, whatever the order of its sums
        # (Higham 2002, section 3.1); a sum over q tokens by q times that.
        bound = len(query) * (query.shape[1] + 8) * _UNIT_ROUNDOFF * longest * longest
        least = floor
        if len(scores) > k:
            least = max(floor, float(np.partition(scores, len(scores) - k)[len(scores) - k]) - bound)
        kept = np.flatnonzero(scores >= least - bound)
        exact = _exact(query, vectors, starts[kept], own[kept])
        best.append(best_of(there[kept], exact, ranks, k))
    return best


def _rough(
    queries: Sequence[NDArray[np.float32]],
    vectors: NDArray[np.float16],
    lengths: NDArray[np.int64],
    starts: NDArray[np.int64],
    device: str,
) -> list[NDArray[np.float64]]:
    found: list[NDArray[np.float64]] = []
    documents = vectors.astype(np.float32)
    on_device: Any = None if device == "cpu" else _on_device(documents, lengths, device)
    place = 0
    while place < len(queries):
        group = [queries[place]]
        columns = len(group[0])
        while place + len(group) < len(queries):
            following = queries[place + len(group)]
            if (columns + len(following)) * len(documents) > _PRODUCTS:
                break
            group.append(following)
            columns += len(following)
        place += len(group)
        side_by_side = np.concatenate(group)
        if on_device is None:
            largest = np.maximum.reduceat(documents @ side_by_side.T, starts, axis=0)
        else:
            largest = on_device(side_by_side)
        ends = np.cumsum([len(query) for query in group])
        for query, end in zip(group, ends, strict=True):
            found.append(largest[:, end - len(query) : end].sum(axis=1, dtype=np.float64))
    return found


def _on_device(documents: NDArray[np.float32], lengths: NDArray[np.int64], device: str) -> Any:
    """The largest products of each document with columns, computed by torch."""
    import torch

    matrix = torch.from_numpy(documents).to(device)
    sizes = torch.from_numpy(lengths).to(device)

    def largest(columns: NDArray[np.float32]) -> NDArray[np.float32]:
        products = matrix @ torch.from_numpy(columns).to(device).T
        result: NDArray[np.float32] = torch.segment_reduce(products, "max", lengths=sizes, axis=0).cpu().numpy()
        return result

    return largest


def _exact(
    query: NDArray[np.float32], vectors: NDArray[np.float16], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The scores of the documents at `starts`, in float64."""
    scores = np.empty(len(starts))
    wanted = query.astype(np.float64).T
    step = max(1, _PRODUCTS // max(1, int(lengths.max(initial=1)) * max(len(query), query.shape[1])))
    for first in range(0, len(starts), step):
        part = slice(first, first + step)
        own = lengths[part]
        firsts = np.cumsum(own) - own
        rows = np.repeat(starts[part] - firsts, own) + np.arange(own.sum())
        products = vectors[rows].astype(np.float64) @ wanted
        scores[part] = np.maximum.reduceat(products, firsts, axis=0).sum(axis=1)
    return scores
