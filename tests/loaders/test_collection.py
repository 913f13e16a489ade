"""Bad collections get a clear error that names file, line and id."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, SqutrError, UnknownNameError
from squtr.loaders.sources import load_source
from squtr.loaders.sources.collection import CollectionSource

from .collections_for_tests import make_collection


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_collection(tmp_path / "tiny")


def append(path: Path, row: dict[str, object]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read_everything(root: Path) -> None:
    source = CollectionSource(root)
    for subset in source.subsets:
        source.qrels(subset)
        for query in source.queries(subset):
            source.speech(query)


def test_a_good_one(root: Path) -> None:
    read_everything(root)
    assert load_source(str(root)).name == "tiny"


def test_duplicate_query(root: Path) -> None:
    append(root / "queries.en.jsonl", {"_id": "q0", "text": "again"})
    with pytest.raises(DataError, match=r"queries\.en\.jsonl, line 6: the query id 'q0' occurs twice"):
        read_everything(root)


def test_duplicate_document(root: Path) -> None:
    append(root / "corpus.en.jsonl", {"_id": "d3", "text": "again"})
    with pytest.raises(DataError, match="document id 'd3' occurs twice"):
        read_everything(root)


def test_judgement_of_an_unknown_document(root: Path) -> None:
    append(root / "qrels.zh.jsonl", {"query-id": "q0", "corpus-id": "d99", "score": 1})
    with pytest.raises(DataError, match=r"qrels\.zh\.jsonl, line 6: the document 'd99' is not in the corpus"):
        read_everything(root)


def test_judgement_of_an_unknown_query(root: Path) -> None:
    append(root / "qrels.zh.jsonl", {"query-id": "q77", "corpus-id": "d1", "score": 1})
    with pytest.raises(DataError, match="the query 'q77' is not in queries"):
        read_everything(root)


def test_judged_twice(root: Path) -> None:
    append(root / "qrels.en.jsonl", {"query-id": "q0", "corpus-id": "d0", "score": 1})
    with pytest.raises(DataError, match="judged twice"):
        read_everything(root)


@pytest.mark.parametrize("grade", ["two", None, 1.5, True])
def test_grade_that_is_no_integer(root: Path, grade: object) -> None:
    append(root / "qrels.en.jsonl", {"query-id": "q0", "corpus-id": "d5", "score": grade})
    with pytest.raises(DataError, match="field 'score'"):
        read_everything(root)


def test_grade_as_text_and_id_as_number(root: Path) -> None:
    append(root / "corpus.en.jsonl", {"_id": 0, "text": "zero"})
    append(root / "qrels.en.jsonl", {"query-id": "q0", "corpus-id": 0, "score": "1"})
    judged = {(q.query_id, q.document_id): q.score for q in CollectionSource(root).qrels("tiny-en")}
    assert judged["q0", "0"] == 1


def test_empty_query(root: Path) -> None:
    append(root / "queries.en.jsonl", {"_id": "q9", "text": "  "})
    with pytest.raises(DataError, match="query 'q9' has no text"):
        read_everything(root)


def test_broken_line(root: Path) -> None:
    with (root / "corpus.en.jsonl").open("a") as file:
        file.write("{broken\n")
    with pytest.raises(DataError, match=r"corpus\.en\.jsonl, line 13: not JSON"):
        read_everything(root)


def test_other_encoding(root: Path) -> None:
    (root / "queries.en.jsonl").write_bytes('{"_id": "q0", "text": "café"}\n'.encode("latin-1"))
    with pytest.raises(DataError, match="not UTF-8"):
        read_everything(root)


def test_byte_order_mark_and_windows_lines(root: Path) -> None:
    path = root / "queries.en.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    read_everything(root)


def test_missing_recording(root: Path) -> None:
    (root / "speech/en/q2.flac").unlink()
    with pytest.raises(AudioError, match=r"recording en/q2\.flac of query 'q2' does not exist"):
        read_everything(root)


def test_corrupt_recording(root: Path) -> None:
    (root / "speech/en/q2.flac").write_bytes(b"fLaC and then nothing")
    with pytest.raises(AudioError, match="of query 'q2' cannot be read"):
        read_everything(root)


def test_silent_recording(root: Path) -> None:
    soundfile.write(root / "speech/en/q2.flac", np.zeros(1000), 24_000)
    with pytest.raises(AudioError, match="of query 'q2' is silent"):
        read_everything(root)


def test_query_without_recording(root: Path) -> None:
    path = root / "speech.en.jsonl"
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if '"q3"' not in line))
    with pytest.raises(AudioError, match="query 'q3' has no recording"):
        read_everything(root)


def test_recording_outside_the_folder(root: Path) -> None:
    path = root / "speech.en.jsonl"
    path.write_text(path.read_text().replace("en/q3.flac", "../../q3.flac"))
    with pytest.raises(AudioError, match="lies outside"):
        read_everything(root)


def test_recording_at_another_rate_is_resampled(root: Path) -> None:
    samples, _ = soundfile.read(root / "speech/en/q1.flac")
    soundfile.write(root / "speech/en/q1.flac", samples, 16_000)
    source = CollectionSource(root)
    query = source.queries("tiny-en")[1]
    assert source.speech(query).samples.size == -(-samples.size * 3 // 2)


def test_version_follows_the_content(root: Path) -> None:
    before = CollectionSource(root).version
    append(root / "corpus.en.jsonl", {"_id": "new", "text": "new"})
    assert CollectionSource(root).version != before


@pytest.mark.parametrize(("name", "said"), [("minni", "Did you mean 'mini'"), ("/does/not/exist", "about.json")])
def test_unknown_source(name: str, said: str) -> None:
    with pytest.raises(SqutrError, match=said):
        load_source(name)


def test_unknown_subset(root: Path) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'tiny-en'"):
        CollectionSource(root).queries("tiny-e")
