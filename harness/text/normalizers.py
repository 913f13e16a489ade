"""Text normalisers: named, versioned, recorded in every result.

`default` is right for each language (rules for English, Chinese and Spanish, a safe base for all others), `raw` changes
nothing but outer blanks, `whisper` is OpenAI's normaliser as `transformers` ships it. All are idempotent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from ...errors import missing_extra, unknown_name
from . import base
from .english import english_step
from .languages import primary_language
from .spanish import spanish_step

NORMALIZERS = ("default", "raw", "whisper")
DEFAULT_VERSION = "1"
"""Raised whenever `default` would give another text for the same input."""
_CACHE_SIZE = 65_536


@dataclass(frozen=True, slots=True)
class Normalizer:
    """A named, versioned function from text to text. Two with equal name, version and language give equal texts."""

    name: str
    version: str
    language: str
    _apply: Callable[[str], str] = field(repr=False, compare=False)

    def __call__(self, text: str) -> str:
        """The normalised text; "" for a blank one."""
        return self._apply(text)


def load_normalizer(name: str, language: str) -> Normalizer:
    """The normaliser called `name` ("default", "raw", "whisper") for a language code.

    Raises `UnknownNameError` for an unknown name or language, `MissingExtraError` for `whisper` without transformers.

    >>> load_normalizer("default", "en")("Well-known CAFÉ’s!").split()[:2]
    ['well', 'known']
    """
    if name not in NORMALIZERS:
        raise unknown_name("normalizer", name, NORMALIZERS)
    return _load(name, primary_language(language))


@lru_cache(maxsize=64)
def _load(name: str, language: str) -> Normalizer:
    if name == "raw":
        return Normalizer("raw", "1", language, str.strip)
    if name == "whisper":
        return _whisper(language)
    step = _STEPS.get(language, base.base_step)
    cached = lru_cache(maxsize=_CACHE_SIZE)(lambda text: base.to_fixpoint(step, text))
    return Normalizer("default", DEFAULT_VERSION, language, cached)


_STEPS: dict[str, Callable[[str], str]] = {"en": english_step, "es": spanish_step}


def _whisper(language: str) -> Normalizer:
    try:
        import transformers
        from transformers.models.whisper.english_normalizer import BasicTextNormalizer, EnglishTextNormalizer
    except ImportError as error:
        raise missing_extra("transformers", "torch") from error
    # EnglishTextNormalizer carries no annotations; both are callables from str to str.
    normalize: Callable[[str], str] = (
        EnglishTextNormalizer({}) if language == "en" else BasicTextNormalizer()  # type: ignore[no-untyped-call]
    )
    return Normalizer(
        "whisper", f"transformers-{transformers.__version__}", language, lambda text: str(normalize(text))
    )
