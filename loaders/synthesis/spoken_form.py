"""Text in words: numbers, signs and abbreviations, before any engine sees it (extra `squtr[spoken]`).

`written.spoken_form` rewrites what engines read wrongly and keeps the digits; here the digits go too, so that every
engine says the same words. Text in another language than English, Spanish and Chinese loses only symbols.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import missing_extra
from .spoken_chinese import spoken_chinese
from .spoken_signs import english_signs, spanish_signs
from .written import spoken_form

EXTRA = "spoken"
IN_WORDS = ("en", "es", "zh")
"""Languages with rules."""

_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December")  # fmt: skip
_SPANISH_MONTHS = ("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre",
                   "noviembre", "diciembre")  # fmt: skip

_DIGITS_AT_MOST = 7
"""Longer runs of digits without separators are codes (telephone numbers, accounts) and are spoken digit by digit."""


@dataclass(frozen=True, slots=True)
class _Language:
    """How numbers are spoken. `decimal` and `thousands` are the separators, the rest are words."""

    code: str
    decimal: str
    thousands: str
    point: str
    minus: str
    to: str
    plus: str
    by: str
    fractions: Mapping[tuple[str, str], str]
    abbreviations: Mapping[str, str]
    signs: Mapping[str, str]


_ENGLISH = _Language(
    "en", ".", ",", "point", "minus", "to", "plus", "over",
    {("1", "2"): "one half", ("1", "3"): "one third", ("2", "3"): "two thirds", ("1", "4"): "one quarter",
     ("3", "4"): "three quarters", ("24", "7"): "twenty-four seven"},
    {"Dr.": "Doctor", "Mr.": "Mister", "Prof.": "Professor", "vs.": "versus", "vs": "versus", "e.g.": "for example",
     "i.e.": "that is", "etc.": "et cetera", "approx.": "approximately", "dept.": "department", "govt.": "government"},
    {"&": "and", "@": "at", "=": "equals", "×": "times", "%": "percent", "+": "plus"},
)  # fmt: skip
_SPANISH = _Language(
    "es", ",", ".", "coma", "menos", "a", "más", "sobre",
    {("1", "2"): "un medio", ("1", "3"): "un tercio", ("2", "3"): "dos tercios", ("1", "4"): "un cuarto",
     ("3", "4"): "tres cuartos"},
    {"Sr.": "señor", "Sra.": "señora", "Dr.": "doctor", "Dra.": "doctora", "etc.": "etcétera", "p. ej.": "por ejemplo",
     "EE. UU.": "Estados Unidos", "EE.UU.": "Estados Unidos", "núm.": "número", "aprox.": "aproximadamente"},
    {"&": "y", "@": "arroba", "=": "igual a", "×": "por", "%": "por ciento", "+": "más"},
)  # fmt: skip


def spoken_text(text: str, language: str) -> str:
    """`text` in the words in which it is spoken; blanks and punctuation are kept where they make pauses.

    Numbers, ordinals, times, dates, money, units, fractions, signs and common abbreviations of English, Spanish and
    Chinese become words; a run of more than 7 digits, or with a leading zero, is spoken digit by digit. Other languages
    lose only symbols that nobody says. Raises `MissingExtraError` without `squtr[spoken]`.

    >>> spoken_text("Où est la gare ? 🙂", "fr")
    'Où est la gare ?'
    """
    base = language.partition("-")[0].lower()
    if base == "zh":
        # In this order: what nobody says includes ℃, which is spoken.
        return spoken_form(spoken_chinese(text), "zh")
    text = text.replace("℃", "°C").replace("℉", "°F")
    if base == "en":
        text = re.sub(r"(?i)\bno\. ?(?=\d)", "number ", text)
        text = english_signs(re.sub(r"#(?=\d)", "number ", text))
        return _in_words(spoken_form(_iso_dates(_shortened(text, _ENGLISH), "en"), "en"), _ENGLISH, _english_word)
    if base == "es":
        text = spanish_signs(re.sub(r"(?i)\bn\.?º ?(?=\d)", "número ", text))
        text = _spanish_articles(spoken_form(_iso_dates(_shortened(text, _SPANISH), "es"), "es"))
        return _in_words(text, _SPANISH, _spanish_word)
    return spoken_form(text, language)


def _shortened(text: str, language: _Language) -> str:
    for short, full in language.abbreviations.items():
        text = re.sub(rf"(?<!\w){re.escape(short)}(?!\w)", full, text)
    return text


def _iso_dates(text: str, language: str) -> str:
    def date(match: re.Match[str]) -> str:
        year, month, day = (int(part) for part in match.groups())
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return match[0]
        if language == "en":
            return f"{_MONTHS[month - 1]} {day}, {year}"
        return f"{day} de {_SPANISH_MONTHS[month - 1]} de {year}"

    return re.sub(r"(?<![\d-])(\d{4})-(\d{1,2})-(\d{1,2})(?![\d-])", date, text)


def _in_words(text: str, language: _Language, word: Callable[[re.Match[str]], str | None]) -> str:
    decimal, thousands = re.escape(language.decimal), re.escape(language.thousands)
    text = re.sub(r"(?<![\d:])([01]?\d|2[0-4]):([0-5]\d)(?![\d:])", lambda m: _clock(m, language), text)
    # A range of years or counts; codes with several groups, such as 555-12-34, are not ranges.
    text = re.sub(
        rf"(?<![\w{decimal}{thousands}-])(\d{{1,4}}) ?[-–—] ?(\d{{1,4}})(?![\d-])", rf"\1 {language.to} \2", text
    )
    text = re.sub(r"(?<![\w/])(\d{1,4})/(\d{1,4})(?![\w/])", lambda m: _fraction(m, language), text)
    text = re.sub(r"(?<![\w.,)-])[-−](?=\d)", f"{language.minus} ", text)
    text = re.sub(r"(?<![^\W\d_])(\d+)(st|nd|rd|th|\.?[ºª]|0?s)(?![^\W\d_])", lambda m: word(m) or m[0], text)
    # Letters and digits that are glued ("B12", "COVID-19", "5-year") are spoken as separate words.
    text = re.sub(r"(?<=[^\W\d_])-?(?=\d)", " ", text)
    text = re.sub(r"(?<=\d)-?(?=[^\W\d_])", " ", text)
    text = re.sub(rf"\d+(?:[{decimal}{thousands}]\d+)*", lambda m: _number(m[0], language), text)
    for sign, spoken in language.signs.items():
        text = text.replace(sign, f" {spoken} ")
    return re.sub(r" +([,.;:?!])", r"\1", " ".join(text.split()))


def _clock(match: re.Match[str], language: _Language) -> str:
    hour, minute = int(match[1]), match[2]
    spoken = _cardinal(hour, language.code)
    if minute == "00":
        after = match.string[match.end() :].lstrip().lower()
        if language.code == "en" and not re.match(r"[ap]\.? ?m\b", after):
            return f"{spoken} o'clock"
        return spoken + (" en punto" if language.code == "es" else "")
    if minute[0] == "0":
        zero = "oh" if language.code == "en" else "cero"
        return f"{spoken} {zero} {_cardinal(int(minute), language.code)}"
    return f"{spoken} {_cardinal(int(minute), language.code)}"


def _fraction(match: re.Match[str], language: _Language) -> str:
    known = language.fractions.get((match[1], match[2]))
    return known or f"{_number(match[1], language)} {language.by} {_number(match[2], language)}"


def _number(written: str, language: _Language) -> str:
    whole, *parts = written.split(language.decimal)
    grouped = re.fullmatch(rf"\d{{1,3}}(?:{re.escape(language.thousands)}\d{{3}})+", whole)
    digits = whole.replace(language.thousands, "") if grouped else whole
    if not digits.isdigit():
        # Separators that do not group thousands, as in "1,2": each number by itself.
        pieces = re.split(f"({re.escape(language.thousands)})", whole)
        spoken = "".join(f"{piece} " if piece == language.thousands else _number(piece, language) for piece in pieces)
    elif (len(digits) > 1 and digits[0] == "0") or (
        len(digits) > _DIGITS_AT_MOST and not grouped and not digits.endswith("0000")
    ):
        spoken = _digits(digits, language)
    else:
        spoken = _cardinal(int(digits), language.code)
    if len(parts) == 1:
        return f"{spoken} {language.point} {_digits(parts[0], language)}"
    return f" {language.point} ".join([spoken, *(_number(part, language) for part in parts)])


def _digits(digits: str, language: _Language) -> str:
    return " ".join(_cardinal(int(digit), language.code) for digit in digits)


def _english_word(match: re.Match[str]) -> str | None:
    number, ending = match[1], match[2]
    if ending in {"st", "nd", "rd", "th"}:
        return str(_num2words()(int(number), lang="en", to="ordinal"))
    if ending in {"s", "0s"}:
        value = int(number + ending.removesuffix("s"))
        spoken = _cardinal(value, "en")
        return f"{spoken[:-1]}ies" if spoken.endswith("y") else f"{spoken}s"
    return None


def _spanish_word(match: re.Match[str]) -> str | None:
    number, ending = match[1], match[2]
    if ending[-1] not in "ºª" or not 0 < int(number) <= 100:
        return None
    spoken = str(_num2words()(int(number), lang="es", to="ordinal"))
    if ending.endswith("ª"):
        return re.sub(r"o\b", "a", spoken)
    # Apocope: "el primer piso", "el tercer día".
    return (
        re.sub(r"(primer|tercer)o$", r"\1", spoken)
        if re.match(r" (?!(?:de|del|en|y|que|a)\b)[^\W\d_]", match.string[match.end() :])
        else spoken
    )


def _spanish_articles(text: str) -> str:
    """ "1 día" is "un día", "200 personas" is "doscientas personas"."""

    def one(match: re.Match[str]) -> str:
        feminine = match[1].endswith("a") and match[1] != "día"
        return f"{'una' if feminine else 'un'} {match[1]}"

    def hundreds(match: re.Match[str]) -> str:
        spoken = _cardinal(int(match[1].replace(".", "")), "es")
        return f"{spoken.replace('cientos', 'cientas').replace('quinientos', 'quinientas')} {match[2]}"

    text = re.sub(r"(?<![\w.,/:-])1 (?!(?:de|y|a|o|en|al?|por)\b)([^\W\d_]+)", one, text)
    return re.sub(r"(?<![\w.,/:-])((?:\d{1,3}\.)?[2-9]\d\d) ((?!días\b)[^\W\d_]+as)\b", hundreds, text)


def _cardinal(value: int, language: str) -> str:
    return str(_num2words()(value, lang=language)).replace(",", "")


def _num2words() -> Any:
    try:
        from num2words import num2words  # type: ignore[import-untyped]
    except ImportError as error:
        raise missing_extra("num2words", EXTRA) from error
    return num2words
