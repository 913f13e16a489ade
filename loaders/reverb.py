"""Speech in a room: convolution with an impulse response, aligned with the dry speech.

The response is scaled to unit energy, so a spectrally flat signal keeps its level; nothing else is done to the level of
reverberant speech but the peak limit that holds for clean speech too. The result is cut at the direct path, so that
speech stays aligned with its clean partner and its text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import UsageError
from .audio import check_samples
from .records import Samples

ONSET_RANGE_DB = 20.0
"""The direct path is the first sample within this of the peak."""

SMALLEST_FFT = 32_768


@dataclass(frozen=True, slots=True)
class PreparedRir:
    """An impulse response made ready for convolution; the explicit cache of its spectrum.

    `response` is (L,) float32 with unit energy, `onset_samples` the index of its direct path, `spectrum` its (F/2+1,)
    complex128 Fourier transform of size F = `fft_size`. F depends on L alone, so one spectrum serves clips of every
    length.
    """

    rir_id: str
    response: Samples
    onset_samples: int
    fft_size: int
    spectrum: NDArray[np.complex128]

    @property
    def nbytes(self) -> int:
        return int(self.response.nbytes + self.spectrum.nbytes)


def find_onset(rir: NDArray[np.floating]) -> int:
    """Index of the direct path of a (L,) impulse response: the first sample within 20 dB of the peak.

    Not the peak itself: a reflection, or several that add up, may be stronger than the direct sound. 0 if empty.

    >>> find_onset(np.array([0.0, 0.01, 0.3, 0.0, -1.0]))
    2
    """
    if rir.size == 0:
        return 0
    magnitude = np.abs(rir)
    return int(np.argmax(magnitude >= magnitude.max() * 10.0 ** (-ONSET_RANGE_DB / 20.0)))


def prepare_rir(rir: Samples, rir_id: str) -> PreparedRir:
    """Scale a (L,) float32 response to unit energy, find its direct path, transform it. Raises `AudioError`."""
    from scipy import fft

    check_samples(rir, f"the impulse response {rir_id!r}")
    wide = rir.astype(np.float64)
    wide /= math.sqrt(float(np.square(wide).sum()))
    # Rounded before use: what is stored is what is convolved.
    response = wide.astype(np.float32)
    # Two and a half times the response is near the least work per sample; smaller blocks also stay in the cache.
    size = SMALLEST_FFT
    while 2 * size < 5 * response.size:
        size *= 2
    spectrum = fft.rfft(response.astype(np.float64), size)
    return PreparedRir(rir_id, response, find_onset(response), size, spectrum)


def reverberate(samples: Samples, room: PreparedRir, *, keep_tail: bool = True) -> Samples:
    """(T,) float32 speech in a room, aligned with the dry speech: (T + L − 1 − onset,) float32, or (T,) without the
    tail.

    Full linear convolution by overlap-add in float64, rounded once at the end. Empty speech is an error.
    """
    from scipy import fft

    if samples.ndim != 1 or samples.size == 0:
        raise UsageError(f"speech of shape {samples.shape} cannot be put into a room.")
    overlap = room.response.size - 1
    step = room.fft_size - overlap
    onset = room.onset_samples
    length = samples.size + (overlap - onset if keep_tail else 0)
    out = np.empty(length, dtype=np.float32)
    # What the block before still rings; shorter than a step, so it never reaches over two blocks.
    carry = np.zeros(overlap)
    # Two blocks at a time: the transform takes them together, which is faster and changes no digit.
    pair = np.zeros((2, room.fft_size))
    for begin in range(0, samples.size, 2 * step):
        parts = [samples[at : at + step] for at in range(begin, min(begin + 2 * step, samples.size), step)]
        for row, part in zip(pair, parts, strict=False):
            row[: part.size] = part
            row[part.size :] = 0.0
        spectra = fft.rfft(pair[: len(parts)], axis=1)
        spectra *= room.spectrum
        blocks = fft.irfft(spectra, room.fft_size, axis=1, overwrite_x=True)
        for number, part in enumerate(parts):
            start, block = begin + number * step, blocks[number]
            block[:overlap] += carry
            carry = block[part.size : part.size + overlap]
            last = start + part.size == samples.size
            ready = block[: part.size + overlap] if last else block[:step]
            # What comes before the direct path is cut; the block begins at `start - onset` of the output.
            first = max(0, onset - start)
            stop = min(ready.size, length + onset - start)
            if stop > first:
                out[start - onset + first : start - onset + stop] = ready[first:stop]
    return out
