"""Plans of RIRs and a Hub: LibriSpeech and the published set from there, and a built folder pushed to it."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from huggingface_hub import HfApi

from squtr.harness.cli import main
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.hub.push import push
from squtr.loaders.recipe import open_recipe
from squtr.loaders.sources.librispeech import REPOSITORY

from ..loaders.rirs_for_tests import make_rooms, make_speech
from .conftest import OWNER
from .hub import LocalHub


def clip(seed: int, samples: int = 8000) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.random.default_rng(seed).standard_normal(samples) * 0.1, 16_000, format="FLAC")
    return buffer.getvalue()


def librispeech(count: int) -> bytes:
    """A file as the repository's: undecoded audio, id, text, speaker."""
    ids = [f"{61 + n % 2}-70968-{n:04d}" for n in range(count)]
    columns = {
        "file": [f"{id_}.flac" for id_ in ids],
        "audio": [{"bytes": clip(n), "path": f"{id_}.flac"} for n, id_ in enumerate(ids)],
        "text": [f"TEXT {n}" for n in range(count)],
        "speaker_id": [int(id_.partition("-")[0]) for id_ in ids],
        "chapter_id": [70968] * count,
        "id": ids,
    }
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


BUILD = """
import hashlib, json
from pathlib import Path
from squtr.harness.cli import main
from squtr.loaders.data import BuiltData
assert main(["build", "--benchmark", "rir_mega", "--source", "librispeech:test-clean@{commit}", "--rirs", "{rooms}",
             "--utterances", "8", "--out", "out"]) == 0
splits = [BuiltData(Path("out"), split) for split in ("validation", "test")]
print(json.dumps([[row.id, row.text, row.speaker, hashlib.sha256(row.audio).hexdigest()]
                  for data in splits for subset in data.subsets for row in data.spoken(subset, "clean")]))
"""


def test_librispeech_from_the_hub(hub: LocalHub, apart: Callable[..., str], tmp_path: Path) -> None:
    hub.storage.create(REPOSITORY)
    # What is not asked for is not downloaded: it could not be read.
    hub.storage.write(REPOSITORY, "clean/train.100/0000.parquet", b"PAR1 not for us")
    commit = hub.storage.write(REPOSITORY, "clean/test/0000.parquet", librispeech(12))
    rooms = make_rooms(tmp_path / "rooms", 6)
    told = apart(BUILD.format(commit=commit.oid, rooms=rooms))
    rows = json.loads(told.splitlines()[-1])
    assert len(rows) == 8
    assert not hub.count("train.100")
    for utterance_id, text, speaker, _ in rows:
        number = int(utterance_id[-4:])
        assert (text, speaker) == (f"TEXT {number}", str(61 + number % 2))
    # The audio is that of the Hub.
    utterance_id, _, _, digest = rows[0]
    samples, _ = soundfile.read(io.BytesIO(clip(int(utterance_id[-4:]))), dtype="float32")
    data = BuiltData(tmp_path / "out", "validation")
    row = next(row for subset in data.subsets for row in data.spoken(subset, "clean"))
    assert hashlib.sha256(row.audio).hexdigest() == digest
    assert np.abs(soundfile.read(io.BytesIO(row.audio), dtype="float32")[0] - samples).max() < 1e-4


PUBLISHED = "org/whisper-bench"
LOAD = """
import json
from datasets import load_dataset
from squtr.harness.data import open_data
data = open_data("whisper_rir_mega:org/whisper-bench")
(subset,) = data.subsets
found = {"revision": data.revision, "splits": data.recipe["splits"]}
for condition in ("clean", "reverb"):
    rows = load_dataset("squtr", f"en_{condition}", source="whisper_rir_mega:org/whisper-bench", split="test")
    found[condition] = [[r.id, r.text, len(r.audio)] for r in data.spoken(subset, condition)]
    found[f"{condition} loaded"] = [[r["id"], r["text"], len(r["audio"]["bytes"])] for r in rows]
print(json.dumps(found))
"""


def test_the_published_set_from_the_hub(hub: LocalHub, apart: Callable[..., str]) -> None:
    storage = hub.storage
    storage.create(PUBLISHED)
    for split, first, count in (("validation", 0, 2), ("test", 2, 8)):
        numbers = range(first, first + count)
        columns = {
            "sample_id": [f"s{n}" for n in numbers],
            "text_ref": [f"TEXT {n}" for n in numbers],
            "audio_clean": [{"bytes": clip(n), "path": f"{n}.flac"} for n in numbers],
            "audio_reverb": [{"bytes": clip(n, 9000), "path": f"{n}.flac"} for n in numbers],
            "rir_RT60_T30_s": [0.1 * n for n in numbers],
        }
        buffer = io.BytesIO()
        pq.write_table(pa.table(columns), buffer)
        commit = storage.write(PUBLISHED, f"data/{split}-00000-of-00001.parquet", buffer.getvalue())
    told = json.loads(apart(LOAD).splitlines()[-1])
    assert (told["revision"], told["splits"]) == (commit.oid, ["validation", "test"])
    for condition, samples in (("clean", 8000), ("reverb", 9000)):
        expected = [[f"s{n}", f"TEXT {n}", len(clip(n, samples))] for n in range(2, 10)]
        assert told[condition] == told[f"{condition} loaded"] == expected


ROUND_TRIP = """
import hashlib, json
from datasets import load_dataset
from squtr.harness.data import open_data
told = {}
for config in ("en_clean", "en_reverb", "rirs"):
    for streaming in (False, True):
        rows = load_dataset("org/rooms", config, split="test", streaming=streaming)
        told[f"{config} {streaming}"] = [
            row["rir_id"] if config == "rirs" else [row["id"], hashlib.sha256(row["audio"]["bytes"]).hexdigest()]
            for row in rows
        ]
for split in ("validation", "test"):
    data = open_data("org/rooms", split=split)
    told[split] = [data.manifest_sha256, [row.id for subset in data.subsets for row in data.rows(subset, "reverb")]]
print(json.dumps(told))
"""


def test_a_built_folder_goes_to_the_hub_and_back(
    hub: LocalHub, api: HfApi, apart: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "squtr-home"))
    speech = f"recorded:{make_speech(tmp_path / 'speech')}"
    out = tmp_path / "built"
    opened = open_recipe(
        speech,
        rirs=str(make_rooms(tmp_path / "rooms")),
        conditions=["clean", "reverb"],
        rirs_per_utterance=2,
        splits=True,
    )
    build(opened, out)
    push(out, "org/rooms", token=OWNER, endpoint=hub.endpoint)
    assert not push(out, "org/rooms", token=OWNER, endpoint=hub.endpoint).uploaded
    told = json.loads(apart(ROUND_TRIP).splitlines()[-1])
    data = BuiltData(out)
    (subset,) = data.subsets
    for condition in ("clean", "reverb"):
        expected = [[row.id, hashlib.sha256(row.audio).hexdigest()] for row in data.spoken(subset, condition)]
        assert told[f"en_{condition} False"] == told[f"en_{condition} True"] == expected
    for split in ("validation", "test"):
        there = BuiltData(out, split)
        assert told[split] == [there.manifest_sha256, [row.id for row in there.rows(subset, "reverb")]]
    assert told["rirs True"] == told["rirs False"] == [rir["rir_id"] for rir in data.rirs()]
    local = Path(api.snapshot_download("org/rooms", repo_type="dataset", local_dir=tmp_path / "copy"))
    assert main(["doctor", str(local)]) == 0
