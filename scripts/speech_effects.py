"""Other ways to say and to record a piece of speech: slower, higher, slurred, over the telephone, with a hole in it.

They vary the little speech that an embedded set can carry. Slurred or slowed speech made here is *simulated*: it says
nothing about how a system serves people with a speech disorder.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from squtr.errors import UsageError
from squtr.loaders.audio import resample
from squtr.loaders.records import SAMPLE_RATE, Samples

_FRAME_S = 0.032
_SEARCH_S = 0.012


def stretch(samples: Samples, factor: float, rate: int = SAMPLE_RATE) -> Samples:
    """(T,) float32 speech made `factor` times as long (0.5 to 3) at the same pitch: (round(T·factor),).

    By overlap-add of frames of 32 ms that are taken where they continue best what came before (WSOLA: Verhelst and
    Roelands, ICASSP 1993). Raises `UsageError` for a factor outside; shorter speech than a frame is returned as it is.
    """
    if not 0.5 <= factor <= 3.0:
        raise UsageError(f"a stretch by {factor:g} is not possible.", hint="Give 0.5 to 3.")
    frame = 2 * round(_FRAME_S * rate / 2)
    if factor == 1.0 or samples.size <= frame:
        return samples
    hop, search = frame // 2, round(_SEARCH_S * rate)
    length = round(samples.size * factor)
    window = np.hanning(frame + 1)[:-1]
    source = np.pad(samples.astype(np.float64), (search, frame + hop + 2 * search))
    out = np.zeros(length + frame + hop)
    taken = 0
    for at in range(0, length + hop, hop):
        wanted = min(round(at / factor), samples.size)
        if at:
            expected = source[search + taken + hop : search + taken + hop + frame]
            region = source[wanted : wanted + 2 * search + frame]
            shift = int(np.argmax(np.correlate(region, expected, "valid"))) - search
            taken = min(max(0, wanted + shift), samples.size)
        out[at : at + frame] += source[search + taken : search + taken + frame] * window
    # The first half frame has one window only; the others add up to one.
    out[:hop] /= np.maximum(window[:hop], 0.1)
    return np.ascontiguousarray(out[:length], dtype=np.float32)


def shift_pitch(samples: Samples, semitones: float, rate: int = SAMPLE_RATE) -> Samples:
    """(T,) speech of a higher or lower voice (−12 to 12 semitones), as long as before within a few samples.

    Formants move along, as for a smaller or a larger head. Raises `UsageError` for a shift outside.
    """
    if not -12 <= semitones <= 12:
        raise UsageError(f"a shift by {semitones:g} semitones is not possible.", hint="Give −12 to 12.")
    if semitones == 0 or samples.size == 0:
        return samples
    factor = 2.0 ** (semitones / 12.0)
    return stretch(resample(samples, round(rate * factor), rate), factor, rate)


def slur(samples: Samples, amount: float, rate: int = SAMPLE_RATE) -> Samples:
    """(T,) speech of imprecise articulation: its short-time spectrum smeared over time and frequency, high bands weak.

    `amount` from 0 (as it is) to 1 (hardly to be understood). The level stays. Raises `UsageError` for another amount.
    """
    if not 0.0 <= amount <= 1.0:
        raise UsageError(f"an amount of {amount:g} is not possible.", hint="Give 0 to 1.")
    size = 512
    if amount == 0.0 or samples.size < size:
        return samples
    from scipy import signal

    hop = size // 4
    transform = signal.ShortTimeFFT(signal.windows.hann(size, sym=False), hop=hop, fs=rate)
    spectrum = transform.stft(samples.astype(np.float64))
    magnitude = np.abs(spectrum)
    smooth = _running_mean(
        _running_mean(magnitude, 1 + 2 * round(2 + 3 * amount), 0), _odd(0.16 * amount, hop, rate), 1
    )
    hz = np.fft.rfftfreq(size, 1 / rate)[:, None]
    fall = 1.0 / np.sqrt(1.0 + (hz / (6000.0 - 3800.0 * amount)) ** 4)
    wanted = (magnitude * (1 - amount) + smooth * amount) * fall
    phase = np.where(magnitude > 0, spectrum / np.maximum(magnitude, 1e-12), 0)
    out = transform.istft(wanted * phase, k1=samples.size)
    before, after = float(np.sqrt(np.mean(samples.astype(np.float64) ** 2))), float(np.sqrt(np.mean(out**2)))
    return np.ascontiguousarray(out * (before / after if after > 0 else 1.0), dtype=np.float32)


def _odd(seconds: float, hop: int, rate: int) -> int:
    return 1 + 2 * math.ceil(seconds * rate / hop / 2)


def _running_mean(values: NDArray[np.float64], size: int, axis: int) -> NDArray[np.float64]:
    from scipy import ndimage

    out: NDArray[np.float64] = ndimage.uniform_filter1d(values, size, axis=axis, mode="nearest")
    return out


def telephone(samples: Samples, rate: int = SAMPLE_RATE) -> Samples:
    """(T,) speech as a narrow-band telephone line passes it: 300 to 3400 Hz (ITU-T G.712's pass band)."""
    if samples.size == 0:
        return samples
    from scipy import signal

    sections = signal.butter(6, (300.0, 3400.0), "bandpass", fs=rate, output="sos")
    return np.ascontiguousarray(signal.sosfilt(sections, samples.astype(np.float64)), dtype=np.float32)


def hole(samples: Samples, start_s: float, seconds: float, rate: int = SAMPLE_RATE) -> Samples:
    """(T,) a copy with silence from `start_s` on, as where a connection drops out; faded over 2 ms on both sides."""
    start, stop = round(start_s * rate), round((start_s + seconds) * rate)
    if not 0 <= start < stop <= samples.size:
        raise UsageError(f"a hole of {seconds:g} s at {start_s:g} s is not within the clip.")
    out = samples.copy()
    fade = min(round(0.002 * rate), (stop - start) // 2)
    ramp = np.linspace(1.0, 0.0, fade, dtype=np.float32)
    out[start : start + fade] *= ramp
    out[start + fade : stop - fade] = 0.0
    out[stop - fade : stop] *= ramp[::-1]
    return out
