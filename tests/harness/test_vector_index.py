"""Exact search in blocks: the ranking is that of exact inner products, however they are computed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from squtr.errors import DataError, ModelError, UsageError
from squtr.harness.components.retrievers import vector_index, vector_products
from squtr.harness.components.retrievers.stored_vectors import HeldBlock, Storage, VectorBlock, restored, stored
from squtr.harness.components.retrievers.vector_index import VectorIndex, _bound
from squtr.harness.components.retrievers.vector_products import NumpyProducts, Products, TorchProducts, best_products
from squtr.loaders.document_ids import DocumentIds


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), dtype=np.float32)


def names(n: int) -> DocumentIds:
    return DocumentIds.of(f"d{i:06}" for i in range(n))


def in_blocks(array: NDArray[Any], sizes: Sequence[int]) -> list[VectorBlock]:
    """Blocks of `sizes`, over and over."""
    blocks: list[VectorBlock] = []
    start, at = 0, 0
    while start < len(array):
        blocks.append(HeldBlock(array[start : start + sizes[at % len(sizes)]]))
        start, at = start + sizes[at % len(sizes)], at + 1
    return blocks


def exact(vectors: NDArray[np.float32], query: NDArray[np.float32], k: int) -> list[str]:
    scores = np.sum(vectors.astype(np.float64) * query.astype(np.float64), axis=1)
    order = sorted(range(len(vectors)), key=lambda i: (scores[i], i), reverse=True)
    return [f"d{i:06}" for i in order[:k]]


def products_named(name: str) -> Products:
    if name == "numpy":
        return NumpyProducts()
    pytest.importorskip("torch")
    return TorchProducts("cpu", tile_queries=3)


@contextlib.contextmanager
def small_limits() -> Iterator[None]:
    """Tiles of 3 queries, and candidates that are pruned all the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_products, "TILE_QUERIES", 3)
        patch.setattr(vector_index, "_FEW_CANDIDATES", 1)
        patch.setattr(vector_index, "_RESCORED_VALUES", 50)
        yield


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 300),
    st.integers(1, 40),
    st.lists(st.integers(1, 90), min_size=1, max_size=4),
    st.sampled_from(["float32", "float16", "bfloat16"]),
    st.sampled_from(["numpy", "torch"]),
    st.booleans(),
)
def test_rankings_are_those_of_exact_products(
    seed: int, n: int, k: int, sizes: list[int], storage: Storage, products: str, ties: bool
) -> None:
    rng = np.random.default_rng(seed)
    vectors = unit(rng.integers(-1, 2, (n, 6)) + 1e-3 * (not ties) * rng.standard_normal((n, 6)) + 1e-9)
    queries = unit(rng.standard_normal((7, 6)))
    kept = stored(vectors, storage)
    with small_limits():
        index = VectorIndex(names(n), in_blocks(kept, sizes), products=products_named(products))
        found = index.search(queries, k=k)
    for hits, query in zip(found, queries, strict=True):
        assert [hit.document_id for hit in hits] == exact(restored(kept), query, k)


@pytest.mark.parametrize("products", ["numpy", "torch"])
@pytest.mark.parametrize("k", [1, 7, 100, 1500])
def test_blocks_tiles_and_products_change_not_a_bit(products: str, k: int) -> None:
    rng = np.random.default_rng(2)
    vectors, queries = unit(rng.standard_normal((1500, 48))), unit(rng.standard_normal((25, 48)))
    vectors[1000:1400] = vectors[:400]
    whole = VectorIndex(names(1500), [HeldBlock(vectors)]).search(queries, k=k)
    assert [[hit.document_id for hit in hits] for hits in whole] == [exact(vectors, query, k) for query in queries]
    for sizes in ([4096], [1000], [64, 7, 513]):
        index = VectorIndex(names(1500), in_blocks(vectors, sizes), products=products_named(products))
        assert index.search(queries, k=k) == whole
        with small_limits():
            assert index.search(queries, k=k) == whole
        assert [hits for query in queries for hits in index.search(query[None], k=k)] == whole


def test_scores_that_float32_cannot_tell_apart_are_ranked_right() -> None:
    # Neighbors differ by 1e-9 in their score, far below the rounding of a float32 product.
    rng = np.random.default_rng(0)
    base = unit(rng.standard_normal(384))
    vectors = np.repeat(base[None], 4000, axis=0)
    at = np.arange(4000), rng.integers(0, 384, 4000)
    vectors[at] = np.nextafter(vectors[at], np.float32(1))
    queries = unit(rng.standard_normal((9, 384)))
    with small_limits():
        found = VectorIndex(names(4000), in_blocks(vectors, [128])).search(queries, k=10)
    for hits, query in zip(found, queries, strict=True):
        assert [hit.document_id for hit in hits] == exact(vectors, query, 10)


def test_candidates_stay_few_where_all_documents_are_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.repeat(unit(np.random.default_rng(1).standard_normal((1, 16))), 5000, axis=0)
    queries = np.repeat(vectors[:1], 50, axis=0)
    held: list[int] = []
    prune = vector_index._Candidates.prune

    def watched(self: vector_index._Candidates) -> None:
        held.append(self._count)
        prune(self)

    monkeypatch.setattr(vector_index._Candidates, "prune", watched)
    with small_limits():
        found = VectorIndex(names(5000), in_blocks(vectors, [500])).search(queries, k=10)
    assert all([hit.document_id for hit in hits] == [f"d{i:06}" for i in range(4999, 4989, -1)] for hits in found)
    # What is kept for all queries, and one tile of 3 queries and 500 documents.
    assert max(held) <= 2 * 50 * 10 + 3 * 500


@pytest.mark.parametrize("storage", ["float32", "float16", "bfloat16"])
def test_the_bound_covers_the_error_of_float32_products(storage: Storage) -> None:
    rng = np.random.default_rng(3)
    for width in (8, 384, 2048):
        a = unit(rng.standard_normal((300, width)))
        b = restored(stored(unit(np.abs(rng.standard_normal((300, width)))), storage))
        for one, two in ((a, b), (b, b)):
            error = np.abs((one @ two.T).astype(np.float64) - one.astype(np.float64) @ two.astype(np.float64).T).max()
            assert error < _bound(width)


@given(st.lists(st.floats(-4, 4, width=32), min_size=20, max_size=300), st.integers(1, 12))
def test_floors_of_groups_are_reached_by_k_scores(values: list[float], k: int) -> None:
    scores = np.array([values], dtype=np.float32)
    for tiles in (vector_products._NumpyTiles, vector_products._TorchTiles):
        if tiles is vector_products._TorchTiles:
            torch = pytest.importorskip("torch")
            floor = float(tiles._floors(torch.from_numpy(scores), k)[0])
        else:
            floor = float(tiles._floors(scores, k)[0])
        assert np.sum(scores >= floor) >= k
        assert floor <= np.sort(scores[0])[-k]


def test_no_queries_give_no_hits_and_wrong_calls_are_refused() -> None:
    vectors = unit(np.random.default_rng(4).standard_normal((20, 8)))
    index = VectorIndex(names(20), [HeldBlock(vectors)])
    assert index.search(vectors[:0], k=3) == []
    assert [len(hits) for hits in index.search(vectors[:2], k=99)] == [20, 20]
    with pytest.raises(UsageError, match="at least 1"):
        index.search(vectors, k=0)
    with pytest.raises(UsageError, match="8 dimensions"):
        index.search(vectors[:, :7], k=1)
    with pytest.raises(DataError, match="20 vectors came for 19 documents"):
        VectorIndex(names(19), [HeldBlock(vectors)])
    with pytest.raises(DataError):
        VectorIndex(names(0), [])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_refused(bad: float) -> None:
    vectors = unit(np.random.default_rng(4).standard_normal((20, 8)))
    wrong = vectors.copy()
    wrong[3, 2] = bad
    with pytest.raises(ModelError, match="query 3 is not finite"):
        VectorIndex(names(20), [HeldBlock(vectors)]).search(wrong, k=1)
    with np.errstate(invalid="ignore"), pytest.raises(ModelError, match="corpus are not finite"):
        VectorIndex(names(20), [HeldBlock(wrong)]).search(vectors, k=20)


def test_the_device_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    assert isinstance(best_products("cpu"), NumpyProducts)
    assert isinstance(best_products("cuda:1"), TorchProducts)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert isinstance(best_products(), NumpyProducts)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert isinstance(best_products(), TorchProducts)


def test_torch_keeps_no_block_where_there_is_no_room_and_names_a_device_that_is_too_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch = pytest.importorskip("torch")
    vectors = unit(np.random.default_rng(6).standard_normal((60, 8)))
    whole = VectorIndex(names(60), [HeldBlock(vectors)]).search(vectors, k=5)
    before = torch.backends.cuda.matmul.fp32_precision
    refusals = 1
    real = torch.Tensor.__matmul__

    def refuses(self: Any, other: Any) -> Any:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise RuntimeError("CUDA out of memory. Tried to allocate")
        return real(self, other)

    monkeypatch.setattr(torch.Tensor, "__matmul__", refuses)
    products = TorchProducts("cpu")
    assert VectorIndex(names(60), in_blocks(vectors, [20]), products=products).search(vectors, k=5) == whole
    assert not products._kept
    refusals = 10**9
    with pytest.raises(ModelError, match="no room to search"):
        VectorIndex(names(60), in_blocks(vectors, [20]), products=TorchProducts("cpu")).search(vectors, k=5)
    assert torch.backends.cuda.matmul.fp32_precision == before
