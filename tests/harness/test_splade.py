"""Learned sparse retrieval with tiny random models: exact scores, blocks, the cache, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import DataError, IntegrityError, ModelError, UsageError
from squtr.harness.components import load_retriever
from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache
from squtr.harness.components.retrievers.splade import SpladeRetriever
from squtr.loaders.records import Document

from .retrieval_models_for_tests import save_masked_lm, save_splade


def texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices("abcdefghijklmnop", k=rng.randint(1, 20))) for _ in range(n)]


def documents(n: int = 60) -> list[Document]:
    return [Document(f"d{i:03}", "", text) for i, text in enumerate(texts(n, 0))]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_splade(tmp_path_factory.mktemp("splade"), prompts={"query": "q: ", "document": ""})


def loaded(folder: Path) -> Any:
    from sentence_transformers import SparseEncoder

    return SparseEncoder(str(folder), device="cpu", local_files_only=True)


def by_hand(folder: Path, queries: list[str], corpus: list[Document]) -> np.ndarray:
    encoder = loaded(folder)
    rows = encoder.encode_query(queries, batch_size=1, show_progress_bar=False).to_dense().double().numpy()
    columns = (
        encoder.encode_document([d.contents for d in corpus], batch_size=1, show_progress_bar=False)
        .to_dense()
        .double()
        .numpy()
    )
    return np.asarray(rows @ columns.T)


@pytest.mark.parametrize("kind", ["own prompts", "inference-free", "masked LM"])
def test_scores_are_inner_products_of_the_models_weights(kind: str, model: Path, tmp_path: Path) -> None:
    folder = model
    if kind == "inference-free":
        folder = save_splade(tmp_path, inference_free=True)
    elif kind == "masked LM":
        folder = save_masked_lm(tmp_path / "lm")
    retriever = load_retriever(f"splade:{folder}", device="cpu")
    retriever.index(documents(), language="en")
    queries = texts(7, 1)
    for hits, scores in zip(retriever.search(queries, k=60), by_hand(folder, queries, documents()), strict=True):
        expected = {f"d{i:03}": score for i, score in enumerate(scores) if score > 0}
        assert {hit.document_id: hit.score for hit in hits} == pytest.approx(expected, rel=1e-4)
        keys = [(hit.score, hit.document_id) for hit in hits]
        assert keys == sorted(keys, reverse=True)


def test_blocks_and_threads_do_not_change_scores_beyond_rounding(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = texts(9, 2)
    whole = SpladeRetriever(model, device="cpu")
    whole.index(documents(), language="en")
    expected = whole.search(queries, k=10)
    monkeypatch.setattr(SpladeRetriever, "block_documents", 7)
    for threads in (1, 3):
        parts = SpladeRetriever(model, device="cpu", threads=threads)
        parts.index(documents(), language="en")
        for a, b in zip(parts.search(queries, k=10), expected, strict=True):
            assert [hit.document_id for hit in a] == [hit.document_id for hit in b]
            assert [hit.score for hit in a] == pytest.approx([hit.score for hit in b], rel=1e-4)


def test_equal_documents_tie_and_the_larger_id_wins_across_blocks(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpladeRetriever, "block_documents", 4)
    retriever = SpladeRetriever(model, device="cpu", token_budget=1)  # one text per batch: no rounding by neighbors
    retriever.index([Document(f"d{i}", "", "a b c") for i in range(9)], language="en")
    (hits,) = retriever.search(["a b"], k=3)
    assert [hit.document_id for hit in hits] == ["d8", "d7", "d6"]
    assert len({hit.score for hit in hits}) == 1


def test_processes_share_a_corpus_and_nothing_is_encoded_twice(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SpladeRetriever, "block_documents", 8)
    cache = DirectoryEmbeddingCache(tmp_path)
    for rank in (1, 0):
        SpladeRetriever(model, device="cpu", cache=cache).prepare(documents(), language="en", rank=rank, size=2)
    files = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.npz")}
    assert len(files) == 8
    retriever = SpladeRetriever(model, device="cpu", cache=cache)
    monkeypatch.setattr(SpladeRetriever, "_block", None)
    retriever.prepare(documents(), language="en", rank=0, size=1)
    retriever.index(documents(), language="en")
    monkeypatch.undo()
    monkeypatch.setattr(SpladeRetriever, "block_documents", 8)
    alone = SpladeRetriever(model, device="cpu")
    alone.index(documents(), language="en")
    assert retriever.search(texts(4, 3), k=9) == alone.search(texts(4, 3), k=9)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.npz")} == files


def test_a_damaged_file_is_named(model: Path, tmp_path: Path) -> None:
    cache = DirectoryEmbeddingCache(tmp_path)
    SpladeRetriever(model, device="cpu", cache=cache).prepare(documents(), language="en", rank=0, size=1)
    (file,) = tmp_path.rglob("*.npz")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 255
    file.write_bytes(bytes(content))
    retriever = SpladeRetriever(model, device="cpu", cache=cache)
    retriever.index(documents(), language="en")
    with pytest.raises(IntegrityError, match=file.stem):
        retriever.search(["a b"], k=3)


def test_the_heaviest_terms_can_be_kept(model: Path) -> None:
    retriever = SpladeRetriever(model, device="cpu", max_active_terms=3)
    assert retriever.spec.fingerprint != SpladeRetriever(model).spec.fingerprint
    (row,) = retriever._encoded(["a b c"], "document", ["x"])
    assert len(row[0]) == 3


def test_memory_that_runs_out_makes_smaller_batches(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = SpladeRetriever(model, device="cpu")
    expected = retriever._encoded(texts(12, 4), "document", [str(i) for i in range(12)])
    encoder = retriever._model.model
    whole, sizes = encoder.encode_document, []

    def narrow(batch: list[str], **options: Any) -> Any:
        sizes.append(len(batch))
        if len(batch) > 2:
            raise RuntimeError("CUDA out of memory. Tried to allocate everything.")
        return whole(batch, **options)

    monkeypatch.setattr(encoder, "encode_document", narrow)
    found = retriever._encoded(texts(12, 4), "document", [str(i) for i in range(12)])
    assert max(sizes) == 12
    assert sum(size for size in sizes if size <= 2) == 12
    for (terms, weights), (other_terms, other_weights) in zip(found, expected, strict=True):
        assert terms.tolist() == other_terms.tolist()
        assert weights == pytest.approx(other_weights, rel=1e-4)


def test_a_weight_that_is_not_a_number_is_refused_by_name(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    retriever = SpladeRetriever(model, device="cpu")
    encoder = retriever._model.model

    def spoiled(encode: Any) -> Any:
        def encode_and_spoil(batch: list[str], **options: Any) -> Any:
            weights = encode(batch, **options).to_dense()
            weights[[i for i, text in enumerate(batch) if "d" in text], 5] = torch.nan
            return weights.to_sparse()

        return encode_and_spoil

    for method in ("encode_document", "encode_query"):
        monkeypatch.setattr(encoder, method, spoiled(getattr(encoder, method)))
    with pytest.raises(ModelError, match="document 'bad' the weight nan for term 5"):
        retriever.index(
            [Document("good", "", "a b"), Document("bad", "", "c d"), Document("z", "", "a")], language="en"
        )
    retriever.index([Document("good", "", "a b")], language="en")
    with pytest.raises(ModelError, match="the query 'd e' the weight nan"):
        retriever.search(["a", "d e"], k=1)


def test_empty_queries_have_no_hits_and_k_may_exceed_the_corpus(model: Path) -> None:
    retriever = SpladeRetriever(model, device="cpu")
    retriever.index([Document("a", "b", "c"), Document("b", "", "")], language="en")
    first, second, third = retriever.search(["", "a b", " "], k=99)
    assert first == third == []
    assert {hit.document_id for hit in second} == {"a", "b"}
    assert retriever.search([], k=1) == []


def test_what_cannot_be_done_is_refused(model: Path, tmp_path: Path) -> None:
    retriever = SpladeRetriever(model, device="cpu", languages=["en"])
    assert retriever.supports("en")
    assert not retriever.supports("zh")
    assert SpladeRetriever(model).supports("zh")
    with pytest.raises(UsageError, match="'zh'"):
        retriever.index(documents(), language="zh")
    with pytest.raises(UsageError, match="before a corpus"):
        retriever.search(["a"], k=1)
    with pytest.raises(DataError, match="no documents"):
        retriever.index([], language="en")
    with pytest.raises(DataError, match="all 2 documents are empty"):
        retriever.index([Document("a", "", " "), Document("b", "", "")], language="en")
    with pytest.raises(DataError, match="'a' occurs twice"):
        retriever.index([Document("a", "", "x"), Document("a", "", "y")], language="en")
    with pytest.raises(UsageError, match="no model"):
        SpladeRetriever("")
    with pytest.raises(UsageError, match="token_budget"):
        SpladeRetriever(model, token_budget=0)
    with pytest.raises(UsageError, match="dtype"):
        SpladeRetriever(model, dtype="int8")  # type: ignore[arg-type]
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="lacks a trained head for terms"):
        SpladeRetriever(tmp_path).index(documents(), language="en")


def test_the_spec_says_what_decides_and_nothing_else(model: Path) -> None:
    spec = SpladeRetriever(model, query_prompt="find: ").spec
    assert spec.kind == "retriever"
    assert spec.backend == "splade"
    assert spec.revision.startswith("sha256:")
    assert spec.settings["query_prompt"] == "find: "
    other = SpladeRetriever(model, query_prompt="find: ", device="cpu", token_budget=9, threads=1, languages=["en"])
    assert spec.fingerprint == other.spec.fingerprint
    assert spec.fingerprint != SpladeRetriever(model).spec.fingerprint
