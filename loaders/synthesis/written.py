"""From written to spoken form: what the engines would read wrongly; plain numbers they read well."""

from __future__ import annotations

import re
import unicodedata

_NUMBER = r"\d+(?:[.,]\d+)*"

_CURRENCIES = {
    "en": {"$": ("dollar", "dollars"), "£": ("pound", "pounds"), "€": ("euro", "euros"), "¥": ("yuan", "yuan")},
    "es": {"$": ("dólar", "dólares"), "£": ("libra", "libras"), "€": ("euro", "euros"), "¥": ("yuan", "yuanes")},
}
_SCALES = {"en": "thousand|million|billion|trillion", "es": "mil|millones|millón|billones|billón"}

_UNITS = {
    "en": {
        "%": "percent", "mg": "milligrams", "g": "grams", "kg": "kilograms", "mm": "millimeters", "cm": "centimeters",
        "km": "kilometers", "km/h": "kilometers per hour", "mph": "miles per hour", "ml": "milliliters",
        "°C": "degrees Celsius", "°F": "degrees Fahrenheit", "°": "degrees", "kWh": "kilowatt hours",
    },
    "es": {
        "%": "por ciento", "mg": "miligramos", "g": "gramos", "kg": "kilos", "mm": "milímetros", "cm": "centímetros",
        "km": "kilómetros", "km/h": "kilómetros por hora", "ml": "mililitros", "°C": "grados", "°": "grados",
        "kWh": "kilovatios hora",
    },
}  # fmt: skip

_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_SPANISH_TENS = (
    "veinti", "treinta y ", "cuarenta y ", "cincuenta y ", "sesenta y ", "setenta y ", "ochenta y ", "noventa y ",
)  # fmt: skip

_SILENT = {"So", "Sk", "Cc", "Cf", "Co", "Cn", "Cs"}
_UNREAD = re.compile(r"[\^¤$¢£¥€₤₩₪₫₹₽₿±×÷√∞∑∫∂∆≈≠≡≤≥²³¹⁰⁴-⁹⁻₀-₉½¼¾⅐-⅞\u3371-\u33df\u2100-\u214f]")
"""What says something: left in a text in words, an engine would drop or guess it."""


def unread_signs(words: str) -> tuple[str, ...]:
    """The signs that `words`, a text in words, still holds though they say something.

    >>> unread_signs("one hundred and six"), unread_signs("ten^six ㎡ for five ¢")
    ((), ('^', '㎡', '¢'))
    """
    return tuple(dict.fromkeys(_UNREAD.findall(words)))


def spoken_form(text: str, language: str) -> str:
    """`text` as it is spoken, without symbols that nobody says (emoji, control characters).

    >>> spoken_form("Is £50 enough on 30 May 1960? 🙂", "en")
    'Is 50 pounds enough on the 30th of May 19 60?'
    >>> spoken_form("¿Son 21 € o 2,5 % a los 31 días?", "es")
    '¿Son veintiún euros o 2,5 por ciento a los treinta y un días?'
    """
    text = unicodedata.normalize("NFC", text)
    if language in _CURRENCIES:
        text = _currencies(text, language)
        text = _units(text, language)
    if language == "en":
        text = _english_dates(text)
    elif language == "es":
        text = _spanish_ones(re.sub(r"\b1 de (?=[a-z]+)", "primero de ", text))
    elif language == "zh":
        text = text.replace("〇", "零")
    text = re.sub(r"(?<!\w)\^|\^(?!\w)", "", text)
    kept = (c for c in text if unicodedata.category(c) not in _SILENT or c in "\n\t" or _UNREAD.fullmatch(c))
    return " ".join("".join(kept).replace("\ufe0f", "").split())


def _currencies(text: str, language: str) -> str:
    for sign, (one, many) in _CURRENCIES[language].items():
        mark, scale = re.escape(sign), rf"(?: (?:{_SCALES[language]})\b)?"

        def amount(match: re.Match[str], one: str = one, many: str = many) -> str:
            number = match[1]
            whole, _, cents = number.rpartition("." if language == "en" else ",")
            if not (whole and len(cents) == 2 and cents.isdigit()):
                whole, cents = number, "00"
            joined = f"{whole} {one if whole == '1' else many}"
            if cents == "00":
                return joined
            return f"{joined} {cents}" if language == "en" else f"{joined} con {cents}"

        for pattern in (rf"{mark} ?({_NUMBER}{scale})(?![^\W\d_])", rf"({_NUMBER}{scale}) ?{mark}"):
            text = re.sub(pattern, amount, text)
    return text


def _units(text: str, language: str) -> str:
    units = _UNITS[language]
    longest_first = "|".join(re.escape(unit) for unit in sorted(units, key=len, reverse=True))
    return re.sub(rf"({_NUMBER}) ?({longest_first})(?![^\W\d_]|/)", lambda m: f"{m[1]} {units[m[2]]}", text)


def _ordinal(day: int) -> str:
    suffix = "th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{suffix}"


def _english_dates(text: str) -> str:
    suffix = r"(?:st|nd|rd|th)?"
    text = re.sub(
        rf"\b(?:the )?(\d{{1,2}}){suffix} (?:of )?({_MONTHS})\b", lambda m: f"the {_ordinal(int(m[1]))} of {m[2]}", text
    )
    text = re.sub(rf"\b({_MONTHS}) (\d{{1,2}})\b(?![.,:]\d)", lambda m: f"{m[1]} {_ordinal(int(m[2]))}", text)
    # Four digits from 1101 to 1999 are read in pairs; whole hundreds and numbers with a unit of money stay numbers.
    money = "|".join(word for pair in _CURRENCIES["en"].values() for word in pair)
    return re.sub(rf"(?<![\d.,])(1[1-9])(\d\d)(?![\d]|[.,]\d| (?:{money})\b)", _year, text)


def _year(match: re.Match[str]) -> str:
    century, rest = match[1], match[2]
    if rest == "00":
        return match[0]
    return f"{century} oh {rest[1]}" if rest[0] == "0" else f"{century} {rest}"


def _spanish_ones(text: str) -> str:
    def rewrite(match: re.Match[str]) -> str:
        tens, noun = _SPANISH_TENS[int(match[1]) - 2], match[2]
        feminine = (noun.endswith("as") and noun != "días") or noun in {
            "mujeres",
            "veces",
            "noches",
            "calles",
            "partes",
        }
        one = "una" if feminine else ("ún" if tens == "veinti" else "un")
        return f"{tens}{one} {noun}"

    # Only before a plural noun: "el 21" and "21 de marzo" stay as they are.
    return re.sub(r"(?<![\d.,])([2-9])1 ([^\W\d_]+s)\b", rewrite, text)
