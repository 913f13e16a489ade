"""Late interaction with tiny random models: exact MaxSim, blocks, the cache, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squtr.errors import DataError, IntegrityError, ModelError, UsageError
from squtr.harness.components import load_retriever
from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache
from squtr.harness.components.retrievers import max_similarity
from squtr.harness.components.retrievers.colbert import ColBERTRetriever
from squtr.harness.components.retrievers.max_similarity import best_of_block, on_grid
from squtr.loaders.records import Document

from .retrieval_models_for_tests import save_colbert


def texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices("abcdefghijklmnop.,", k=rng.randint(1, 20))) for _ in range(n)]


def documents(n: int = 60) -> list[Document]:
    return [Document(f"d{i:03}", "", text) for i, text in enumerate(texts(n, 0))]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_colbert(tmp_path_factory.mktemp("colbert"), prompts={"query": "[Q] ", "document": "[D] "})


@pytest.mark.parametrize("expansion", [False, True])
def test_scores_are_the_models_own_up_to_half_precision(expansion: bool, model: Path, tmp_path: Path) -> None:
    from sentence_transformers import MultiVectorEncoder

    folder = save_colbert(tmp_path, expansion=True) if expansion else model
    retriever = load_retriever(f"colbert:{folder}", device="cpu")
    retriever.index(documents(), language="en")
    queries = texts(7, 1)
    own = MultiVectorEncoder(str(folder), device="cpu", local_files_only=True)
    rows = own.encode_query(queries, batch_size=1, show_progress_bar=False)
    if expansion:
        assert {len(row) for row in rows} >= {12}
    columns = own.encode_document([d.contents for d in documents()], batch_size=1, show_progress_bar=False)
    expected = own.similarity(rows, columns).numpy()
    for hits, scores in zip(retriever.search(queries, k=60), expected, strict=True):
        found = {hit.document_id: hit.score for hit in hits}
        assert found == pytest.approx({f"d{i:03}": float(s) for i, s in enumerate(scores)}, abs=0.02)
        keys = [(hit.score, hit.document_id) for hit in hits]
        assert keys == sorted(keys, reverse=True)


def random_vectors(rng: np.random.Generator, n: int, width: int) -> np.ndarray:
    vectors = rng.standard_normal((n, width))
    return on_grid(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 12), st.sampled_from(["cpu", "torch"]))
def test_the_best_of_a_block_are_those_of_exact_arithmetic(seed: int, n: int, k: int, device: str) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, n).astype(np.int32)
    pool = random_vectors(rng, 12, 8).astype(np.float16)
    vectors = pool[rng.integers(0, len(pool), lengths.sum())]  # many documents tie
    queries = [random_vectors(rng, int(rng.integers(1, 5)), 8) for _ in range(3)]
    ranks = rng.permutation(n)
    starts = np.cumsum(lengths) - lengths
    found = best_of_block(
        queries,
        vectors,
        lengths,
        ranks,
        floors=[-np.inf] * 3,
        k=k,
        longest=1.01,
        device="cpu" if device == "cpu" else "cpu:0",
    )
    for query, best in zip(queries, found, strict=True):
        expected = []
        for i in np.flatnonzero(lengths):
            own = vectors[starts[i] : starts[i] + lengths[i]].astype(np.float64)
            score = sum(max(float(np.dot(token, vector)) for vector in own) for token in query.astype(np.float64))
            expected.append((score, ranks[i], i))
        expected.sort(reverse=True)
        assert best.positions.tolist() == [i for _, _, i in expected[:k]]
        assert best.scores.tolist() == [score for score, _, _ in expected[:k]]


def test_what_cannot_beat_the_floor_is_left_out() -> None:
    rng = np.random.default_rng(0)
    vectors = random_vectors(rng, 30, 8).astype(np.float16)
    lengths = np.full(10, 3, dtype=np.int32)
    query = [random_vectors(rng, 2, 8)]
    (everything,) = best_of_block(query, vectors, lengths, np.arange(10), floors=[-np.inf], k=10, longest=1.01)
    floor = float(everything.scores[3])
    (rest,) = best_of_block(query, vectors, lengths, np.arange(10), floors=[floor], k=10, longest=1.01)
    assert rest.positions.tolist() == everything.positions[:4].tolist()


def test_numbers_on_the_grid_stay_there_in_float16() -> None:
    numbers = on_grid(np.random.default_rng(0).uniform(-1, 1, 5000) ** 5)
    for kept in (numbers, numbers.astype(np.float16)):
        scaled = kept.astype(np.float64) * 2**20
        assert (scaled == np.rint(scaled)).all()


def test_groups_and_blocks_change_no_score(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = texts(9, 2)
    options = {"device": "cpu", "token_budget": 1}  # one text per batch: no rounding by neighbors
    whole = ColBERTRetriever(model, **options)
    whole.index(documents(), language="en")
    expected = whole.search(queries, k=7)
    monkeypatch.setattr(ColBERTRetriever, "block_documents", 7)
    monkeypatch.setattr(max_similarity, "_PRODUCTS", 200)
    parts = ColBERTRetriever(model, **options)
    parts.index(documents(), language="en")
    assert parts.search(queries, k=7) == expected


def test_equal_documents_tie_and_the_larger_id_wins_across_blocks(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ColBERTRetriever, "block_documents", 4)
    retriever = ColBERTRetriever(model, device="cpu", token_budget=1)
    retriever.index([Document(f"d{i}", "", "a b c") for i in range(9)], language="en")
    (hits,) = retriever.search(["a b"], k=3)
    assert [hit.document_id for hit in hits] == ["d8", "d7", "d6"]
    assert len({hit.score for hit in hits}) == 1


def test_processes_share_a_corpus_and_nothing_is_encoded_twice(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ColBERTRetriever, "block_documents", 8)
    cache = DirectoryEmbeddingCache(tmp_path)
    for rank in (1, 0):
        ColBERTRetriever(model, device="cpu", cache=cache).prepare(documents(), language="en", rank=rank, size=2)
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.npz")}
    assert len(files) == 8
    retriever = ColBERTRetriever(model, device="cpu", cache=cache)
    with monkeypatch.context() as patched:
        patched.setattr(ColBERTRetriever, "_block", None)
        retriever.prepare(documents(), language="en", rank=0, size=1)
        retriever.index(documents(), language="en")
    alone = ColBERTRetriever(model, device="cpu")
    alone.index(documents(), language="en")
    assert retriever.search(texts(4, 3), k=9) == alone.search(texts(4, 3), k=9)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.npz")} == files
    (first, *_) = files
    first.write_bytes(first.read_bytes()[:-100])
    broken = ColBERTRetriever(model, device="cpu", cache=cache)
    broken.index(documents(), language="en")
    with pytest.raises(IntegrityError, match=first.stem):
        broken.search(["a"], k=1)


def test_a_vector_that_is_not_a_number_is_refused_by_name(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    retriever = ColBERTRetriever(model, device="cpu")
    encoder = retriever._model.model

    def spoiled(encode: Any) -> Any:
        def encode_and_spoil(batch: list[str], **options: Any) -> Any:
            return [
                v * (torch.nan if "d" in text else 1) for text, v in zip(batch, encode(batch, **options), strict=True)
            ]

        return encode_and_spoil

    for method in ("encode_document", "encode_query"):
        monkeypatch.setattr(encoder, method, spoiled(getattr(encoder, method)))
    with pytest.raises(ModelError, match="token 0 of document 'bad' a vector of length nan"):
        retriever.index(
            [Document("good", "", "a b"), Document("bad", "", "c d"), Document("z", "", "a")], language="en"
        )
    retriever.index([Document("good", "", "a b")], language="en")
    with pytest.raises(ModelError, match="the query 'd e'"):
        retriever.search(["a", "d e"], k=1)


def test_empty_queries_have_no_hits_and_k_may_exceed_the_corpus(model: Path) -> None:
    retriever = ColBERTRetriever(model, device="cpu")
    retriever.index([Document("a", "b", "c"), Document("b", "", "")], language="en")
    first, second, third = retriever.search(["", "a b", " "], k=99)
    assert first == third == []
    assert {hit.document_id for hit in second} == {"a", "b"}
    assert retriever.search([], k=1) == []


def test_what_cannot_be_done_is_refused(model: Path) -> None:
    retriever = ColBERTRetriever(model, device="cpu", languages=["en"])
    assert retriever.supports("en")
    assert not retriever.supports("zh")
    with pytest.raises(UsageError, match="'zh'"):
        retriever.index(documents(), language="zh")
    with pytest.raises(UsageError, match="before a corpus"):
        retriever.search(["a"], k=1)
    with pytest.raises(DataError, match="no documents"):
        retriever.index([], language="en")
    with pytest.raises(DataError, match="all 1 documents are empty"):
        retriever.index([Document("a", "", " ")], language="en")
    with pytest.raises(UsageError, match="token_budget"):
        ColBERTRetriever(model, token_budget=0)
    with pytest.raises(UsageError, match="max_tokens"):
        ColBERTRetriever(model, max_tokens=0)


def test_the_spec_says_what_decides_and_nothing_else(model: Path) -> None:
    spec = ColBERTRetriever(model, document_prompt="say: ").spec
    assert (spec.kind, spec.backend) == ("retriever", "colbert")
    assert spec.revision.startswith("sha256:")
    assert spec.settings["document_prompt"] == "say: "
    assert (
        spec.fingerprint
        == ColBERTRetriever(model, document_prompt="say: ", device="cpu", token_budget=9).spec.fingerprint
    )
    assert spec.fingerprint != ColBERTRetriever(model, document_prompt="say: ", max_tokens=16).spec.fingerprint
