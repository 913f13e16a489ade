"""The files of transcripts that NIST's sclite reads: TRN (a text, then its id) and CTM (a word and its times per line).

Formats: https://github.com/usnistgov/SCTK/blob/master/doc/infmts.htm
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping

from ...errors import DataError

Line = tuple[int, str]
"""Number (from 1) and content."""

_TRN = re.compile(r"(.*?)\s*\(([^()\s]+)\)\s*")
COMMENT = ";;"
_CTM_FIELDS = "file channel start duration word [confidence]"


def parse_trn(line: str) -> tuple[str, str] | None:
    """Id and text of a line, None for a line without an id in parentheses at its end.

    >>> parse_trn("a b (c) (q1)"), parse_trn("(q2)"), parse_trn("no id")
    (('q1', 'a b (c)'), ('q2', ''), None)
    """
    match = _TRN.fullmatch(line)
    return None if match is None else (match[2], match[1].strip())


def trn_line(id_: str, text: str) -> str:
    """A text with its id; breaks of lines become blanks. Raises `DataError` for an id that the format cannot hold.

    >>> trn_line("q1", "what is\\na bond"), trn_line("q2", "")
    ('what is a bond (q1)', '(q2)')
    """
    if re.fullmatch(r"[^()\s]+", id_) is None:
        raise DataError(
            f"the id {id_!r} holds a blank or a parenthesis, which TRN cannot hold.", hint="Write JSON lines."
        )
    return f"{' '.join(text.split())} ({id_})".strip()


def read_ctm(lines: Iterable[Line], name: str) -> dict[str, str]:
    """The texts of a CTM file by its first field: the words of each in the order of their starts.

    A blank stands between two words, none where both sides are written without (Chinese, Japanese, Thai). `name` is
    what errors call the file. Raises `DataError` naming the line for one of another form, for alternatives, and for a
    recording with several channels, which would be several texts of one id.

    >>> read_ctm([(1, "q1 1 0.50 0.20 bond 0.9"), (2, "q1 1 0.10 0.30 a")], "x.ctm")
    {'q1': 'a bond'}
    """
    words: dict[str, list[tuple[float, str]]] = {}
    channels: dict[str, str] = {}
    for number, line in lines:
        if line.lstrip().startswith(COMMENT) or not line.strip():
            continue
        place, fields = f"{name}, line {number}", line.split()
        if len(fields) < 5:
            raise DataError(f"{place}: {len(fields)} fields.", hint=f"A line of CTM is: {_CTM_FIELDS}.")
        file, channel, start, _, word = fields[:5]
        if word.startswith("<ALT"):
            raise DataError(f"{place}: {word} begins or ends alternatives.", hint="Leave one reading of each word.")
        if channels.setdefault(file, channel) != channel:
            raise DataError(
                f"{place}: {file!r} has the channels {channels[file]!r} and {channel!r}.",
                hint="Give each channel an id of its own.",
            )
        words.setdefault(file, []).append((_seconds(start, place), word))
    return {file: joined(word for _, word in sorted(own, key=lambda pair: pair[0])) for file, own in words.items()}


def _seconds(written: str, place: str) -> float:
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{place}: the start {written!r} is no time in seconds.", hint=f"A line is: {_CTM_FIELDS}.")
    return value


def joined(words: Iterable[str]) -> str:
    """Words as a text: a blank between two, none where the characters on both sides are written without.

    >>> joined(["a", "bond"]), joined(["什么", "是", "GDP"])
    ('a bond', '什么是 GDP')
    """
    text = ""
    for word in words:
        close = text and _is_unspaced(text[-1]) and _is_unspaced(word[0])
        text += word if close or not text else f" {word}"
    return text


_UNSPACED = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


def _is_unspaced(character: str) -> bool:
    return unicodedata.name(character, "").startswith(_UNSPACED)


def unwritable(texts: Mapping[str, str]) -> list[str]:
    """The ids of texts with signs that sclite has a use for: `{ a / b }` are alternatives, `;;` begins a comment."""
    return [id_ for id_, text in texts.items() if "{" in text or "}" in text or text.lstrip().startswith(COMMENT)]
