"""Spanish number words to digits: mil novecientos ochenta y cuatro → 1984, tres coma catorce → 3.14."""

from __future__ import annotations

import re
from decimal import Decimal

from .base import word_list

_ONES = {w: i for i, w in enumerate(word_list("uno dos tres cuatro cinco seis siete ocho nueve"), start=1)}
_ONES |= {"un": 1, "una": 1, "ún": 1}
_SMALL = {
    word: value
    for value, word in enumerate(
        word_list(
            "diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve veinte veintiuno veintidós "
            "veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve"
        ),
        start=10,
    )
}
_SMALL |= {"dieciseis": 16, "veintidos": 22, "veintitres": 23, "veintiseis": 26}
_SMALL |= {"veintiún": 21, "veintiun": 21, "veintiuna": 21}
_TENS = {w: 10 * i for i, w in enumerate(word_list("treinta cuarenta cincuenta sesenta setenta ochenta noventa"), 3)}
_HUNDREDS = {"cien": 100, "ciento": 100}
for _index, _stem in enumerate(
    word_list("doscient trescient cuatrocient quinient seiscient setecient ochocient novecient"), start=2
):
    _HUNDREDS |= {f"{_stem}os": 100 * _index, f"{_stem}as": 100 * _index}
_LARGE = {"millón": 10**6, "millon": 10**6, "millones": 10**6, "billón": 10**12, "billon": 10**12, "billones": 10**12}
_POINT = {"coma", "punto"}

_WORDS = {*_ONES, *_SMALL, *_TENS, *_HUNDREDS, *_LARGE, *_POINT, "cero", "mil", "y"} - {"ún"}
_ANY = "|".join(sorted(_WORDS, key=len, reverse=True)) + r"|\d+(?:\.\d+)?"
_PHRASE = re.compile(rf"(?<![\w.])(?:{_ANY})(?![\w]|\.\d)(?: (?:{_ANY})(?![\w]|\.\d))*")


def digits_for_words(text: str) -> str:
    """Number words of a lower-case Spanish text as digits; everything else unchanged.

    `un` and `una` alone are articles and stay; `uno` becomes 1.

    >>> digits_for_words("en mil novecientos ochenta y cuatro, un millón doscientas mil personas, tres coma catorce")
    'en 1984, 1200000 personas, 3.14'
    >>> digits_for_words("una casa, treinta y una casas, uno uno dos, 5 mil")
    'una casa, 31 casas, 112, 5000'
    """
    return _PHRASE.sub(lambda match: _Reader(match[0].split()).read(), text)


class _Reader:
    """Reads one phrase of number words from left to right; words that are no number come out unchanged."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.at = 0

    def read(self) -> str:
        out: list[str] = []
        while self.at < len(self.words):
            start = self.at
            number = self._spelt_digits() or self._number()
            if number is None:
                self.at = start + 1
                number = self.words[start]
            out.append(number)
        return " ".join(out)

    def _word(self, offset: int = 0) -> str:
        index = self.at + offset
        return self.words[index] if index < len(self.words) else ""

    def _spelt_digits(self, minimum: int = 3) -> str | None:
        """`minimum` or more single digits, or two that begin with zero: "uno uno dos", "cero cinco"."""
        digits = ""
        while (word := self._word(len(digits))) == "cero" or (word in _ONES and word not in ("un", "una")):
            digits += str(_ONES.get(word, 0))
        if len(digits) < (minimum if digits[:1] != "0" else 2) or self._word(len(digits)) in _LARGE.keys() | _POINT | {
            "mil"
        }:
            return None
        self.at += len(digits)
        return digits

    def _number(self) -> str | None:
        word = self._word()
        if word[:1].isdigit():
            self.at += 1
            if self._word() not in _LARGE and self._word() != "mil":
                return self._decimals(word)
            return self._large(Decimal(word))
        if word == "cero":
            self.at += 1
            return self._decimals("0")
        if word in ("un", "una"):
            if self._word(1) not in _LARGE:
                return None
            self.at += 1
            return self._large(Decimal(1))
        if word == "mil":
            return self._large(Decimal(0))
        below = self._below_thousand()
        return None if below is None else self._large(Decimal(below))

    def _below_thousand(self) -> int | None:
        value = 0
        start = self.at
        if self._word() in _HUNDREDS:
            value = _HUNDREDS[self._word()]
            self.at += 1
        word = self._word()
        if word in _SMALL:
            self.at += 1
            return value + _SMALL[word]
        if word in _TENS:
            self.at += 1
            if self._word() == "y" and self._word(1) in _ONES:
                self.at += 2
                return value + _TENS[word] + _ONES[self._word(-1)]
            return value + _TENS[word]
        if word in _ONES and (word not in ("un", "una") or value):
            self.at += 1
            return value + _ONES[word]
        return value if self.at > start else None

    def _below_million(self, group: Decimal) -> Decimal:
        if self._word() != "mil":
            return group
        self.at += 1
        rest = self._below_thousand()
        return (group or Decimal(1)) * 1000 + (rest or 0)

    def _large(self, group: Decimal) -> str:
        total, smallest = Decimal(0), 10**15
        value = self._below_million(group)
        while self._word() in _LARGE and value > 0:
            scale = _LARGE[self._word()]
            if scale >= smallest:
                break
            self.at += 1
            total, smallest = total + value * scale, scale
            start = self.at
            below = 0 if self._word() == "mil" else self._below_thousand()
            value = Decimal(0) if below is None else self._below_million(Decimal(below))
            if self._word() in _LARGE and _LARGE[self._word()] >= smallest:
                # The next number has its own millions.
                self.at, value = start, Decimal(0)
                break
        total += value
        text = str(int(total)) if total == total.to_integral_value() else f"{total.normalize():f}"
        return self._decimals(text)

    def _decimals(self, whole: str) -> str:
        """`whole` and, after "coma" or "punto", its decimals."""
        if self._word() not in _POINT or "." in whole:
            return whole
        start = self.at
        self.at += 1
        digits = ""
        while self._word() == "cero":
            digits += "0"
            self.at += 1
        if self._word().isdigit():
            digits += self._word()
            self.at += 1
        else:
            spelt = self._spelt_digits(minimum=1)
            below = None if spelt or self._word() == "mil" else self._below_thousand()
            digits += spelt or ("" if below is None else str(below))
        if not digits:
            self.at = start
            return whole
        if self._word() in _LARGE:
            value = Decimal(f"{whole}.{digits}") * _LARGE[self._word()]
            self.at += 1
            return str(int(value)) if value == value.to_integral_value() else f"{value.normalize():f}"
        return f"{whole}.{digits}"
