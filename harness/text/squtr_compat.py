"""The published SQuTR scoring, quirks included, to reproduce published error rates. Not for new work.

WeTextProcessing 1.0.4.1 verbalizes numbers, then all but a-z, 0-9, U+4E00-U+9FFF and blanks is deleted (for Chinese the
blanks too): "thirty-six" is "thirtysix", "café" is "caf", and 100倍 differs from 一百倍.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Protocol

from ...errors import UsageError, missing_extra

WETEXT_VERSION = "1.0.4.1"
_DELETED = re.compile(r"[^a-z0-9\u4e00-\u9fff\s]")


class _Verbalizer(Protocol):
    def normalize(self, text: str) -> str: ...


def squtr_compat(language: str) -> tuple[Callable[[str], str], str]:
    """The function from text to text for "en" or "zh", and the version of the library behind it.

    Raises `UsageError` for another language or version of WeTextProcessing, `MissingExtraError` without it.
    """
    if language not in ("en", "zh"):
        raise UsageError(
            f"normalizer 'squtr-compat' does not exist for language {language!r}.",
            hint="It reproduces published English and Chinese scores; use 'default'.",
        )
    verbalizer, found = _verbalizer(language)
    if found != WETEXT_VERSION:
        raise UsageError(
            f"normalizer 'squtr-compat' needs WeTextProcessing {WETEXT_VERSION}, found {found}.",
            hint="Run: pip install 'squtr[compat]'",
        )

    def apply(text: str) -> str:
        # The grammar refuses the empty string.
        spoken = verbalizer.normalize(text) if text.strip() else ""
        kept = _DELETED.sub("", spoken.lower())
        return "".join(kept.split()) if language == "zh" else " ".join(kept.split())

    return apply, found


def _is_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def _verbalizer(language: str) -> tuple[_Verbalizer, str]:
    try:
        module = import_module(f"tn.{'english' if language == 'en' else 'chinese'}.normalizer")
    except ImportError as error:
        raise missing_extra("tn", "compat") from error
    # It reports the grammar files that it reads, once per construction, at a level that it sets itself.
    logging.getLogger(f"wetext-{language}_normalizer").addFilter(_is_warning)
    made: _Verbalizer = module.Normalizer()
    return made, version("WeTextProcessing")
