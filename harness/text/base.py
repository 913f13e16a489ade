"""The safe base of all normalisers: right for any script, because it never deletes a letter or a mark."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

APOSTROPHES = "'\u2018\u2019\u201b\u02bc\u02b9\u2032\u00b4\u0060\uff07\u05f3"
"""What is typed for an apostrophe; all are read as U+0027."""

_MAX_PASSES = 16


class _Table(dict[int, str | None]):
    """A `str.translate` table filled on demand: letters, marks and digits stay, the rest becomes a blank."""

    def __init__(self, keep: str = "") -> None:
        super().__init__({ord(c): c for c in keep})

    def __missing__(self, code: int) -> str | None:
        char = chr(code)
        category = unicodedata.category(char)
        value: str | None
        if _is_variation_selector(code) or category == "Cf":
            # Joiners, soft hyphens, byte order marks: inside a word, invisible, no boundary.
            value = None
        elif category[0] in "LMN":
            value = char
        else:
            value = " "
        self[code] = value
        return value


def _is_variation_selector(code: int) -> bool:
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F


_PLAIN = _Table()


def fold(text: str) -> str:
    """Compatibility forms and case folded (NFKC, then full case folding, then NFKC): Ａ → a, ß → ss, ﬁ → fi.

    >>> fold("ＡＢＣ Straße ㎞")
    'abc strasse km'
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def strip_punctuation(text: str) -> str:
    """Everything that is no letter, mark or number becomes a blank; blanks are joined; invisible format characters go.

    >>> strip_punctuation("well-known, “naïve” café!")
    'well known naïve café'
    """
    return " ".join(text.translate(_PLAIN).split())


def to_fixpoint(step: Callable[[str], str], text: str) -> str:
    """`step` until the text stays the same, which makes the whole idempotent.

    Two passes suffice for ordinary text (the second confirms). Should a text still move after 16 passes, that is an
    error in the rules, raised as `RuntimeError` rather than returned as if it were stable.
    """
    for _ in range(_MAX_PASSES):
        changed = step(text)
        if changed == text:
            return text
        text = changed
    raise RuntimeError(f"normalisation does not settle on {text!r}")


def normalize_base(text: str) -> str:
    """One pass of the base: fold, then strip punctuation.

    >>> normalize_base("L’Homme, ＯＫ?  हिन्दी")
    'l homme ok हिन्दी'
    """
    return strip_punctuation(fold(text))
