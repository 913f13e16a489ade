"""rir_mega and a Hub: LibriSpeech and the published set from there, and a built folder pushed to it."""

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
from squtr.loaders.hub.push import push
from squtr.loaders.rir_mega.build import build_pairs
from squtr.loaders.rir_mega.data import RirMegaData
from squtr.loaders.rir_mega.recipe import open_pairs
from squtr.loaders.sources.librispeech import REPOSITORY

from ..loaders.rir_mega_for_tests import make_rooms, make_speech
from .conftest import OWNER
from .hub import LocalHub


def clip(seed: int, samples: int = 8000) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.random.default_rng(seed).standard_normal(samples) * 0.1, 16_000, format="FLAC")
    return buffer.getvalue()


def librispeech(count: int) -> bytes:
    """A file as the repository's: undecoded sound, id, text, speaker."""
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
from squtr.loaders.rir_mega.data import RirMegaData
assert main(["build", "rir_mega", "--speech", "librispeech:test-clean@{commit}", "--rirs", "{rooms}", "--pairs", "8",
             "--out", "out"]) == 0
data = RirMegaData(Path("out"))
print(json.dumps([[p.utterance_id, p.text, p.speaker, hashlib.sha256(p.clean_audio).hexdigest()]
                  for split in data.splits for p in data.pairs(split)]))
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
    # The sound is that of the Hub.
    utterance_id, _, _, digest = rows[0]
    samples, _ = soundfile.read(io.BytesIO(clip(int(utterance_id[-4:]))), dtype="float32")
    pair = next(p for s in ("validation", "test") for p in RirMegaData(tmp_path / "out").pairs(s, 0, 1))
    assert hashlib.sha256(pair.clean_audio).hexdigest() == digest
    assert np.abs(soundfile.read(io.BytesIO(pair.clean_audio), dtype="float32")[0] - samples).max() < 1e-4


PUBLISHED = "org/whisper-bench"
LOAD = """
import json
from datasets import load_dataset
from squtr.loaders.rir_mega.published import open_published
data = open_published("org/whisper-bench")
rows = load_dataset("squtr", "rir_mega", source="published:org/whisper-bench", split="test")
pairs = [[p.sample_id, p.text, len(p.clean_audio), len(p.reverb_audio)] for p in data.pairs("test")]
loaded = [[r["sample_id"], r["text"], *(len(r[c]["bytes"]) for c in ("clean_audio", "reverb_audio"))] for r in rows]
print(json.dumps({"revision": data.revision, "splits": data.splits, "pairs": pairs, "loaded": loaded}))
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
    assert (told["revision"], told["splits"]) == (commit.oid, {"validation": 2, "test": 8})
    expected = [[f"s{n}", f"TEXT {n}", len(clip(n)), len(clip(n, 9000))] for n in range(2, 10)]
    assert told["pairs"] == told["loaded"] == expected


ROUND_TRIP = """
import hashlib, json
from datasets import load_dataset
told = {}
for config in ("paired", "clean", "reverb", "rooms"):
    for streaming in (False, True):
        rows = load_dataset("org/rooms", config, split="test", streaming=streaming)
        told[f"{config} {streaming}"] = [
            [row.get("sample_id", row["rir_id"] if config == "rooms" else ""),
             *(hashlib.sha256(row[c]["bytes"]).hexdigest() for c in ("clean_audio", "reverb_audio") if c in row)]
            for row in rows
        ]
from squtr.loaders.rir_mega.opening import open_pairs
data = open_pairs("org/rooms")
told["opened"] = [data.manifest_sha256, data.sample_ids("test")]
print(json.dumps(told))
"""


def test_a_built_folder_goes_to_the_hub_and_back(
    hub: LocalHub, api: HfApi, apart: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "squtr-home"))
    speech = f"recorded:{make_speech(tmp_path / 'speech')}"
    out = tmp_path / "built"
    build_pairs(open_pairs(speech, str(make_rooms(tmp_path / "rooms")), rirs_per_utterance=2), out)
    push(out, "org/rooms", token=OWNER, endpoint=hub.endpoint)
    assert not push(out, "org/rooms", token=OWNER, endpoint=hub.endpoint).uploaded
    told = json.loads(apart(ROUND_TRIP).splitlines()[-1])
    pairs = list(RirMegaData(out).pairs("test"))
    for config, columns in (("paired", ("clean", "reverb")), ("clean", ("clean",)), ("reverb", ("reverb",))):
        expected = [
            [p.sample_id, *(hashlib.sha256(getattr(p, f"{arm}_audio")).hexdigest() for arm in columns)] for p in pairs
        ]
        assert told[f"{config} False"] == told[f"{config} True"] == expected
    assert told["opened"] == [RirMegaData(out).manifest_sha256, [pair.sample_id for pair in pairs]]
    assert len(told["rooms True"]) == len(RirMegaData(out).rooms("test"))
    local = Path(api.snapshot_download("org/rooms", repo_type="dataset", local_dir=tmp_path / "copy"))
    assert main(["doctor", str(local)]) == 0
