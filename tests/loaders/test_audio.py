"""Reading, checking, resampling and storing sound."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import AudioError, UsageError
from squtr.loaders.audio import check_samples, decode_audio, encode_flac, pcm_sha256, resample, to_pcm16


def tone(seconds: float = 0.5, rate: int = 24_000, hz: float = 440.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(int(seconds * rate)) / rate)).astype(np.float32)


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (np.zeros(0, np.float32), "no samples"),
        (np.zeros(100, np.float32), "silent"),
        (np.full(100, 0.25, np.float32), "DC only"),
        (np.array([0.1, np.nan, 0.2], np.float32), "NaN or infinity at sample 1"),
        (np.array([0.1, np.inf], np.float32), "NaN or infinity"),
        (np.zeros((10, 2), np.float32), "shape"),
    ],
)
def test_unusable_sound_is_refused_by_name(samples: np.ndarray, said: str) -> None:
    with pytest.raises(AudioError, match=f"query 'q7' .*{said}"):
        check_samples(samples, "query 'q7'")


def test_channels_are_chosen_never_averaged(tmp_path: Path) -> None:
    left = tone()
    soundfile.write(tmp_path / "canceling.wav", np.stack([left, -left], axis=1), 24_000, subtype="FLOAT")
    with pytest.raises(AudioError, match="2 channels"):
        decode_audio(tmp_path / "canceling.wav", "x")
    samples, rate = decode_audio(tmp_path / "canceling.wav", "x", channel=1)
    assert rate == 24_000
    np.testing.assert_array_equal(samples, -left)
    with pytest.raises(AudioError, match="none numbered 2"):
        decode_audio(tmp_path / "canceling.wav", "x", channel=2)


def test_not_a_sound() -> None:
    with pytest.raises(AudioError, match="query 'q1' cannot be read"):
        decode_audio(b"RIFFnonsense", "query 'q1'")


@given(length=st.integers(1, 5000), rate=st.sampled_from([8000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000]))
def test_resampled_length_depends_on_length_alone(length: int, rate: int) -> None:
    rng = np.random.default_rng(length)
    quiet, loud = (rng.normal(size=length).astype(np.float32) * level for level in (0.01, 0.5))
    assert resample(quiet, rate).size == resample(loud, rate).size == -(-length * 24_000 // rate)


def test_resampling_keeps_a_tone() -> None:
    there = resample(tone(rate=44_100), 44_100)
    expected = tone(rate=24_000)[: there.size]
    assert np.abs(there - expected)[500:-500].max() < 1e-3


def test_resampling_to_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        resample(tone(), 0)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=r"the speech does not exist.*no\.wav"):
        decode_audio(tmp_path / "no.wav", "the speech")


def test_flac_keeps_the_samples() -> None:
    samples = tone()
    back, rate = soundfile.read(io.BytesIO(encode_flac(samples, "x")), dtype="int16")
    assert rate == 24_000
    np.testing.assert_array_equal(back, to_pcm16(samples, "x"))


def test_flac_is_the_same_without_files_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = tone()
    here = encode_flac(samples, "x")
    monkeypatch.delattr(os, "memfd_create", raising=False)
    assert encode_flac(samples, "x") == here


def test_flac_leaves_no_open_file() -> None:
    before = os.dup(0)
    os.close(before)
    for _ in range(50):
        encode_flac(tone(0.05), "x")
    after = os.dup(0)
    os.close(after)
    assert after == before


def test_digest_is_of_the_samples_not_of_the_file() -> None:
    samples = to_pcm16(tone(), "x")
    files = []
    for level in (0.0, 1.0):
        buffer = io.BytesIO()
        soundfile.write(buffer, samples, 24_000, format="FLAC", subtype="PCM_16", compression_level=level)
        files.append(buffer.getvalue())
    assert files[0] != files[1]
    assert pcm_sha256(files[0], "x") == pcm_sha256(files[1], "x")


@pytest.mark.parametrize("peak", [1.0, 1.5, np.nan])
def test_nothing_is_clipped_to_pcm(peak: float) -> None:
    samples = tone()
    samples[100] = peak
    with pytest.raises(AudioError):
        encode_flac(samples, "query 'q1'")


def test_full_negative_scale_fits() -> None:
    assert to_pcm16(np.array([-1.0], np.float32), "x")[0] == -32768
