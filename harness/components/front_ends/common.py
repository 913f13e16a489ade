"""What all front ends share: which clips they take, what they must give back, and a spectrum with its inverse."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....errors import AudioError, UsageError, missing_extra
from ....loaders.in_order import SIGNAL_PACKAGES, import_before_threads
from ....loaders.records import Samples
from ...protocols import ComponentSpec, Setting
from ..transcribers.common import clip_fault

FRONT_END_RATE = 16_000
PEAK_LIMIT = 1.0
"""A front end changes the level of its output only where the peak would pass this: then the whole clip is scaled."""


Run = Callable[[Samples], NDArray[np.float32]]


class Denoiser(Protocol):
    @property
    def title(self) -> str:
        """Its name in tables."""
        ...

    @property
    def model(self) -> str:
        """Whose weights it has."""
        ...

    @property
    def revision(self) -> str: ...

    @property
    def rate(self) -> int: ...

    @property
    def settings(self) -> Mapping[str, Setting]:
        """What else decides its output."""
        ...

    def load(self) -> Run: ...


def enhance_each(
    clips: Sequence[Samples], work: Callable[[Samples], NDArray[np.floating]], *, name: str, threads: int = 1
) -> list[Samples]:
    """`work` on each clip, in order: (T,) float32 to (T,) float32, finite, with a peak of at most `PEAK_LIMIT`.

    Zeros stay as they are. Clips are worked on alone. Raises `AudioError` that names the number of the clip (from 1).
    """

    def one(numbered: tuple[int, Samples]) -> Samples:
        number, clip = numbered
        fault = clip_fault(clip)
        if fault:
            raise AudioError(
                f"{name} cannot work on clip {number} of {len(clips)}: {fault}.", hint="Remove it or record it again."
            )
        clip = np.ascontiguousarray(clip, dtype=np.float32)
        if not clip.any():
            return clip.copy()
        try:
            out = work(clip)
        except AudioError as error:
            raise AudioError(f"clip {number} of {len(clips)}: {error.message}", hint=error.hint) from error
        return _checked(out, clip.size, f"{name} made of clip {number} of {len(clips)}")

    jobs = list(enumerate(clips, start=1))
    if threads == 1 or len(jobs) < 2:
        return [one(job) for job in jobs]
    import_before_threads(*SIGNAL_PACKAGES)
    with ThreadPoolExecutor(threads, thread_name_prefix="front-end") as pool:
        return list(pool.map(one, jobs))


def _checked(out: NDArray[np.floating], length: int, made: str) -> Samples:
    if out.shape != (length,):
        raise AudioError(f"{made} a signal of shape {out.shape} instead of ({length},).")
    if not np.isfinite(out).all():
        first = int(np.flatnonzero(~np.isfinite(out))[0])
        raise AudioError(f"{made} a signal with NaN or infinity at sample {first}.", hint="Use another front end.")
    peak = float(np.abs(out).max())
    if peak > PEAK_LIMIT:
        out = out * (PEAK_LIMIT / peak)
    # After the rounding too: a float32 next to the limit may lie above it.
    return np.clip(out.astype(np.float32), -PEAK_LIMIT, PEAK_LIMIT)


@dataclass(frozen=True)
class ShortTimeSpectrum:
    """A short-time Fourier transform with a Hann window, and its inverse, which gives the signal back unchanged.

    `size` is the length of the window and of the transform, `shift` the step, both in samples; `shift` is at most half
    of `size`. Frames reach over both ends of the clip, so its first and last samples count as much as all others.
    """

    size: int
    shift: int

    def __post_init__(self) -> None:
        if self.size < 16 or not 1 <= self.shift <= self.size // 2:
            raise UsageError(
                f"a spectrum with size {self.size} and shift {self.shift} is not possible.",
                hint="Give a size of at least 16 and a shift of at most half of it, for example 512 and 128.",
            )

    @cached_property
    def _transform(self) -> Any:
        from scipy import signal

        window = signal.get_window("hann", self.size, fftbins=True)
        return signal.ShortTimeFFT(window, self.shift, FRONT_END_RATE, fft_mode="onesided")

    def forward(self, clip: Samples) -> NDArray[np.complex128]:
        """(T,) to (size // 2 + 1, frames)."""
        wide = clip.astype(np.float64)
        # The transform refuses what is shorter than half a window.
        spectrum: NDArray[np.complex128] = self._transform.stft(np.pad(wide, (0, max(0, self.size - wide.size))))
        return spectrum

    def inverse(self, spectrum: NDArray[np.complex128], length: int) -> NDArray[np.float64]:
        """The (`length`,) signal of a spectrum that `forward` made of a clip of that length, or of a changed one."""
        signal: NDArray[np.float64] = self._transform.istft(spectrum, k1=max(length, self.size))
        return signal[:length]

    def inner(self, length: int) -> slice:
        """The frames that lie within a clip of `length`; all if none does."""
        transform = self._transform
        padded = max(length, self.size)
        first = transform.lower_border_end[1] - transform.p_min
        stop = transform.upper_border_begin(padded)[1] - transform.p_min
        return slice(first, stop) if length >= self.size and stop > first else slice(None)


def full_version(distribution: str, module: str, extra: str) -> str:
    """The version of an installed distribution; raises `MissingExtraError` if it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError as error:
        raise missing_extra(module, extra) from error


def import_extra(module: str, extra: str) -> Any:
    """An optional module; raises `MissingExtraError` if its package is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        root = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != root:
            raise
        raise missing_extra(root, extra) from error


def require_threads(threads: int) -> int:
    if threads < 1:
        raise UsageError(f"a front end needs threads of at least 1, not {threads}.")
    return threads


def require_between(lowest: float, highest: float, **numbers: float) -> None:
    """Raises `UsageError` for a number outside [`lowest`, `highest`], or NaN."""
    for name, value in numbers.items():
        if not lowest <= value <= highest:
            raise UsageError(f"{name} lies between {lowest:g} and {highest:g}, not {value!r}.")


class SpectrumFrontEnd(ABC):
    """A front end at 16 kHz that works on a spectrum with frames of `size` samples every `shift`."""

    sample_rate = FRONT_END_RATE

    def __init__(self, *, size: int = 512, shift: int = 128, threads: int = 1) -> None:
        self._spectrum = ShortTimeSpectrum(size, shift)
        self._threads = require_threads(threads)

    @property
    @abstractmethod
    def spec(self) -> ComponentSpec: ...

    def enhance(self, clips: Sequence[Samples]) -> list[Samples]:
        """One clip per clip, (T,) float32 at 16 kHz. Raises `AudioError` for one that cannot be worked on."""
        return enhance_each(clips, self._enhance, name=self.spec.name, threads=self._threads)

    @abstractmethod
    def _enhance(self, clip: Samples) -> NDArray[np.float64]: ...

    @property
    def _frame_settings(self) -> dict[str, Setting]:
        return {
            "peak_limit": PEAK_LIMIT,
            "sample_rate": FRONT_END_RATE,
            "shift": self._spectrum.shift,
            "size": self._spectrum.size,
        }
