"""Long sound in windows: what is read at once does not grow with its length."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from ...errors import AudioError, UsageError
from ..audio import resample
from ..records import Samples

RATE = 16_000
"""What audio language models take, in Hz."""
BLOCK_S = 10.0
"""Sound that is decoded at once, in s."""

AudioFile = Path | bytes
"""A sound file: its path, or its content."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a file says about itself: seconds, sample rate in Hz, channels."""

    duration_s: float
    rate: int
    channels: int


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a sound: (T,) float32 mono at its own sample rate, and where it begins, in s."""

    start_s: float
    samples: Samples
    rate: int

    @property
    def duration_s(self) -> float:
        """Seconds."""
        return self.samples.size / self.rate


def facts(sound: AudioFile, name: str = "") -> Facts:
    """Length, rate and channels, from the header alone. Raises `AudioError` naming it."""
    with _opened(sound, name) as file:
        return Facts(file.frames / file.samplerate, int(file.samplerate), int(file.channels))


def windows(sound: AudioFile, seconds: float, overlap: float = 0.0, *, name: str = "") -> Iterator[Window]:
    """The sound in windows of `seconds`, each beginning `seconds − overlap` after the one before.

    The last one is as long as what is left, and every sample is in at least one window. Several channels are averaged,
    as players and ffmpeg do. The file is read in blocks of 10 s: memory holds one window and one block, however long
    the sound is. A sound without samples gives nothing. Raises `UsageError` unless 0 ≤ overlap < seconds, `AudioError`
    naming the sound if it cannot be read or holds NaN or infinity.
    """
    if not (0 < seconds < math.inf and 0 <= overlap < seconds):
        raise UsageError(f"windows of {seconds:g} s with an overlap of {overlap:g} s are not possible.")
    with _opened(sound, name) as file:
        rate = int(file.samplerate)
        size = max(1, round(seconds * rate))
        step = max(1, size - round(overlap * rate))
        kept = np.zeros(0, dtype=np.float32)
        start = 0
        for block in _blocks(file, name or str(sound if isinstance(sound, Path) else "the sound")):
            kept = np.concatenate((kept, block)) if kept.size else block
            while kept.size > size:
                yield Window(start / rate, np.ascontiguousarray(kept[:size]), rate)
                kept = kept[step:].copy()
                start += step
        # The loop leaves more than the overlap: something that no window had yet.
        if kept.size:
            yield Window(start / rate, kept, rate)


def excerpt(sound: AudioFile, start_s: float, seconds: float, rate: int = RATE, *, name: str = "") -> Samples:
    """(T,) float32 mono at `rate` Hz: at most `seconds` of the sound from `start_s` on; the rest is not decoded."""
    if start_s < 0 or seconds <= 0:
        raise UsageError(f"{seconds:g} s from {start_s:g} s on cannot be cut out.")
    with _opened(sound, name) as file:
        own = int(file.samplerate)
        start = round(start_s * own)
        if start >= file.frames:
            return np.zeros(0, dtype=np.float32)
        file.seek(start)
        wanted = min(round(seconds * own), file.frames - start)
        parts = list(_blocks(file, name or "the sound", wanted))
    return resample(np.concatenate(parts), own, rate)


def _opened(sound: AudioFile, name: str) -> soundfile.SoundFile:
    label = name or (str(sound) if isinstance(sound, Path) else "the sound")
    if isinstance(sound, Path) and not sound.is_file():
        raise AudioError(f"{label} does not exist.", hint=f"Looked for {sound}.")
    try:
        return soundfile.SoundFile(sound if isinstance(sound, Path) else io.BytesIO(sound))
    except (soundfile.LibsndfileError, OSError, RuntimeError) as error:
        reason = str(error).rstrip(".")
        raise AudioError(f"{label} cannot be read as sound: {reason}.", hint="Replace or remove it.") from error


def _blocks(file: soundfile.SoundFile, name: str, frames: int = -1) -> Iterator[Samples]:
    size = max(1, int(BLOCK_S * file.samplerate))
    left = frames
    while left:
        try:
            data = file.read(size if left < 0 else min(size, left), dtype="float32", always_2d=True)
        except (soundfile.LibsndfileError, RuntimeError) as error:
            raise AudioError(f"{name} cannot be read as sound: {error}.", hint="Replace or remove it.") from error
        if not data.shape[0]:
            return
        if not np.isfinite(data).all():
            raise AudioError(f"{name} holds NaN or infinity.", hint="Remove it or export it again.")
        left -= data.shape[0] if left > 0 else 0
        yield np.ascontiguousarray(data[:, 0]) if data.shape[1] == 1 else data.mean(axis=1, dtype=np.float32)
