"""The safe base of all normalizers: right for any script, because it never deletes a letter or a mark."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

_APOSTROPHES = "'\u2018\u2019\u201b\u2032\u00b4\u0060\uff07"
"""What is typed for an apostrophe; all are read as U+0027. (The modifier letter U+02BC is a letter, and stays one.)"""


class _Visible(dict[int, int | str | None]):
    """A `str.translate` table, filled on demand: apostrophes become one, invisible characters go, the rest stays."""

    def __missing__(self, code: int) -> int | str | None:
        value: int | str | None = code
        if chr(code) in _APOSTROPHES:
            value = "'"
        elif unicodedata.category(chr(code)) == "Cf" or _is_variation_selector(code):
            # Joiners, soft hyphens, byte order marks: inside a word, no boundary.
            value = None
        self[code] = value
        return value


class _Words(dict[int, int | str | None]):
    """A `str.translate` table, filled on demand: letters, marks, numbers and `keep` stay, the rest becomes a blank."""

    def __init__(self, keep: str = "") -> None:
        super().__init__({ord(char): char for char in keep})

    def __missing__(self, code: int) -> int | str | None:
        self[code] = value = code if unicodedata.category(chr(code))[0] in "LMN" else " "
        return value


def _is_variation_selector(code: int) -> bool:
    return 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF or 0x180B <= code <= 0x180F


_VISIBLE = _Visible()
_RAISED = re.compile(r"(?<=\d)(?=[²³¹⁰⁴-⁹₀-₉¼-¾⅐-⅞↉①-⑳])")
_TABLES = {"": _Words()}


def word_list(text: str) -> tuple[str, ...]:
    """The words of a table that is written as one string, which keeps long tables readable."""
    return tuple(text.split())


def fold(text: str) -> str:
    """Compatibility forms and case folded (NFKC, then full case folding, then NFKC): Ａ → a, ß → ss, ﬁ → fi.

    Apostrophes of all shapes become U+0027; characters that cannot be seen (joiners, soft hyphens, byte order marks,
    variation selectors) go.

    >>> fold("ＡＢＣ Straße ㎞ don’t")
    "abc strasse km don't"
    """
    # 2½ and 10³ must not become 21/2 and 103.
    text = _RAISED.sub(" ", text.translate(_VISIBLE))
    text = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", text.translate(_VISIBLE))


def strip_punctuation(text: str, keep: str = "") -> str:
    """Everything but letters, marks, numbers and the characters in `keep` becomes a blank; blanks are joined.

    >>> strip_punctuation("well-known, “naïve” café!")
    'well known naïve café'
    """
    table = _TABLES.get(keep)
    if table is None:
        table = _TABLES[keep] = _Words(keep)
    return " ".join(text.translate(table).split())


def to_fixpoint(step: Callable[[str], str], text: str) -> str:
    """`step` until the text stays the same; of a circle of texts, the smallest."""
    seen: dict[str, int] = {}
    while text not in seen:
        seen[text] = len(seen)
        text = step(text)
    circle = list(seen)[seen[text] :]
    return min(circle)


def base_step(text: str) -> str:
    """One pass of the base: fold, then strip punctuation.

    >>> base_step("L’Homme, ＯＫ?  हिन्दी")
    'l homme ok हिन्दी'
    """
    return strip_punctuation(fold(text))
