"""The speech that `mini` carries: whole, of the texts as they are now, and small enough."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import squtr.loaders
from squtr.loaders.audio import pcm_sha256
from squtr.loaders.jsonl import read_jsonl
from squtr.loaders.records import SAMPLE_RATE

ROOT = Path(squtr.loaders.__file__).resolve().parent / "data" / "mini"
LANGUAGES = ("en", "zh", "es")


def index(language: str) -> dict[str, dict[str, Any]]:
    return {row["_id"]: row for _, row in read_jsonl(ROOT / f"speech.{language}.jsonl")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_query_is_spoken_as_it_is_written_now(language: str) -> None:
    rows = index(language)
    texts = {row["_id"]: row["text"].strip() for _, row in read_jsonl(ROOT / f"queries.{language}.jsonl")}
    assert list(rows) == list(texts)
    for id_, row in rows.items():
        digest = hashlib.sha256(texts[id_].encode()).hexdigest()
        assert row["text_sha256"] == digest, f"{id_} was edited: run scripts/make_mini_speech.py"
        assert row["speaker"] == f"kokoro/{row['voice']}"
        assert 0.0 <= row["tts_error_rate"] < 1.0, f"{id_}: {row['heard']}"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_recordings_are_whole(language: str) -> None:
    rows = index(language)
    assert {path.stem for path in (ROOT / "speech" / language).iterdir()} == set(rows)
    for row in rows.values():
        path: Path = ROOT / "speech" / row["file"]
        assert pcm_sha256(path.read_bytes(), row["_id"]) == row["sha256"]
        samples, rate = soundfile.read(path, dtype="float32")
        assert rate == SAMPLE_RATE and samples.ndim == 1
        assert samples.size / rate == pytest.approx(row["duration_s"], abs=1e-3)
        assert 1.0 < row["duration_s"] < 12.0
        assert np.abs(samples).max() == pytest.approx(0.7, abs=1e-3)
        assert abs(samples.mean()) < 0.01


@pytest.mark.parametrize(("language", "at_least"), [("en", 6), ("zh", 4), ("es", 3)])
def test_several_voices_speak(language: str, at_least: int) -> None:
    voices = [row["voice"] for row in index(language).values()]
    assert len(set(voices)) >= at_least
    assert {voice[1] for voice in voices} == {"f", "m"}


def test_all_speech_is_under_20_mb() -> None:
    assert 1e6 < sum(path.stat().st_size for path in (ROOT / "speech").rglob("*.flac")) < 20e6
