"""espeak-ng as a synthesizer: light, many languages, no weights."""

from __future__ import annotations

from ...errors import SynthesisError, UsageError, unknown_name
from ..audio import resample
from ..records import Samples
from .backends import SYNTHESIZERS, check_language
from .espeak_library import espeak_speech, espeak_version
from .protocol import SynthesizerSpec
from .speaking import has_speech
from .written import spoken_form

_ACCENTS = {
    **{language: (language,) for language in SYNTHESIZERS["espeak"].languages},
    "en": ("en-us", "en"),
    "es": ("es", "es-419"),
    "pt": ("pt-br", "pt"),
}
_VARIANTS = ("f1", "f2", "f3", "f4", "m1", "m2", "m3", "m7")
"""Variants of timbre that stay intelligible; the library's whispering and robot variants are left out."""


class EspeakSynthesizer:
    """espeak-ng through `espeakng-loader` (extra `squtr[espeak]`).

    A voice is an accent and a variant, for example `en-us+f3` or `es-419+m1`. `words_per_minute` from 80 to 450.
    Languages that its formants do not make intelligible (tones: zh, vi, th) or of which it cannot read the script (ja,
    ar, he, fa: no dictionary, unwritten vowels) are refused.
    """

    def __init__(self, *, words_per_minute: int = 155) -> None:
        if not 80 <= words_per_minute <= 450:
            raise UsageError(f"words_per_minute is {words_per_minute}.", hint="espeak-ng speaks 80 to 450 a minute.")
        self.words_per_minute = words_per_minute

    @property
    def spec(self) -> SynthesizerSpec:
        return SynthesizerSpec(
            "espeak", "espeak-ng", espeak_version(), settings={"words_per_minute": self.words_per_minute}
        )

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(_ACCENTS)

    def voices(self, language: str) -> tuple[str, ...]:
        check_language("espeak", language)
        return tuple(sorted(f"{accent}+{variant}" for accent in _ACCENTS[language] for variant in _VARIANTS))

    def synthesize(self, text: str, *, voice: str, language: str, seed: int = 0) -> Samples:
        """`seed` decides the breath noise of some variants."""
        known = self.voices(language)
        if voice not in known:
            raise unknown_name(f"espeak voice for {language!r}", voice, known)
        if not has_speech(text):
            raise SynthesisError(f"there is nothing to say in {text!r}.", hint="Give a text with words.")
        spoken = spoken_form(text, language)
        samples, rate = espeak_speech(spoken, voice, words_per_minute=self.words_per_minute, pitch=50, seed=seed)
        if not samples.any():
            raise SynthesisError(f"espeak-ng gave nothing for {text!r}.", hint="Give a text with words.")
        out = resample(samples, rate)
        # Resampling can overshoot full scale by a little.
        peak = float(abs(out).max())
        return out / peak if peak > 1.0 else out
