"""How loud the noise in a clip is, band by band."""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ....errors import unknown_name
from .common import require_between

NoiseEstimate = Literal["quantile", "tracked"]
ESTIMATES: tuple[NoiseEstimate, ...] = get_args(NoiseEstimate)

LEAST_POWER = 1e-12
"""No noise is taken to be weaker than this, so that silence divides by no zero."""

# Gerkmann and Hendriks (2012), section IV: smoothing of the noise and of the probability of speech, the SNR that speech
# has where there is speech, and the largest probability that may last.
_KEEP_NOISE, _KEEP_PRESENCE = 0.8, 0.9
_SPEECH_SNR = 10.0**1.5
_LASTING = 0.99


def require_estimate(estimate: str, quantile: float) -> None:
    """Raises `UnknownNameError` for an unknown estimate, `UsageError` for a quantile that says nothing."""
    if estimate not in ESTIMATES:
        raise unknown_name("noise estimate", estimate, ESTIMATES)
    require_between(0.01, 0.9, quantile=quantile)


def noise_power(
    power: NDArray[np.float64], inner: slice, estimate: NoiseEstimate, quantile: float
) -> NDArray[np.float64]:
    """The noise's power for a (bands, frames) `power`: (bands, 1) if it is one for the whole clip, else like `power`.

    "quantile" takes that quantile over the frames of every band (Stahl et al., ICASSP 2000, took the median); `inner`
    are the frames that lie within the clip. The power of stationary noise is exponentially distributed, so dividing by
    −log(1 − quantile) turns its quantile into its mean. A low quantile leaves speech in peace where a band never rests.

    "tracked" starts there and follows a noise that changes: in every frame the noise moves towards the power by as much
    as speech is improbable (Gerkmann and Hendriks, IEEE Trans. Audio, Speech, and Language Processing 20(4), 2012).
    """
    floor = np.quantile(power[:, inner], quantile, axis=1) / -math.log1p(-quantile)
    floor = np.maximum(floor, LEAST_POWER)
    if estimate == "quantile":
        return np.asarray(floor[:, None], dtype=np.float64)
    tracked = np.empty_like(power)
    noise, presence = floor, np.full(floor.size, 0.5)
    share = _SPEECH_SNR / (1.0 + _SPEECH_SNR)
    for frame in range(power.shape[1]):
        now = power[:, frame]
        # Beyond the limit the exponential is 0 in float64 anyway.
        speech = 1.0 / (1.0 + (1.0 + _SPEECH_SNR) * np.exp(-np.minimum(now / noise * share, 700.0)))
        presence = _KEEP_PRESENCE * presence + (1.0 - _KEEP_PRESENCE) * speech
        # A level that has been called speech for long is noise that rose.
        speech = np.where(presence > _LASTING, np.minimum(speech, _LASTING), speech)
        observed = speech * noise + (1.0 - speech) * now
        noise = np.maximum(_KEEP_NOISE * noise + (1.0 - _KEEP_NOISE) * observed, LEAST_POWER)
        tracked[:, frame] = noise
    return tracked
