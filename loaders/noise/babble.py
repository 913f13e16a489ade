"""Babble made by code: several synthetic talkers at once.

Each talker is a source-filter voice (Fant 1960): glottal pulses with an intonation contour, or noise for consonants,
through four formant resonators that glide between vowel targets, in syllables, phrases and pauses. The sum is equalized
to the long-term average spectrum of speech. It says nothing, but it has what makes babble hard: the spectrum of speech,
voices with pitch, and syllables that come and go at the rate of speech.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..records import SAMPLE_RATE
from .textures import Signal, add_circular, frequencies, speech_magnitude

VOWELS_HZ = (
    (270, 2290, 3010), (390, 1990, 2550), (530, 1840, 2480), (660, 1720, 2410), (730, 1090, 2440), (570, 840, 2410),
    (440, 1020, 2240), (300, 870, 2240), (640, 1190, 2390), (490, 1350, 1690),
)  # fmt: skip
"""First three formants of ten vowels of men (Peterson and Barney, J. Acoust. Soc. Am. 24(2), 1952)."""

BANDWIDTHS_HZ = (70.0, 100.0, 140.0, 250.0)
_EDGE_S = 0.08
"""Room that a syllable gets behind its end, for its resonances to die away."""


def babble(rng: np.random.Generator, samples: int, talkers: int) -> Signal:
    """A circular (samples,) signal of `talkers` voices that speak at once; `samples` is even."""
    out = np.zeros(samples)
    for number in range(talkers):
        voice = _talker(rng, samples, female=number % 2 == 1)
        voice /= math.sqrt(float(np.square(voice).mean()))
        # Some talkers stand nearer than others.
        out += voice * 10.0 ** (rng.uniform(-3.0, 3.0) / 20.0)
    return _equalise(out)


def _talker(rng: np.random.Generator, samples: int, *, female: bool) -> Signal:
    pitch = rng.uniform(170.0, 230.0) if female else rng.uniform(90.0, 140.0)
    tract = rng.uniform(1.12, 1.2) if female else rng.uniform(0.95, 1.05)
    pace = rng.uniform(4.0, 5.5)
    out = np.zeros(samples)
    time = int(rng.integers(samples))
    end = time + samples
    while time < end:
        syllables = int(rng.integers(4, 13))
        for position in range(syllables):
            # Pitch falls through the phrase (declination) and jumps up on stressed syllables.
            stress = rng.random() < 0.35
            fall = 0.25 - 0.5 * position / syllables
            height = pitch * 2.0 ** (fall + (0.25 if stress else 0.0) + rng.normal(0.0, 0.04))
            seconds = min(max(rng.gamma(12.0, (1.25 if stress else 0.9) / (12.0 * pace)), 0.08), 0.5)
            loud = 10.0 ** (((3.0 if stress else 0.0) + rng.normal(0.0, 2.0)) / 20.0)
            consonant = _consonant(rng)
            add_circular(out, loud * consonant, time)
            time += round(0.7 * consonant.size)
            add_circular(out, loud * _vowel(rng, seconds, height, tract), time)
            time += round(seconds * SAMPLE_RATE)
        time += round(rng.uniform(0.15, 0.6) * SAMPLE_RATE)
    return out


def _vowel(rng: np.random.Generator, seconds: float, pitch: float, tract: float) -> Signal:
    """A voiced syllable: pulses through the formants of one vowel that turn into those of another."""
    length = round(seconds * SAMPLE_RATE)
    total = length + round(_EDGE_S * SAMPLE_RATE)
    glide = np.linspace(rng.uniform(0.96, 1.08), rng.uniform(0.92, 1.02), length)
    turns = np.cumsum(pitch * glide) / SAMPLE_RATE
    wraps = np.flatnonzero(np.diff(np.floor(turns)) > 0)
    source = np.zeros(total)
    # Each pulse lies between two samples, where its phase passes a whole turn.
    fraction = (np.floor(turns[wraps + 1]) - turns[wraps]) / (turns[wraps + 1] - turns[wraps])
    source[wraps] += 1.0 - fraction
    source[wraps + 1] += fraction
    source *= 1.0 + 0.1 * rng.standard_normal(total)
    source[:length] += 0.01 * rng.standard_normal(length)
    edge = min(length // 3, round(0.03 * SAMPLE_RATE))
    shape = np.ones(length)
    shape[:edge] = 0.5 - 0.5 * np.cos(math.pi * np.arange(edge) / edge)
    shape[length - 2 * edge :] = 0.5 + 0.5 * np.cos(math.pi * np.arange(2 * edge) / (2 * edge))
    source[:length] *= shape
    first, second = (VOWELS_HZ[int(i)] for i in rng.integers(len(VOWELS_HZ), size=2))
    mix = np.clip(np.linspace(-0.5, 1.5, total), 0.0, 1.0)
    return (1.0 - mix) * _formants(source, first, tract) + mix * _formants(source, second, tract)


def _consonant(rng: np.random.Generator) -> Signal:
    """What precedes the vowel: a fricative, a stop's burst behind its closure, or nothing."""
    kind = rng.random()
    if kind < 0.35:
        return np.zeros(round(rng.uniform(0.0, 0.02) * SAMPLE_RATE))
    if kind < 0.65:
        burst = round(0.012 * SAMPLE_RATE)
        closure = round(rng.uniform(0.03, 0.07) * SAMPLE_RATE)
        return np.concatenate([np.zeros(closure), _hiss(rng, burst, rng.uniform(1500.0, 4500.0), 0.08)])
    length = round(rng.uniform(0.05, 0.12) * SAMPLE_RATE)
    return _hiss(rng, length, rng.uniform(2500.0, 7000.0), 0.05)


def _hiss(rng: np.random.Generator, length: int, centre_hz: float, level: float) -> Signal:
    """A burst of noise around `centre_hz` with soft edges."""
    return level * _resonate(rng.standard_normal(length) * np.hanning(length), [(centre_hz, 0.4 * centre_hz)])


def _formants(source: Signal, vowel: tuple[int, int, int], tract: float) -> Signal:
    poles = [(hz * tract, bandwidth) for hz, bandwidth in zip((*vowel, 3500), BANDWIDTHS_HZ, strict=True)]
    # One more pole gives the pulses the −6 dB per octave that glottis and lips leave together.
    return _resonate(source, poles, lowpass_hz=250.0)


def _resonate(source: Signal, poles: list[tuple[float, float]], lowpass_hz: float = 0.0) -> Signal:
    """`source` through two-pole resonators (frequency, bandwidth in Hz) with unit gain at 0 Hz, in cascade."""
    from scipy.signal import sosfilt

    sections: list[list[float]] = []
    for hz, bandwidth in poles:
        radius = math.exp(-math.pi * bandwidth / SAMPLE_RATE)
        a1, a2 = -2.0 * radius * math.cos(2.0 * math.pi * hz / SAMPLE_RATE), radius * radius
        sections.append([1.0 + a1 + a2, 0.0, 0.0, 1.0, a1, a2])
    if lowpass_hz:
        pole = math.exp(-2.0 * math.pi * lowpass_hz / SAMPLE_RATE)
        sections.append([1.0 - pole, 0.0, 0.0, 1.0, -pole, 0.0])
    filtered: NDArray[np.float64] = sosfilt(np.array(sections), source)
    return filtered


def _equalise(signal: Signal) -> Signal:
    """Bring the long-term spectrum of a circular signal to that of speech, smoothly (bands of a third of an octave)."""
    from scipy import fft

    spectrum = fft.rfft(signal)
    hz = frequencies(signal.size)
    edges = 50.0 * 2.0 ** (np.arange(0, 25) / 3.0)
    edges = edges[edges < SAMPLE_RATE / 2]
    bands = np.searchsorted(hz, np.append(edges, SAMPLE_RATE / 2))
    target = speech_magnitude(hz)
    centers, gains_db = [], []
    for low, high in pairwise(bands):
        has = float(np.square(np.abs(spectrum[low:high])).sum())
        wants = float(np.square(target[low:high]).sum())
        centers.append(math.log2(float(hz[low:high].mean())))
        gains_db.append(10.0 * math.log10(wants / has))
    gain_db = np.interp(np.log2(np.maximum(hz, 1.0)), centers, np.array(gains_db) - max(gains_db))
    spectrum *= 10.0 ** (gain_db / 20.0)
    spectrum[hz < 50.0] = 0.0
    return np.asarray(fft.irfft(spectrum, signal.size), dtype=np.float64)
