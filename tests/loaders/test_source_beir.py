"""BEIR folders: split, checks, streaming, and speech from elsewhere."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

import squtr
from squtr.errors import AudioError, DataError, UnknownNameError, UsageError
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.recipe import open_recipe
from squtr.loaders.records import Qrel
from squtr.loaders.sources import digests, load_source
from squtr.loaders.sources.beir import BeirSource

from .sources_for_tests import make_beir, make_recordings


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_beir(tmp_path / "My_Data")


def test_a_split_has_the_queries_that_it_judges(root: Path) -> None:
    source = load_source(f"beir:{root}?language=en")
    assert dict(source.subsets) == {"my-data": "en"}
    assert source.name == "beir:my-data"
    assert [(q.id, q.text, q.language) for q in source.queries("my-data")] == [
        ("q2", "What is 2?", "en"),
        ("q1", "What is 1?", "en"),
    ]
    assert source.qrels("my-data") == [Qrel("q1", "d1", 1), Qrel("q2", "d2", 2), Qrel("q1", "d0", 0)]
    assert [d.id for d in source.documents("my-data")] == ["d0", "d1", "d2", "d3"]
    dev = load_source(f"beir:{root}?language=en&split=dev&subset=other")
    assert [q.id for q in dev.queries("other")] == ["q3"]


def test_the_language_is_required(root: Path) -> None:
    with pytest.raises(UsageError, match=r"does not say its language.*\?language=en"):
        load_source(f"beir:{root}")
    with pytest.raises(UsageError, match=r"&language=en"):
        load_source(f"beir:{root}?split=dev")


def test_an_unknown_split(root: Path) -> None:
    with pytest.raises(DataError, match=r"no split 'tset'.*Did you mean 'test'\? It has: dev, test"):
        BeirSource(root, language="en", split="tset")


def test_an_incomplete_folder(root: Path) -> None:
    (root / "queries.jsonl").unlink()
    with pytest.raises(DataError, match=r"queries\.jsonl is missing"):
        BeirSource(root, language="en")


def test_an_unknown_subset(root: Path) -> None:
    source = BeirSource(root, language="en")
    for read in (source.queries, source.documents, source.qrels):
        with pytest.raises(UnknownNameError, match="Did you mean 'my-data'"):
            read("my-dato")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("q1 0 d1 1\n", "holds no judgments"),
        ("q1\t0\td1\t1\nq2\t0\td2\t1\n", "must be query-id, corpus-id, score"),
        ("query-id\tcorpus-id\tscore\nq1\td1\n", "line 2: 2 values where the first line names 3"),
        ("query-id\tcorpus-id\tscore\nq1\td1\tgood\n", "line 2: field 'score' is 'good'"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t\n", "query, document or grade is missing"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t2\n", "judged twice"),
        ("query-id\tcorpus-id\tscore\nq1\td9\t1\n", "line 2: the document 'd9' is not in the corpus"),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\n\nq9\td1\t1\n", "line 4: the query 'q9' is not in queries"),
        ("query-id\tcorpus-id\tscore\n", "holds no judgments"),
    ],
)
def test_bad_judgements(root: Path, lines: str, said: str) -> None:
    (root / "qrels/test.tsv").write_text(lines)
    with pytest.raises(DataError) as caught:
        BeirSource(root, language="en").qrels("my-data")
    assert said in str(caught.value)


def test_windows_lines_quotes_and_a_mark(root: Path) -> None:
    with (root / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "\\"x", "title": null, "text": ""}\n')
    (root / "qrels/test.tsv").write_bytes('\ufeffquery-id\tcorpus-id\tscore\r\nq1\t"x\t1\r\n'.encode())
    source = BeirSource(root, language="en")
    assert source.qrels("my-data") == [Qrel("q1", '"x', 1)]
    assert list(source.documents("my-data"))[-1].contents == ""


def test_a_document_that_occurs_twice(root: Path) -> None:
    with (root / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "d1", "text": "again"}\n')
    documents = BeirSource(root, language="en").documents("my-data")
    assert [next(documents).id for _ in range(5)] == ["d0", "d1", "d2", "d3", "d1"]
    with pytest.raises(DataError, match=r"corpus\.jsonl, line 5: the document id 'd1' occurs twice"):
        next(documents)


def test_documents_are_streamed(root: Path) -> None:
    with (root / "corpus.jsonl").open("a") as file:
        for i in range(20_000):
            file.write(f'{{"_id": "x{i}", "title": "", "text": "{"words " * 40}"}}\n')
    source = BeirSource(root, language="en")
    tracemalloc.start()
    try:
        documents = source.documents("my-data")
        assert isinstance(documents, Iterator)
        assert sum(1 for _ in documents) == 20_004
        source.qrels("my-data")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # All texts together have 5 MB.
    assert peak < 2_000_000


def test_the_version_follows_content_and_options(root: Path) -> None:
    def version(**options: str) -> str:
        return BeirSource(root, **{"language": "en", **options}).version

    first = version()
    assert version() == first
    assert len({first, version(language="es"), version(split="dev"), version(subset="x")}) == 4
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
        before = version()
        path = root / name
        # The same size and time: only the content says that it is another.
        times = path.stat().st_mtime_ns
        path.write_bytes(path.read_bytes()[::-1])
        os.utime(path, ns=(times, times))
        assert version() != before


def test_the_version_does_not_depend_on_the_place(root: Path, tmp_path: Path) -> None:
    other = make_beir(tmp_path / "elsewhere" / "My_Data")
    assert BeirSource(root, language="en").version == BeirSource(other, language="en").version


def test_an_unchanged_file_is_read_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(stream: object) -> str:
        read.append(1)
        return "0" * 64

    monkeypatch.setattr(digests, "file_sha256", counted)
    versions = {BeirSource(root, language="en").version for _ in range(2)}
    assert len(read) == 6, "files that changed just now are not trusted"
    monkeypatch.setattr(digests, "_SETTLED_NS", -1)
    versions |= {BeirSource(root, language="en").version for _ in range(3)}
    assert len(read) == 9
    assert len(versions) == 1


def test_asked_for_speech_it_says_what_to_do(root: Path) -> None:
    source = BeirSource(root, language="en")
    with pytest.raises(AudioError, match=r"texts only, so query 'q2' of my-data has no recording.*speech=DIR"):
        source.speech(source.queries("my-data")[0])


def test_built_with_recordings(root: Path, tmp_path: Path) -> None:
    # q2 is found by its id, q1 by its text.
    voices = make_recordings(
        tmp_path / "voices",
        [{"_id": "q2", "file": "a/2.wav", "speaker": "ana"}, {"text": "what is 1", "file": "1.wav", "speaker": "bo"}],
    )
    name = f"beir:{root}?language=en&speech={voices}"
    opened = open_recipe(name, conditions=["clean", "high_noise"])
    assert opened.recipe.sources[0].name == "beir:my-data+voices"
    build(opened, tmp_path / "built")
    data = BuiltData(tmp_path / "built")
    assert [(q.id, q.speaker, q.duration_s) for q in data.spoken("my-data", "high_noise")] == [
        ("q2", "ana", 0.5),
        ("q1", "bo", 0.5),
    ]
    assert len(data.documents("my-data")) == 4
    assert squtr.load_dataset("en_clean", source=name, cache_dir=str(tmp_path / "cache"))["id"] == ["q2", "q1"]


@pytest.mark.skipif("SQUTR_SHARED" not in os.environ, reason="needs SQUTR_SHARED")
@pytest.mark.parametrize("language", ["en", "es", "zh"])
def test_xquad(language: str) -> None:
    root = Path(os.environ["SQUTR_SHARED"]) / f"data/ir/xquad-{language}"
    source = load_source(f"beir:{root}?language={language}")
    subset = f"xquad-{language}"
    assert (len(source.queries(subset)), len(source.qrels(subset)), len(list(source.documents(subset)))) == (
        1190, 1190, 240,
    )  # fmt: skip
