"""LibriSpeech from an unpacked folder."""

import pickle

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, UnknownNameError, UsageError
from squtr.loaders.sources import load_source
from squtr.loaders.sources.librispeech import REVISION


def make_part(folder, chapters=(("61", "70968", 3), ("121", "121726", 2))):
    for speaker, chapter, count in chapters:
        place = folder / speaker / chapter
        place.mkdir(parents=True)
        lines = []
        for number in range(count):
            id_ = f"{speaker}-{chapter}-{number:04d}"
            lines.append(f"{id_} HE SAID NUMBER {number}\n")
            rng = np.random.default_rng(number + int(speaker))
            soundfile.write(place / f"{id_}.flac", rng.standard_normal(3200) * 0.1, 16_000)
        (place / f"{speaker}-{chapter}.trans.txt").write_text("".join(lines))
    return folder


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("LibriSpeech/test-clean", "librispeech:{}/LibriSpeech/test-clean"),
        ("LibriSpeech/test-clean", "librispeech:{}/LibriSpeech?part=test-clean"),
        ("LibriSpeech/test-clean", "librispeech:{}"),
        ("data/books", "librispeech:{}/data/books?part=test-clean"),
    ],
)
def test_a_folder_is_found_however_it_is_named(tmp_path, place, name):
    make_part(tmp_path / place)
    source = load_source(name.format(tmp_path))
    assert (source.name, dict(source.subsets), source.license) == (
        "librispeech:test-clean",
        {"test-clean": "en"},
        "CC-BY-4.0",
    )
    queries = source.queries("test-clean")
    assert [query.id for query in queries] == [
        "121-121726-0000",
        "121-121726-0001",
        *(f"61-70968-000{n}" for n in range(3)),
    ]
    assert (queries[2].text, queries[2].group) == ("HE SAID NUMBER 0", "61")
    native = source.speech_at(queries[2], 16_000)
    file = next(tmp_path.rglob("61-70968-0000.flac"))
    assert np.array_equal(native.samples, soundfile.read(file, dtype="float32")[0])
    assert native.speaker == "61"
    assert source.speech(queries[2]).samples.size == 4800
    assert list(source.documents("test-clean")) == list(source.qrels("test-clean")) == []
    assert pickle.loads(pickle.dumps(source)).queries("test-clean") == queries


def test_the_version_follows_the_content(tmp_path):
    part = make_part(tmp_path / "test-clean")
    first = load_source(f"librispeech:{part}").version
    assert load_source(f"librispeech:{part}").version == first
    soundfile.write(part / "61" / "70968" / "61-70968-0001.flac", np.full(100, 0.1), 16_000)
    assert load_source(f"librispeech:{part}").version != first


def test_several_parts_need_a_choice(tmp_path):
    for part in ("test-clean", "test-other"):
        make_part(tmp_path / "LibriSpeech" / part)
    with pytest.raises(UsageError, match=r"holds test-clean, test-other.*part=test-clean"):
        load_source(f"librispeech:{tmp_path}/LibriSpeech")
    assert load_source(f"librispeech:{tmp_path}/LibriSpeech?part=test-other").subsets == {"test-other": "en"}
    with pytest.raises(DataError, match="has no part dev-clean"):
        load_source(f"librispeech:{tmp_path}/LibriSpeech?part=dev-clean")
    with pytest.raises(UnknownNameError, match="Did you mean 'test-clean'"):
        load_source(f"librispeech:{tmp_path}/LibriSpeech?part=test-claen")
    with pytest.raises(UsageError, match="holds no part"):
        (tmp_path / "empty").mkdir()
        load_source(f"librispeech:{tmp_path}/empty")


def test_what_is_wrong_is_named(tmp_path):
    part = make_part(tmp_path / "test-clean")
    source = load_source(f"librispeech:{part}")
    query = source.queries("test-clean")[0]
    (part / "121" / "121726" / "121-121726-0000.flac").unlink()
    with pytest.raises(AudioError, match=r"121-121726-0000.*does not exist"):
        source.speech(query)
    table = part / "61" / "70968" / "61-70968.trans.txt"
    table.write_text("61-70968-0000 ONE\n61-70968-0000 TWO\n")
    with pytest.raises(DataError, match=r"line 2: the utterance '61-70968-0000' occurs twice"):
        load_source(f"librispeech:{part}").queries("test-clean")
    table.write_text("61-70968-0000\n")
    with pytest.raises(DataError, match="'61-70968-0000' has no text"):
        load_source(f"librispeech:{part}").queries("test-clean")
    with pytest.raises(UnknownNameError, match="Did you mean 'test-clean'"):
        load_source("librispeech:test-claen")
    with pytest.raises(UsageError, match="no commit"):
        load_source("librispeech:test-clean@main")


def test_the_hub_is_pinned_and_read_when_it_is_asked(monkeypatch):
    source = load_source("librispeech:test-clean")
    assert source.version == REVISION
    assert load_source(f"librispeech:dev-other@{'a' * 40}").version == "a" * 40
