"""Dense retrieval: exact ranking whatever the block size, ties by id, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from squtr.errors import DataError, ModelError, UsageError
from squtr.harness.components.retrievers import corpus_vectors, dense, vector_products
from squtr.harness.components.retrievers.dense import DenseRetriever
from squtr.harness.protocols import ComponentSpec, Hit, Retriever
from squtr.loaders.records import Document

from .encoders_for_tests import HashedWordsEncoder


class GivenVectors(HashedWordsEncoder):
    """Looks every text up in a table of vectors."""

    def __init__(self, table: dict[str, NDArray[np.float32]]) -> None:
        super().__init__()
        self.table = table

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        return np.stack([self.table[text] for text in texts])


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), dtype=np.float32)


def documents(n: int) -> list[Document]:
    return [Document(f"d{i:04}", "", f"text {i}") for i in range(n)]


def retriever_over(vectors: NDArray[np.float32], queries: NDArray[np.float32]) -> DenseRetriever:
    table = {f"text {i}": row for i, row in enumerate(vectors)} | {f"query {i}": row for i, row in enumerate(queries)}
    retriever = DenseRetriever(encoder=GivenVectors(table))
    retriever.index(documents(len(vectors)), language="en")
    return retriever


def exact(vectors: NDArray[np.float32], query: NDArray[np.float32], k: int) -> list[str]:
    scores = [sum(float(a) * float(b) for a, b in zip(row, query, strict=True)) for row in vectors]
    order = sorted(range(len(vectors)), key=lambda i: (scores[i], i), reverse=True)
    return [f"d{i:04}" for i in order[:k]]


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 12))
def test_ranking_is_that_of_exact_cosines(seed: int, n: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    vectors, queries = unit(rng.standard_normal((n, 24))), unit(rng.standard_normal((3, 24)))
    found = retriever_over(vectors, queries).search([f"query {i}" for i in range(3)], k=k)
    for hits, query in zip(found, queries, strict=True):
        assert [hit.document_id for hit in hits] == exact(vectors, query, k)
        assert all(-1.0001 < hit.score < 1.0001 for hit in hits)


def test_scores_that_float32_cannot_tell_apart_are_ranked_right() -> None:
    # Neighbors differ by 1e-9 in their cosine, far below the rounding of a float32 product.
    rng = np.random.default_rng(0)
    base = unit(rng.standard_normal(384))
    vectors = np.repeat(base[None], 400, axis=0)
    at = np.arange(400), rng.integers(0, 384, 400)
    vectors[at] = np.nextafter(vectors[at], np.float32(1))
    query = unit(rng.standard_normal((1, 384)))
    (hits,) = retriever_over(vectors, query).search(["query 0"], k=10)
    expected = np.sum(vectors.astype(np.float64) * query[0].astype(np.float64), axis=1)
    order = np.lexsort((np.arange(400), expected))[::-1][:10]
    assert [hit.document_id for hit in hits] == [f"d{i:04}" for i in order]


def test_equal_vectors_tie_exactly_wherever_they_stand() -> None:
    rng = np.random.default_rng(1)
    vectors = unit(rng.standard_normal((203, 40)))
    twins = [0, 3, 50, 101, 102, 202]
    vectors[twins] = vectors[0]
    (hits,) = retriever_over(vectors, vectors[:1]).search(["query 0"], k=4)
    assert [hit.document_id for hit in hits] == ["d0202", "d0102", "d0101", "d0050"]
    assert len({hit.score for hit in hits}) == 1


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    vectors, queries = unit(rng.standard_normal((500, 64))), unit(rng.standard_normal((37, 64)))
    names = [f"query {i}" for i in range(37)]
    whole = retriever_over(vectors, queries).search(names, k=20)
    monkeypatch.setattr(corpus_vectors, "BLOCK_DOCUMENTS", 9)
    monkeypatch.setattr(vector_products, "TILE_QUERIES", 5)
    monkeypatch.setattr(dense, "_CHUNK_TEXTS", 7)
    assert retriever_over(vectors, queries).search(names, k=20) == whole


def test_empty_queries_have_no_hits_and_k_may_exceed_the_corpus() -> None:
    retriever = DenseRetriever(encoder=HashedWordsEncoder())
    retriever.index([Document("a", "red", "apple"), Document("b", "", "stone")], language="en")
    hits = retriever.search(["", "red apple", " \n"], k=99)
    assert hits[0] == hits[2] == []
    assert [hit.document_id for hit in hits[1]] == ["a", "b"]
    assert hits[1][0] == Hit("a", pytest.approx(1.0))
    assert retriever.search(["", ""], k=1) == [[], []]
    assert retriever.search([], k=1) == []


def test_equal_texts_are_encoded_once() -> None:
    encoder = HashedWordsEncoder()
    retriever = DenseRetriever(encoder=encoder)
    retriever.index([Document(str(i), "", f"text {i % 3}") for i in range(9)], language="en")
    assert len(encoder.encoded) == 3
    (hits,) = retriever.search(["text 1"], k=3)
    assert [hit.document_id for hit in hits] == ["7", "4", "1"]


def test_what_cannot_be_indexed_is_refused() -> None:
    retriever = DenseRetriever(encoder=HashedWordsEncoder())
    with pytest.raises(UsageError, match="before a corpus"):
        retriever.search(["x"], k=1)
    for wrong, part in (
        ([], "no documents"),
        ([Document("a", "", "x"), Document("a", "", "y")], "'a' occurs twice"),
        ([Document("a", "", " "), Document("b", "", "")], "all 2 documents are empty"),
    ):
        with pytest.raises(DataError, match=part):
            retriever.index(wrong, language="en")
    with pytest.raises(UsageError, match="language 'xx'"):
        retriever.index([Document("a", "", "x")], language="xx")
    retriever.index([Document("a", "", "x")], language="en")
    with pytest.raises(UsageError, match="at least 1"):
        retriever.search(["x"], k=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0, 2.0])
def test_vectors_that_are_not_of_unit_length_are_refused(bad: float) -> None:
    table = {"text 0": np.array([bad, 0.0], dtype=np.float32)}
    with pytest.raises(ModelError, match="document 'd0000', which reads 'text 0'"):
        DenseRetriever(encoder=GivenVectors(table)).index(documents(1), language="en")
    retriever = DenseRetriever(encoder=GivenVectors(table | {"text 1": np.array([1.0, 0.0], dtype=np.float32)}))
    retriever.index([Document("d", "", "text 1")], language="en")
    with pytest.raises(ModelError, match="'text 0'"):
        retriever.search(["text 0"], k=1)
    with pytest.raises(ModelError, match="for query 1"):
        retriever.search_vectors(np.array([[1.0, 0.0], [bad, 0.0]], dtype=np.float32), k=1)


def test_the_spec_is_the_encoders_as_a_retriever() -> None:
    first: Retriever = DenseRetriever(encoder=HashedWordsEncoder())
    spec = first.spec
    assert (spec.kind, spec.backend, spec.name, spec.model) == ("retriever", "dense", "hashed-words", "test/model")
    other: ComponentSpec = DenseRetriever(encoder=HashedWordsEncoder(width=8)).spec
    assert spec.fingerprint != other.fingerprint


def test_vectors_made_elsewhere_find_what_texts_find_and_a_row_of_nan_nothing() -> None:
    encoder = HashedWordsEncoder()
    retriever = DenseRetriever(encoder=encoder)
    with pytest.raises(UsageError, match="before a corpus"):
        retriever.search_vectors(np.zeros((1, 16), dtype=np.float32), k=1)
    retriever.index(documents(40), language="en")
    texts = ["text 3", "text 17"]
    vectors = encoder.encode(texts, role="query")
    found = retriever.search_vectors(np.insert(vectors, 1, np.nan, axis=0), k=5)
    assert [found[0], found[2]] == retriever.search(texts, k=5)
    assert found[1] == []
    assert retriever.search_vectors(np.full((2, 16), np.nan, dtype=np.float32), k=5) == [[], []]
    assert retriever.search_vectors(np.zeros((0, 16), dtype=np.float32), k=5) == []
    with pytest.raises(ModelError, match="vectors of 3 dimensions, and documents vectors of 16"):
        retriever.search_vectors(np.eye(3, dtype=np.float32), k=5)


@pytest.mark.parametrize("storage", ["float16", "bfloat16"])
def test_half_storage_ranks_by_the_vectors_as_stored(storage: Literal["float16", "bfloat16"], tmp_path: Path) -> None:
    from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache
    from squtr.harness.components.retrievers.stored_vectors import restored, stored

    rng = np.random.default_rng(5)
    vectors, queries = unit(rng.standard_normal((300, 24))), unit(rng.standard_normal((3, 24)))
    table = {f"text {i}": row for i, row in enumerate(vectors)} | {f"query {i}": row for i, row in enumerate(queries)}
    kept = restored(stored(vectors, storage))
    rankings = []
    for cache in (None, DirectoryEmbeddingCache(tmp_path)):
        retriever = DenseRetriever(encoder=GivenVectors(table), storage=storage, cache=cache)
        retriever.index(documents(300), language="en")
        rankings.append(retriever.search([f"query {i}" for i in range(3)], k=9))
        for hits, query in zip(rankings[-1], queries, strict=True):
            assert [hit.document_id for hit in hits] == exact(kept, query, 9)
    assert rankings[0] == rankings[1]


def test_only_what_differs_from_the_default_is_in_the_spec() -> None:
    encoder = HashedWordsEncoder()
    plain = DenseRetriever(encoder=encoder).spec
    assert dict(plain.settings) == {"width": 16, "encoder_backend": "test", "similarity": "cosine"}
    assert DenseRetriever(encoder=encoder, search_device="cpu").spec == plain
    half = DenseRetriever(encoder=encoder, storage="float16").spec
    assert half.settings["storage"] == "float16"
    near = DenseRetriever(encoder=encoder, search="faiss", faiss_index="IVF4,Flat", faiss_effort=2).spec
    assert (near.settings["search"], near.settings["faiss_index"], near.settings["faiss_effort"]) == (
        "faiss",
        "IVF4,Flat",
        2,
    )
    assert len({plain.fingerprint, half.fingerprint, near.fingerprint}) == 3


@pytest.mark.parametrize(
    "options", [{"storage": "int8"}, {"search": "fast"}, {"faiss_effort": 3}, {"search": "faiss", "faiss_effort": 0}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        DenseRetriever(encoder=HashedWordsEncoder(), **options)


def test_an_encoder_and_a_model_together_or_neither_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not both"):
        DenseRetriever("model", encoder=HashedWordsEncoder())
    with pytest.raises(UsageError, match="no model is named"):
        DenseRetriever()
    with pytest.raises(UsageError, match="unknown option"):
        DenseRetriever(tmp_path, color="red")
