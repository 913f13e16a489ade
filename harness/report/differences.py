"""How a transcript differs from its reference, marked by word or by character."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rapidfuzz.distance import Levenshtein

from .rendering import markup
from .task_report import Output

if TYPE_CHECKING:
    from markupsafe import Markup

_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Difference:
    """A stretch of text: what the reference has there (`old`) and what the transcript has (`new`)."""

    kind: str
    old: str
    new: str


def marked(reference: str, transcript: str, *, by_character: bool) -> Markup:
    """`transcript` with the differences from `reference` marked.

    `<del>` is what only the reference has, `<ins>` what only the transcript has, both together in
    `<span class="sub">` a substitution. Case and punctuation do not count. Everything is escaped.

    >>> print(marked("pay the fee", "pay a fee now", by_character=False))
    pay <span class="sub"><del>the</del> <ins>a</ins></span> fee <ins>now</ins>
    >>> print(marked("四十天", "十天", by_character=True))
    <del>四</del>十天
    """
    found = differences(reference, transcript, by_character=by_character)
    return markup("report/templates/differences.html", differences=found, blank="" if by_character else " ")


def differences(reference: str, transcript: str, *, by_character: bool) -> list[Difference]:
    old, new = _tokens(reference, by_character), _tokens(transcript, by_character)
    old_keys, new_keys = [_key(t) for t in old], [_key(t) for t in new]
    old_places = [i for i, key in enumerate(old_keys) if key]
    new_places = [i for i, key in enumerate(new_keys) if key]
    codes = Levenshtein.opcodes([old_keys[i] for i in old_places], [new_keys[i] for i in new_places])
    blank = "" if by_character else " "
    # Tokens without letters or digits (a dash, a question mark) are no difference: they stay with what precedes them.
    return [
        Difference(
            code.tag,
            blank.join(old[i] for i in old_places[code.src_start : code.src_end]),
            blank.join(_stretch(new, new_places, code.dest_start, code.dest_end)),
        )
        for code in codes
    ]


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


def transcript_output(
    name: str, text: str, transcript: str, error: str, *, by_character: bool, mark: int | None = None
) -> Output:
    if error:
        return Output(name, f"not decoded: {error}", failed=True, mark=mark)
    if not transcript.strip():
        return Output(name, "empty transcript", failed=True, mark=mark)
    return Output(name, marked(text, transcript, by_character=by_character), mark=mark)
