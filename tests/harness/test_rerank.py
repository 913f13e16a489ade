"""A reranker over a first stage, with tiny random cross-encoders."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import ModelError, UsageError
from squtr.harness.components import load_retriever
from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache
from squtr.harness.components.retrievers.bm25 import BM25Retriever
from squtr.harness.components.retrievers.rerank import RerankedRetriever
from squtr.harness.protocols import CompositeRetriever, Hit
from squtr.loaders.corpus import Corpus
from squtr.loaders.records import Document

from .retrieval_models_for_tests import save_cross_encoder


def texts(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices("abcdefgh", k=rng.randint(1, 12))) for _ in range(n)]


DOCUMENTS = [Document(f"d{i:02}", "", text) for i, text in enumerate(texts(30, 0))]
CORPUS = Corpus.of(DOCUMENTS)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_cross_encoder(tmp_path_factory.mktemp("cross"))


def reranker(model: Path, **options: Any) -> RerankedRetriever:
    return RerankedRetriever(model, first=BM25Retriever(), device="cpu", **options)


def ranking(*ids: str) -> list[Hit]:
    return [Hit(document_id, 1.0 / (i + 1)) for i, document_id in enumerate(ids)]


def logits(model: Path, pairs: list[tuple[str, str]]) -> np.ndarray:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    network = AutoModelForSequenceClassification.from_pretrained(model).eval()
    with torch.inference_mode():
        rows = [network(**tokenizer([q], [d], truncation=True, return_tensors="pt")).logits[0, 0] for q, d in pairs]
    return np.array([float(row) for row in rows])


def test_the_best_are_in_the_order_of_the_models_logits(model: Path) -> None:
    made = load_retriever(f"rerank:{model}", first="bm25", depth=8, device="cpu")
    made.index(DOCUMENTS, language="en")
    first = BM25Retriever()
    first.index(DOCUMENTS, language="en")
    for query in texts(5, 1):
        (hits,) = made.search([query], k=20)
        (before,) = first.search([query], k=20)
        head = [hit.document_id for hit in before[:8]]
        scores = dict(zip(head, logits(model, [(query, d.contents) for d in CORPUS.by_id(head)]), strict=True))
        assert {hit.document_id: hit.score for hit in hits[:8]} == pytest.approx(scores, abs=1e-4)
        assert [hit.document_id for hit in hits[8:]] == [hit.document_id for hit in before[8:]]
        keys = [(hit.score, hit.document_id) for hit in hits]
        assert keys == sorted(keys, reverse=True)


def test_it_is_a_composite(model: Path) -> None:
    made: CompositeRetriever = reranker(model, depth=20)
    assert [part.spec.name for part in made.parts] == ["BM25"]
    assert (made.part_depth(5), made.part_depth(50)) == (20, 50)
    assert made.supports("zh")
    assert not made.supports("ja")
    assert made.spec.name == f"BM25 > {model.name}"
    assert made.spec.settings["first"] == BM25Retriever().spec.as_dict()


def test_ties_go_to_the_larger_id_and_fewer_may_be_asked_for(model: Path) -> None:
    same = Corpus.of([Document(i, "", "a b") for i in "abcd"])
    made = reranker(model, depth=3)
    (hits,) = made.combine(["a"], [[ranking("a", "b", "c", "d")]], same, k=4)
    assert [hit.document_id for hit in hits] == ["c", "b", "a", "d"]
    assert hits[3].score == hits[2].score - 1
    assert made.combine(["a"], [[ranking("a", "b", "c", "d")]], same, k=2) == [hits[:2]]


def test_nothing_found_and_nothing_asked_stay_nothing(model: Path) -> None:
    made = reranker(model)
    assert made.combine(["a", " "], [[[], ranking("d00")]], CORPUS, k=3) == [[], []]
    assert made.combine([], [[]], CORPUS, k=3) == []


def test_pairs_are_scored_once(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DirectoryEmbeddingCache(tmp_path)
    queries = ["a b", "c"]
    rankings = [[ranking("d00", "d01", "d02"), ranking("d03", "d00")]]
    expected = reranker(model).combine(queries, rankings, CORPUS, k=3)
    assert reranker(model, cache=cache).combine(queries, rankings, CORPUS, k=3) == expected
    again = reranker(model, depth=2, cache=cache)
    asked: list[tuple[str, str]] = []
    computed = RerankedRetriever._computed

    def counted(self: RerankedRetriever, pairs: list[tuple[str, str]], names: dict[str, str]) -> list[float]:
        asked.extend(pairs)
        return computed(self, pairs, names)

    monkeypatch.setattr(RerankedRetriever, "_computed", counted)
    more = again.combine([*queries, "d"], [[*rankings[0], ranking("d09", "d08")]], CORPUS, k=2)
    assert {query for query, _ in asked} == {"d"}
    assert more[1] == expected[1][:2]
    # Equal pairs are one.
    assert len(again.combine(["e", "e"], [[ranking("d00"), ranking("d00")]], CORPUS, k=1)) == 2
    assert [query for query, _ in asked].count("e") == 1


def test_memory_that_runs_out_makes_smaller_batches(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = reranker(model)
    rankings = [[ranking(*(document.id for document in DOCUMENTS[:12]))]]
    expected = made.combine(["a b c"], rankings, CORPUS, k=12)
    network = made._model.model
    whole, sizes = network.predict, []

    def narrow(batch: list[tuple[str, str]], **options: Any) -> Any:
        sizes.append(len(batch))
        if len(batch) > 3:
            raise RuntimeError("CUDA out of memory. Tried to allocate everything.")
        return whole(batch, **options)

    monkeypatch.setattr(network, "predict", narrow)
    found = made.combine(["a b c"], rankings, CORPUS, k=12)
    assert [hit.document_id for hit in found[0]] == [hit.document_id for hit in expected[0]]
    assert sum(size for size in sizes if size <= 3) == 12

    def never(batch: list[tuple[str, str]], **options: Any) -> Any:
        raise RuntimeError("CUDA out of memory. Tried to allocate everything.")

    monkeypatch.setattr(network, "predict", never)
    with pytest.raises(ModelError, match="no memory for one item"):
        made.combine(["a b c"], rankings, CORPUS, k=12)


def test_a_score_that_is_not_a_number_is_refused_by_name(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = reranker(model)
    network = made._model.model
    whole = network.predict

    def spoiled(batch: list[tuple[str, str]], **options: Any) -> Any:
        return np.array(
            [
                np.nan if d == DOCUMENTS[2].contents else s
                for (_, d), s in zip(batch, whole(batch, **options), strict=True)
            ]
        )

    monkeypatch.setattr(network, "predict", spoiled)
    with pytest.raises(ModelError, match="document 'd02' the score nan for the query 'a b'"):
        made.combine(["a b"], [[ranking("d01", "d02", "d03")]], CORPUS, k=3)


def test_a_model_with_several_scores_per_pair_is_refused(tmp_path: Path) -> None:
    made = reranker(save_cross_encoder(tmp_path, labels=3))
    with pytest.raises(ModelError, match="3 scores per pair"):
        made.combine(["a"], [[ranking("d00")]], CORPUS, k=1)


def test_what_cannot_be_done_is_refused(model: Path) -> None:
    with pytest.raises(UsageError, match="depth"):
        reranker(model, depth=0)
    with pytest.raises(UsageError, match="token_budget"):
        reranker(model, token_budget=0)
    with pytest.raises(UsageError, match="precomputed run"):
        RerankedRetriever(model, first="trec:none.run")
    with pytest.raises(UsageError, match="before a corpus"):
        reranker(model).search(["a"], k=1)
    with pytest.raises(UsageError, match="as many rankings"):
        reranker(model).combine(["a", "b"], [[ranking("d00")]], CORPUS, k=1)


def test_the_spec_says_what_decides_and_nothing_else(model: Path) -> None:
    spec = reranker(model).spec
    assert (spec.kind, spec.backend) == ("retriever", "rerank")
    assert spec.fingerprint == reranker(model, token_budget=9).spec.fingerprint
    assert spec.fingerprint != reranker(model, depth=9).spec.fingerprint
    assert spec.fingerprint != reranker(model, prompt="judge").spec.fingerprint
    other = RerankedRetriever(model, first=BM25Retriever(k1=2.0), device="cpu")
    assert spec.fingerprint != other.spec.fingerprint
