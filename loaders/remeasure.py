"""The SNR of a stored noisy clip, measured again from the clip and its stored partner without noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .mixing import ROUNDING_RMS, Level, level_speech, mean_square, power_ratio_db
from .records import Samples

TOLERANCE_DB = 0.01
"""How far a measured level may lie from the stated one, before what rounding to 16 bits adds."""
EDGE_TOLERANCE_DB = 0.05
"""The same where the level counts over active speech: rounding can move its first or last 20 ms frame."""


@dataclass(frozen=True, slots=True)
class MeasuredSnr:
    """A level in dB, measured (NaN where rounding hides the noise), and how far it may lie from the true one."""

    snr_db: float
    tolerance_db: float


def measure_snr(
    noisy: Samples, noisy_gain_db: float, quiet: Samples, quiet_gain_db: float, level: Level
) -> MeasuredSnr:
    """The level of the noise in `noisy`, (T,) float32 as stored; `quiet` is the same clip without noise, equally long.

    The stored clips are `g(x + αd)` and `g'x`, each rounded to 16 bits. Without their gains their difference is the
    noise as applied, plus two rounding errors of known power, which is subtracted. `level` is "whole" or "active" (see
    `mixing`).
    """
    noisy_scale, quiet_scale = (10.0 ** (-gain / 20.0) for gain in (noisy_gain_db, quiet_gain_db))
    speech = level_speech(quiet)
    noise = noisy.astype("float64") * noisy_scale - quiet.astype("float64") * quiet_scale
    power = speech.power
    if level == "active":
        noise, power = noise[speech.start : speech.stop], speech.active_power
    rounding = ROUNDING_RMS**2 * (noisy_scale**2 + quiet_scale**2)
    measured = mean_square(noise)
    if measured <= 2.0 * rounding:
        return MeasuredSnr(math.nan, math.inf)
    least = TOLERANCE_DB if level == "whole" else EDGE_TOLERANCE_DB
    return MeasuredSnr(
        power_ratio_db(power * quiet_scale**2, measured - rounding),
        least + 10.0 * math.log10(1.0 + 2.0 * rounding / (measured - rounding)),
    )
