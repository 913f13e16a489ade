"""Recordings: as the voice of other texts, and as a source of their own."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, SqutrError, UnknownNameError
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.recipe import open_recipe
from squtr.loaders.records import Query
from squtr.loaders.sources import load_source
from squtr.loaders.sources.collection import CollectionSource
from squtr.loaders.sources.recorded import Recordings
from squtr.loaders.sources.spoken import with_recordings

from .collections_for_tests import make_collection, speech_like, write_jsonl
from .sources_for_tests import make_recordings

ROWS: list[dict[str, object]] = [
    {"file": "a/one.wav", "text": " Hello, world ", "lang": "en", "speaker": "ana", "license": "CC0-1.0"},
    {"file": "two.wav", "text": "Adiós", "language": "es", "speaker": "bo"},
    {"file": "three.wav", "id": "q3", "text": "Good bye", "language": "en", "speaker": None},
]


def test_standing_alone(tmp_path: Path) -> None:
    source = load_source(f"recorded:{make_recordings(tmp_path / 'Voices', ROWS)}")
    assert source.name == "recorded:Voices"
    assert source.license == "CC0-1.0"
    assert dict(source.subsets) == {"voices-en": "en", "voices-es": "es"}
    assert source.queries("voices-en") == [
        Query("a/one", "voices-en", "en", "Hello, world", "ana"),
        Query("q3", "voices-en", "en", "Good bye", ""),
    ]
    assert source.qrels("voices-en") == []
    assert list(source.documents("voices-es")) == []
    speech = source.speech(source.queries("voices-es")[0])
    assert speech.speaker == "bo"
    assert speech.samples.size == 12_000
    with pytest.raises(UnknownNameError, match="voices-en"):
        source.queries("voices")


def test_built_without_a_corpus(tmp_path: Path) -> None:
    root = make_recordings(tmp_path / "v", ROWS)
    build(open_recipe(f"recorded:{root}", conditions=["clean", "reverb"]), tmp_path / "out")
    data = BuiltData(tmp_path / "out")
    assert [q.text for q in data.spoken("v-es", "reverb")] == ["Adiós"]
    assert data.documents("v-es") == []


@pytest.mark.parametrize(("name", "mark"), [("manifest.tsv", "\t"), ("metadata.csv", ",")])
def test_tables_of_text(tmp_path: Path, name: str, mark: str) -> None:
    root = make_recordings(tmp_path / "v", [{"file": "1.wav"}, {"file": "2.wav"}])
    (root / "manifest.jsonl").unlink()
    said = '"Yes, sir"' if mark == "," else "Yes, sir"
    lines = [mark.join(line) for line in (["file_name", "transcription", "tts_error_rate"], ["1.wav", said, "0.25"])]
    (root / name).write_text(
        "\ufeff" + "\r\n".join([*lines, mark.join(["2.wav", "No", ""])]) + "\r\n", encoding="utf-8"
    )
    source = load_source(f"recorded:{root}?language=en")
    assert [q.text for q in source.queries("v")] == ["Yes, sir", "No"]
    rates = [source.speech(query).tts_error_rate for query in source.queries("v")]
    assert rates[0] == 0.25
    assert np.isnan(rates[1])
    assert load_source(f"recorded:{root / name}?language=en").version == source.version


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"text": "x", "language": "en"}, "field 'file' is None"),
        ({"file": "1.wav", "language": "en"}, "'1.wav' has neither id nor text"),
        ({"file": "1.wav", "text": "x"}, "has no language"),
        ({"file": "1.wav", "id": "1", "language": "en"}, "has no text"),
        ({"file": "1.wav", "text": "x", "language": "english"}, "no language code"),
        ({"file": "ok.wav", "text": "x", "language": "en"}, "the id 'ok' occurs twice"),
    ],
)
def test_bad_rows(tmp_path: Path, row: dict[str, object], said: str) -> None:
    root = make_recordings(tmp_path / "v", [{"file": "ok.wav", "text": "ok", "language": "en"}])
    with (root / "manifest.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    with pytest.raises(SqutrError) as caught:
        load_source(f"recorded:{root}").queries("v")
    assert said in str(caught.value)


def test_no_table_several_tables_and_no_folder(tmp_path: Path) -> None:
    root = make_recordings(tmp_path / "v", ROWS)
    (root / "speech.jsonl").write_text("")
    with pytest.raises(DataError, match=r"several tables of its recordings: manifest\.jsonl, speech\.jsonl"):
        Recordings(root)
    with pytest.raises(DataError, match="names no recordings"):
        _ = Recordings(root / "speech.jsonl").rows
    (root / "speech.jsonl").unlink()
    (root / "manifest.jsonl").unlink()
    with pytest.raises(DataError, match=r"no table.*Write manifest\.jsonl"):
        Recordings(root)
    with pytest.raises(DataError, match="does not exist"):
        Recordings(tmp_path / "nowhere")


@pytest.mark.parametrize("file", ["../1.wav", "/etc/passwd", "a/../../1.wav"])
def test_a_recording_outside_the_folder(tmp_path: Path, file: str) -> None:
    root = make_recordings(tmp_path / "v", [{"file": "1.wav"}])
    soundfile.write(tmp_path / "1.wav", speech_like(0, 0.5), 24_000)
    write_jsonl(root / "manifest.jsonl", [{"file": file, "text": "x", "language": "en"}])
    source = load_source(f"recorded:{root}")
    assert source.version
    with pytest.raises(AudioError, match="lies outside"):
        source.speech(source.queries("v")[0])


def test_the_version_follows_the_sound(tmp_path: Path) -> None:
    root = make_recordings(tmp_path / "v", ROWS)
    before = Recordings(root).version
    assert Recordings(root).version == before
    soundfile.write(root / "two.wav", speech_like(9, 0.5, 16_000), 16_000)
    assert Recordings(root).version != before


@pytest.fixture
def texts(tmp_path: Path) -> CollectionSource:
    """Two subsets with the same ids."""
    return CollectionSource(make_collection(tmp_path / "tiny"))


def test_own_voices_for_a_collection(texts: CollectionSource, tmp_path: Path) -> None:
    rows = [{"_id": f"q{i}", "subset": "tiny-zh", "file": f"{i}.wav", "speaker": "me"} for i in range(5)]
    root = make_recordings(tmp_path / "mine", [*rows, {"file": "en.wav", "text": "River!", "speaker": "me"}])
    source = with_recordings(texts, Recordings(root))
    zh, en = source.queries("tiny-zh"), source.queries("tiny-en")
    assert all(source.speech(query).speaker == "me" for query in zh)
    assert source.speech(en[0]).speaker == "me"
    with pytest.raises(AudioError, match=r"query 'q1' of tiny-en has no recording in .*missing=skip"):
        source.speech(en[1])
    assert source.name == "tiny+mine"
    assert source.license == "CC0-1.0 AND unknown"
    assert len({source.version, texts.version, with_recordings(texts, Recordings(root), missing="skip").version}) == 3
    assert pickle.loads(pickle.dumps(source)).speech(en[0]).speaker == "me"

    skipping = with_recordings(texts, Recordings(root), missing="skip")
    assert [q.id for q in skipping.queries("tiny-en")] == ["q0"]
    assert {q.query_id for q in skipping.qrels("tiny-en")} == {"q0"}
    assert len(list(skipping.documents("tiny-en"))) == 12
    assert len(skipping.queries("tiny-zh")) == len(skipping.qrels("tiny-zh")) == 5


def test_a_name_with_speech(texts: CollectionSource, tmp_path: Path) -> None:
    root = make_recordings(tmp_path / "mine", [{"file": "1.wav", "text": "stone"}])
    source = load_source(f"collection:{texts.root}?speech={root}&missing=skip")
    assert [q.id for q in source.queries("tiny-en")] == ["q1"]
    with pytest.raises(DataError, match="no query of tiny-zh has a recording"):
        source.queries("tiny-zh")
    with pytest.raises(UnknownNameError, match="Did you mean 'skip'"):
        load_source(f"collection:{texts.root}?speech={root}&missing=skipp")


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"_id": "q1"}, "several subsets, and the id 'q1'"),
        ({"_id": "q1", "subset": "tiny-fr"}, "tiny has no subset 'tiny-fr'"),
    ],
)
def test_recordings_that_do_not_fit(texts: CollectionSource, tmp_path: Path, row: dict[str, object], said: str) -> None:
    root = make_recordings(tmp_path / "mine", [row | {"file": "1.wav"}])
    with pytest.raises(DataError, match=said):
        with_recordings(texts, Recordings(root))


def test_foreign_ids_do_not_pair_by_chance(texts: CollectionSource, tmp_path: Path) -> None:
    rows = [{"_id": "q1", "subset": "tiny-en", "file": "1.wav", "text": "something else"}]
    source = with_recordings(texts, Recordings(make_recordings(tmp_path / "mine", rows)))
    with pytest.raises(AudioError, match="says 'something else', but that query of tiny-en is 'stone'"):
        source.speech(source.queries("tiny-en")[1])


def test_an_id_that_occurs_twice(texts: CollectionSource, tmp_path: Path) -> None:
    rows = [{"_id": "q1", "subset": "tiny-en", "file": f"{i}.wav"} for i in range(2)]
    source = with_recordings(texts, Recordings(make_recordings(tmp_path / "mine", rows)))
    with pytest.raises(DataError, match=r"line 2: the id 'q1' occurs twice"):
        source.speech(source.queries("tiny-en")[1])


@pytest.mark.skipif("SQUTR_SHARED" not in os.environ, reason="needs SQUTR_SHARED")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_real_recordings(language: str) -> None:
    source = load_source(f"recorded:{os.environ['SQUTR_SHARED']}/data/speech/{language}")
    queries = source.queries(language)
    assert len(queries) > 20
    for query in queries:
        assert source.speech(query).samples.size > 12_000
