"""What an impulse response says about its room, measured broadband as ISO 3382-1 and 3382-2 define it.

All times count from the direct path (`reverb.find_onset`). The response ends in background noise, or was cut off: both
falsify late energy. Following Lundeby et al. (Acustica 81, 1995) the level of the tail is taken as the noise floor, the
decay line is followed down to where it crosses that floor, the response is cut there, and the energy that the line
would have held beyond is added. ISO 3382 measures octave bands; these are single broadband values, as reverberant
speech data sets report them. What cannot be measured is NaN with a reason, never a guess.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .audio import check_samples
from .mixing import power_ratio_db
from .records import NAN, SAMPLE_RATE, Samples
from .reverb import find_onset

DIRECT_S = 0.0025
"""Half width of the window that holds the direct sound."""

T30_RANGE_DB, T20_RANGE_DB = 45.0, 35.0
"""How far the decay must start above the noise floor for T30 and for T20 (ISO 3382-2: evaluation range plus 15 dB)."""

STRAIGHT = 0.9
"""Least r² of a straight line through the decay; below it there is no single reverberation time."""

BREAK_OFF = 0.8
"""A decay whose lower half is shorter than this share of its upper half did not decay there: it was cut off."""

_BLOCK_S = 0.005
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class RirMeasures:
    """Measures of one impulse response. What could not be measured is NaN and has its reason in `reasons`.

    - `rt60_s`: reverberation time in s, the time of a decay by 60 dB extrapolated from the straight line through the
      backward-integrated (Schroeder) decay between −5 and −35 dB (T30), or −25 dB (T20); `rt60_method` says which (""
      if NaN).
    - `edt_s`: early decay time in s, the same from 0 to −10 dB.
    - `drr_db`: direct-to-reverberant ratio, energy within ±2.5 ms of the direct path over all energy after that.
    - `c50_db`, `c80_db`: clarity, energy in the first 50 (80) ms after the direct path over all energy after that.
    - `onset_samples`: index of the direct path.
    """

    rt60_s: float
    edt_s: float
    drr_db: float
    c50_db: float
    c80_db: float
    onset_samples: int
    rt60_method: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Decay:
    """Energy from the direct path on, cut at the noise floor and without it.

    `missing` is the energy that the line holds beyond the cut, `range_db` how far the start lies above the floor.
    """

    energy: NDArray[np.float64]
    missing: float
    range_db: float


def measure_rir(rir: Samples, rir_id: str, rate: int = SAMPLE_RATE) -> RirMeasures:
    """Measure a (L,) float32 impulse response at `rate` Hz.

    Raises `AudioError` naming `rir_id` if it is empty, silent, constant or not finite.

    >>> echo = np.zeros(24000, dtype=np.float32)
    >>> echo[[100, 12100]] = 1.0, 0.1
    >>> measures = measure_rir(echo, "echo")
    >>> round(measures.c50_db, 3), measures.onset_samples, measures.rt60_s
    (20.0, 100, nan)
    >>> measures.reasons["rt60_s"]
    'the decay ends before -25 dB'
    """
    onset, energy, decay = _decay_of(rir, rir_id, rate)
    curve_db = _curve_db(decay)
    reasons: dict[str, str] = {}
    rt60, method = NAN, ""
    for name, low, needed in (("T30", -35.0, T30_RANGE_DB), ("T20", -25.0, T20_RANGE_DB)):
        if decay.range_db < needed:
            reasons["rt60_s"] = (
                f"the decay can be followed over {decay.range_db:.0f} dB only, down to the noise floor or the end; "
                f"T20 needs {T20_RANGE_DB:.0f} dB"
            )
            continue
        rt60, reason = _decay_time(curve_db, -5.0, low, rate)
        if not reason:
            method = name
            reasons.pop("rt60_s", None)
            break
        reasons["rt60_s"] = reason
    edt, reason = _decay_time(curve_db, 0.0, -10.0, rate)
    if reason:
        reasons["edt_s"] = reason

    half = round(DIRECT_S * rate)
    before = float(energy[max(0, onset - half) : onset].sum())
    ratios = {}
    for name, split, extra in (
        ("drr_db", half + 1, before),
        ("c50_db", round(0.050 * rate), 0.0),
        ("c80_db", round(0.080 * rate), 0.0),
    ):
        early = float(decay.energy[:split].sum()) + extra
        late = float(decay.energy[split:].sum()) + (decay.missing if split < decay.energy.size else 0.0)
        ratios[name] = round(power_ratio_db(early, late), _DECIMALS)
        if late <= 0.0:
            reasons[name] = "the response ends or sinks into noise before the late part begins"
    return RirMeasures(
        rt60_s=round(rt60, _DECIMALS),
        edt_s=round(edt, _DECIMALS),
        drr_db=ratios["drr_db"],
        c50_db=ratios["c50_db"],
        c80_db=ratios["c80_db"],
        onset_samples=onset,
        rt60_method=method,
        reasons=reasons,
    )


def decay_curve(rir: Samples, rir_id: str, rate: int = SAMPLE_RATE, step_s: float = 0.01) -> NDArray[np.float64]:
    """The decay of a (L,) response in dB every `step_s` from the direct path on, (n,) float64 that begins with 0.

    It is the backward-integrated energy that `measure_rir` fits its lines to: cut where it sinks into noise. Raises
    `AudioError` as `measure_rir` does.

    >>> echo = np.zeros(24000, dtype=np.float32)
    >>> echo[[100, 400]] = 1.0, 0.1
    >>> decay_curve(echo, "echo").round(3).tolist()
    [0.0, -20.043]
    """
    _, _, decay = _decay_of(rir, rir_id, rate)
    return _curve_db(decay)[:: max(1, round(step_s * rate))]


def _decay_of(rir: Samples, rir_id: str, rate: int) -> tuple[int, NDArray[np.float64], _Decay]:
    """Index of the direct path, energy of the whole response, and its decay."""
    check_samples(rir, f"the impulse response {rir_id!r}")
    onset = find_onset(rir)
    # Scaled by the peak, so that squares neither vanish nor overflow.
    wide = rir.astype(np.float64) / float(np.abs(rir).max())
    energy = np.square(wide)
    return onset, energy, _cut_at_floor(energy[onset : int(np.flatnonzero(energy)[-1]) + 1], rate)


def _curve_db(decay: _Decay) -> NDArray[np.float64]:
    curve = np.cumsum(decay.energy[::-1])[::-1] + decay.missing
    levels: NDArray[np.float64] = 10.0 * np.log10(np.maximum(curve / curve[0], 1e-30))
    return levels


def _decay_time(curve_db: NDArray[np.float64], high: float, low: float, rate: int) -> tuple[float, str]:
    """Time in s of a decay by 60 dB along the line fitted between `high` and `low` dB, and "" or why there is none."""
    if curve_db[-1] > low:
        return NAN, f"the decay ends before {low:g} dB"
    start = int(np.argmax(curve_db <= high))
    stop = int(np.argmax(curve_db <= low))
    if stop <= round(DIRECT_S * rate) or stop - start < 3:
        return NAN, "the direct sound alone holds nearly all energy"
    slope, straightness = _line(curve_db[start:stop])
    if slope >= 0.0:
        return NAN, "there is no decay"
    # The early decay is curved by nature (direct sound first); only the late one has to be a line.
    if high < 0.0:
        middle = int(np.argmax(curve_db <= (high + low) / 2.0))
        if straightness < STRAIGHT or min(middle - start, stop - middle) < 2:
            return NAN, "the decay is not a straight line"
        if stop - middle < BREAK_OFF * (middle - start):
            return NAN, "the decay breaks off: the response was cut before it had decayed"
    return -60.0 / (slope * rate), ""


def _line(levels: NDArray[np.float64]) -> tuple[float, float]:
    """Slope per sample of the least-squares line through (n,) levels, n ≥ 2, and its r²."""
    times = np.arange(levels.size, dtype=np.float64)
    times -= times.mean()
    spread = levels - levels.mean()
    covariance = float((times * spread).sum())
    variance = float(np.square(spread).sum())
    slope = covariance / float(np.square(times).sum())
    return slope, slope * covariance / variance if variance > 0.0 else 0.0


def _cut_at_floor(energy: NDArray[np.float64], rate: int) -> _Decay:
    block = max(1, round(_BLOCK_S * rate))
    whole = _Decay(energy, 0.0, 0.0)
    for _ in range(6):
        count = energy.size // block
        if count < 10:
            if block == 1:
                return whole
            block = max(1, block // 2)
            continue
        powers = energy[: count * block].reshape(count, block).mean(axis=1)
        levels = 10.0 * np.log10(np.maximum(powers, 1e-30))
        floor = 10.0 * math.log10(max(float(powers[-max(2, count // 10) :].mean()), 1e-30))
        break
    else:
        return whole
    first = int(np.argmax(levels))
    tail = count - max(2, count // 10)
    line = _late_line(levels, first, floor)
    cross = float(count)
    for _ in range(8):
        if line is None:
            break
        slope, intercept = line
        moved = min(float(count), max(first + 1.0, (floor - intercept) / slope))
        # Beyond the crossing by another 5 dB of decay there is nothing but noise.
        floor = 10.0 * math.log10(max(float(powers[min(int(moved + 5.0 / -slope) + 1, tail) :].mean()), 1e-30))
        settled = abs(moved - cross) < 0.5
        cross = moved
        if settled:
            break
        line = _late_line(levels, first, floor)
    range_db = max(0.0, float(levels[first]) - floor)
    if line is None:
        return _Decay(energy, 0.0, range_db)
    slope, intercept = line
    noise = 10.0 ** (floor / 10.0)
    if cross + 5.0 / -slope > tail:
        # The tail is still decaying: there is no noise floor, the response just ends.
        cross, noise = energy.size / block, 0.0
    cut = min(energy.size, max(1, int(cross * block)))
    # Block i is centered on i + 1/2; beyond the cut the line is an exponential with this integral.
    at_cut = 10.0 ** ((intercept + slope * (cut / block - 0.5)) / 10.0)
    missing = at_cut * block / (-slope * math.log(10.0) / 10.0)
    return _Decay(energy[:cut] - noise, missing, range_db)


def _late_line(levels: NDArray[np.float64], first: int, floor: float) -> tuple[float, float] | None:
    """Slope (dB per block, negative) and intercept of the decay between 5 and 25 dB above the floor, None if it
    rises."""
    tail = levels[first:]
    below = np.flatnonzero(tail < floor + 5.0)
    stop = first + (int(below[0]) if below.size else tail.size)
    above = np.flatnonzero(levels[first:stop] > floor + 25.0)
    start = first + (int(above[-1]) + 1 if above.size else 0)
    if stop - start < 3:
        start = max(first, stop - 3)
    if stop - start < 3:
        return None
    index = np.arange(start, stop, dtype=np.float64)
    centered = index - index.mean()
    part = levels[start:stop]
    slope = float((centered * part).sum() / np.square(centered).sum())
    if slope >= -1e-9:
        return None
    return slope, float(part.mean() - slope * index.mean())
