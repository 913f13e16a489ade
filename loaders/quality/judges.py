"""What a judge of synthesized speech is: a model that gets a clip and its text and gives a verdict."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Protocol

import soundfile

from ..audio import to_pcm16
from ..records import SAMPLE_RATE, Samples
from .verdicts import Opinion


@dataclass(frozen=True, slots=True)
class Clip:
    """What a judge gets. `sha256` is that of the clip's samples, `spoken_text` the text as the engine got it."""

    samples: Samples
    sha256: str
    text: str
    spoken_text: str
    language: str


class Judge(Protocol):
    @property
    def name(self) -> str: ...

    def judge(self, clip: Clip) -> Opinion: ...


def wav_bytes(samples: Samples) -> bytes:
    """A 16-bit mono WAV file of (T,) samples at `SAMPLE_RATE`."""
    buffer = io.BytesIO()
    soundfile.write(buffer, to_pcm16(samples, "the clip"), SAMPLE_RATE, format="WAV", subtype="PCM_16")
    return buffer.getvalue()
