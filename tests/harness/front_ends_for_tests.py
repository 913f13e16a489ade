"""Real speech in noise and in rooms, and how far a signal lies from what it should be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from scipy import signal

from squtr.harness.protocols import FrontEnd
from squtr.loaders.audio import resample
from squtr.loaders.mixing import level_noise, level_speech, mix, noise_segment
from squtr.loaders.noise.synthetic import SyntheticNoises
from squtr.loaders.records import SAMPLE_RATE, Samples
from squtr.loaders.reverb import prepare_rir, reverberate
from squtr.loaders.rirs.simulated import SimulatedRirs
from squtr.loaders.sources import load_source


@cache
def speech(rate: int) -> tuple[Samples, ...]:
    """Three clips of `mini`, one per language."""
    source = load_source("mini")
    clips = [source.speech(source.queries(subset)[3]).samples for subset in source.subsets]
    return tuple(resample(clip, SAMPLE_RATE, rate) for clip in clips)


@cache
def noisy(rate: int, family: str = "pink", snr_db: float = 0.0) -> tuple[tuple[Samples, Samples], ...]:
    """(speech, speech in noise) of the clips of `speech`, at the same level."""
    bank = SyntheticNoises()
    noise = bank.read(next(info.id for info in bank.noises() if info.family == family))
    pairs = []
    for number, clip in enumerate(speech(SAMPLE_RATE)):
        clean = level_speech(0.4 * clip)
        segment = noise_segment(noise, number * 50_000, clip.size)
        mixed = mix(clean, level_noise(segment, clean), snr_db)
        gain = 10.0 ** (mixed.gain_db / 20.0)
        dry = np.asarray(clean.samples * gain, dtype=np.float32)
        pairs.append((resample(dry, SAMPLE_RATE, rate), resample(mixed.samples, SAMPLE_RATE, rate)))
    return tuple(pairs)


@cache
def reverberant(rate: int, rir_id: str) -> tuple[tuple[Samples, Samples, Samples], ...]:
    """(speech, its direct sound and early reflections up to 50 ms, all of it) in a room, equally long and aligned."""
    rir = SimulatedRirs().read(rir_id)
    room = prepare_rir(rir, rir_id)
    early = room.response.astype(np.float64)
    early[room.onset_samples + round(0.05 * SAMPLE_RATE) :] = 0.0
    found = []
    for clip in speech(SAMPLE_RATE):
        near = signal.fftconvolve(clip, early)[room.onset_samples :][: clip.size].astype(np.float32)
        wet = reverberate(clip, room, keep_tail=False)
        scale = np.float32(0.5 / np.abs(wet).max())
        found.append((clip * scale, near * scale, wet * scale))
    return tuple((*(resample(part, SAMPLE_RATE, rate) for part in parts),) for parts in found)  # type: ignore[misc]


def segmental_snr_db(clean: Samples, heard: Samples, rate: int) -> float:
    """Mean SNR over frames of 20 ms with speech, each between −10 and 35 dB."""
    size = rate // 50
    frames = clean.size // size
    x = clean[: frames * size].reshape(frames, size).astype(np.float64)
    error = x - heard[: frames * size].reshape(frames, size)
    power = np.square(x).sum(axis=1)
    active = power > 1e-4 * power.max()
    ratio = (power + 1e-12) / (np.square(error).sum(axis=1) + 1e-12)
    return float(np.clip(10.0 * np.log10(ratio), -10.0, 35.0)[active].mean())


def ratio_db(wanted: Samples, heard: Samples) -> float:
    """Energy of what of `heard` is `wanted`, at any gain, over the energy of the rest."""
    x, y = wanted.astype(np.float64), heard.astype(np.float64)
    part = x * ((x @ y) / (x @ x))
    return float(10.0 * np.log10((part @ part) / np.square(y - part).sum()))


def spectral_distance_db(clean: Samples, heard: Samples, rate: int) -> float:
    """Log-spectral distance in dB: over 50 dB below the loudest, RMS over bands, mean over frames."""
    levels = []
    for samples in (clean, heard):
        _, _, spectrum = signal.stft(samples, rate, nperseg=512, noverlap=384)
        levels.append(20.0 * np.log10(np.abs(spectrum) + 1e-12))
    top = max(float(level.max()) for level in levels)
    a, b = (np.maximum(level, top - 50.0) for level in levels)
    return float(np.sqrt(np.square(a - b).mean(axis=0)).mean())


def lag(clean: Samples, heard: Samples) -> int:
    """By how many samples `heard` is late: where the cross-correlation peaks."""
    correlation = signal.correlate(heard, clean, method="fft")
    return int(signal.correlation_lags(heard.size, clean.size)[np.argmax(correlation)])


def check_contract(front_end: FrontEnd) -> None:
    """What every front end keeps to: shapes, alignment, peak, silence, no influence of other clips."""
    rate = front_end.sample_rate
    clips = list(speech(rate))
    silence = np.zeros(rate, dtype=np.float32)
    loud = np.asarray(clips[0] / np.abs(clips[0]).max(), dtype=np.float32)
    given: Sequence[Samples] = [*clips, silence, loud, clips[0][: rate + 7]]
    kept = [clip.copy() for clip in given]
    made = front_end.enhance(given)
    assert len(made) == len(given)
    for clip, before, out in zip(given, kept, made, strict=True):
        np.testing.assert_array_equal(clip, before)
        assert out.shape == clip.shape and out.dtype == np.float32
        assert np.isfinite(out).all() and np.abs(out).max() <= 1.0
        assert not np.shares_memory(out, clip)
    for clip, out in zip(clips, made, strict=False):
        assert lag(clip, out) == 0
    assert not made[len(clips)].any()
    for clip, out in zip(reversed(given), reversed(made), strict=True):
        np.testing.assert_array_equal(front_end.enhance([clip])[0], out)
    assert front_end.enhance([]) == []
