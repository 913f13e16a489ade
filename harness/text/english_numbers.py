"""English number words to digits (words are read in one way, digits are not): cardinals, ordinals, years, decimals."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from .base import word_list

_ONES = word_list("one two three four five six seven eight nine")
_TEENS = word_list("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
_TENS = word_list("twenty thirty forty fifty sixty seventy eighty ninety")
_ONES_TH = word_list("first second third fourth fifth sixth seventh eighth ninth")
_TEENS_TH = word_list(
    "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth"
)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}

_ZERO, _ONE, _TEEN, _TEN, _HUNDRED, _SCALE, _LITERAL, _POINT, _AND, _OH, _DECADE = range(11)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: int
    value: int = 0
    ordinal: bool = False
    text: str = ""
    hyphen: bool = False
    """Whether a hyphen, not a blank, stands before it."""


def _lexicon() -> dict[str, _Token]:
    words = {
        "zero": _Token(_ZERO),
        "oh": _Token(_OH),
        "and": _Token(_AND),
        "point": _Token(_POINT),
        "hundred": _Token(_HUNDRED, 100),
        "hundredth": _Token(_HUNDRED, 100, ordinal=True),
    }
    for kind, start, step, cardinals in ((_ONE, 1, 1, _ONES), (_TEEN, 10, 1, _TEENS), (_TEN, 20, 10, _TENS)):
        for index, word in enumerate(cardinals):
            words[word] = _Token(kind, start + step * index)
    words["fourty"] = words["forty"]
    for kind, start, ordinals in ((_ONE, 1, _ONES_TH), (_TEEN, 10, _TEENS_TH)):
        for index, word in enumerate(ordinals):
            words[word] = _Token(kind, start + index, ordinal=True)
    for index, word in enumerate(_TENS):
        words[f"{word[:-1]}ieth"] = _Token(_TEN, 20 + 10 * index, ordinal=True)
        words[f"{word[:-1]}ies"] = _Token(_DECADE, 20 + 10 * index)
    for word, value in _SCALES.items():
        words[word] = _Token(_SCALE, value)
        words[f"{word}th"] = _Token(_SCALE, value, ordinal=True)
    return words


_WORDS = _lexicon()
_ANY = "|".join(sorted(_WORDS, key=len, reverse=True)) + r"|\d+(?:\.\d+)?"
_PHRASE = re.compile(rf"(?<![\w.'])(?:{_ANY})(?![\w']|\.\d)(?:(?: ?- ?| )(?:{_ANY})(?![\w']|\.\d))*")
_PART = re.compile(rf"(^| ?- ?| )({_ANY})(?![\w'])")


def ordinal(value: int) -> str:
    """1 → 1st, 12 → 12th, 23 → 23rd.

    >>> [ordinal(n) for n in (1, 12, 23, 111)]
    ['1st', '12th', '23rd', '111th']
    """
    teen = 10 <= value % 100 < 20
    return f"{value}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(value % 10, 'th')}"


def digits_for_words(text: str) -> str:
    """Number words in a lower-case text as digits; everything else unchanged.

    >>> digits_for_words("in nineteen eighty-four one hundred and five people, three point one four percent")
    'in 1984 105 people, 3.14 percent'
    >>> digits_for_words("the twenty-first of may, twenty twenty four, nine one one, 3.5 million")
    'the 21st of may, 2024, 911, 3500000'
    """
    return _PHRASE.sub(_read_phrase, text)


def _read_phrase(match: re.Match[str]) -> str:
    tokens = []
    for separator, word in _PART.findall(match[0]):
        known = _WORDS.get(word)
        hyphen = "-" in separator
        if known is None:
            tokens.append(_Token(_LITERAL, text=word, hyphen=hyphen))
        else:
            tokens.append(_Token(known.kind, known.value, known.ordinal, word, hyphen))
    return _Reader(tokens).read()


class _Reader:
    """Reads one phrase of number tokens from left to right; tokens that are no number come out unchanged."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.at = 0

    def read(self) -> str:
        out: list[str] = []
        after_number = False
        while self.at < len(self.tokens):
            start = self.at
            if after_number and self.tokens[start].text == "second":
                # After a number a second is a time, otherwise a rank.
                self.at += 1
                number: str | None = "sec"
            else:
                number = self._number()
            after_number = number is not None
            if number is None:
                self.at = start + 1
                number = self.tokens[start].text
            glue = "-" if out and self.tokens[start].hyphen else " " if out else ""
            out.append(glue + number)
        return "".join(out)

    def _kind(self, offset: int = 0) -> int | None:
        index = self.at + offset
        return self.tokens[index].kind if index < len(self.tokens) else None

    def _number(self) -> str | None:
        spelt = self._spelt_digits()
        if spelt is not None:
            return spelt
        token = self.tokens[self.at]
        if token.kind == _DECADE:
            self.at += 1
            return f"{token.value}s"
        if token.kind == _LITERAL:
            self.at += 1
            if self._kind() == _POINT:
                return self._decimal(token.text) or token.text
            if self._kind() not in (_HUNDRED, _SCALE):
                return token.text
            return self._large(Decimal(token.text))
        if token.kind == _ZERO:
            self.at += 1
            return self._decimal("0") or "0"
        small = self._small()
        if small is None:
            return None
        value, is_ordinal = small
        if is_ordinal:
            return ordinal(value)
        return self._year(value) or self._large(Decimal(value))

    def _spelt_digits(self) -> str | None:
        """Three or more single digits: "nine one one", "zero zero seven", "four oh four"."""
        end = self.at
        while end < len(self.tokens):
            token = self.tokens[end]
            digit = token.kind in (_ZERO, _ONE) or (token.kind == _OH and end > self.at)
            if not digit or token.ordinal or (token.hyphen and end > self.at):
                break
            end += 1
        while end > self.at and self.tokens[end - 1].kind == _OH:
            end -= 1
        after = self.tokens[end].kind if end < len(self.tokens) else None
        if end - self.at < 3 or after in (_HUNDRED, _SCALE, _POINT):
            return None
        spelt = "".join(str(token.value) for token in self.tokens[self.at : end])
        self.at = end
        return spelt

    def _small(self) -> tuple[int, bool] | None:
        """1 to 99, and whether it is an ordinal."""
        if self.at >= len(self.tokens):
            return None
        token = self.tokens[self.at]
        if token.kind not in (_ONE, _TEEN, _TEN):
            return None
        self.at += 1
        if token.kind == _TEN and not token.ordinal and self._kind() == _ONE:
            one = self.tokens[self.at]
            self.at += 1
            return token.value + one.value, one.ordinal
        return token.value, token.ordinal

    def _year(self, first: int) -> str | None:
        """Two pairs of digits: "nineteen eighty four", "twenty oh five", "five thirty", "nineteen eighties"."""
        start = self.at
        if self._kind() == _DECADE and first >= 10:
            self.at += 1
            return f"{first}{self.tokens[start].value}s"
        if self._kind() == _OH and self._kind(1) == _ONE and not self.tokens[start + 1].ordinal:
            self.at += 2
            return f"{first}0{self.tokens[start + 1].value}"
        if self._kind() in (_TEEN, _TEN) and not self.tokens[start].hyphen:
            second = self._small()
            if second and not second[1] and self._kind() not in (_HUNDRED, _SCALE, _POINT):
                return f"{first}{second[0]}"
            self.at = start
        return None

    def _large(self, group: Decimal) -> str:
        """The rest of a number that began with `group`: hundreds, scales, decimals."""
        total, smallest = Decimal(0), 10**15
        while True:
            token = self.tokens[self.at] if self.at < len(self.tokens) else None
            if token is not None and token.kind == _HUNDRED and 0 < group < 100:
                self.at += 1
                group *= 100
                if token.ordinal:
                    return ordinal(int(total + group))
                tail = self._tail(hundreds=False)
            elif token is not None and token.kind == _SCALE and token.value < smallest and group > 0:
                self.at += 1
                total += group * token.value
                smallest, group = token.value, Decimal(0)
                if token.ordinal:
                    return ordinal(int(total))
                tail = self._tail(hundreds=True)
            else:
                break
            if tail is not None:
                group += tail[0]
                if tail[1]:
                    return ordinal(int(total + group))
        value = total + group
        text = str(int(value)) if value == int(value) else f"{value:f}"
        return self._decimal(text) or text

    def _tail(self, *, hundreds: bool) -> tuple[Decimal, bool] | None:
        """What follows a hundred or a scale: [and] 1–99, after a scale also the next group before its own hundred."""
        start = self.at
        joined = self._kind() == _AND
        if joined:
            self.at += 1
        elif hundreds and self._kind() == _LITERAL and self._kind(1) in (_HUNDRED, _SCALE):
            self.at += 1
            return Decimal(self.tokens[start].text), False
        small = self._small()
        if small is None or (self._kind() == _HUNDRED and (joined or not hundreds)):
            # "between one hundred and two hundred" is two numbers.
            self.at = start
            return None
        return Decimal(small[0]), small[1]

    def _decimal(self, whole: str) -> str | None:
        """`whole` "point" digits [scale]."""
        if self._kind() != _POINT or "." in whole:
            return None
        start = self.at
        self.at += 1
        digits = ""
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind in (_ZERO, _OH) or (token.kind == _ONE and not token.ordinal):
                digits += str(token.value)
                self.at += 1
            elif token.kind in (_TEEN, _TEN) and not token.ordinal and not digits:
                small = self._small()
                digits += str(small[0]) if small else ""
            elif token.kind == _LITERAL and not digits and "." not in token.text:
                digits += token.text
                self.at += 1
            else:
                break
        if not digits:
            self.at = start
            return None
        if self._kind() == _SCALE and not self.tokens[self.at].ordinal:
            value = Decimal(f"{whole}.{digits}") * self.tokens[self.at].value
            self.at += 1
            return str(int(value)) if value == int(value) else f"{value.normalize():f}"
        return f"{whole}.{digits}"
