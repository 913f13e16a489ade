"""Noises made by code: speech-shaped, pink, traffic, kitchen.

Each function gives a (N,) float64 signal that is circular: its end runs on into its beginning without a seam. Their
level means nothing; mixing sets it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..records import SAMPLE_RATE

Signal = NDArray[np.float64]

# fmt: off
LTASS_HZ: tuple[int, ...] = (
    63, 80, 100, 125, 160, 200, 250, 315, 400, 500, 630, 800,
    1000, 1250, 1600, 2000, 2500, 3150, 4000, 5000, 6300, 8000, 10000, 12500,
)
LTASS_DB: tuple[float, ...] = (
    38.6, 43.5, 54.4, 57.7, 56.8, 60.2, 60.3, 59.0, 62.1, 62.1, 60.5, 56.8,
    53.7, 53.0, 52.0, 48.7, 48.1, 46.8, 45.6, 44.5, 44.3, 43.7, 43.4, 41.3,
)
# fmt: on
"""Long-term average speech spectrum in third-octave bands, women and men combined, 70 dB SPL overall (Byrne et al.,
J. Acoust. Soc. Am. 96(4), 1994, table 2)."""


def shaped_noise(rng: np.random.Generator, samples: int, magnitude: Signal) -> Signal:
    """Gaussian noise with the (samples/2+1,) magnitude spectrum; `samples` is even."""
    from scipy import fft

    spectrum = fft.rfft(rng.standard_normal(samples)) * magnitude
    return np.asarray(fft.irfft(spectrum, samples), dtype=np.float64)


def frequencies(samples: int) -> Signal:
    """The (samples/2+1,) frequencies in Hz of a spectrum."""
    return np.arange(samples // 2 + 1, dtype=np.float64) * (SAMPLE_RATE / samples)


def speech_magnitude(hz: Signal) -> Signal:
    """Magnitude density of speech at the frequencies `hz`: third-octave levels over their bandwidths, log-interpolated.

    Below the first band it falls by 12 dB per octave.
    """
    centers = np.array(LTASS_HZ, dtype=np.float64)
    density_db = np.array(LTASS_DB) - 10.0 * np.log10(centers * (2.0 ** (1 / 6) - 2.0 ** (-1 / 6)))
    safe = np.maximum(hz, 1e-3)
    level = np.interp(np.log2(safe), np.log2(centers), density_db - density_db.max())
    level += 12.0 * np.minimum(0.0, np.log2(safe / centers[0]))
    return np.asarray(10.0 ** (level / 20.0), dtype=np.float64)


def slow_curve(rng: np.random.Generator, samples: int, highest_hz: float) -> Signal:
    """A circular random curve with unit variance and no component above `highest_hz` (at least one)."""
    from scipy import fft

    count = max(1, int(highest_hz * samples / SAMPLE_RATE))
    spectrum = np.zeros(samples // 2 + 1, dtype=np.complex128)
    drawn = rng.standard_normal((2, count))
    spectrum[1 : count + 1] = drawn[0] + 1j * drawn[1]
    curve = np.asarray(fft.irfft(spectrum, samples), dtype=np.float64)
    return curve / math.sqrt(float(np.square(curve).mean()))


def pink(rng: np.random.Generator, samples: int) -> Signal:
    """Noise with equal energy per octave between 20 Hz and half the sample rate."""
    hz = frequencies(samples)
    return shaped_noise(rng, samples, np.where(hz >= 20.0, 1.0 / np.sqrt(np.maximum(hz, 1.0)), 0.0))


def speech_shaped(rng: np.random.Generator, samples: int) -> Signal:
    """Stationary noise with the long-term average spectrum of speech, tilted by at most ±1.5 dB per octave."""
    hz = frequencies(samples)
    tilt_db = rng.uniform(-1.5, 1.5) * np.log2(np.maximum(hz, 50.0) / 1000.0)
    return shaped_noise(rng, samples, speech_magnitude(hz) * 10.0 ** (tilt_db / 20.0))


def traffic(rng: np.random.Generator, samples: int) -> Signal:
    """A steady low rumble, and vehicles that pass: an engine (harmonics) and tyres (noise near 800 Hz)."""
    hz = frequencies(samples)
    safe = np.maximum(hz, 1.0)
    rumble = shaped_noise(rng, samples, np.where(hz >= 25.0, 1.0 / (1.0 + (safe / 120.0) ** 1.5), 0.0))
    out = rumble / _rms(rumble)
    tyres = shaped_noise(rng, samples, np.where(hz >= 100.0, 1.0 / (1.0 + (np.log2(safe / 800.0) / 1.1) ** 4), 0.0))
    tyres /= _rms(tyres)
    time = np.arange(samples) / SAMPLE_RATE
    duration = samples / SAMPLE_RATE
    for _ in range(int(rng.integers(5, 9))):
        middle, width = rng.uniform(0.0, duration), rng.uniform(1.0, 4.0)
        away = np.abs(time - middle)
        away = np.minimum(away, duration - away) / width
        passing = 1.0 / (1.0 + np.square(away))
        engine = _engine(rng, samples)
        level = 10.0 ** (rng.uniform(-3.0, 6.0) / 20.0)
        share = rng.uniform(0.4, 0.8)
        out += level * passing * (share * engine + (1.0 - share) * tyres * passing)
    return out * (1.0 + 0.2 * np.tanh(slow_curve(rng, samples, 0.5)))


def _engine(rng: np.random.Generator, samples: int) -> Signal:
    """Harmonics of a slowly wandering firing rate between 28 and 70 Hz, with unit RMS."""
    rate = rng.uniform(28.0, 70.0) * 2.0 ** (0.08 * slow_curve(rng, samples, 0.4))
    turns = np.cumsum(rate) / SAMPLE_RATE
    # Whole turns in all, so that the end meets the beginning.
    turns *= np.round(turns[-1]) / turns[-1]
    # One turn, tabulated with its 30 harmonics, then read at the wandering phase.
    points = 4096
    angle = 2.0 * math.pi * np.arange(points + 1) / points
    turn = np.zeros(points + 1)
    for k in range(1, 31):
        strength = 10.0 ** (rng.normal(0.0, 4.0) / 20.0) / k
        turn += strength * np.cos(k * angle + 2.0 * math.pi * rng.random())
    out = np.interp(turns % 1.0, np.arange(points + 1) / points, turn)
    return np.asarray(out / _rms(out), dtype=np.float64)


def kitchen(rng: np.random.Generator, samples: int) -> Signal:
    """Clatter: struck metal, china and wood with their resonances, in bursts, over running water."""
    hz = frequencies(samples)
    safe = np.maximum(hz, 1.0)
    water = shaped_noise(rng, samples, np.where(hz >= 150.0, 1.0 / (1.0 + (np.log2(safe / 2500.0) / 1.8) ** 4), 0.0))
    water *= 1.0 + 0.4 * np.tanh(slow_curve(rng, samples, 3.0))
    out: Signal = water / _rms(water) * 10.0 ** (rng.uniform(-14.0, -8.0) / 20.0)
    # Each object rings in its own way and is struck many times.
    objects = [_struck(rng) for _ in range(12)]
    time = 0.0
    duration = samples / SAMPLE_RATE
    while time < duration:
        time += rng.exponential(0.7)
        strike = time
        for _ in range(1 + int(rng.geometric(0.4))):
            struck = objects[int(rng.integers(len(objects)))]
            force = 10.0 ** (rng.normal(0.0, 5.0) / 20.0)
            add_circular(out, struck * (3.0 * force), int(strike * SAMPLE_RATE))
            strike += rng.uniform(0.03, 0.3)
    return out


def _struck(rng: np.random.Generator) -> Signal:
    """The (n,) samples of one struck object: damped modes and a click, with a peak near 1."""
    material = int(rng.integers(3))
    low, high, longest = ((1800.0, 9000.0, 0.25), (900.0, 6000.0, 0.09), (250.0, 2000.0, 0.03))[material]
    modes = int(rng.integers(5, 10))
    length = int(5 * longest * SAMPLE_RATE)
    time = np.arange(length) / SAMPLE_RATE
    out = np.zeros(length)
    for _ in range(modes):
        hz = low * (high / low) ** rng.random()
        decay = longest * rng.uniform(0.3, 1.0) * (low / hz) ** 0.5
        out += rng.uniform(0.3, 1.0) * np.exp(-time / decay) * np.sin(2.0 * math.pi * hz * time)
    click = int(0.002 * SAMPLE_RATE)
    out[:click] += rng.normal(0.0, 0.5, click) * np.linspace(1.0, 0.0, click)
    return out / float(np.abs(out).max())


def add_circular(target: Signal, part: Signal, start: int) -> None:
    """Add (n,) `part`, n ≤ N, to the circular (N,) `target` from `start` on, in place."""
    start %= target.size
    first = min(part.size, target.size - start)
    target[start : start + first] += part[:first]
    target[: part.size - first] += part[first:]


def _rms(signal: Signal) -> float:
    return math.sqrt(float(np.square(signal).mean()))
