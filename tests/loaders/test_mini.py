"""The embedded collection: integrity, and room to lose and to gain."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from pathlib import Path

import pytest

from squtr.harness.components import load_retriever
from squtr.harness.metrics.ranking import score_ranking
from squtr.loaders.audio import pcm_sha256
from squtr.loaders.jsonl import read_jsonl
from squtr.loaders.sources import load_source
from squtr.loaders.sources.collection import CollectionSource

SUBSETS = ("mini-en", "mini-zh", "mini-es")
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def mini() -> CollectionSource:
    source = load_source("mini")
    assert isinstance(source, CollectionSource)
    return source


def test_subsets(mini: CollectionSource) -> None:
    assert dict(mini.subsets) == {"mini-en": "en", "mini-zh": "zh", "mini-es": "es"}


@pytest.mark.parametrize("subset", SUBSETS)
def test_size_and_uniqueness(mini: CollectionSource, subset: str) -> None:
    queries, documents = mini.queries(subset), mini.documents(subset)
    assert len(documents) >= 120
    assert len(queries) >= 60
    assert len({d.id for d in documents}) == len({d.text for d in documents}) == len(documents)
    assert len({q.id for q in queries}) == len({q.text for q in queries}) == len(queries)
    assert set(Counter(q.group for q in queries)) == {"finance", "health", "encyclopedia", "everyday"}


@pytest.mark.parametrize("subset", SUBSETS)
def test_every_query_has_an_answer_and_a_third_have_several(mini: CollectionSource, subset: str) -> None:
    grades: dict[str, list[int]] = {query.id: [] for query in mini.queries(subset)}
    for qrel in mini.qrels(subset):
        grades[qrel.query_id].append(qrel.score)
    assert all(2 in found for found in grades.values())
    assert set().union(*grades.values()) == {1, 2}
    assert sum(len(found) > 1 for found in grades.values()) >= len(grades) / 3


@pytest.mark.parametrize("subset", SUBSETS)
def test_lengths_and_language(mini: CollectionSource, subset: str) -> None:
    for document in mini.documents(subset):
        if subset == "mini-zh":
            assert 60 <= len(document.text) <= 180, document.id
            assert len(CHINESE.findall(document.text)) > len(document.text) / 2, document.id
        else:
            assert 40 <= len(document.text.split()) <= 100, document.id
            assert not CHINESE.search(document.text), document.id
    texts = [q.text for q in mini.queries(subset)]
    if subset == "mini-es":
        assert sum("¿" in text for text in texts) > len(texts) / 2
    if subset == "mini-zh":
        assert all(CHINESE.search(text) and not re.search("[A-Za-z]", text) for text in texts)


def test_languages_are_parallel(mini: CollectionSource) -> None:
    for table in (mini.queries, mini.documents):
        numbers = [[item.id.partition("-")[2] for item in table(subset)] for subset in SUBSETS]
        assert numbers[0] == numbers[1] == numbers[2]


@pytest.mark.parametrize("subset", SUBSETS)
def test_typed_queries_leave_room(mini: CollectionSource, subset: str) -> None:
    retriever = load_retriever("bm25")
    retriever.index(mini.documents(subset), language=mini.subsets[subset])
    queries = mini.queries(subset)
    rankings = retriever.search([query.text for query in queries], k=100)
    run = {q.id: [(hit.document_id, hit.score) for hit in hits] for q, hits in zip(queries, rankings, strict=True)}
    qrels: dict[str, dict[str, int]] = {}
    for qrel in mini.qrels(subset):
        qrels.setdefault(qrel.query_id, {})[qrel.document_id] = qrel.score
    assert 0.55 <= score_ranking(qrels, run, metrics=("ndcg_at_10",)).mean["ndcg_at_10"] <= 0.90


@pytest.mark.parametrize("subset", SUBSETS)
def test_every_query_is_spoken_by_several_voices(mini: CollectionSource, subset: str) -> None:
    spoken = [mini.speech(query) for query in mini.queries(subset)]
    assert len({speech.voice for speech in spoken}) >= 3
    for query, speech in zip(mini.queries(subset), spoken, strict=True):
        seconds = speech.samples.size / 24_000
        assert 1.0 < seconds < 20.0, query.id
        assert abs(speech.samples).max() <= 0.9, query.id
    rates = [speech.tts_error_rate for speech in spoken]
    assert all(rate >= 0 for rate in rates)
    assert statistics.mean(rates) < 0.5


@pytest.mark.parametrize("subset", SUBSETS)
def test_recordings_are_the_ones_in_the_index(mini: CollectionSource, subset: str) -> None:
    index = mini.root / f"speech.{mini.subsets[subset]}.jsonl"
    rows = [row for _, row in read_jsonl(index)]
    for row in rows:
        assert pcm_sha256((mini.root / "speech" / row["file"]).read_bytes(), row["_id"]) == row["sha256"]
    names = {row["file"] for row in rows}
    found = (mini.root / "speech" / mini.subsets[subset]).glob("*")
    assert names == {f"{mini.subsets[subset]}/{path.name}" for path in found}


def test_package_stays_small(mini: CollectionSource) -> None:
    texts = sum(path.stat().st_size for path in mini.root.glob("*.json*"))
    speech = sum(path.stat().st_size for path in (mini.root / "speech").rglob("*.flac"))
    assert texts < 1_000_000
    assert speech < 20_000_000


def test_folder_argument(tmp_path: Path, mini: CollectionSource) -> None:
    assert load_source(str(mini.root)).version == mini.version
