"""The published Whisper-RIR-Mega set, in every form that it may come in."""

import io
import json
import math

import datasets
import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, UnknownNameError, UsageError
from squtr.harness.data import open_data
from squtr.loaders.records import Query
from squtr.loaders.sources import load_source
from squtr.loaders.sources.whisper_rir_mega import WhisperRirMega

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
    source = load_source(f"whisper_rir_mega:{folder}")
    data = source.published()
    (subset,) = data.subsets
    assert data.recipe["splits"] == ["validation", "test"]
    assert (data.conditions, data.benchmark, data.split) == (("clean", "reverb"), "rir_mega", "test")
    ids = [f"p{n:04d}" for n in range(4, 20)]
    assert [query.id for query in data.rows(subset, "reverb")] == ids
    assert [query.utterance for query in data.rows(subset, "reverb")] == [q.id for q in data.rows(subset, "clean")]
    assert data.queries(subset)[0] == Query("61-70968-0004", subset, "en", "TEXT 4")
    clean, reverb = next(data.spoken(subset, "clean")), next(data.spoken(subset, "reverb"))
    assert (reverb.id, reverb.utterance_id, clean.id) == ("p0004", "61-70968-0004", "61-70968-0004")
    assert (clean.text, clean.language, clean.speaker) == ("TEXT 4", "en", "61")
    assert (clean.audio, reverb.audio) == (clip(4), clip(104, samples=5000))
    assert (clean.duration_s, reverb.duration_s) == (0.25, 0.3125)
    assert (reverb.source_rt60_s, reverb.source_drr_db) == (pytest.approx(0.6), 4.0)
    assert math.isnan(reverb.rt60_s)
    assert math.isnan(reverb.gain_db)
    assert (clean.rir_id, math.isnan(clean.source_rt60_s)) == ("", True)
    unknown = next(source.published("validation").spoken(subset, "reverb", start=3))
    assert unknown.stratum == "rt60_unknown"
    assert math.isnan(unknown.source_rt60_s)
    assert set(data.edges) == {"source_rt60_s", "source_drr_db"}
    assert [row.id for row in data.spoken(subset, "reverb", start=2, stop=5)] == ids[2:5]
    assert not data.has_corpus(subset)
    assert data.qrels(subset) == {query.id: {} for query in data.queries(subset)}
    assert data.revision == WhisperRirMega(folder).version
    for call in (lambda: source.published("train"), lambda: data.rows(subset, "noisy"), lambda: data.queries("other")):
        with pytest.raises(UnknownNameError):
            call()
    # Its clean clips are speech, for other RIRs.
    assert source.speech_at(source.queries(subset)[4], 16_000).samples.size == 4000


def test_it_loads_by_the_bare_name(tmp_path):
    on_disk(tmp_path / "set")
    source = f"whisper_rir_mega:{tmp_path / 'set'}"
    loaded = datasets.load_dataset("squtr", "en_reverb", source=source)
    assert {split: rows.num_rows for split, rows in loaded.items()} == {"validation": 4, "test": 16}
    assert loaded["test"][0]["audio"]["bytes"] == clip(104, samples=5000)
    clean = datasets.load_dataset("squtr", "en_clean", source=source, split="test", streaming=True)
    assert next(iter(clean))["audio"]["bytes"] == clip(4)
    with pytest.raises(UsageError, match="where a plan deals them"):
        datasets.load_dataset("squtr", "rirs", source=source)
    # Another mixture is made of its clean speech.
    other = datasets.load_dataset("squtr", "en_snr_5", source=source, split="test")
    assert other.num_rows == 20


def test_other_spellings_and_formats(tmp_path):
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "c.wav").write_bytes(clip(1, rate=24_000, kind="WAV", samples=2400))
    (folder / "r.flac").write_bytes(clip(2))
    row = {"ID": 7, "Reference": "hi", "clean-path": "c.wav", "Reverb Path": "r.flac", "RT60": "0.5", "Split": "dev"}
    (folder / "metadata.jsonl").write_text(json.dumps(row) + "\n")
    data = WhisperRirMega(folder).published("validation")
    (subset,) = data.subsets
    assert data.recipe["splits"] == ["validation"]
    (clean,), (reverb,) = data.spoken(subset, "clean"), data.spoken(subset, "reverb")
    assert (reverb.id, reverb.utterance_id, reverb.rir_id) == ("7", "7", "7")
    assert soundfile.info(io.BytesIO(clean.audio)).samplerate == 16_000
    assert clean.duration_s == 0.1
    assert reverb.source_rt60_s == 0.5


def broken(folder, **changes):
    folder.mkdir()
    (folder / "c.flac").write_bytes(clip(1))
    row = {"sample_id": "a", "text": "hi", "clean_audio": "c.flac", "reverb_audio": "c.flac"} | changes
    rows = [{k: v for k, v in row.items() if v is not None}]
    (folder / "metadata.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return WhisperRirMega(folder)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"text": None}, DataError, "no column for text"),
        ({"text": " "}, DataError, "'a' has no text"),
        ({"clean_audio": "d.flac"}, AudioError, r"clean_audio of sample 'a'.*does not exist"),
        ({"clean_audio": "../c.flac"}, AudioError, "lies outside"),
        ({"clean_audio": ""}, AudioError, "is missing"),
        ({"clean_audio": "metadata.jsonl"}, AudioError, "cannot be read as audio"),
        ({"rt60": "long"}, DataError, "rt60 'long'"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        data = broken(tmp_path / "set", **changes).published()
        _ = data.edges
        for condition in data.conditions:
            list(data.spoken("librispeech", condition))


def test_an_id_twice_and_nothing_at_all(tmp_path):
    folder = tmp_path / "set"
    data = broken(folder)
    line = (folder / "metadata.jsonl").read_text()
    (folder / "metadata.jsonl").write_text(line * 2)
    with pytest.raises(DataError, match=r"'a' is in set, split test, row 1 too"):
        _ = data.samples
    (folder / "metadata.jsonl").write_text("")
    with pytest.raises(DataError, match="holds no table of clips"):
        _ = WhisperRirMega(folder).samples
    (folder / "metadata.jsonl").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        _ = WhisperRirMega(folder).samples
    with pytest.raises(UsageError, match="neither a folder nor a repository"):
        load_source("whisper_rir_mega:./elsewhere")


def test_data_by_name(tmp_path):
    on_disk(tmp_path / "set")
    data = open_data(f"whisper_rir_mega:{tmp_path / 'set'}", split="validation")
    assert (data.split, len(data.rows("librispeech", "reverb"))) == ("validation", 4)
    with pytest.raises(DataError, match="does not exist"):
        open_data("./nowhere")
