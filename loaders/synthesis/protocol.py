"""What a speech synthesizer is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..records import Samples


@dataclass(frozen=True, slots=True)
class SynthesizerSpec:
    """Everything that decides what a synthesizer returns; it enters recipes and cards.

    `revision` is a version, a commit or a sha256; `license` the SPDX identifier under which speech may be passed on.
    """

    engine: str
    model: str
    revision: str
    license: str = ""
    settings: Mapping[str, str | int | float | bool] = field(default_factory=dict)


class Synthesizer(Protocol):
    """Text to clean speech. Cheap to construct and to pickle: libraries and weights load at first use."""

    @property
    def spec(self) -> SynthesizerSpec: ...

    @property
    def languages(self) -> tuple[str, ...]: ...

    def voices(self, language: str) -> tuple[str, ...]:
        """Names of its voices, sorted. Raises `UsageError`, which says which engine to use, for another language."""
        ...

    def synthesize(self, text: str, *, voice: str, language: str, seed: int = 0) -> Samples:
        """`text` spoken by `voice`: (T,) float32 at `SAMPLE_RATE`, peak at most 1.

        The same arguments give the same samples on the same machine. Raises `SynthesisError` for text without anything
        to say (empty, only punctuation or emoji), `UnknownNameError` for an unknown voice, `UsageError` for a language
        that the engine does not speak.
        """
        ...
