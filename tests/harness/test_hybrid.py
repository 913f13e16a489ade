"""Hybrids: the fusion of what their parts find."""

from __future__ import annotations

import pytest

from squtr.errors import UnknownNameError, UsageError
from squtr.harness.components import load_retriever
from squtr.harness.components.retrievers.bm25 import BM25Retriever
from squtr.harness.components.retrievers.fusion import reciprocal_rank_fusion, score_fusion
from squtr.harness.components.retrievers.hybrid import HybridRetriever
from squtr.harness.protocols import CompositeRetriever
from squtr.loaders.corpus import as_corpus
from squtr.loaders.records import Document

from .fakes import WordRetriever

DOCUMENTS = [
    Document("a", "", "river water runs to the sea"),
    Document("b", "", "the king of the city"),
    Document("c", "", "water for the city, water for the king"),
    Document("d", "", "energy from the wind"),
]
QUERIES = ["water in the city", "king", "nothing known", ""]


def hybrid(**options: object) -> HybridRetriever:
    return HybridRetriever(parts=[BM25Retriever(), WordRetriever(languages="en")], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["rrf", "score"])
def test_it_fuses_the_rankings_of_its_parts(method: str) -> None:
    made = hybrid(method=method, weights=[2.0, 1.0])
    made.index(DOCUMENTS, language="en")
    found = made.search(QUERIES, k=3)
    for query, hits in zip(QUERIES, found, strict=True):
        rankings = []
        for part in (BM25Retriever(), WordRetriever(languages="en")):
            part.index(DOCUMENTS, language="en")
            rankings.append(part.search([query], k=100)[0])
        fused = reciprocal_rank_fusion if method == "rrf" else score_fusion
        assert hits == fused(rankings, weights=[2.0, 1.0], k=3)
    assert found[3] == []


def test_it_is_a_composite() -> None:
    made: CompositeRetriever = hybrid(depth=50)
    assert [part.spec.name for part in made.parts] == ["BM25", "words"]
    assert (made.part_depth(10), made.part_depth(200)) == (50, 200)
    assert made.supports("en")
    assert not made.supports("zh")
    assert made.spec.name == "rrf(BM25, words)"
    assert made.spec.settings["parts"] == [part.spec.as_dict() for part in made.parts]


def test_every_option_is_in_the_spec() -> None:
    specs = [
        hybrid(**options).spec.fingerprint
        for options in (
            {},
            {"depth": 50},
            {"constant": 10},
            {"weights": [1, 2]},
            {"method": "score"},
            {"method": "score", "normalization": "z"},
        )
    ]
    assert len(set(specs)) == len(specs)


def test_parts_may_be_named() -> None:
    made = load_retriever("hybrid", parts=["bm25", BM25Retriever(k1=1.2)])
    made.index(DOCUMENTS, language="en")
    assert made.search(["king"], k=1)[0][0].document_id == "b"


def test_wrong_options_are_usage_errors() -> None:
    with pytest.raises(UsageError, match="at least two"):
        HybridRetriever(parts=["bm25"])
    with pytest.raises(UsageError, match="same retriever"):
        _ = HybridRetriever(parts=["bm25", "bm25"]).spec
    with pytest.raises(UnknownNameError, match="rrf"):
        hybrid(method="rff")
    with pytest.raises(UsageError, match="weights"):
        hybrid(weights=[1.0])
    with pytest.raises(UsageError, match="before a corpus"):
        hybrid().search(["king"], k=1)
    with pytest.raises(UsageError, match="precomputed run"):
        HybridRetriever(parts=["bm25", "trec:none.trec"])


def test_hybrids_nest_and_join_dense_parts() -> None:
    made = load_retriever("hybrid", parts=[hybrid(), "dense:all-minilm-l6-v2"], method="score", normalization="z")
    made.index(DOCUMENTS, language="en")
    (hits,) = made.search(["wind power"], k=4)
    assert hits[0].document_id == "d"
    assert len({hit.document_id for hit in hits}) == 4
    assert made.spec.name == "score(rrf(BM25, words), all-MiniLM-L6-v2)"


def test_rankings_must_be_one_per_part_and_query() -> None:
    with pytest.raises(UsageError, match="as many rankings"):
        hybrid().combine(["king"], [[[]]], as_corpus(DOCUMENTS), k=1)
