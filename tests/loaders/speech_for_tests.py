"""An engine that hums and a transcriber that reads the hum: speech without weights."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from squtr.errors import SynthesisError, UsageError
from squtr.harness.protocols import Transcript
from squtr.loaders.audio import resample
from squtr.loaders.records import SAMPLE_RATE, Query, Samples
from squtr.loaders.synthesis.candidates import Rating
from squtr.loaders.synthesis.protocol import SynthesizerSpec


def hum(text: str, seed: int = 0, seconds_per_unit: float = 0.07) -> Samples:
    """Noise shaped into syllables, as long as `text` takes to say: passes the gate."""
    units = max(4, sum(c.isalnum() for c in text))
    seconds = units * seconds_per_unit
    n = int(seconds * SAMPLE_RATE)
    key = int.from_bytes(hashlib.sha256(f"{seed} {text}".encode()).digest()[:8], "big")
    noise = np.random.default_rng(key).normal(size=n)
    t = np.arange(n) / SAMPLE_RATE
    shape = np.sin(np.pi * t / seconds) ** 2 * (0.7 + 0.3 * np.sin(2 * np.pi * 5 * t))
    out = noise * shape
    return np.asarray(0.5 * out / np.abs(out).max(), dtype=np.float32)


class HummingSynthesizer:
    """Voices a, b, c in every language but "xx"; text with "unspeakable" fails. Counts what it is asked."""

    def __init__(self, version: str = "1") -> None:
        self.version = version
        self.asked: list[tuple[str, str, int]] = []

    @property
    def spec(self) -> SynthesizerSpec:
        return SynthesizerSpec("hum", "hum", self.version, "CC0-1.0")

    @property
    def languages(self) -> tuple[str, ...]:
        return ("en", "es", "zh")

    def voices(self, language: str) -> tuple[str, ...]:
        if language == "xx":
            raise UsageError("the synthesizer 'hum' does not speak 'xx'.")
        return ("a", "b", "c")

    def synthesize(self, text: str, *, voice: str, language: str, seed: int = 0) -> Samples:
        self.asked.append((text, voice, seed))
        if "unspeakable" in text:
            raise SynthesisError(f"{text!r} is unspeakable.")
        return hum(f"{text} {voice}", seed)


class ListTranscriber:
    """Answers from a list, then "" for ever; remembers how many clips came in each call."""

    sample_rate = 16_000

    def __init__(self, answers: Sequence[str | Transcript]) -> None:
        self.answers = list(answers)
        self.calls: list[int] = []

    def transcribe(self, clips: Sequence[Samples], *, language: str) -> list[Transcript]:
        self.calls.append(len(clips))
        out = []
        for clip in clips:
            assert clip.dtype == np.float32
            answer = self.answers.pop(0) if self.answers else ""
            out.append(answer if isinstance(answer, Transcript) else Transcript(answer))
        return out


def word_rate(reference: str, hypothesis: str, language: str) -> float:
    """Share of the reference's words that are not in their place."""
    words, other = reference.split(), hypothesis.split()
    return sum(i >= len(other) or other[i] != w for i, w in enumerate(words)) / len(words)


def as_it_is(text: str, language: str) -> str:
    return text


def rating(*answers: str | Transcript) -> Rating:
    return Rating(ListTranscriber(answers), "list", word_rate, as_it_is)


def queries(n: int, language: str = "en", subset: str = "tiny") -> list[Query]:
    return [Query(f"q{i}", subset, language, f"what is the answer to number {'abcdefghij'[i]}") for i in range(n)]


__all__ = ["HummingSynthesizer", "ListTranscriber", "as_it_is", "hum", "queries", "rating", "resample", "word_rate"]
