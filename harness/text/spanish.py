"""Spanish: numbers, ordinals, money, times, dates and units in one form each; accents and ñ stay."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from .base import fold, strip_punctuation, word_list
from .spanish_numbers import digits_for_words

Rule = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

_MONTHS = word_list("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre")
_ORDINALS = {
    stem: number
    for number, stem in enumerate(
        word_list("primer segund tercer cuart quint sext séptim octav noven décim undécim duodécim"), start=1
    )
} | {"septim": 7, "decim": 10, "vigésim": 20}
_CURRENCIES = {"$": "dólar", "€": "euro", "£": "libra", "¥": "yen"}
_ABBREVIATED = {
    "km": "kilómetro", "cm": "centímetro", "mm": "milímetro", "m": "metro", "kg": "kilogramo", "kilo": "kilogramo",
    "kilos": "kilogramo", "mg": "miligramo", "g": "gramo", "ml": "mililitro", "l": "litro", "s": "seg",
    "segundo": "seg", "segundos": "seg", "min": "minuto", "h": "hora", "gb": "gigabyte", "mb": "megabyte",
    "meses": "mes", "dólares": "dólar", "yenes": "yen", "veces": "vez",
}  # fmt: skip
_COUNTED = word_list(
    "euro peso libra céntimo centavo kilómetro centímetro milímetro metro kilogramo miligramo gramo tonelada mililitro "
    "litro grado minuto hora día semana año década siglo caloría gigabyte megabyte kilobyte byte milla"
)
_UNITS = _ABBREVIATED | {f"{word}s": word for word in _COUNTED}
_WORDS = {
    "sr": "señor", "sra": "señora", "srta": "señorita", "dr": "doctor", "dra": "doctora", "ud": "usted",
    "uds": "ustedes", "eeuu": "estados unidos", "setiembre": "septiembre",
}  # fmt: skip
_NUMBER = r"\d+(?:\.\d+)?"
_ROMAN = {"i": 1, "v": 5, "x": 10}


def _date(match: re.Match[str]) -> str:
    year, month, day = match[1], int(match[2]), int(match[3])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{day} de {_MONTHS[month - 1]} de {year}"


def _clock(match: re.Match[str]) -> str:
    hour, minute = int(match[1]), match[2]
    if hour > 24 or int(minute) > 59:
        return match[0]
    return str(hour) if minute == "00" else f"{hour} {minute}"


def _century(match: re.Match[str]) -> str:
    values = [_ROMAN[c] for c in match[2]]
    total = sum(-v if v < max(values[i:], default=0) else v for i, v in enumerate(values))
    return f"{match[1]} {total}"


def _ordinal(match: re.Match[str]) -> str:
    ending = match[2] or "o"
    return f"{_ORDINALS[match[1]]}{ending}"


# Ordinal signs, thousands and narrow blanks: before compatibility folding hides them (º becomes o).
_BEFORE_FOLDING: tuple[Rule, ...] = (
    (re.compile(r"\b[nN]\.?º\.?(?= ?\d)"), "número"),
    (re.compile(r"(?<=\d)\.?º"), "o"),
    (re.compile(r"(?<=\d)\.?ª"), "a"),
    (re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))"), ""),
)
_BEFORE: tuple[Rule, ...] = (
    (re.compile(r"\bee\. ?uu\.?|\be\.e\.u\.u\.?"), "estados unidos"),
    (re.compile(r"\b([ap])\. ?m\b\.?"), r"\1m"),
    (
        re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?(?![\d.]*\d)"),
        lambda m: m[0].replace(".", "").replace(",", "."),
    ),
    (re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?(?![\d,]*\d)"), lambda m: m[0].replace(",", "")),
    (re.compile(r"(?<![\d.,])(?<!\d )[1-9]\d{0,2}(?: \d{3})+(?![\d ]*\d)"), lambda m: m[0].replace(" ", "")),
    (re.compile(r"(?<![\d.,])(\d+),(\d+)(?![\d.,]*\d)"), r"\1.\2"),
    (re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b"), _date),
    (re.compile(r"(?<![\d:.])(\d{1,2}):(\d{2})(?![\d:])(?: ?(?:h|hs|hrs)\b)?"), _clock),
    (
        re.compile(rf"(?:\bus ?)?([$€£¥]) ?({_NUMBER})(?: ?(mil|millón|millones)\b(?: de\b)?)?"),
        lambda m: f"{m[2]}{f' {m[3]}' if m[3] else ''} {_CURRENCIES[m[1]]} ",
    ),
    (re.compile(r"(?<=\d) ?(?:us ?)?([$€£¥])"), lambda m: f" {_CURRENCIES[m[1]]} "),
    (re.compile(r"%|\bpor ciento\b"), " porciento "),
    (re.compile(r"(?<=\d) ?km/h\b"), " kilómetro por hora "),
    (re.compile(r"(?<=\d) ?° ?c\b"), " grado celsius "),
    (re.compile(r"(?<=\d) ?°"), " grado "),
    (re.compile(r"(?<![\w.])(?<!\d )[-\u2212](?=\d)"), " menos "),
    (re.compile(r"&"), " y "),
    (re.compile(r"@"), " arroba "),
    (re.compile(r"\+"), " más "),
    (re.compile(r"(?<=\w) ?= ?(?=\w)"), " igual a "),
    (re.compile(r"\b(siglo) ([ivx]+)\b"), _century),
    (re.compile(r"\b(\d+)(?:er|[rdtmvn]o)\b"), r"\1o"),
    (re.compile(r"\b(\d+)[rdtmvn]a\b"), r"\1a"),
    (re.compile(r"(?<=\d)(?![oa]s?\b)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)"), " "),
    (re.compile(r"(?<!\d )(?<!\w)(primer|tercer)(o|a|os|as)?\b"), _ordinal),
    (
        re.compile(rf"(?<!\d )\b({'|'.join(s for s in _ORDINALS if s not in ('primer', 'tercer'))})(o|a|os|as)\b"),
        lambda m: m[0] if m[0] == "segundos" else _ordinal(m),
    ),
)
_AFTER: tuple[Rule, ...] = (
    (re.compile(rf"(?<=\d )({'|'.join(sorted(_UNITS, key=len, reverse=True))})\b"), lambda m: _UNITS[m[1]]),
    (re.compile(r"\b100 por 100\b"), "100 porciento"),
    (re.compile(r"(?<=\d) de (?=(?:euro|dólar|peso|libra)(?:s|es)?\b)"), " "),
    (
        re.compile(r"(?<![\d.])(\d+) (euro|dólar|peso|libra)(?: con| y)? (\d{1,2}) (?:céntimo|centavo)\b"),
        lambda m: f"{m[1]}.{int(m[3]):02d} {m[2]}",
    ),
    (re.compile(r"(?<![\d.])(\d+)\.00 (?=(?:euro|dólar|peso|libra)\b)"), r"\1 "),
    (re.compile(r"(?<![\d.])(\d+\.\d) (?=(?:euro|dólar|peso|libra)\b)"), r"\g<1>0 "),
    (re.compile(rf"\b1o (?=de (?:{'|'.join(_MONTHS)})\b)"), "1 "),
    (re.compile(r"\b(las?) (\d{1,2}) y media\b"), r"\1 \2 30"),
    (re.compile(r"\b(las?) (\d{1,2}) y cuarto\b"), r"\1 \2 15"),
    (re.compile(r"\b(las?) (\d{1,2}) y (\d{1,2})\b"), lambda m: f"{m[1]} {m[2]} {int(m[3]):02d}"),
    (re.compile(r"\.(?!\d)|(?<!\d)\."), " "),
)
_WORD = re.compile(r"[a-zñáéíóúü]+")


def fold_spanish_accents(text: str) -> str:
    """Accents and diaereses removed; ñ stays ñ.

    >>> fold_spanish_accents("pingüino año qué")
    'pinguino año que'
    """
    marks = unicodedata.normalize("NFD", text)
    kept = [c for i, c in enumerate(marks) if c not in "\u0301\u0300\u0308" or marks[i - 1 : i] not in tuple("aeiou")]
    return unicodedata.normalize("NFC", "".join(kept))


def spanish_step(text: str, *, accents: bool = True) -> str:
    """One pass of the Spanish normalizer (the caller repeats it until nothing changes).

    `accents=False` folds accents, never ñ.

    >>> spanish_step("¿Cuántos años? ¡Treinta y seis, el 50 % de 1.000 €!")
    'cuántos años 36 el 50 porciento de 1000 euro'
    """
    for pattern, replacement in _BEFORE_FOLDING:
        text = pattern.sub(replacement, text)
    text = " ".join(fold(text).replace("'", " ").split())
    for pattern, replacement in _BEFORE:
        text = pattern.sub(replacement, text)
    text = digits_for_words(" ".join(text.split()))
    for pattern, replacement in _AFTER:
        text = pattern.sub(replacement, text)
    text = _WORD.sub(lambda m: _WORDS.get(m[0], m[0]), strip_punctuation(text, keep="."))
    return text if accents else fold_spanish_accents(text)
