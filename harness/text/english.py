"""English: numbers, currency, times, dates, units, contractions and spellings in one form each."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from .base import fold, strip_punctuation, word_list
from .english_numbers import digits_for_words, ordinal
from .english_spelling import AMERICAN

Rule = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

_MONTHS = word_list("january february march april may june july august september october november december")
_MONTH = "|".join(_MONTHS)
_SHORT_MONTHS = {m[:3]: m for m in _MONTHS if m != "may"} | {"sept": "september"}
_CURRENCIES = {"$": "dollar", "£": "pound", "€": "euro", "¥": "yen", "₹": "rupee"}
_SCALE = {"k": "thousand", "m": "million", "mn": "million", "bn": "billion", "b": "billion"}
_UNITS = {
    "km": "kilometer", "cm": "centimeter", "mm": "millimeter", "m": "meter", "kg": "kilogram", "mg": "milligram",
    "g": "gram", "lb": "pound", "lbs": "pound", "oz": "ounce", "ft": "foot", "feet": "foot", "inches": "inch",
    "mi": "mile", "ml": "milliliter", "l": "liter", "kwh": "kilowatt hour", "kw": "kilowatt", "hz": "hertz",
    "khz": "kilohertz", "mhz": "megahertz", "ghz": "gigahertz", "kb": "kilobyte", "mb": "megabyte", "gb": "gigabyte",
    "tb": "terabyte", "db": "decibel", "mph": "mile per hour", "kph": "kilometer per hour", "s": "sec",
    "secs": "sec", "seconds": "sec", "min": "minute", "mins": "minute", "hr": "hour", "hrs": "hour", "yr": "year",
    "yrs": "year", "centuries": "century", "pence": "penny", "pennies": "penny",
}  # fmt: skip
_COUNTED = word_list(
    "dollar pound euro rupee cent kilometer centimeter millimeter meter kilogram milligram gram ounce mile yard acre "
    "milliliter liter gallon kilowatt watt volt kilobyte megabyte gigabyte terabyte decibel degree minute hour day "
    "week month year decade calorie bit byte time percent"
)
_UNITS |= {f"{word}s": word for word in _COUNTED}

_CONTRACTIONS = {
    "won't": "will not", "can't": "can not", "cannot": "can not", "shan't": "shall not", "let's": "let us",
    "gonna": "going to", "wanna": "want to", "gotta": "got to", "y'all": "you all", "i'm": "i am", "im": "i am",
    "ive": "i have", "youre": "you are", "youve": "you have", "theyre": "they are", "theyve": "they have",
    "weve": "we have", "thats": "that is", "whats": "what is", "dont": "do not", "doesnt": "does not",
    "didnt": "did not", "isnt": "is not", "arent": "are not", "wasnt": "was not", "werent": "were not",
    "havent": "have not", "hasnt": "has not", "hadnt": "had not", "couldnt": "could not", "wouldnt": "would not",
    "shouldnt": "should not",
}  # fmt: skip
_PRONOUN = "i|you|he|she|it|we|they|that|this|there|here|what|who|where|when|why|how|which"
_WORDS = AMERICAN | {"mr": "mister", "mrs": "missus", "dr": "doctor", "prof": "professor", "vs": "versus", "ok": "okay"}
_NUMBER = r"\d+(?:\.\d+)?"


def _iso_date(match: re.Match[str]) -> str:
    month, day = int(match[2]), int(match[3])
    if not (1 <= month <= 12 and 1 <= day <= 31):
        return match[0]
    return f"{_MONTHS[month - 1]} {day} {match[1]}"


def _clock(match: re.Match[str]) -> str:
    hour, minute = int(match[1]), match[2]
    if hour > 24 or int(minute) > 59:
        return match[0]
    half = match[3] or ""
    if minute == "00":
        return f"{hour} {half}" if half else f"{hour} oclock"
    return f"{hour}{minute} {half}".rstrip()


def _money(match: re.Match[str]) -> str:
    scale = f" {_SCALE.get(match[3], match[3])}" if match[3] else ""
    return f"{match[2]}{scale} {_CURRENCIES[match[1]]} "


def _fraction(match: re.Match[str]) -> str:
    top, bottom = int(match[1]), int(match[2])
    if bottom == 2 and top == 1:
        return "half"
    return f"{top} {ordinal(bottom)}" if 3 <= bottom <= 10 and top < bottom else match[0]


# Symbols and abbreviations to words, before number words are read.
_BEFORE: tuple[Rule, ...] = (
    (re.compile(r"\b(?:[a-z]\.){2,}(?:[a-z]\b)?|\b[a-z]\.[a-z]\b(?!\.)"), lambda m: m[0].replace(".", "")),
    (re.compile(r"(?<=[a-z0-9])\.(?=(?:com|org|net|edu|gov|io)\b)"), " dot "),
    (re.compile(r"\be-mail"), "email"),
    (re.compile(r"\bper cent\b"), "percent"),
    (re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])"), lambda m: m[0].replace(",", "")),
    (re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b"), _iso_date),
    (re.compile(r"(?<![\d:.])(\d{1,2}):(\d{2})(?![\d:])(?: ?([ap]m)\b)?"), _clock),
    (
        re.compile(
            rf"(?:\b(?:us|a|c|nz|hk) ?)?([$£€¥₹]) ?({_NUMBER})(?: ?(thousand|million|billion|trillion|[kmb]|[mb]n)\b)?"
        ),
        _money,
    ),
    (re.compile(r"(?<=\d) ?([$£€¥₹])"), lambda m: f" {_CURRENCIES[m[1]]} "),
    (re.compile(r"(?<=\d) ?¢"), " cent "),
    (re.compile(r"%"), " percent "),
    (re.compile(r"(?<=\d) ?° ?c\b"), " degree celsius "),
    (re.compile(r"(?<=\d) ?° ?f\b"), " degree fahrenheit "),
    (re.compile(r"(?<=\d) ?°"), " degree "),
    (re.compile(r"(?<=\d) ?km/h\b"), " kilometer per hour "),
    (re.compile(r"(?<=\d) ?m/s\b"), " meter per sec "),
    (re.compile(r"(?<![\w/.])(\d)/(\d{1,2})(?![\w/]|\.\d)"), _fraction),
    (re.compile(r"(?<![\w.])(?<!\d )[-\u2212](?=\.?\d)"), " minus "),
    (re.compile(r"(?<![\w.])\.(?=\d)"), "0."),
    (re.compile(r"#(?=\d)"), " number "),
    (re.compile(r"&"), " and "),
    (re.compile(r"@"), " at "),
    (re.compile(r"\+"), " plus "),
    (re.compile(r"(?<=\w) ?= ?(?=\w)"), " equals "),
    # Possessives and contractions; the apostrophes that are left are deleted.
    (re.compile(rf"\b({_PRONOUN})'s\b"), r"\1 is"),
    (re.compile(rf"\b({_PRONOUN})'d\b"), r"\1 would"),
    (re.compile(r"(?<=[a-z])n't\b"), " not"),
    (re.compile(r"(?<=[a-z])'re\b"), " are"),
    (re.compile(r"(?<=[a-z])'ve\b"), " have"),
    (re.compile(r"(?<=[a-z])'ll\b"), " will"),
    (re.compile(r"(?<=\w)'(?=\w)"), ""),
    (re.compile(r"(?<=\d)(?!(?:st|nd|rd|th|s)\b)(?=[a-z])|(?<=[a-z])(?=\d)"), " "),
    (re.compile(r"\bhalf an? (?=(?:hundred|thousand|million|billion)\b)"), "0.5 "),
    (re.compile(r"\ba (?=(?:hundred|thousand|million|billion|trillion)\b)"), "one "),
)

_AFTER: tuple[Rule, ...] = (
    (re.compile(r"(?<=\d) and (?:a|1) half\b"), " half"),
    (re.compile(r"\b1 half\b"), "half"),
    (re.compile(r"(?<=\d )(3rd|[4-9]th|10th)s\b"), r"\1"),
    (re.compile(r"(?<=\d )thirds\b"), "3rd"),
    (re.compile(rf"(?<=\d )({'|'.join(sorted(_UNITS, key=len, reverse=True))})\b"), lambda m: _UNITS[m[1]]),
    (re.compile(r"\bper (?:second|2nd)\b"), "per sec"),
    (re.compile(r"(?<=\d) ([ap]) m\b"), r" \1m"),
    (re.compile(r"(?<=\d) oclock(?= [ap]m\b)"), ""),
    (re.compile(r"(?<!\.)\b(\d+) dollar(?: and)? (\d{1,2}) cent\b"), lambda m: f"{m[1]}.{int(m[2]):02d} dollar"),
    (re.compile(r"(?<![\d.])(\d+)\.00 (?=(?:dollar|euro|pound)\b)"), r"\1 "),
    (re.compile(r"(?<![\d.])(\d+\.\d) (?=(?:dollar|euro|pound)\b)"), r"\g<1>0 "),
    (re.compile(rf"\b({'|'.join(_SHORT_MONTHS)})\b\.?(?= (?:the )?\d)"), lambda m: _SHORT_MONTHS[m[1]]),
    (re.compile(rf"(?<=\d[dht] of )({'|'.join(_SHORT_MONTHS)})\b"), lambda m: _SHORT_MONTHS[m[1]]),
    (re.compile(rf"\b({_MONTH}),? (?:the )?(\d\d?)(?:st|nd|rd|th)\b"), r"\1 \2"),
    (re.compile(rf"(?:\bthe )?\b(\d\d?)(?:st|nd|rd|th),? (?:of )?({_MONTH})\b"), r"\2 \1"),
    (re.compile(rf"\b(?:the )?(\d\d?) of ({_MONTH})\b"), r"\2 \1"),
    (
        re.compile(rf"(\b(?:{_MONTH}) )?\b(\d\d?) ((?!may\b|march\b)(?:{_MONTH}))\b(?! \d\d?\b)"),
        lambda m: m[0] if m[1] else f"{m[3]} {m[2]}",
    ),
    # Months that are words too move only behind a preposition of time.
    (re.compile(r"\b(on|by|until|till|since|before|after|from) (\d\d?) (may|march)\b"), r"\1 \3 \2"),
    (re.compile(r"\.(?!\d)|(?<!\d)\."), " "),
)
_ACCENTED = re.compile(r"[^\x00-\x7f]")
_WORD = re.compile(r"[a-z']+")


def fold_latin_accents(text: str) -> str:
    """Marks over Latin letters removed (é → e, ñ → n); other scripts keep theirs.

    >>> fold_latin_accents("naïve café हिन्दी")
    'naive cafe हिन्दी'
    """
    if not _ACCENTED.search(text):
        return text
    kept: list[str] = []
    latin = False
    for char in unicodedata.normalize("NFD", text):
        mark = unicodedata.category(char) == "Mn"
        if mark and latin:
            continue
        if not mark:
            latin = "a" <= char.lower() <= "z"
        kept.append(char)
    return unicodedata.normalize("NFC", "".join(kept))


def english_step(text: str) -> str:
    """One pass of the English normalizer (the caller repeats it until nothing changes).

    >>> english_step("It’s £3.50 — don’t pay thirty-six euros on the 5th of March, 2024!")
    'it is 3.50 pound do not pay 36 euro on march 5 2024'
    """
    text = " ".join(fold_latin_accents(fold(text.replace("\u02bc", "'"))).replace("\u2044", "/").split())
    text = _WORD.sub(lambda m: _CONTRACTIONS.get(m[0], m[0]), text)
    for pattern, replacement in _BEFORE:
        text = pattern.sub(replacement, text)
    text = digits_for_words(" ".join(text.split()))
    for pattern, replacement in _AFTER:
        text = pattern.sub(replacement, text)
    text = strip_punctuation(text, keep=".")
    return _WORD.sub(lambda m: _WORDS.get(m[0], m[0]), text)
