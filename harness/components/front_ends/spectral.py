"""Noise reduction in the spectrum: a spectral gate, and the Wiener and log-MMSE rules. The phase stays."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ....errors import UsageError, unknown_name
from ....loaders.records import Samples
from ...protocols import ComponentSpec
from .common import SpectrumFrontEnd, require_between
from .noise import NoiseEstimate, noise_power, require_estimate

Power = NDArray[np.float64]
Rule = Literal["log-mmse", "wiener"]
RULES: tuple[Rule, ...] = get_args(Rule)

_LARGEST_SNR = 1e4
_SMALLEST_INTEGRAND = 1e-10


class SpectralGateFrontEnd(SpectrumFrontEnd):
    """A soft gate for clips at 16 kHz.

    A band of a frame passes by the logistic function of how far its power lies above `threshold_db` over the noise,
    with `softness_db` as scale; that mask is averaged over `smooth_frames` × `smooth_bands`, and what does not pass is
    lowered by `reduction_db`. The noise is estimated as `noise.noise_power` says (`noise`, `quantile`). `size`
    and `shift` of the spectrum are in samples.
    """

    def __init__(
        self,
        *,
        noise: NoiseEstimate = "quantile",
        quantile: float = 0.1,
        threshold_db: float = 6.0,
        softness_db: float = 3.0,
        reduction_db: float = 20.0,
        smooth_frames: int = 3,
        smooth_bands: int = 3,
        **frames: Any,
    ) -> None:
        require_estimate(noise, quantile)
        require_between(-40.0, 40.0, threshold_db=threshold_db)
        require_between(0.01, 40.0, softness_db=softness_db)
        require_between(0.0, 100.0, reduction_db=reduction_db)
        for name, value in (("smooth_frames", smooth_frames), ("smooth_bands", smooth_bands)):
            if value < 1 or value % 2 == 0:
                raise UsageError(f"{name} is an odd number of at least 1, not {value}.")
        self._noise, self._quantile = noise, quantile
        self._threshold_db, self._softness_db, self._reduction_db = threshold_db, softness_db, reduction_db
        self._smooth = (smooth_bands, smooth_frames)
        super().__init__(**frames)

    @cached_property
    def spec(self) -> ComponentSpec:
        return ComponentSpec(
            "front_end",
            "spectral-gate",
            "spectral gate",
            settings={
                "noise": self._noise,
                "quantile": float(self._quantile),
                "reduction_db": float(self._reduction_db),
                **self._frame_settings,
                "smooth_bands": self._smooth[0],
                "smooth_frames": self._smooth[1],
                "softness_db": float(self._softness_db),
                "threshold_db": float(self._threshold_db),
                "version": "1",
            },
        )

    def _enhance(self, clip: Samples) -> NDArray[np.float64]:
        from scipy import ndimage, special

        spectrum = self._spectrum.forward(clip)
        power = np.square(np.abs(spectrum))
        noise = noise_power(power, self._spectrum.inner(clip.size), self._noise, self._quantile)
        # The floor under the power is far below the one under the noise, so empty bands stay closed.
        above_db = 10.0 * np.log10(np.maximum(power, 1e-30) / noise) - self._threshold_db
        mask = ndimage.uniform_filter(special.expit(above_db / self._softness_db), self._smooth, mode="nearest")
        floor = 10.0 ** (-self._reduction_db / 20.0)
        return self._spectrum.inverse(spectrum * (floor + (1.0 - floor) * mask), clip.size)


class WienerFrontEnd(SpectrumFrontEnd):
    """The log-MMSE estimator, or the Wiener filter, for clips at 16 kHz.

    `rule` "log-mmse" gives the least mean squared error of the logarithm of the amplitude (Ephraim and Malah, IEEE
    Trans. Acoustics, Speech, and Signal Processing 33(2), 1985), "wiener" the gain ξ/(1+ξ). ξ, the a-priori SNR,
    follows the decision-directed rule (the same authors, ibid. 32(6), 1984) with weight `smoothing` for the frame
    before, and is at least `least_snr_db`. No gain is below −`reduction_db`. The noise is estimated as
    `noise.noise_power` says (`noise`, `quantile`). `size` and `shift` of the spectrum are in samples.
    """

    def __init__(
        self,
        *,
        rule: Rule = "log-mmse",
        noise: NoiseEstimate = "quantile",
        quantile: float = 0.1,
        smoothing: float = 0.98,
        least_snr_db: float = -25.0,
        reduction_db: float = 20.0,
        **frames: Any,
    ) -> None:
        if rule not in RULES:
            raise unknown_name("rule of the Wiener front end", rule, RULES)
        require_estimate(noise, quantile)
        require_between(0.0, 0.9999, smoothing=smoothing)
        require_between(-60.0, 0.0, least_snr_db=least_snr_db)
        require_between(0.0, 100.0, reduction_db=reduction_db)
        self._rule: Rule = rule
        self._noise, self._quantile = noise, quantile
        self._smoothing, self._least_snr_db, self._reduction_db = smoothing, least_snr_db, reduction_db
        super().__init__(**frames)

    @cached_property
    def spec(self) -> ComponentSpec:
        return ComponentSpec(
            "front_end",
            "wiener",
            "log-MMSE" if self._rule == "log-mmse" else "Wiener filter",
            settings={
                "least_snr_db": float(self._least_snr_db),
                "noise": self._noise,
                "quantile": float(self._quantile),
                "reduction_db": float(self._reduction_db),
                "rule": self._rule,
                **self._frame_settings,
                "smoothing": float(self._smoothing),
                "version": "1",
            },
        )

    def _enhance(self, clip: Samples) -> NDArray[np.float64]:
        spectrum = self._spectrum.forward(clip)
        power = np.square(np.abs(spectrum))
        noise = noise_power(power, self._spectrum.inner(clip.size), self._noise, self._quantile)
        return self._spectrum.inverse(spectrum * self._gains(power / noise), clip.size)

    def _gains(self, posterior: Power) -> Power:
        least = 10.0 ** (self._least_snr_db / 10.0)
        floor = 10.0 ** (-self._reduction_db / 20.0)
        posterior = np.minimum(posterior, _LARGEST_SNR)
        gains = np.empty_like(posterior)
        # Nothing is known before the first frame: its own SNR stands for it.
        before = np.maximum(posterior[:, 0] - 1.0, 0.0)
        for frame in range(posterior.shape[1]):
            now = posterior[:, frame]
            prior = self._smoothing * before + (1.0 - self._smoothing) * np.maximum(now - 1.0, 0.0)
            gain = self._gain(np.maximum(prior, least), now)
            before = np.square(gain) * now
            gains[:, frame] = np.maximum(gain, floor)
        return gains

    def _gain(self, prior: Power, posterior: Power) -> Power:
        from scipy import special

        wiener = prior / (1.0 + prior)
        if self._rule == "wiener":
            return wiener
        # The exponential integral is infinite at 0, where the gain is bounded by its product with the Wiener gain.
        correction = np.exp(0.5 * special.exp1(np.maximum(wiener * posterior, _SMALLEST_INTEGRAND)))
        gain: Power = np.minimum(wiener * correction, 1.0)
        return gain
