"""The published set, in every form that it may come in."""

import io
import json
import math

import datasets
import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, UnknownNameError, UsageError
from squtr.loaders.rir_mega.published import PublishedData, open_published

COLUMNS = ("sample_id", "utterance_id", "text_ref", "rir_id", "rir_RT60_T30_s", "rir_DRR_dB")


def clip(seed, rate=16_000, kind="FLAC", samples=4000):
    buffer = io.BytesIO()
    sound = np.random.default_rng(seed).standard_normal(samples) * 0.1
    soundfile.write(buffer, sound, rate, format=kind, subtype="PCM_16")
    return buffer.getvalue()


def rows_of(count, first=0):
    return [
        {
            "sample_id": f"p{n:04d}",
            "utterance_id": f"61-70968-{n:04d}",
            "text_ref": f"TEXT {n}",
            "audio_clean": {"bytes": clip(n), "path": None},
            "audio_reverb": {"bytes": clip(100 + n, samples=5000), "path": None},
            "rir_id": f"rir_{n // 2:06d}",
            "rir_RT60_T30_s": None if n == 3 else 0.2 + 0.1 * (n % 7),
            "rir_DRR_dB": float(n % 5),
        }
        for n in range(first, first + count)
    ]


def dataset_of(rows):
    made = datasets.Dataset.from_list(rows)
    for column in ("audio_clean", "audio_reverb"):
        made = made.cast_column(column, datasets.Audio(sampling_rate=16_000, decode=False))
    return made


def splits():
    return datasets.DatasetDict({"validation": dataset_of(rows_of(4)), "test": dataset_of(rows_of(16, 4))})


def on_disk(folder):
    splits().save_to_disk(str(folder / "data"))


def parquet(folder):
    (folder / "data").mkdir(parents=True)
    for split, rows in splits().items():
        rows.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
    (folder / "reports").mkdir()
    (folder / "reports" / "leaderboard.csv").write_text("model,wer\ntiny,0.1\n")
    (folder / "metadata.json").write_text('{"pairs": 20}')


def metadata(folder):
    tables = {}
    for split, first, count in (("validation", 0, 4), ("test", 4, 16)):
        tables[split] = []
        for row in rows_of(count, first):
            for column in ("audio_clean", "audio_reverb"):
                path = f"audio/{row['sample_id']}_{column}.flac"
                (folder / "audio").mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(row.pop(column)["bytes"])
                row[f"{column}_path"] = path
            tables[split].append(row)
    (folder / "metadata.json").write_text(json.dumps(tables))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.mark.parametrize("make", [on_disk, parquet, metadata])
def test_every_form_gives_the_same_rows(tmp_path, make):
    folder = tmp_path / "set"
    make(folder)
    data = open_published(str(folder))
    assert data.splits == {"validation": 4, "test": 16}
    pairs = list(data.pairs("test"))
    assert [pair.sample_id for pair in pairs] == data.sample_ids("test") == [f"p{n:04d}" for n in range(4, 20)]
    first = pairs[0]
    assert (first.text, first.language, first.speaker) == ("TEXT 4", "en", "61")
    assert (first.clean_audio, first.reverb_audio) == (clip(4), clip(104, samples=5000))
    assert (first.duration_s, first.reverb_duration_s) == (0.25, 0.3125)
    assert (first.source_rt60_s, first.source_drr_db) == (pytest.approx(0.6), 4.0)
    assert math.isnan(first.rt60_s)
    assert math.isnan(first.gain_db)
    unknown = next(data.pairs("validation", 3))
    assert unknown.stratum == "rt60_unknown"
    assert math.isnan(unknown.source_rt60_s)
    assert set(data.edges) == {"source_rt60_s", "source_drr_db"}
    assert sum(stratum.pairs for stratum in data.strata) == 20
    assert [pair.sample_id for pair in data.pairs("test", 2, 5)] == data.sample_ids("test")[2:5]
    reverb = next(data.arm("test", "reverb"))
    assert (reverb.id, reverb.condition, reverb.audio) == ("p0004", "reverb", first.reverb_audio)
    assert data.revision == PublishedData(folder).revision
    assert data.recipe["rirs"] == "RIR-Mega"
    for call in (lambda: next(data.pairs("train")), lambda: data.arm("test", "noisy")):
        with pytest.raises(UnknownNameError):
            call()


def test_it_loads_by_the_bare_name(tmp_path):
    on_disk(tmp_path / "set")
    source = f"published:{tmp_path / 'set'}"
    loaded = datasets.load_dataset("squtr", "rir_mega", source=source)
    assert {split: rows.num_rows for split, rows in loaded.items()} == {"validation": 4, "test": 16}
    assert loaded["test"][0]["reverb_audio"]["bytes"] == clip(104, samples=5000)
    clean = datasets.load_dataset("squtr", "rir_mega_clean", source=source, split="test", streaming=True)
    assert next(iter(clean))["clean_audio"]["bytes"] == clip(4)
    with pytest.raises(UsageError, match="no impulse responses"):
        datasets.load_dataset("squtr", "rir_mega_rooms", source=source)


def test_other_spellings_and_formats(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "c.wav").write_bytes(clip(1, rate=24_000, kind="WAV", samples=2400))
    (folder / "r.flac").write_bytes(clip(2))
    row = {"ID": 7, "Reference": "hi", "clean-path": "c.wav", "Reverb Path": "r.flac", "RT60": "0.5", "Split": "dev"}
    (folder / "metadata.jsonl").write_text(json.dumps(row) + "\n")
    data = PublishedData(folder)
    assert data.splits == {"validation": 1}
    (pair,) = data.pairs("validation")
    assert (pair.sample_id, pair.utterance_id, pair.rir_id) == ("7", "7", "7")
    assert soundfile.info(io.BytesIO(pair.clean_audio)).samplerate == 16_000
    assert pair.duration_s == 0.1
    assert pair.source_rt60_s == 0.5


def broken(folder, **changes):
    folder.mkdir()
    (folder / "c.flac").write_bytes(clip(1))
    row = {"sample_id": "a", "text": "hi", "clean_audio": "c.flac", "reverb_audio": "c.flac"} | changes
    rows = [{k: v for k, v in row.items() if v is not None}]
    (folder / "metadata.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return PublishedData(folder)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"text": None}, DataError, "no column for text"),
        ({"text": " "}, DataError, "'a' has no text"),
        ({"clean_audio": "d.flac"}, AudioError, r"clean_audio of sample 'a'.*does not exist"),
        ({"clean_audio": "../c.flac"}, AudioError, "lies outside"),
        ({"clean_audio": ""}, AudioError, "is missing"),
        ({"clean_audio": "metadata.jsonl"}, AudioError, "cannot be read as sound"),
        ({"rt60": "long"}, DataError, "rt60 'long'"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        list(broken(tmp_path / "set", **changes).pairs("test"))


def test_an_id_twice_and_nothing_at_all(tmp_path):
    folder = tmp_path / "set"
    data = broken(folder)
    line = (folder / "metadata.jsonl").read_text()
    (folder / "metadata.jsonl").write_text(line * 2)
    with pytest.raises(DataError, match=r"'a' is in set, split test, row 1 too"):
        _ = data.splits
    (folder / "metadata.jsonl").write_text("")
    with pytest.raises(DataError, match="holds no table of pairs"):
        _ = PublishedData(folder).splits
    (folder / "metadata.jsonl").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        _ = PublishedData(folder).splits
    with pytest.raises(UsageError, match="neither a folder nor a repository"):
        open_published("./elsewhere")


def test_data_by_name(tmp_path):
    from squtr.loaders.rir_mega.build import build_pairs
    from squtr.loaders.rir_mega.data import RirMegaData
    from squtr.loaders.rir_mega.opening import open_pairs
    from squtr.loaders.rir_mega.recipe import open_pairs

    from .rir_mega_for_tests import make_rooms, make_speech

    on_disk(tmp_path / "set")
    for name in (str(tmp_path / "set"), f"published:{tmp_path / 'set'}"):
        assert isinstance(open_pairs(name), PublishedData)
    speech = f"recorded:{make_speech(tmp_path / 'speech')}"
    build_pairs(open_pairs(speech, str(make_rooms(tmp_path / "rooms"))), tmp_path / "built")
    assert isinstance(open_pairs(str(tmp_path / "built")), RirMegaData)
    with pytest.raises(DataError, match="does not exist"):
        open_pairs("./nowhere")
    (tmp_path / "built" / "manifest.json").write_text('{"benchmark": "squtr"}')
    with pytest.raises(DataError, match="benchmark 'squtr'"):
        open_pairs(str(tmp_path / "built"))
