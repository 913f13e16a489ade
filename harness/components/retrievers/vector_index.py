"""Exact search by inner product in vectors that lie in blocks, in memory or on disk.

Float32 products, which differ by block size, device and threads, only choose candidates: all documents within twice the
rounding bound of the k-th score. Their scores are computed again in float64, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ....errors import DataError, ModelError, UsageError
from ....loaders.document_ids import DocumentIds
from ...protocols import Hit
from .ranking import checked_k
from .stored_vectors import VectorBlock, restored
from .vector_products import NumpyProducts, Products

BATCH_QUERIES = 4096

_HELD_CANDIDATES = 1 << 22
_FEW_CANDIDATES = 1 << 16
_RESCORED_VALUES = 1 << 18
_UNIT_ROUNDOFF = 2.0**-24


@dataclass(frozen=True, slots=True)
class Found:
    positions: NDArray[np.int64]
    """(Q, k)"""
    scores: NDArray[np.float64]
    """(Q, k), 0 where there is none."""


class VectorIndex:
    """Exact search in `blocks` of unit vectors, the documents `ids` in order; `products` None is numpy's."""

    def __init__(self, ids: DocumentIds, blocks: Sequence[VectorBlock], *, products: Products | None = None) -> None:
        self._ids = ids
        self._blocks = list(blocks)
        self._starts = [0]
        for block in self._blocks:
            self._starts.append(self._starts[-1] + block.shape[0])
        if self._starts[-1] != len(ids) or not len(ids):
            raise DataError(
                f"{self._starts[-1]} vectors came for {len(ids)} documents.", hint="There must be one each."
            )
        self._width = self._blocks[0].shape[1]
        self._products: Products = products or NumpyProducts()

    def __len__(self) -> int:
        return len(self._ids)

    def search(self, vectors: NDArray[np.float32], *, k: int) -> list[list[Hit]]:
        return hits_of(self.find(vectors, k=k), self._ids)

    def find(self, vectors: NDArray[np.float32], *, k: int) -> Found:
        """As `search`, as arrays."""
        checked_k(k)
        check_queries(vectors, self._width)
        k = min(k, len(self))
        batch = max(64, min(BATCH_QUERIES, _HELD_CANDIDATES // k))
        parts = [self._find(vectors[start : start + batch], k) for start in range(0, len(vectors), batch)]
        if not parts:
            return Found(np.zeros((0, k), dtype=np.int64), np.zeros((0, k)))
        return Found(np.concatenate([p.positions for p in parts]), np.concatenate([p.scores for p in parts]))

    def _find(self, vectors: NDArray[np.float32], k: int) -> Found:
        queries = np.ascontiguousarray(vectors, dtype=np.float32)
        candidates = _Candidates(len(queries), k, _bound(self._width))
        with self._products.open(queries) as tiles:
            for start, block in zip(self._starts, self._blocks, strict=False):
                for first, rows, columns, scores in tiles.above(block, candidates.floors, k, 2 * candidates.bound):
                    candidates.add(first + rows, start + columns, scores)
                    if candidates.full:
                        self._settle(candidates, queries)
        candidates.prune()
        found = self._rescored(candidates, queries)
        if (found.positions < 0).any() or not np.isfinite(found.scores).all():
            raise ModelError("some vectors of the corpus are not finite.", hint="Encode the corpus again.")
        return found

    def _settle(self, candidates: _Candidates, queries: NDArray[np.float32]) -> None:
        candidates.prune()
        if candidates.full:
            candidates.keep(self._rescored(candidates, queries))

    def _rescored(self, candidates: _Candidates, queries: NDArray[np.float32]) -> Found:
        return rescored(
            queries, candidates.rows, candidates.positions, self._blocks, ranks=self._ids.ranks, k=candidates.k
        )


def _bound(width: int) -> float:
    """The most that a float32 inner product of two unit vectors is off, whatever the order of its sums.

    At most width * 2**-24 (Higham 2002, section 3.1); a little more for rows whose length is rounded, by up to 0.4 % in
    bfloat16.
    """
    return (width + 8) * _UNIT_ROUNDOFF * 1.02


@dataclass(slots=True)
class _Candidates:
    """Documents that can still be among the best `k` of their query, by rough scores that are off by at most `bound`.

    `floors` ((Q,) float32) are what a rough score must reach: twice the bound below a score that k documents have.
    """

    queries: int
    k: int
    bound: float
    floors: NDArray[np.float32] = field(init=False)
    rows: NDArray[np.int64] = field(init=False)
    positions: NDArray[np.int64] = field(init=False)
    scores: NDArray[np.float32] = field(init=False)
    _new: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]] = field(init=False)
    _count: int = field(init=False)
    _limit: int = field(init=False)

    def __post_init__(self) -> None:
        self.floors = np.full(self.queries, -np.inf, dtype=np.float32)
        self.rows = self.positions = np.zeros(0, dtype=np.int64)
        self.scores = np.zeros(0, dtype=np.float32)
        self._new = []
        self._count = 0
        self._limit = max(2 * self.queries * self.k, _FEW_CANDIDATES)

    @property
    def full(self) -> bool:
        return self._count > self._limit

    def add(self, rows: NDArray[np.int64], positions: NDArray[np.int64], scores: NDArray[np.float32]) -> None:
        """Take in documents that reached their query's floor."""
        self._new.append((rows, positions, scores))
        self._count += len(rows)

    def prune(self) -> None:
        rows = np.concatenate([self.rows, *(rows for rows, _, _ in self._new)])
        positions = np.concatenate([self.positions, *(positions for _, positions, _ in self._new)])
        scores = np.concatenate([self.scores, *(scores for _, _, scores in self._new)])
        self._new = []
        order = np.argsort(rows.astype(np.uint16), kind="stable")  # BATCH_QUERIES fit, and 16 bits sort fast
        rows, positions, scores = rows[order], positions[order], scores[order]
        self._raise(np.bincount(rows, minlength=self.queries), scores)
        kept = scores >= self.floors[rows]
        self.rows, self.positions, self.scores = rows[kept], positions[kept], scores[kept]
        self._count = len(self.rows)

    def _raise(self, counts: NDArray[np.int64], scores: NDArray[np.float32]) -> None:
        """Floors from the k-th best of every query that has k; `scores` are sorted by query."""
        ends = np.cumsum(counts)
        margin = np.float32(2 * self.bound)
        usual = 4 * self.k
        regular = np.flatnonzero((counts >= self.k) & (counts <= usual))
        if len(regular):
            columns = np.arange(int(counts[regular].max()))
            inside = columns < counts[regular, None]
            table = np.full(inside.shape, -np.inf, dtype=np.float32)
            table[inside] = scores[((ends - counts)[regular, None] + columns)[inside]]
            last = len(columns) - self.k
            self._lift(regular, np.partition(table, last, axis=1)[:, last] - margin)
        for row in np.flatnonzero(counts > usual):
            own = np.partition(scores[ends[row] - counts[row] : ends[row]], counts[row] - self.k)
            self._lift(np.array([row]), own[counts[row] - self.k] - margin)

    def _lift(self, rows: NDArray[np.int64], floors: NDArray[np.float32]) -> None:
        # Rounded down: the subtraction above is itself rounded.
        self.floors[rows] = np.maximum(self.floors[rows], np.nextafter(floors, np.float32(-np.inf)))

    def keep(self, best: Found) -> None:
        """Keep only these, whose scores are exact."""
        self.rows, columns = np.nonzero(best.positions >= 0)
        self.positions = best.positions[self.rows, columns]
        self.scores = best.scores[self.rows, columns].astype(np.float32)
        self._count = len(self.rows)
        whole = np.flatnonzero(best.positions[:, -1] >= 0)
        self._lift(whole, best.scores[whole, -1].astype(np.float32) - np.float32(2 * self.bound))


def rescored(
    queries: NDArray[np.float32],
    rows: NDArray[np.int64],
    positions: NDArray[np.int64],
    blocks: Sequence[VectorBlock],
    *,
    ranks: NDArray[np.int64],
    k: int,
) -> Found:
    """The best `k` of every query among candidates: query `rows[i]` and document `positions[i]`.

    Scores are inner products in float64, each computed alone, so that they do not depend on what stands beside them.
    Ties go to the larger of `ranks` ((N,), the places of the ids).
    """
    scores = _exact_scores(queries, rows, positions, blocks)
    order = np.lexsort((ranks[positions], scores, -rows))[::-1]
    rows, positions, scores = rows[order], positions[order], scores[order]
    counts = np.bincount(rows, minlength=len(queries))
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    taken = places < k
    found = Found(np.full((len(queries), k), -1, dtype=np.int64), np.zeros((len(queries), k)))
    found.positions[rows[taken], places[taken]] = positions[taken]
    found.scores[rows[taken], places[taken]] = scores[taken]
    return found


def _exact_scores(
    queries: NDArray[np.float32], rows: NDArray[np.int64], positions: NDArray[np.int64], blocks: Sequence[VectorBlock]
) -> NDArray[np.float64]:
    scores = np.empty(len(rows), dtype=np.float64)
    order = np.argsort(positions, kind="stable")
    ordered = positions[order]
    step = max(1, _RESCORED_VALUES // queries.shape[1])
    start = at = 0
    for block in blocks:
        stop = start + block.shape[0]
        last = int(np.searchsorted(ordered, stop))
        if last > at:
            array = block.read()
            for first in range(at, last, step):
                part = order[first : min(first + step, last)]
                documents = restored(array[positions[part] - start]).astype(np.float64)
                # A product of two float32 is exact in float64. Not a matrix product: equal rows give equal sums.
                documents *= queries[rows[part]].astype(np.float64)
                scores[part] = np.sum(documents, axis=1)
        start, at = stop, last
    return scores


def check_queries(vectors: NDArray[np.float32], width: int) -> None:
    """Raise `UsageError` for query vectors of another width, `ModelError` for one that is not finite."""
    if vectors.ndim != 2 or (len(vectors) and vectors.shape[1] != width):
        raise UsageError(
            f"query vectors of shape {vectors.shape} cannot search among vectors of {width} dimensions.",
            hint="Queries and documents must come from the same encoder.",
        )
    wrong = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(wrong):
        raise ModelError(f"the vector of query {int(wrong[0])} is not finite.", hint="The model cannot encode it.")


def hits_of(found: Found, ids: DocumentIds) -> list[list[Hit]]:
    """The hits of every query."""
    there = found.positions >= 0
    names = ids.take(found.positions[there])
    hits: list[list[Hit]] = []
    at = 0
    for scores, count in zip(found.scores.tolist(), there.sum(axis=1).tolist(), strict=True):
        hits.append(list(map(Hit, names[at : at + count], scores[:count])))
        at += count
    return hits
