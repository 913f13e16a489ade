"""Whether a transcript holds the numbers of the text as it was written.

An error rate cannot say: one wrong number in a long query is a low rate. So each number of the written text must be in
the transcript, compared by value, before or after the scoring normalizer.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable

Normalize = Callable[[str, str], str]
"""(text, language) to the form in which texts are compared."""

_CODE_DIGITS = 7
"""From so many digits on, a text's numbers may be grouped otherwise: 1-800-555-0199 is 18005550199."""
_DECIMAL_COMMA = {"es", "fr", "it", "pt", "de"}


def numbers_missed(written: str, transcript: str, language: str, normalize: Normalize) -> tuple[str, ...]:
    """The numbers of `written` that `transcript` lacks, in order; () if it has all, or none are written.

    >>> numbers_missed("10^6 bacteria", "106 bacteria", "en", lambda text, _: text)
    ('10', '6')
    >>> numbers_missed("call 555-0199 at 7:05", "call 5550199 at 7:05", "en", lambda text, _: text)
    ()
    """
    wanted = _numbers(written, language)
    if not wanted:
        return ()
    normalized = normalize(transcript, language)
    missed = _lacking(wanted, _numbers(transcript, language))
    for reference, hypothesis in (
        (wanted, _numbers(normalized, language)),
        (_numbers(normalize(written, language), language), _numbers(normalized, language)),
    ):
        missed = missed and _lacking(reference, hypothesis)
    if not missed:
        return ()
    digits = _digits(written)
    if len(digits) >= _CODE_DIGITS and digits in {_digits(transcript), _digits(normalized)}:
        return ()
    return tuple(_lacking(wanted, _numbers(transcript, language)) or missed)


def _digits(text: str) -> str:
    return "".join(re.findall(r"[0-9]", text))


def _numbers(text: str, language: str) -> list[str]:
    """Runs of digits without signs that group thousands, zeros before and decimals that are zero."""
    # Character by character, so that ² and ㎡, which hold no number that is spoken as one, stay what they are.
    text = "".join(unicodedata.normalize("NFKC", c) if unicodedata.category(c) == "Nd" else c for c in text)
    group, point = (".", ",") if language.partition("-")[0] in _DECIMAL_COMMA else (",", ".")
    text = re.sub(rf"(?<=\d)[{group}](?=\d{{3}}(?!\d))", "", text)
    text = re.sub(rf"(?<=\d)\{point}0+(?![\d{point}])", "", text)
    return [run.lstrip("0") or "0" for run in re.findall(r"\d+", text)]


def _lacking(wanted: list[str], found: list[str]) -> list[str]:
    left = Counter(found)
    out = []
    for number in wanted:
        if left[number]:
            left[number] -= 1
        else:
            out.append(number)
    return out
