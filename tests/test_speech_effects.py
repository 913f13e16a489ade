"""Slower, higher, slurred, over the telephone: what changes and what does not."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from squtr.errors import UsageError
from squtr.loaders.audio import decode_audio, resample
from squtr.loaders.questions.data import MINI_FOLDER
from squtr.loaders.records import SAMPLE_RATE, Samples


def scripted(name: str) -> ModuleType:
    path = Path(__file__).resolve().parents[1] / "scripts" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


effects = scripted("speech_effects")
hole, shift_pitch, slur, stretch, telephone = (
    getattr(effects, name) for name in ("hole", "shift_pitch", "slur", "stretch", "telephone")
)


def tone(hz: float, seconds: float = 1.0) -> Samples:
    return (0.5 * np.sin(2 * np.pi * hz * np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE)).astype(np.float32)


def loudest_hz(samples: Samples) -> float:
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(samples.size)))
    return float(np.argmax(spectrum) * SAMPLE_RATE / samples.size)


def band(samples: Samples, low: float, high: float) -> float:
    spectrum = np.abs(np.fft.rfft(samples)) ** 2
    hz = np.fft.rfftfreq(samples.size, 1 / SAMPLE_RATE)
    return float(spectrum[(hz >= low) & (hz < high)].sum())


def level(samples: Samples) -> float:
    return float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))


@pytest.fixture(scope="module")
def speech() -> Samples:
    samples, rate = decode_audio(MINI_FOLDER / "audio" / "poder.flac", "poder")
    return resample(samples, rate)


@pytest.mark.parametrize("factor", [0.6, 0.9, 1.25, 1.7, 2.5])
def test_stretching_changes_the_length_and_keeps_pitch_and_level(factor: float) -> None:
    samples = tone(210)
    out = stretch(samples, factor)
    assert out.size == round(samples.size * factor)
    assert loudest_hz(out) == pytest.approx(210, abs=3)
    assert level(out) == pytest.approx(level(samples), rel=0.03)


@pytest.mark.parametrize("semitones", [-4, 3, 7])
def test_shifting_changes_the_pitch_and_keeps_the_length(semitones: int) -> None:
    samples = tone(210)
    out = shift_pitch(samples, semitones)
    assert out.size == pytest.approx(samples.size, abs=4)
    assert loudest_hz(out) == pytest.approx(210 * 2 ** (semitones / 12), rel=0.02)


def test_nothing_asked_for_changes_nothing(speech: Samples) -> None:
    for out in (stretch(speech, 1.0), shift_pitch(speech, 0), slur(speech, 0.0)):
        np.testing.assert_array_equal(out, speech)
    short = speech[:100]
    np.testing.assert_array_equal(stretch(short, 2.0), short)
    np.testing.assert_array_equal(slur(short, 0.5), short)


def test_slurring_smears_syllables_and_keeps_the_level(speech: Samples) -> None:
    def depth(samples: Samples) -> float:
        frames = np.abs(samples[: samples.size // 480 * 480].reshape(-1, 480)).mean(axis=1)
        return float(np.std(frames) / np.mean(frames))

    slurred = [slur(speech, amount) for amount in (0.3, 0.6, 0.9)]
    # A little smearing hardly shows in the envelope.
    depths = [depth(slurred[0]), depth(slurred[1]), depth(slurred[2])]
    assert depths == sorted(depths, reverse=True)
    assert depths[-1] < 0.9 * depth(speech)
    high = [band(samples, 3000, 8000) for samples in (speech, *slurred)]
    assert high == sorted(high, reverse=True)
    assert all(out.size == speech.size and level(out) == pytest.approx(level(speech), rel=1e-3) for out in slurred)


def test_a_telephone_passes_its_band_only() -> None:
    for hz, passes in ((100, False), (1000, True), (6000, False)):
        share = level(telephone(tone(hz))) / level(tone(hz))
        assert share > 0.95 if passes else share < 0.05


def test_a_hole_is_silent_and_nothing_else_changes(speech: Samples) -> None:
    out = hole(speech, 0.5, 0.2)
    start, stop = round(0.5 * SAMPLE_RATE), round(0.7 * SAMPLE_RATE)
    np.testing.assert_array_equal(out[:start], speech[:start])
    np.testing.assert_array_equal(out[stop:], speech[stop:])
    assert not out[start + 48 : stop - 48].any()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: stretch(tone(200), 4.0),
        lambda: shift_pitch(tone(200), 13),
        lambda: slur(tone(200), 1.1),
        lambda: hole(tone(200), 0.9, 0.2),
    ],
)
def test_what_is_out_of_range_is_refused(wrong: object) -> None:
    with pytest.raises(UsageError):
        wrong()  # type: ignore[operator]
