"""Noise added to speech at an exact level.

`y = g·(x + α·d)` with `α = RMS(x)/RMS(d)·10^(−SNR/20)`: `x` is the speech, `d` the very noise samples used (after
resampling, cropping and looping), `g` one joint gain. Sums of squares are in float64, everything else in float32, whose
rounding lies more than 140 dB below the louder of the two and so changes no level that can be asked for by 0.01 dB.

Levels are measured over the whole clip, or over its active part (SQuTR, arXiv 2602.12783, section 3.3): without the
leading and trailing silence. The clip itself is never shortened, so all conditions of a query stay equally long and
aligned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import AudioError, UsageError, unknown_name
from .records import NAN, SAMPLE_RATE, Samples

Level = Literal["whole", "active"]
LEVELS: tuple[Level, ...] = ("whole", "active")

PEAK_LIMIT = 0.9
"""The largest magnitude that a stored clip may reach."""

ACTIVE_FRAME_S = 0.02
"""Length of the frames in which silence is looked for; they do not overlap."""
ACTIVE_RANGE_DB = 40.0
"""A frame is silent if its RMS lies further than this below the loudest frame's."""

DC_SHARE = 0.03
"""A mean above this share of the RMS is an offset and is subtracted; a smaller one changes a level by under 0.005
dB."""

PCM_STEP = 1.0 / 32768.0
ROUNDING_RMS = PCM_STEP / math.sqrt(12.0)
"""RMS of the error that rounding to 16 bits makes. What is weaker is lost in the file."""


@dataclass(frozen=True, slots=True)
class LeveledSpeech:
    """Speech with what mixing needs to know about it, measured once and used at every level.

    `samples` is (T,) float32; `start` and `stop` bound its active part (in samples, `stop`
    exclusive); `power` and `active_power` are its mean squares over the whole and over the active part.
    """

    samples: Samples
    start: int
    stop: int
    power: float
    active_power: float


@dataclass(frozen=True, slots=True)
class LeveledNoise:
    """Noise for one piece of speech, (T,) float32, and its mean squares over the clip and over its active part."""

    samples: Samples
    power: float
    active_power: float


@dataclass(frozen=True, slots=True)
class Mixture:
    """Speech in noise.

    `samples` is (T,) float32 with a peak of at most 0.9. `snr_db` and `snr_active_db` are measured, over the whole clip
    and over the active part of the speech. `noise_gain` is α, `gain_db` the joint gain (0.0 when none was needed).
    """

    samples: Samples
    snr_db: float
    snr_active_db: float
    noise_gain: float
    gain_db: float


def check_level(level: str) -> Level:
    for known in LEVELS:
        if level == known:
            return known
    raise unknown_name("level", level, LEVELS)


def mean_square(samples: NDArray[np.floating]) -> float:
    """Mean of the squares in float64 (pairwise sum: the same with any number of threads); 0.0 if empty."""
    if samples.size == 0:
        return 0.0
    return float(_squares(samples).sum()) / samples.size


def _squares(samples: NDArray[np.floating]) -> NDArray[np.float64]:
    """The squares in float64. Widened as a whole first: numpy's own cast inside the product goes piece by piece."""
    wide = samples.astype(np.float64)
    return np.square(wide, out=wide)


def power_ratio_db(numerator: float, denominator: float) -> float:
    """A ratio of two powers in dB; NaN unless both are positive."""
    if numerator <= 0.0 or denominator <= 0.0:
        return NAN
    return 10.0 * math.log10(numerator / denominator)


def remove_dc(samples: Samples) -> Samples:
    """(T,) float32 without its mean if that is an offset (above `DC_SHARE` of the RMS): it would count as level."""
    return samples if samples.size == 0 else _without_dc(samples, mean_square(samples))


def _without_dc(samples: Samples, power: float) -> Samples:
    mean = float(samples.mean(dtype=np.float64))
    return samples if mean * mean <= DC_SHARE * DC_SHARE * power else samples - np.float32(mean)


def active_span(squares: NDArray[np.float64], rate: int = SAMPLE_RATE) -> tuple[int, int]:
    """Start and stop (exclusive) of speech without leading and trailing silence, by the (T,) squares of its samples.

    The clip is cut into frames of 20 ms (the last may be shorter). A frame is silent if its RMS lies more than 40 dB
    below the loudest frame's. The span runs from the first frame that is not silent to the end of the last; it is the
    whole clip for a constant level, and (0, T) for a silent or empty one.

    >>> second = np.ones(24000)
    >>> active_span(np.concatenate([0 * second, second, 0 * second]))
    (24000, 48000)
    """
    frame = max(1, round(ACTIVE_FRAME_S * rate))
    if squares.size == 0:
        return 0, 0
    whole = squares.size // frame
    powers = squares[: whole * frame].reshape(whole, frame).sum(axis=1) / frame
    if whole * frame < squares.size:
        powers = np.append(powers, squares[whole * frame :].mean())
    active = np.flatnonzero(powers > powers.max() * 10.0 ** (-ACTIVE_RANGE_DB / 10.0))
    if active.size == 0:
        return 0, squares.size
    return int(active[0]) * frame, min(squares.size, (int(active[-1]) + 1) * frame)


def level_speech(samples: Samples, rate: int = SAMPLE_RATE) -> LeveledSpeech:
    """Measure (T,) float32 speech for mixing; `remove_dc` comes first. It must not be silent or empty."""
    return _leveled(samples, _squares(samples), rate)


def level_recording(samples: Samples, rate: int = SAMPLE_RATE) -> LeveledSpeech:
    """`level_speech(remove_dc(samples))`, the squares taken once for both. It must not be silent or empty."""
    squares = _squares(samples)
    centered = _without_dc(samples, float(squares.sum()) / samples.size)
    return _leveled(samples, squares, rate) if centered is samples else level_speech(centered, rate)


def _leveled(samples: Samples, squares: NDArray[np.float64], rate: int) -> LeveledSpeech:
    start, stop = active_span(squares, rate)
    return LeveledSpeech(
        samples=samples,
        start=start,
        stop=stop,
        power=float(squares.sum()) / squares.size,
        active_power=float(squares[start:stop].sum()) / (stop - start),
    )


def level_noise(samples: Samples, speech: LeveledSpeech) -> LeveledNoise:
    """Measure (T,) float32 noise for mixing with `speech`, which must be equally long."""
    if samples.shape != speech.samples.shape:
        raise UsageError(f"the noise has shape {samples.shape}, the speech {speech.samples.shape}.")
    squares = _squares(samples)
    return LeveledNoise(
        samples=samples,
        power=float(squares.sum()) / squares.size,
        active_power=float(squares[speech.start : speech.stop].sum()) / (speech.stop - speech.start),
    )


def noise_segment(noise: Samples, offset: int, length: int) -> Samples:
    """(`length`,) samples of (N,) `noise` from `offset` (0 to N−1) on; behind its end it starts again from its
    beginning.

    The loop simply wraps, so that anyone can repeat it from the noise and the stored offset.

    >>> noise_segment(np.array([1, 2, 3], dtype=np.float32), 2, 5)
    array([3., 1., 2., 3., 1.], dtype=float32)
    """
    if not 0 <= offset < noise.size:
        raise UsageError(f"the noise offset {offset} lies outside of a noise of {noise.size} samples.")
    if offset + length <= noise.size:
        return noise[offset : offset + length]
    return np.take(noise, np.arange(offset, offset + length), mode="wrap")


def limit_peak(samples: Samples, limit: float = PEAK_LIMIT) -> tuple[Samples, float]:
    """(T,) float32 with its peak brought down to `limit` where it would pass it, and the gain in dB (0.0 if unchanged).

    >>> limited, gain_db = limit_peak(np.array([0.0, -1.8], dtype=np.float32))
    >>> float(limited[1]), round(gain_db, 3)
    (-0.8999999761581421, -6.021)
    """
    if samples.size == 0:
        return samples, 0.0
    peak = max(float(samples.max()), -float(samples.min()))
    if peak <= limit:
        return samples, 0.0
    gain = np.float32(limit / peak)
    if float(np.float32(peak) * gain) > limit:
        gain = np.nextafter(gain, np.float32(0.0))
    return samples * gain, 20.0 * math.log10(float(gain))


def mix(
    speech: LeveledSpeech,
    noise: LeveledNoise,
    snr_db: float,
    *,
    level: Level = "whole",
    speech_name: str = "the speech",
    noise_name: str = "the noise",
) -> Mixture:
    """Add noise to speech at exactly `snr_db`, then bring the peak down to 0.9 if it passes it.

    `level="whole"` measures speech and noise over the whole clip, `"active"` both over the active part of the speech.
    Raises `AudioError` naming the noise or the speech if one is silent there, or if one of the two would be so much
    weaker than the other that 16 bits cannot hold it: nothing is called noisy without noise in it.

    >>> speech = level_speech(np.sin(np.arange(24000, dtype=np.float32)))
    >>> noise = level_noise(np.cos(np.arange(24000, dtype=np.float32) / 3), speech)
    >>> mixture = mix(speech, noise, 6.0)
    >>> round(mixture.snr_db, 4), round(mixture.gain_db, 2)
    (6.0, -4.07)
    """
    if not math.isfinite(snr_db):
        raise UsageError(f"the level {snr_db} dB is not a number.")
    powers = (speech.power, noise.power) if level == "whole" else (speech.active_power, noise.active_power)
    for name, power in zip((speech_name, noise_name), powers, strict=True):
        if not (math.isfinite(power) and power > 0.0):
            raise AudioError(
                f"{name} is silent or not finite where the level is measured.",
                hint="Choose another part or another recording.",
            )
    alpha = np.float32(math.sqrt(powers[0] / powers[1]) * 10.0 ** (-snr_db / 20.0))
    mixed = noise.samples * alpha
    mixed += speech.samples
    mixed, gain_db = limit_peak(mixed)
    # As applied, so that the reported levels are measured ones and not the asked ones repeated.
    scale = float(alpha) ** 2
    gain = 10.0 ** (gain_db / 20.0)
    strengths = {
        name: gain * math.sqrt(part) for name, part in ((noise_name, scale * noise.power), (speech_name, speech.power))
    }
    for name, strength in strengths.items():
        if strength < ROUNDING_RMS:
            raise _lost(name, snr_db)
    if strengths[noise_name] < 2.0 * PCM_STEP:
        alone = np.rint(speech.samples * np.float32(gain) / np.float32(PCM_STEP))
        if np.array_equal(alone, np.rint(mixed / np.float32(PCM_STEP))):
            raise _lost(noise_name, snr_db)
    return Mixture(
        samples=mixed,
        snr_db=power_ratio_db(speech.power, scale * noise.power),
        snr_active_db=power_ratio_db(speech.active_power, scale * noise.active_power),
        noise_gain=float(alpha),
        gain_db=gain_db,
    )


def _lost(name: str, snr_db: float) -> AudioError:
    return AudioError(
        f"at {snr_db:g} dB {name} would lie below what 16 bits can hold.",
        hint="Ask for a level nearer to 0 dB, or use louder speech.",
    )
