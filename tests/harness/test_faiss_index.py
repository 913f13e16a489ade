"""Approximate search with faiss: exact scores, one index for all processes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from squtr.errors import DataError, MissingExtraError, StorageError, UsageError
from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache
from squtr.harness.components.retrievers import faiss_index
from squtr.harness.components.retrievers.dense import DenseRetriever
from squtr.harness.components.retrievers.faiss_index import FaissIndex
from squtr.harness.components.retrievers.stored_vectors import FileBlock, HeldBlock, stored, write_block
from squtr.harness.components.retrievers.vector_index import VectorIndex
from squtr.loaders.document_ids import DocumentIds
from squtr.loaders.records import Document

from .encoders_for_tests import HashedWordsEncoder

N, WIDTH = 600, 16


def vectors(n: int = N, seed: int = 0) -> NDArray[np.float32]:
    values = np.random.default_rng(seed).standard_normal((n, WIDTH))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), dtype=np.float32)


def names(n: int = N) -> DocumentIds:
    return DocumentIds.of(f"d{i:04}" for i in range(n))


@pytest.fixture(autouse=True)
def needs_faiss() -> None:
    pytest.importorskip("faiss")


@pytest.mark.parametrize("kind", ["Flat", "HNSW16", "IVF8,Flat", "IVF8,SQfp16", "PCA8,IVF4,Flat"])
def test_what_it_looks_at_is_scored_exactly(kind: str) -> None:
    blocks = [HeldBlock(vectors()[:400]), HeldBlock(vectors()[400:])]
    queries = vectors(20, seed=1)
    exact = VectorIndex(names(), blocks).search(queries, k=10)
    found = FaissIndex(names(), blocks, kind=kind, effort=64).search(queries, k=10)
    shared = [len({h.document_id for h in a} & {h.document_id for h in b}) for a, b in zip(exact, found, strict=True)]
    assert sum(shared) / 200 > (0.2 if kind.startswith("PCA") else 0.95)
    scores = {(i, hit.document_id): hit.score for i, hits in enumerate(exact) for hit in hits}
    for i, hits in enumerate(found):
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert all(scores.get((i, hit.document_id), hit.score) == hit.score for hit in hits)
    if kind == "Flat":
        assert found == exact


def test_effort_widens_the_search() -> None:
    blocks, queries = [HeldBlock(vectors())], vectors(50, seed=1)
    exact = VectorIndex(names(), blocks).search(queries, k=10)
    little, much = (FaissIndex(names(), blocks, kind="IVF32,Flat", effort=e).search(queries, k=10) for e in (1, 32))
    assert much == exact
    assert little != exact


def test_the_index_is_kept_beside_the_vectors_and_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_block(tmp_path / "a.npy", stored(vectors(), "float16"))
    blocks = [FileBlock(tmp_path / "a.npy", (N, WIDTH))]
    first = FaissIndex(names(), blocks, kind="HNSW8", folder=tmp_path).search(vectors(9, seed=1), k=5)
    built: list[str] = []
    real = FaissIndex._built

    def counted(self: FaissIndex) -> object:
        built.append(self._kind)
        return real(self)

    monkeypatch.setattr(FaissIndex, "_built", counted)
    assert FaissIndex(names(), blocks, kind="HNSW8", folder=tmp_path).search(vectors(9, seed=1), k=5) == first
    assert not built
    FaissIndex(names(), blocks, kind="HNSW16", folder=tmp_path)
    assert built == ["HNSW16"]
    (kept, *_) = sorted(tmp_path.glob("*.faiss"))
    for damaged in sorted(tmp_path.glob("*.faiss")):
        damaged.write_bytes(damaged.read_bytes()[: kept.stat().st_size // 2])
    FaissIndex(names(), blocks, kind="HNSW8", folder=tmp_path)
    assert built == ["HNSW16", "HNSW8"]
    assert not list(tmp_path.glob(".*.part"))


def test_wrong_kinds_and_places_are_refused(tmp_path: Path) -> None:
    blocks = [HeldBlock(vectors())]
    with pytest.raises(UsageError, match="faiss knows no index 'Magic'"):
        FaissIndex(names(), blocks, kind="Magic")
    with pytest.raises(UsageError, match="cannot train 'IVF4096,Flat' on 600 documents"):
        FaissIndex(names(), blocks, kind="IVF4096,Flat")
    with pytest.raises(DataError):
        FaissIndex(names(5), blocks)
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot be written"):
        FaissIndex(names(), blocks, folder=tmp_path / "file")
    with pytest.raises(UsageError, match="16 dimensions"):
        FaissIndex(names(), blocks).search(np.eye(3, dtype=np.float32), k=1)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "faiss", None)
    with pytest.raises(MissingExtraError, match=r"squtr\[faiss\]"):
        faiss_index.FaissIndex(names(), [HeldBlock(vectors())])


def test_a_dense_retriever_with_faiss(tmp_path: Path) -> None:
    documents = [Document(f"d{i}", "", f"word{i} word{i % 7}") for i in range(200)]
    exact = DenseRetriever(encoder=HashedWordsEncoder())
    exact.index(documents, language="en")
    for cache in (None, DirectoryEmbeddingCache(tmp_path)):
        near = DenseRetriever(encoder=HashedWordsEncoder(), search="faiss", cache=cache)
        near.index(documents, language="en")
        queries = ["word3 word1", "", "word9"]
        found = near.search(queries, k=4)
        assert found[1] == []
        assert [hits[0] for hits in found[::2]] == [hits[0] for hits in exact.search(queries, k=4)[::2]]
    assert len(list(tmp_path.rglob("*.faiss"))) == 1
