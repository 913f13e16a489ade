"""Long audio in windows: what is read at once does not grow with its length."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile

from ...errors import AudioError, UsageError
from ..audio import resample
from ..audio_files import open_audio, unreadable
from ..records import Samples

RATE = 16_000
"""What audio language models take, in Hz."""
BLOCK_S = 10.0
"""Audio that is decoded at once, in s."""

AudioFile = Path | bytes
"""An audio file: its path, or its content."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a file says about itself: seconds, sample rate in Hz, channels."""

    duration_s: float
    rate: int
    channels: int


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a clip: (T,) float32 mono at its own sample rate, and where it begins, in s."""

    start_s: float
    samples: Samples
    rate: int

    @property
    def duration_s(self) -> float:
        return self.samples.size / self.rate


def facts(audio: AudioFile, name: str = "") -> Facts:
    """Length, rate and channels, from the header alone. Raises `AudioError` naming it."""
    with _opened(audio, name) as file:
        return Facts(file.frames / file.samplerate, int(file.samplerate), int(file.channels))


def windows(audio: AudioFile, seconds: float, overlap: float = 0.0, *, name: str = "") -> Iterator[Window]:
    """The audio in windows of `seconds`, each beginning `seconds − overlap` after the one before.

    The last one is as long as what is left, and every sample is in at least one window. Several channels are averaged,
    as players and ffmpeg do. The file is read in blocks of 10 s: memory holds one window and one block, however long
    the audio is. A clip without samples gives nothing. Raises `UsageError` unless 0 ≤ overlap < seconds, `AudioError`
    naming the audio if it cannot be read or holds NaN or infinity.
    """
    if not (0 < seconds < math.inf and 0 <= overlap < seconds):
        raise UsageError(f"windows of {seconds:g} s with an overlap of {overlap:g} s are not possible.")
    with _opened(audio, name) as file:
        rate = int(file.samplerate)
        size = max(1, round(seconds * rate))
        step = max(1, size - round(overlap * rate))
        kept = np.zeros(0, dtype=np.float32)
        start = 0
        for block in _blocks(file, name or str(audio if isinstance(audio, Path) else "the audio")):
            kept = np.concatenate((kept, block)) if kept.size else block
            while kept.size > size:
                yield Window(start / rate, np.ascontiguousarray(kept[:size]), rate)
                kept = kept[step:].copy()
                start += step
        # The loop leaves more than the overlap: something that no window had yet.
        if kept.size:
            yield Window(start / rate, kept, rate)


def excerpt(audio: AudioFile, start_s: float, seconds: float, rate: int = RATE, *, name: str = "") -> Samples:
    """(T,) float32 mono at `rate` Hz: at most `seconds` of the audio from `start_s` on; the rest is not decoded."""
    if start_s < 0 or seconds <= 0:
        raise UsageError(f"{seconds:g} s from {start_s:g} s on cannot be cut out.")
    with _opened(audio, name) as file:
        own = int(file.samplerate)
        start = round(start_s * own)
        if start >= file.frames:
            return np.zeros(0, dtype=np.float32)
        file.seek(start)
        wanted = min(round(seconds * own), file.frames - start)
        parts = list(_blocks(file, name or "the audio", wanted))
    return resample(np.concatenate(parts), own, rate)


def _opened(audio: AudioFile, name: str) -> soundfile.SoundFile:
    label = name or (str(audio) if isinstance(audio, Path) else "the audio")
    return open_audio(audio, label)


def _blocks(file: soundfile.SoundFile, name: str, frames: int = -1) -> Iterator[Samples]:
    size = max(1, int(BLOCK_S * file.samplerate))
    left = frames
    while left:
        try:
            data = file.read(size if left < 0 else min(size, left), dtype="float32", always_2d=True)
        except (soundfile.LibsndfileError, RuntimeError) as error:
            raise unreadable(name, error) from error
        if not data.shape[0]:
            return
        if not np.isfinite(data).all():
            raise AudioError(f"{name} holds NaN or infinity.", hint="Remove it or export it again.")
        left -= data.shape[0] if left > 0 else 0
        yield np.ascontiguousarray(data[:, 0]) if data.shape[1] == 1 else data.mean(axis=1, dtype=np.float32)
