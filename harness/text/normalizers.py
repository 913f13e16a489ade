"""Text normalizers: named, versioned, recorded in every result.

`default` has rules for English, Chinese and Spanish, and a safe base for others; `raw` removes outer blanks only;
`whisper` is OpenAI's; `squtr-compat` is the published scoring of SQuTR (arXiv 2602.12783), quirks included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal

from ...errors import UsageError, missing_extra, unknown_name
from .base import base_step, to_fixpoint
from .chinese import chinese_step
from .english import english_step
from .languages import CHINESE, primary_language
from .script import fold_script, folding_versions
from .spanish import spanish_step
from .squtr_compat import squtr_compat

NORMALIZERS = ("default", "raw", "whisper", "squtr-compat")
DEFAULT_VERSION = "1"
"""Raised whenever `default` would give another text for the same input."""
_OPTIONS = ("script", "accents", "erhua", "interjections")
_CACHE_SIZE = 65_536


@dataclass(frozen=True, slots=True)
class Normalizer:
    """A named, versioned function from text to text; options that differ from the standard are part of the name."""

    name: str
    version: str
    language: str
    _apply: Callable[[str], str] = field(repr=False, compare=False)
    _key: tuple[str, ...] = field(repr=False, compare=False)

    def __reduce__(self) -> tuple[Callable[..., Normalizer], tuple[str, ...]]:
        # Rules and their memory stay in the process; a copy loads them there.
        return _load, self._key

    def __call__(self, text: str) -> str:
        return self._apply(text)


def load_normalizer(
    name: str,
    language: str,
    *,
    script: Literal["fold", "strict"] = "fold",
    accents: Literal["keep", "fold"] = "keep",
    erhua: Literal["keep", "drop"] = "keep",
    interjections: Literal["keep", "drop"] = "keep",
) -> Normalizer:
    """The normalizer called `name` ("default", "raw", "whisper", "squtr-compat") for a language code.

    Options of `default`: `script="strict"` keeps traditional and simplified Chinese apart, `accents="fold"` makes
    Spanish á and a the same (ñ never n). `erhua="drop"` takes the Chinese suffix 儿 away (花儿 = 花, not of 女儿),
    `interjections="drop"` 呃, 嗯, 啊 and the like. `default` and `raw` are idempotent; `default` remembers what it has
    seen. Raises `UnknownNameError` for an unknown name or language, `UsageError` for an option that does not apply,
    `MissingExtraError` for `whisper` and `squtr-compat` without their libraries.

    >>> load_normalizer("default", "en")("It’s twenty-one pounds!")
    'it is 21 pound'
    >>> load_normalizer("default", "zh")("百分之五十的臺灣用戶")
    '50%的台湾用户'
    >>> load_normalizer("default", "zh", script="strict")("臺灣")
    '臺灣'
    >>> load_normalizer("default", "es")("¿Treinta y seis años?")
    '36 año'
    >>> load_normalizer("default", "zh", erhua="drop").name
    'default(erhua=drop)'
    """
    if name not in NORMALIZERS:
        raise unknown_name("normalizer", name, NORMALIZERS)
    primary = primary_language(language)
    chosen: list[str] = []
    for option, value, choices, applies in (
        ("script", script, ("fold", "strict"), primary in CHINESE),
        ("accents", accents, ("keep", "fold"), primary == "es"),
        ("erhua", erhua, ("keep", "drop"), primary in CHINESE),
        ("interjections", interjections, ("keep", "drop"), primary in CHINESE),
    ):
        if value not in choices:
            raise unknown_name(f"value of {option}", value, choices)
        if value == choices[0]:
            continue
        if name != "default" or not applies:
            raise UsageError(
                f"normalizer {name!r} has no option {option}={value} for language {language!r}.",
                hint="accents= is for Spanish, script=, erhua=, interjections= for Chinese, all for 'default' only.",
            )
        chosen.append(f"{option}={value}")
    return _load(name, primary, *chosen)


def recorded_normalizer(name: str, language: str) -> Normalizer:
    """The normalizer whose name a result holds, options included. Raises as `load_normalizer` does.

    >>> recorded_normalizer("default(script=strict)", "zh")("臺灣")
    '臺灣'
    """
    plain, _, options = name.removesuffix(")").partition("(")
    chosen: dict[str, Any] = dict(option.split("=", 1) for option in options.split(",") if "=" in option)
    unknown = next((key for key in chosen if key not in _OPTIONS), None)
    if unknown is not None:
        raise unknown_name("option of a normalizer", unknown, _OPTIONS)
    return load_normalizer(plain, language, **chosen)


@lru_cache(maxsize=64)
def _load(name: str, language: str, *chosen: str) -> Normalizer:
    """`chosen` are the options that differ from the standard."""
    key = (name, language, *chosen)
    if name == "raw":
        return Normalizer("raw", "1", language, str.strip, key)
    if name == "whisper":
        apply, number = _whisper(language)
        return Normalizer(name, f"transformers-{number}", language, apply, key)
    if name == "squtr-compat":
        apply, number = squtr_compat(language)
        return Normalizer(name, f"WeTextProcessing-{number}", language, lru_cache(maxsize=_CACHE_SIZE)(apply), key)
    step: Callable[[str], str] = base_step
    version = DEFAULT_VERSION
    if language == "en":
        step = english_step
    elif language == "es":
        step = partial(spanish_step, accents="accents=fold" not in chosen)
    elif language in CHINESE:
        strict = "script=strict" in chosen
        step = partial(
            chinese_step,
            simplify=None if strict else fold_script,
            drop_erhua="erhua=drop" in chosen,
            drop_interjections="interjections=drop" in chosen,
        )
        if not strict:
            version += "".join(f" {what}-{number}" for what, number in sorted(folding_versions().items()))
    if chosen:
        name = f"{name}({','.join(chosen)})"
    return Normalizer(name, version, language, lru_cache(maxsize=_CACHE_SIZE)(partial(to_fixpoint, step)), key)


def _whisper(language: str) -> tuple[Callable[[str], str], str]:
    try:
        import transformers
        from transformers.models.whisper.english_normalizer import BasicTextNormalizer, EnglishTextNormalizer
    except ImportError as error:
        raise missing_extra("transformers", "torch") from error
    # EnglishTextNormalizer carries no annotations; both are callables from str to str.
    normalize: Callable[[str], str] = (
        EnglishTextNormalizer({}) if language == "en" else BasicTextNormalizer()  # type: ignore[no-untyped-call]
    )
    return (lambda text: normalize(text).strip()), str(transformers.__version__)
