"""BM25: the formula, the order of ties, and what is refused."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UnknownNameError, UsageError
from squtr.harness.components.retrievers import bm25, postings, sparse_search
from squtr.harness.components.retrievers.bm25 import BM25Retriever
from squtr.harness.components.retrievers.lexical_tokens import tokenizer_for
from squtr.harness.protocols import Retriever
from squtr.loaders.records import Document

WORDS = ["apple", "banana", "cherry", "river", "stone", "cloud", "bridge", "lamp"]


def documents(texts: list[str]) -> list[Document]:
    return [Document(f"d{i:03}", "", text) for i, text in enumerate(texts)]


def indexed(texts: list[str], language: str = "en", **settings: float) -> BM25Retriever:
    retriever = BM25Retriever(**settings)
    retriever.index(documents(texts), language=language)
    return retriever


def by_hand(texts: list[str], query: str, language: str, k1: float, b: float) -> dict[str, float]:
    cut = tokenizer_for(language)
    counts = [Counter(cut(text)) for text in texts]
    lengths = [sum(count.values()) for count in counts]
    average = sum(lengths) / len(lengths)
    scores: dict[str, float] = {}
    for i, (count, length) in enumerate(zip(counts, lengths, strict=True)):
        score = 0.0
        for term in cut(query):
            df = sum(term in other for other in counts)
            tf = count[term]
            idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
            score += idf * tf / (tf + k1 * (1 - b + b * length / average)) if tf else 0.0
        if score > 0:
            scores[f"d{i:03}"] = score
    return scores


texts_strategy = st.lists(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join), min_size=1, max_size=12).filter(
    any
)


@given(texts_strategy, st.lists(st.sampled_from([*WORDS, "unknown"]), max_size=6).map(" ".join))
def test_scores_agree_with_the_formula_and_hits_are_in_trec_order(texts: list[str], query: str) -> None:
    (hits,) = indexed(texts).search([query], k=len(texts))
    expected = by_hand(texts, query, "en", 0.9, 0.4)
    assert {hit.document_id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-5)
    keys = [(hit.score, hit.document_id) for hit in hits]
    assert keys == sorted(keys, reverse=True)


@pytest.mark.parametrize(
    ("language", "vocabulary"), [("zh", "我有一只猫狗在家里睡觉吃饭"), ("es", "casas perros gatos río")]
)
def test_the_formula_holds_in_other_languages_and_for_other_parameters(language: str, vocabulary: str) -> None:
    rng = random.Random(0)
    units = vocabulary.split() if " " in vocabulary else list(vocabulary)
    glue = " " if " " in vocabulary else ""
    texts = [glue.join(rng.choices(units, k=rng.randint(1, 20))) for _ in range(40)]
    query = glue.join(units[:3])
    (hits,) = indexed(texts, language, k1=1.7, b=0.8).search([query], k=40)
    expected = by_hand(texts, query, language, 1.7, 0.8)
    assert {hit.document_id: hit.score for hit in hits} == pytest.approx(expected, abs=1e-5)


def test_a_repeated_query_term_counts_as_often_as_it_is_said() -> None:
    retriever = indexed(["apple stone", "river", "cloud"])
    (once,), (twice,) = (retriever.search([query], k=1)[0] for query in ("apple", "apple apple"))
    assert twice.score == pytest.approx(2 * once.score)


def test_equal_documents_tie_exactly_and_the_larger_id_wins_at_the_boundary() -> None:
    retriever = indexed(["apple stone river"] * 9 + ["apple"])
    for query in ("apple stone river", "river apple stone"):
        (hits,) = retriever.search([query], k=4)
        assert [hit.document_id for hit in hits] == ["d008", "d007", "d006", "d005"]
        assert len({hit.score for hit in hits}) == 1


def test_the_order_of_words_changes_nothing() -> None:
    retriever = indexed([" ".join(random.Random(i).choices(WORDS, k=9)) for i in range(60)])
    forward, backward = retriever.search([" ".join(WORDS), " ".join(reversed(WORDS))], k=60)
    assert forward == backward


def test_title_and_text_are_indexed() -> None:
    retriever = BM25Retriever()
    retriever.index([Document("a", "Bridge", "of stone"), Document("b", "", "cloud")], language="en")
    assert [hit.document_id for hit in retriever.search(["bridges"], k=5)[0]] == ["a"]


@pytest.mark.parametrize("query", ["", "   ", "?!", "zebra", "the of and"])
def test_nothing_to_look_for_gives_no_hits(query: str) -> None:
    assert indexed(["apple the", "stone of"]).search([query, "apple"], k=3)[0] == []


def test_documents_without_the_term_are_not_hits_and_k_may_exceed_the_corpus() -> None:
    retriever = indexed(["apple", "stone", ""])
    assert [[hit.document_id for hit in hits] for hits in retriever.search(["apple", "cloud"], k=1000)] == [
        ["d000"],
        [],
    ]
    assert retriever.search([], k=1) == []


def test_what_cannot_be_indexed_is_refused_and_leaves_nothing_behind() -> None:
    retriever = indexed(["apple"])
    for wrong, part in (
        ([], "no documents"),
        ([Document("a", "", "x"), Document("b", "", "y"), Document("a", "", "z")], "'a' occurs twice"),
        ([Document("a", "", ""), Document("b", " ", "...")], "holds a word"),
    ):
        with pytest.raises(DataError, match=part):
            retriever.index(wrong, language="en")
        with pytest.raises(UsageError, match="before a corpus"):
            retriever.search(["apple"], k=1)
    with pytest.raises(UsageError, match="'ja'"):
        retriever.index(documents(["東京"]), language="ja")


@pytest.mark.parametrize("settings", [{"k1": -1.0}, {"k1": float("nan")}, {"b": 1.5}, {"b": float("nan")}])
def test_wrong_parameters_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        BM25Retriever(**settings)


def test_k_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        indexed(["apple"]).search(["apple"], k=0)


def test_the_spec_names_what_decides_the_ranking() -> None:
    first: Retriever = BM25Retriever()
    assert first.spec.settings["k1"] == 0.9
    assert first.spec.settings["b"] == 0.4
    assert first.spec.fingerprint == BM25Retriever().spec.fingerprint
    assert first.spec.fingerprint != BM25Retriever(k1=1.2).spec.fingerprint
    assert first.supports("zh")
    assert not first.supports("th")


def test_rankings_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "from squtr.harness.components.retrievers.bm25 import BM25Retriever\n"
        "from squtr.loaders.records import Document\n"
        "r = BM25Retriever()\n"
        "r.index([Document(str(i), '', f'w{i % 7} w{i % 11} w{i % 13}') for i in range(300)], language='en')\n"
        "print(r.search(['w1 w2 w3 w4 w5 w12'], k=50))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def random_texts(n: int, words: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    vocabulary = [f"w{i}" for i in range(words)]
    weights = [1 / (i + 1) for i in range(words)]
    return [" ".join(rng.choices(vocabulary, weights, k=rng.randint(0, 60))) for _ in range(n)]


@pytest.mark.parametrize("parameters", [{}, {"k1": 1.2, "b": 0.75}, {"k1": 0.0, "b": 1.0}])
def test_scores_are_those_of_bm25s_to_the_last_bit(parameters: dict[str, float]) -> None:
    import bm25s

    texts = random_texts(400, 300, seed=0)
    own = indexed(texts, **parameters)
    tokens = [tokenizer_for("en")(text) for text in texts]
    vocabulary: dict[str, int] = {}
    ids = [[vocabulary.setdefault(term, len(vocabulary)) for term in terms] for terms in tokens]
    settings = {"k1": 0.9, "b": 0.4, **parameters}
    peer = bm25s.BM25(method="lucene", dtype="float64", **settings)
    peer.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    for query in random_texts(30, 300, seed=1):
        known = sorted(vocabulary[term] for term in tokenizer_for("en")(query) if term in vocabulary)
        scores = peer.get_scores_from_ids(known) if known else np.zeros(len(texts))
        (hits,) = own.search([query], k=len(texts))
        assert {hit.document_id: hit.score for hit in hits} == {f"d{i:03}": s for i, s in enumerate(scores) if s > 0}


def test_chunks_blocks_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, queries = random_texts(300, 200, seed=2), random_texts(40, 250, seed=3)
    expected = indexed(texts).search(queries, k=20)
    monkeypatch.setattr(postings, "_CHUNK_WORDS", 50)
    monkeypatch.setattr(bm25, "_BLOCK_PAIRS", 30)
    monkeypatch.setattr(sparse_search, "_SUMS", 1500)
    for threads in (1, 3):
        retriever = BM25Retriever(threads=threads)
        retriever.index(documents(texts), language="en")
        assert retriever.search(queries, k=20) == expected
    assert retriever.spec.fingerprint == BM25Retriever().spec.fingerprint


def test_equal_queries_get_equal_hits_of_their_own() -> None:
    first, second = indexed(["apple", "stone apple"]).search(["apple", "apple"], k=2)
    assert first == second
    assert first is not second


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_published_analyzer_ranks_as_the_published_script(language: str) -> None:
    import bm25s

    rng = random.Random(5)
    if language == "en":
        porter = pytest.importorskip("nltk.stem.porter", reason="needs squtr[compat]").PorterStemmer()
        words = "the of running keys dying happy a B libraries relational news is x river rivers stones".split()
        texts = [" ".join(rng.choices(words, k=rng.randint(0, 15))) for _ in range(80)]
        stemmer = lambda batch: [porter.stem(word) for word in batch]  # noqa: E731

        def tokenized(texts: list[str]) -> object:
            return bm25s.tokenize(texts, stemmer=stemmer, show_progress=False)
    else:
        from squtr.harness.components.retrievers.chinese_words import chinese_words

        words = "我 有 一只 猫 北京 大学 学生 15% The iPhone a 。 上海".split()
        texts = ["".join(rng.choices(words, k=rng.randint(0, 15))) for _ in range(80)]

        def tokenized(texts: list[str]) -> object:
            spaced = [" ".join(chinese_words(text)) for text in texts]
            return bm25s.tokenize(spaced, stemmer=None, show_progress=False)

    peer = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
    peer.index(tokenized(texts), show_progress=False)
    retriever = BM25Retriever(analyzer="squtr-compat")
    retriever.index(documents(texts), language=language)
    queries = texts[:20]
    places, scores = peer.retrieve(tokenized(queries), k=80, show_progress=False)
    for own, found, values in zip(retriever.search(queries, k=80), places, scores, strict=True):
        theirs = {f"d{i:03}": float(s) for i, s in zip(found, values, strict=True) if s > 0}
        assert {hit.document_id: hit.score for hit in own} == pytest.approx(theirs, rel=1e-5)


def test_the_published_analyzer_is_another_component_for_two_languages() -> None:
    published = BM25Retriever(analyzer="squtr-compat")
    assert published.spec.fingerprint != BM25Retriever().spec.fingerprint
    assert published.spec.settings["analyzer"] == "squtr-compat"
    assert published.supports("zh")
    assert not published.supports("es")
    with pytest.raises(UnknownNameError, match="squtr-compat"):
        BM25Retriever(analyzer="lucene")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least 1 thread"):
        BM25Retriever(threads=0)


def test_the_default_fingerprint_is_that_of_earlier_results() -> None:
    assert BM25Retriever().spec.fingerprint == "987313586b41040d"


def test_a_term_may_occur_more_often_than_a_byte_holds() -> None:
    texts = ["apple " * 300 + "stone", "apple", "stone " * 70_000]
    (hits,) = indexed(texts).search(["apple stone"], k=3)
    expected = by_hand(texts, "apple stone", "en", 0.9, 0.4)
    assert {hit.document_id: hit.score for hit in hits} == pytest.approx(expected)
