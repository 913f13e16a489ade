"""A cheap gate for what is certainly broken, measured on the clip alone. It does not say that speech is good.

The limits reject none of 204 clips of `mini` (Kokoro) and of 96 by espeak-ng, and find nearly all of them when clipped,
silenced, offset, low-passed or sped up threefold; a cut end, which may look like a pause, in half and in a fifth.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..records import SAMPLE_RATE, Samples

_FRAME = SAMPLE_RATE // 100
_ACTIVE_DB = -45.0
_PLATEAU = 1e-4
_FFT = 1024
_BAND_DB = -60.0
_FEW_UNITS = 3.5


@dataclass(frozen=True, slots=True)
class ClipMeasures:
    """Measures of one clip.

    `duration_s` of all, `active_s` from the first to the last 10 ms frame within 45 dB of the loudest.
    `clipped_share`: samples in plateaus of 3 or more at the peak, in [0, 1]. `start_db`, `end_db`: level of the first
    and last active frame against the loudest, at most 0; speech that was cut begins or ends loud. `silence_share`:
    frames that are not active, in [0, 1]. `rate`: letters and digits of the spoken text per active second.
    `dc_share`: mean against peak, in [0, 1]. `bandwidth_hz`: the highest frequency within 60 dB of the strongest.
    All are NaN for a silent clip, but `duration_s`, `active_s` (0) and `silence_share` (1).
    """

    duration_s: float
    active_s: float
    clipped_share: float
    start_db: float
    end_db: float
    silence_share: float
    rate: float
    dc_share: float
    bandwidth_hz: float

    def as_dict(self) -> dict[str, float | None]:
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: None if math.isnan(value) else float(f"{value:.4g}") for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class ClipLimits:
    """What the gate lets pass.

    `rates` are the slowest and fastest rate per language, others are not checked. `end_db` is that of engines which may
    end abruptly on their own (espeak-ng does, at up to -11 dB), `engine_end_db` that of engines which were measured.
    """

    clipped_share: float = 0.001
    start_db: float = -6.0
    end_db: float = -10.0
    engine_end_db: Mapping[str, float] = field(default_factory=lambda: {"kokoro": -18.0})
    silence_share: float = 0.5
    dc_share: float = 0.02
    bandwidth_hz: float = 4500.0
    rates: Mapping[str, tuple[float, float]] = field(
        default_factory=lambda: {"en": (6.0, 24.0), "es": (6.0, 24.0), "zh": (2.0, 9.0)}
    )


def measure_clip(samples: Samples, text: str) -> ClipMeasures:
    """The measures of (T,) samples at `SAMPLE_RATE` that say `text`."""
    duration = samples.size / SAMPLE_RATE
    peak = float(np.abs(samples).max()) if samples.size else 0.0
    nan = math.nan
    if peak == 0.0:
        return ClipMeasures(duration, 0.0, nan, nan, nan, 1.0, nan, nan, nan)
    levels = _levels(samples)
    active = np.flatnonzero(levels >= _ACTIVE_DB)
    seconds = (int(active[-1]) + 1 - int(active[0])) * _FRAME / SAMPLE_RATE
    return ClipMeasures(
        duration,
        seconds,
        _clipped_share(samples, peak),
        float(levels[active[0]]),
        float(levels[active[-1]]),
        1.0 - active.size / levels.size,
        spoken_units(text) / seconds,
        abs(float(samples.mean(dtype=np.float64))) / peak,
        _bandwidth(samples),
    )


def gate(
    measures: ClipMeasures, language: str, limits: ClipLimits | None = None, *, engine: str = ""
) -> tuple[str, ...]:
    """Why a clip does not pass: silent, clipped, cut_start, cut_end, silence, too_slow, too_fast, dc, narrow_band."""
    limits = limits or ClipLimits()
    if measures.active_s == 0.0:
        return ("silent",)
    slowest, fastest = limits.rates.get(language.partition("-")[0], (0.0, math.inf))
    if measures.rate * measures.active_s < _FEW_UNITS:
        # One short word: its rate says nothing.
        slowest, fastest = 0.0, math.inf
    checks = {
        "clipped": measures.clipped_share > limits.clipped_share,
        "cut_start": measures.start_db > limits.start_db,
        "cut_end": measures.end_db > limits.engine_end_db.get(engine, limits.end_db),
        "silence": measures.silence_share > limits.silence_share,
        "too_slow": measures.rate < slowest,
        "too_fast": measures.rate > fastest,
        "dc": measures.dc_share > limits.dc_share,
        "narrow_band": measures.bandwidth_hz < limits.bandwidth_hz,
    }
    return tuple(name for name, failed in checks.items() if failed)


def spoken_units(text: str) -> int:
    """Letters and digits in `text`: characters for Chinese, letters for others. Marks on letters do not count.

    >>> spoken_units("¿Qué es 5 G?"), spoken_units("什么是 5G？")
    (7, 5)
    """
    return sum(unicodedata.category(c)[0] in "LN" for c in unicodedata.normalize("NFC", text))


def _levels(samples: Samples) -> NDArray[np.float64]:
    """Level of each 10 ms frame in dB against the loudest; the last frame may be padded."""
    padded = np.pad(samples, (0, -samples.size % _FRAME)).reshape(-1, _FRAME)
    power = np.square(padded, dtype=np.float64).mean(axis=1)
    with np.errstate(divide="ignore"):
        return np.asarray(10.0 * np.log10(power / power.max()))


def _clipped_share(samples: Samples, peak: float) -> float:
    share = 0
    for side in (samples, -samples):
        top = side >= peak * (1.0 - _PLATEAU)
        edges = np.flatnonzero(np.diff(np.concatenate(([False], top, [False])).astype(np.int8)))
        runs = edges[1::2] - edges[::2]
        share += int(runs[runs >= 3].sum())
    return share / samples.size


def _bandwidth(samples: Samples) -> float:
    """The highest frequency in Hz at which the mean power spectrum is within 60 dB of its maximum."""
    padded = np.pad(samples, (0, max(0, _FFT - samples.size)))
    window = np.hanning(_FFT)
    total = np.zeros(_FFT // 2 + 1)
    for start in range(0, padded.size - _FFT + 1, _FFT // 2):
        total += np.abs(np.fft.rfft(padded[start : start + _FFT] * window)) ** 2
    # A mean over 5 bins: single bins are noise.
    smooth = np.convolve(total, np.ones(5) / 5.0, mode="same")
    if smooth.max() <= 0.0:
        return 0.0
    strong = np.flatnonzero(smooth >= smooth.max() * 10 ** (_BAND_DB / 10))
    return float(strong[-1]) * SAMPLE_RATE / _FFT
