"""What the synthesis commands share: engines from options, a transcriber that rates takes, words for the result."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ...errors import UsageError
from ...loaders.synthesis import SYNTHESIZERS, Synthesizer, load_synthesizer
from ...loaders.synthesis.candidates import Rating
from .common import Extend

NONE = "none"


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine", default="kokoro", metavar="NAME", help=f"{', '.join(SYNTHESIZERS)} (kokoro)"
    )  # fmt: skip
    parser.add_argument(
        "--engine-option",
        action=Extend,
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="options of the engine, for example voices=DIR speed=0.9 (kokoro), model=DIR speakers=DIR (cosyvoice)",
    )
    parser.add_argument("--no-spoken-form", action="store_true", help="give the engine the text as it is written")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of voices and takes (0)")
    parser.add_argument(
        "--threads", type=int, default=0, metavar="N", help="threads of the transcriber; 0: all cores (0)"
    )


def engine_from(arguments: argparse.Namespace) -> Synthesizer:
    options: dict[str, object] = {}
    for pair in arguments.engine_option:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise UsageError(f"the engine's option is written {pair!r}.", hint="Write KEY=VALUE.")
        options[key] = _value(value)
    return load_synthesizer(arguments.engine, **options)


def _value(text: str) -> object:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return str(Path(text).expanduser()) if text.startswith("~") else text


def rate_of(reference: str, hypothesis: str, language: str) -> float:
    """WER (CER for languages written without spaces) under the `default` normalizer; NaN for an empty reference."""
    from ..metrics.error_counts import count_errors, default_unit, tokens

    unit = default_unit(language)
    return count_errors(
        tokens(normalized(reference, language), unit, language),
        tokens(normalized(hypothesis, language), unit, language),
    ).rate


def normalized(text: str, language: str) -> str:
    from ..text.normalizers import load_normalizer

    return load_normalizer("default", language)(text)


def ratings_from(names: Sequence[str], threads: int, languages: Sequence[str]) -> tuple[Rating, ...]:
    """How takes are rated by the transcribers `names` (() for "none").

    Raises `UsageError` for their languages, for "none" beside others, and for two of one family: what one of them
    transcribes wrong, the other does too.
    """
    if list(names) == [NONE] or not names:
        return ()
    if NONE in names:
        raise UsageError("--transcriber names none and others.", hint="Leave one out.")
    from ..components.families import family_of

    ratings = [_rating_from(name, threads, languages) for name in names]
    families: dict[str, str] = {}
    for name, rating in zip(names, ratings, strict=True):
        family = family_of(rating.name)
        if family in families:
            raise UsageError(
                f"the transcribers {families[family]!r} and {name!r} are of one family ({family}).",
                hint="Choose a second one that was trained otherwise, or name only one.",
            )
        families[family] = name
    return tuple(ratings)


def _rating_from(name: str, threads: int, languages: Sequence[str]) -> Rating:
    from ..components import load_transcriber

    options = {"threads": threads} if threads else {}
    transcriber = load_transcriber(name, **options)
    for language in languages:
        if not transcriber.supports(language):
            raise UsageError(
                f"the transcriber {name!r} was not made for {language!r}.",
                hint="Choose another, or --transcriber none.",
            )
    spec = transcriber.spec
    return Rating(transcriber, f"{spec.backend}:{spec.name}@{spec.fingerprint}", rate_of, normalized)
