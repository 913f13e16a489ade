"""Options as words: where a text says an option, letter for letter but for accents, case and punctuation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .....errors import DataError, UsageError
from ....text.base import word_list
from .reply_text import plain_characters, skeleton

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TOKEN = re.compile(
    r"(?<![\w)])[-−]\d+(?:[.,:/]\d+)*"  # a negative number
    r"|\d+(?:[.,:/–-]\d+)*[ªº]?"  # a number, a range, a time, a date, an ordinal
    r"|[^\W\d_][^\W_]*(?:['’][^\W\d_]+)*"  # a word
    r"|[%€$£°]"
)
_BREAK = re.compile(r"[.?!…]\s|\n\s*\n")
_EDGE = "¿¡?!"
FUNCTION_WORDS = frozenset(
    word_list(
        "a al algo ante antes aqui asi aun aunque bajo bien cada como con contra cual cuando de del desde donde e "
        "el ella ellas ello ellos en entre era es esa esas ese eso esos esta estas este esto estos fue ha hay la "
        "las le les lo los mas me mi mis mucho muy nada ni no nos o otra otro para pero poco por porque pues que "
        "quien se segun ser si sin sobre solo son su sus tal tambien tan te ti todo tras tu tus u un una unas uno "
        "unos y ya yo about also an and any are as at be because been but by can did do does for from had has have "
        "he her him his how i if in into is it its just may me my nor not of on or our she so than that the their "
        "them then there these they this those to too was we were what when where which who will with would yes "
        "you your"
    )
)


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text: its key (no case, no marks), where it begins and ends."""

    key: str
    start: int
    end: int


def tokens_of(text: str) -> list[Token]:
    """The words, numbers and signs of percent and money in `text` (NFC).

    >>> [token.key for token in tokens_of("«Sí», 3,5 % de los niños")]
    ['si', '3,5', '%', 'de', 'los', 'ninos']
    """
    bare = skeleton(text)
    return [
        Token(bare[m.start() : m.end()].replace("’", "'").replace("−", "-").replace("–", "-"), m.start(), m.end())
        for m in _TOKEN.finditer(text)
    ]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Characters [start, end) of a text say one of `indices` (several if only accents that are missing tell apart)."""

    start: int
    end: int
    indices: frozenset[int]


def _exact(text: str) -> str:
    return " ".join(text.split())


def _without_punctuation(text: str) -> str:
    return " ".join(text[token.start : token.end].lower() for token in tokens_of(text))


def _keeping_n(text: str) -> str:
    marks = unicodedata.normalize("NFD", text.lower().replace("ñ", "\0"))
    return _without_punctuation("".join(c for c in marks if not unicodedata.combining(c)).replace("\0", "ñ"))


_STRICT_FIRST: tuple[Callable[[str], str], ...] = (
    _exact,
    lambda text: _exact(text).lower(),
    _without_punctuation,
    _keeping_n,
)


class Options:
    """The options of one item, ready to be found in texts. Raises `DataError` for fewer than 2, blank or equal ones."""

    def __init__(self, options: Sequence[str]) -> None:
        self.texts = [_exact(plain_characters(option)) for option in options]
        if len(self.texts) < 2:
            raise DataError(f"{len(self.texts)} options.", hint="Give at least two.")
        if len(self.texts) > len(LETTERS):
            raise UsageError(f"{len(self.texts)} options.", hint="There are letters for 26.")
        seen: dict[str, int] = {}
        for index, text in enumerate(self.texts):
            if not text:
                raise DataError(f"option {LETTERS[index]} is blank.", hint="Give every option a text.")
            if text in seen:
                raise DataError(
                    f"options {LETTERS[seen[text]]} and {LETTERS[index]} are both {text!r}.",
                    hint="Options must differ.",
                )
            seen[text] = index
        self._keys = [tuple(token.key for token in tokens_of(text)) for text in self.texts]
        self._inner_break = [_BREAK.search(text) is not None for text in self.texts]
        self._by_first: dict[str, list[int]] = {}
        for index, keys in enumerate(self._keys):
            if keys:
                self._by_first.setdefault(keys[0], []).append(index)
        self.function_words = frozenset(
            index
            for index, keys in enumerate(self._keys)
            if keys and (all(key in FUNCTION_WORDS for key in keys) or (len(keys) == 1 and len(keys[0]) == 1))
            if not keys[0].isdigit()
        )
        """Options such as "Sí", "No", "Ella", "B", which prose holds without choosing them."""

    def __len__(self) -> int:
        return len(self.texts)

    def index(self, text: str) -> int | None:
        """The place of the option with exactly this text (NFC, spaces joined); None if there is none."""
        text = _exact(plain_characters(text))
        return self.texts.index(text) if text in self.texts else None

    def equal_to(self, text: str) -> frozenset[int]:
        """The options that `text` is, as a whole."""
        text = _exact(text)
        keys = tuple(token.key for token in tokens_of(text))
        if not keys:
            return frozenset(i for i, option in enumerate(self.texts) if option == text)
        found = [index for index, own in enumerate(self._keys) if own == keys]
        return self._tell_apart(found, text)

    def occurrences_in(self, text: str) -> list[Occurrence]:
        """Where `text` (NFC) says options, in order; what lies inside a longer one is left out.

        >>> found = Options(["Madrid", "Madrid y Lugo", "Lugo"]).occurrences_in("a MADRID y lugo.")
        >>> [sorted(occurrence.indices) for occurrence in found]
        [[1]]
        """
        words = tokens_of(text)
        spans: dict[tuple[int, int], list[int]] = {}
        for at, word in enumerate(words):
            for index in self._by_first.get(word.key, ()):
                keys = self._keys[index]
                if at + len(keys) > len(words) or any(
                    words[at + n].key != key for n, key in enumerate(keys[1:], start=1)
                ):
                    continue
                last = words[at + len(keys) - 1]
                if not self._inner_break[index] and _BREAK.search(text, word.start, last.end):
                    continue
                spans.setdefault((word.start, last.end), []).append(index)
        found: list[Occurrence] = []
        furthest = -1
        # From the left, the longer one first: a span inside one that came before is left out.
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            if end > furthest:
                found.append(Occurrence(start, end, self._tell_apart(spans[start, end], _with_edges(text, start, end))))
                furthest = end
        return found

    def _tell_apart(self, indices: list[int], text: str) -> frozenset[int]:
        """Of options that differ in accents, case or punctuation only, those that are most like `text`."""
        for form in _STRICT_FIRST if len(indices) > 1 else ():
            wanted = form(text)
            same = [index for index in indices if form(self.texts[index]) == wanted]
            if len(same) == 1:
                return frozenset(same)
            indices = same or indices
        return frozenset(indices)


def _with_edges(text: str, start: int, end: int) -> str:
    while start and text[start - 1] in _EDGE:
        start -= 1
    while end < len(text) and text[end] in _EDGE:
        end += 1
    return text[start:end]
