"""What a transcript has other than the typed query, marked in HTML, by word or by character."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from rapidfuzz.distance import Levenshtein

from .formats import escape

_TOKEN = re.compile(r"\S+")


def marked(reference: str, transcript: str, *, by_character: bool) -> str:
    """`transcript` as HTML with the differences from `reference` marked.

    `<del>` is what was said and not heard, `<ins>` what was heard and not said, both together in
    `<span class="sub">` a substitution. Case and punctuation do not count. Everything is escaped.

    >>> marked("pay the fee", "pay a fee now", by_character=False)
    'pay <span class="sub"><del>the</del> <ins>a</ins></span> fee <ins>now</ins>'
    >>> marked("四十天", "十天", by_character=True)
    '<del>四</del>十天'
    """
    said, heard = _tokens(reference, by_character), _tokens(transcript, by_character)
    keys_said, keys_heard = [_key(t) for t in said], [_key(t) for t in heard]
    blank = "" if by_character else " "
    parts: list[str] = []
    said_places = [i for i, key in enumerate(keys_said) if key]
    heard_places = [i for i, key in enumerate(keys_heard) if key]
    codes = Levenshtein.opcodes([keys_said[i] for i in said_places], [keys_heard[i] for i in heard_places])
    # Tokens without letters or digits (a dash, a question mark) are no difference: they stay with what precedes them.
    for code in codes:
        old = blank.join(said[i] for i in said_places[code.src_start : code.src_end])
        new = blank.join(_stretch(heard, heard_places, code.dest_start, code.dest_end))
        if code.tag == "equal":
            parts.append(escape(new))
        elif code.tag == "delete":
            parts.append(f"<del>{escape(old)}</del>")
        elif code.tag == "insert":
            parts.append(f"<ins>{escape(new)}</ins>")
        else:
            parts.append(f'<span class="sub"><del>{escape(old)}</del>{blank}<ins>{escape(new)}</ins></span>')
    return blank.join(parts)


def _tokens(text: str, by_character: bool) -> list[str]:
    return [c for c in text if not c.isspace()] if by_character else _TOKEN.findall(text)


def _key(token: str) -> str:
    """What of a token counts: letters, digits and marks, without case and width."""
    folded = unicodedata.normalize("NFKC", token).casefold()
    return "".join(c for c in folded if c.isalnum() or unicodedata.category(c).startswith("M"))


def _stretch(tokens: Sequence[str], places: Sequence[int], start: int, end: int) -> Sequence[str]:
    """The tokens of places[start:end] with the uncounted ones that follow them (and those that lead the text)."""
    if start == end:
        return []
    first = 0 if start == 0 else places[start]
    last = places[end] if end < len(places) else len(tokens)
    return tokens[first:last]
