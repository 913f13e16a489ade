"""Reading, checking, resampling and storing audio."""

from __future__ import annotations

import hashlib
import io
import math
import os
from pathlib import Path
from typing import Literal

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from ..errors import AudioError, UsageError
from .audio_files import open_audio, unreadable
from .records import SAMPLE_RATE, Samples

SILENCE_PEAK = 1e-5
"""At or below this peak (−100 dBFS, under one 16-bit step) audio counts as silent."""


def check_samples(samples: Samples, name: str) -> Samples:
    """`samples`, if they are a usable (T,) signal.

    Raises `AudioError` naming `name` if they are empty, not one-dimensional, not finite, silent, or constant (DC only).
    """
    if samples.ndim != 1:
        raise AudioError(f"{name} has shape {samples.shape} instead of (T,).", hint="Choose one channel.")
    if samples.size == 0:
        raise AudioError(f"{name} has no samples.", hint="Remove it or record it again.")
    # Both are NaN if a sample is.
    lowest, highest = float(samples.min()), float(samples.max())
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        first = int(np.flatnonzero(~np.isfinite(samples))[0])
        raise AudioError(f"{name} holds NaN or infinity at sample {first}.", hint="Remove it or export it again.")
    if max(abs(lowest), abs(highest)) <= SILENCE_PEAK:
        raise AudioError(f"{name} is silent.", hint="Remove it or record it again.")
    if highest - lowest <= SILENCE_PEAK:
        raise AudioError(f"{name} is a constant {highest:g} (DC only).", hint="Remove it or record it again.")
    return samples


MEAN: Literal["mean"] = "mean"
Channel = int | Literal["mean"] | None
"""Which channel of several is taken (from 0), or their mean; None takes none, and refuses several."""
LEAST_MEAN = 0.1
"""The least energy that the mean of channels may keep of theirs; below it they cancel."""


def parse_channel(text: str | int, what: str = "channel") -> int | Literal["mean"]:
    """A channel as it is written. Raises `UsageError` calling it `what`.

    >>> parse_channel("1"), parse_channel("mean")
    (1, 'mean')
    """
    if text == MEAN:
        return MEAN
    if isinstance(text, bool) or not str(text).isascii() or not str(text).isdecimal():
        raise UsageError(f"{what} is {text!r}.", hint="Write a number from 0 on, or mean.")
    return int(text)


def decode_audio(
    content: bytes | Path, name: str, *, channel: Channel = None, channel_hint: str = "Choose one explicitly"
) -> tuple[Samples, int]:
    """Samples (T,) float32 and the sample rate in Hz of audio in any format that `open_audio` reads.

    `content` is a whole file or its path. Of audio with several channels, `channel` (from 0) has to name one, or ask
    for their mean, which is refused where they cancel. Raises `AudioError` naming `name`; the signal itself is not
    checked. `channel_hint` says how a user chooses.
    """
    with open_audio(content, name) as file:
        rate = int(file.samplerate)
        try:
            data = file.read(dtype="float32", always_2d=True)
        except (soundfile.LibsndfileError, OSError, RuntimeError) as error:
            raise unreadable(name, error) from error
    channels = data.shape[1]
    if channels == 1:
        channel = 0
    if channel is None:
        raise AudioError(f"{name} has {channels} channels.", hint=f"{channel_hint}, from 0 to {channels - 1}.")
    if channel == MEAN:
        return _mean(data, name), rate
    if not 0 <= channel < channels:
        raise AudioError(f"{name} has {channels} channels, none numbered {channel}.", hint="Count from 0.")
    return np.ascontiguousarray(data[:, channel]), int(rate)


def _mean(data: Samples, name: str) -> Samples:
    """(T,) float32, the mean of (T, channels). Raises `AudioError` where channels cancel."""
    mean: Samples = data.mean(axis=1, dtype=np.float64).astype(np.float32)
    energy = float(np.square(data, dtype=np.float64).mean())
    kept = float(np.square(mean, dtype=np.float64).mean()) if mean.size else 0.0
    # One channel that is silent leaves 1 / channels of the mean energy: that is no cancelling.
    if kept < min(LEAST_MEAN, 0.5 / data.shape[1]) * energy:
        raise AudioError(
            f"the channels of {name} cancel: their mean keeps {kept / energy:.1%} of their energy.",
            hint="Choose one channel by its number.",
        )
    return mean


def decode_hashed(content: bytes, name: str) -> tuple[Samples, int, str]:
    """Samples (T,) float32, rate in Hz and digest (see `pcm_sha256`) of a mono file whose samples fit 16 bits."""
    with open_audio(content, name) as file:
        plain = file.subtype == "PCM_16" and file.channels == 1
        rate = int(file.samplerate)
        try:
            pcm = file.read(dtype="int16") if plain else None
        except (soundfile.LibsndfileError, OSError, RuntimeError) as error:
            raise unreadable(name, error) from error
    if pcm is None:
        samples, rate = decode_audio(content, name)
        return samples, rate, _digest(to_pcm16(samples, name), rate)
    scaled = pcm.astype(np.float32)
    scaled *= np.float32(1 / 32768)
    return scaled, rate, _digest(pcm, rate)


def _digest(pcm: NDArray[np.int16], rate: int) -> str:
    digest = hashlib.sha256(f"{rate}\n".encode())
    digest.update(np.ascontiguousarray(pcm).data)
    return digest.hexdigest()


def resample(samples: Samples, rate: int, target: int = SAMPLE_RATE) -> Samples:
    """(T,) float32 at `rate` Hz to (ceil(T·target/rate),) at `target` Hz, by soxr at its highest quality."""
    if rate <= 0 or target <= 0:
        raise UsageError(f"cannot resample from {rate} Hz to {target} Hz.")
    if rate == target or samples.size == 0:
        return samples
    length = -(-samples.size * target // rate)
    out = soxr.resample(samples, rate, target, quality="VHQ")
    if out.size < length:
        out = np.pad(out, (0, length - out.size))
    return np.ascontiguousarray(out[:length], dtype=np.float32)


def to_pcm16(samples: Samples, name: str) -> NDArray[np.int16]:
    """(T,) float32 to 16-bit integers, rounded half to even. Raises `AudioError` where it would have to clip."""
    # Exact in float32 too: the factor is a power of two.
    scaled = samples * np.float32(32768.0)
    np.rint(scaled, out=scaled)
    # Both are NaN if a sample is.
    lowest, highest = (float(scaled.min()), float(scaled.max())) if scaled.size else (0.0, 0.0)
    if not (math.isfinite(lowest) and math.isfinite(highest)):
        raise AudioError(f"{name} holds NaN or infinity and cannot be stored.")
    if highest > 32767 or lowest < -32768:
        raise AudioError(f"{name} peaks at {float(np.abs(samples).max()):.4f} and would clip.", hint="Lower its gain.")
    whole: NDArray[np.int16] = scaled.astype(np.int16)
    return whole


def encode_flac(samples: Samples, name: str, rate: int = SAMPLE_RATE) -> bytes:
    """A 16-bit mono FLAC file of (T,) float32 samples. Raises `AudioError` where it would have to clip."""
    pcm = to_pcm16(samples, name)
    if not hasattr(os, "memfd_create"):
        buffer = io.BytesIO()
        _write_flac(buffer, pcm, rate)
        return buffer.getvalue()
    # A file in memory: libsndfile writes it by itself, where a BytesIO calls back into Python, which holds threads up.
    descriptor = os.memfd_create("squtr-flac")
    try:
        _write_flac(descriptor, pcm, rate)
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    finally:
        os.close(descriptor)


def _write_flac(target: int | io.BytesIO, pcm: NDArray[np.int16], rate: int) -> None:
    # Compression level 5 of 8 as libsndfile counts it (0.0 to 1.0): smaller gains nothing, larger costs time.
    soundfile.write(
        target, pcm, rate, format="FLAC", subtype="PCM_16", compression_level=5 / 8, closefd=not isinstance(target, int)
    )


def pcm_sha256(audio: bytes, name: str) -> str:
    """The sha256 of the decoded 16-bit samples, which does not depend on the FLAC encoder's version."""
    try:
        data, rate = soundfile.read(io.BytesIO(audio), dtype="int16")
    except (soundfile.LibsndfileError, RuntimeError) as error:
        raise AudioError(f"{name} cannot be read as audio: {error}.") from error
    return _digest(data, int(rate))
