"""Dereverberation of one channel by weighted prediction error, with nara-wpe.

Nakatani et al., IEEE Trans. Audio, Speech, and Language Processing 18(7), 2010; Drude et al., "NARA-WPE", ITG 2018.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import AudioError, UsageError, unknown_name
from ....loaders.records import Samples
from ...protocols import ComponentSpec
from .common import FRONT_END_RATE, SpectrumFrontEnd, full_version, import_extra

STATISTICS = ("full", "valid")


class WPEFrontEnd(SpectrumFrontEnd):
    """Weighted prediction error for clips at 16 kHz.

    `taps` is the length of the prediction filter in frames, `delay` how many frames back it begins (early reflections
    within them stay), `iterations` how often power and filter are estimated in turn, `psd_context` over how many frames
    to each side the power is averaged. `size` and `shift` of the spectrum are in samples. `statistics` "full" counts
    the frames before the clip begins as silence, "valid" leaves them out of the estimate.

    One microphone needs a longer filter than several. A clip must have more frames than the filter has taps: one that
    is shorter raises `AudioError`. The output is aligned with the input and as long; its level is not normalized.
    """

    def __init__(
        self,
        *,
        taps: int = 30,
        delay: int = 3,
        iterations: int = 3,
        psd_context: int = 0,
        statistics: str = "full",
        **frames: Any,
    ) -> None:
        for name, value, least in (
            ("taps", taps, 1),
            ("delay", delay, 1),
            ("iterations", iterations, 1),
            ("psd_context", psd_context, 0),
        ):
            if value < least:
                raise UsageError(f"WPE needs {name} of at least {least}, not {value}.")
        if statistics not in STATISTICS:
            raise unknown_name("statistics of WPE", statistics, STATISTICS)
        self._taps, self._delay, self._iterations, self._context = taps, delay, iterations, psd_context
        super().__init__(**frames)
        self._statistics = statistics

    @cached_property
    def spec(self) -> ComponentSpec:
        return ComponentSpec(
            "front_end",
            "wpe",
            "WPE",
            "nara-wpe",
            full_version("nara-wpe", "nara_wpe", "wpe"),
            {
                "delay": self._delay,
                "iterations": self._iterations,
                "psd_context": self._context,
                **self._frame_settings,
                "statistics": self._statistics,
                "taps": self._taps,
            },
        )

    @cached_property
    def _wpe(self) -> Any:
        return import_extra("nara_wpe.wpe", "wpe").wpe_v8

    def _enhance(self, clip: Samples) -> NDArray[np.float64]:
        spectrum = self._spectrum.forward(clip)
        frames = spectrum.shape[1] - self._delay - (self._taps if self._statistics == "valid" else 0)
        if frames <= self._taps:
            raise AudioError(
                f"a clip of {clip.size / FRONT_END_RATE:.2f} s is too short for WPE with {self._taps} taps.",
                hint="Give fewer taps, or a smaller shift.",
            )
        dry = self._wpe(
            spectrum[:, None, :],
            taps=self._taps,
            delay=self._delay,
            iterations=self._iterations,
            psd_context=self._context,
            statistics_mode=self._statistics,
        )
        return self._spectrum.inverse(dry[:, 0, :], clip.size)
