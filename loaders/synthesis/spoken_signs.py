"""English and Spanish signs that stand at numbers, in words: units, powers, ratios, sums, telephone numbers, kings.

Numbers stay digits where their words do not depend on the sign; `spoken_form` reads them afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_NUMBER = r"\d+(?:[.,]\d+)*"
_END = r"(?![\w²³/])"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_MONTHS_ES = ("enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre",
              "noviembre", "diciembre")  # fmt: skip
_MONTHS_EN = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
              "November", "December")  # fmt: skip

_UNITS_EN = {
    "mg": ("milligram", "milligrams"), "g": ("gram", "grams"), "kg": ("kilogram", "kilograms"),
    "mcg": ("microgram", "micrograms"), "µg": ("microgram", "micrograms"), "ng": ("nanogram", "nanograms"),
    "lb": ("pound", "pounds"), "lbs": ("pound", "pounds"), "oz": ("ounce", "ounces"),
    "mm": ("millimeter", "millimeters"), "cm": ("centimeter", "centimeters"), "m": ("meter", "meters"),
    "km": ("kilometer", "kilometers"), "ft": ("foot", "feet"), "yd": ("yard", "yards"), "mi": ("mile", "miles"),
    "ml": ("milliliter", "milliliters"), "mL": ("milliliter", "milliliters"), "dl": ("deciliter", "deciliters"),
    "dL": ("deciliter", "deciliters"), "L": ("liter", "liters"), "l": ("liter", "liters"),
    "KB": ("kilobyte", "kilobytes"), "MB": ("megabyte", "megabytes"), "GB": ("gigabyte", "gigabytes"),
    "TB": ("terabyte", "terabytes"), "Mbps": ("megabit per second", "megabits per second"),
    "kWh": ("kilowatt hour", "kilowatt hours"), "kW": ("kilowatt", "kilowatts"), "mAh": ("milliamp hour",
    "milliamp hours"), "Hz": ("hertz", "hertz"), "kHz": ("kilohertz", "kilohertz"), "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"), "dB": ("decibel", "decibels"), "mmol": ("millimole", "millimoles"),
    "mmHg": ("millimeters of mercury", "millimeters of mercury"), "kcal": ("kilocalorie", "kilocalories"),
    "mph": ("mile per hour", "miles per hour"), "h": ("hour", "hours"), "°C": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"), "°": ("degree", "degrees"),
    "m²": ("square meter", "square meters"), "m2": ("square meter", "square meters"),
    "km²": ("square kilometer", "square kilometers"), "ft²": ("square foot", "square feet"),
    "sq ft": ("square foot", "square feet"), "m³": ("cubic meter", "cubic meters"),
    "m3": ("cubic meter", "cubic meters"), "cm³": ("cubic centimeter", "cubic centimeters"),
}  # fmt: skip
_UNITS_ES = {
    "mg": ("miligramo", "miligramos"), "g": ("gramo", "gramos"), "kg": ("kilo", "kilos"),
    "mcg": ("microgramo", "microgramos"), "µg": ("microgramo", "microgramos"), "lb": ("libra", "libras"),
    "mm": ("milímetro", "milímetros"), "cm": ("centímetro", "centímetros"), "m": ("metro", "metros"),
    "km": ("kilómetro", "kilómetros"), "ml": ("mililitro", "mililitros"), "mL": ("mililitro", "mililitros"),
    "dl": ("decilitro", "decilitros"), "dL": ("decilitro", "decilitros"), "l": ("litro", "litros"),
    "L": ("litro", "litros"), "MB": ("megabyte", "megabytes"), "GB": ("gigabyte", "gigabytes"),
    "TB": ("terabyte", "terabytes"), "kWh": ("kilovatio hora", "kilovatios hora"), "kW": ("kilovatio", "kilovatios"),
    "mAh": ("miliamperio hora", "miliamperios hora"), "Hz": ("hercio", "hercios"), "GHz": ("gigahercio", "gigahercios"),
    "MHz": ("megahercio", "megahercios"), "dB": ("decibelio", "decibelios"), "mmol": ("milimol", "milimoles"),
    "mmHg": ("milímetros de mercurio", "milímetros de mercurio"), "kcal": ("kilocaloría", "kilocalorías"),
    "h": ("hora", "horas"), "min": ("minuto", "minutos"), "°C": ("grado", "grados"), "°": ("grado", "grados"),
    "m²": ("metro cuadrado", "metros cuadrados"), "m2": ("metro cuadrado", "metros cuadrados"),
    "km²": ("kilómetro cuadrado", "kilómetros cuadrados"), "m³": ("metro cúbico", "metros cúbicos"),
    "m3": ("metro cúbico", "metros cúbicos"), "cm³": ("centímetro cúbico", "centímetros cúbicos"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Words:
    units: Mapping[str, tuple[str, str]]
    below: Mapping[str, str]
    """What stands below a unit (m/s) and is none by itself."""
    times: tuple[str, ...]
    """Words that stand below money: €/mes."""
    per: str
    power: str
    squared: str
    cubed: str
    to: str
    by: str
    minus: str
    money: Mapping[str, tuple[str, str]]
    scales: Mapping[str, str]
    digits: tuple[str, ...]
    plus: str
    comparisons: Mapping[str, str]


_ENGLISH = _Words(
    _UNITS_EN,
    {"s": "second", "s²": "second squared", "min": "minute", "day": "day"},
    ("month", "year", "week", "day", "hour", "person", "user", "share", "night", "barrel"),
    "per", "to the power of", "squared", "cubed", "to", "by", "minus",
    {"$": ("dollar", "dollars"), "£": ("pound", "pounds"), "€": ("euro", "euros"), "¥": ("yuan", "yuan")},
    {"k": "thousand", "K": "thousand", "M": "million", "m": "million", "mn": "million", "B": "billion", "b": "billion",
     "bn": "billion", "T": "trillion", "tn": "trillion"},
    ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    "plus", {">": "greater than", "<": "less than", "≥": "at least", "≤": "at most", "≈": "about"},
)  # fmt: skip
_SPANISH = _Words(
    _UNITS_ES,
    {"s": "segundo", "s²": "segundo al cuadrado"},
    ("mes", "año", "semana", "día", "hora", "persona", "noche", "barril"),
    "por", "elevado a", "al cuadrado", "al cubo", "a", "por", "menos",
    {"$": ("dólar", "dólares"), "£": ("libra", "libras"), "€": ("euro", "euros"), "¥": ("yuan", "yuanes")},
    {"k": "mil", "K": "mil", "M": "millones de"},
    ("cero", "uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve"),
    "más", {">": "mayor que", "<": "menor que", "≥": "al menos", "≤": "como máximo", "≈": "aproximadamente"},
)  # fmt: skip


def english_signs(text: str) -> str:
    """`text` with signs in words.

    >>> english_signs("a $5M deal, 10^6 m/s²: 120 km/h")
    'a 5 million dollar deal, 10 to the power of 6 meters per second squared: 120 kilometers per hour'
    """
    words = _ENGLISH
    text = _telephones(text, words, r"\(?\b\d{3}\)?[ .-]\d{3}[ .-]\d{4}|\b\d{3}-\d{4}")
    text = re.sub(
        r"(?i)\b(call|dial|text|phone) (911|988|112|999|311|411)\b", lambda m: f"{m[1]} {_each(m[2], words)}", text
    )
    text = _slash_dates(text, words)
    text = re.sub(r"\b9/11\b", "nine eleven", text)
    text = re.sub(r"\b401 ?\(k\)", "401k", text)
    text = re.sub(r"\b(\d{1,2}(?::\d\d)?) ?([ap])\.?m\b\.? ?[-–] ?(?=\d)", r"\1 \2m to ", text, flags=re.I)
    text = re.sub(r"(?<=\d) ?([ap])\.?m\b", r" \1 m", text, flags=re.I)
    text = _common(text, words)
    text = re.sub(r"\b(\d+) (?=[1-9]\d?/\d{1,2}\b)", r"\1 and ", text)
    text = re.sub(r"(?<![\w/])(\d{1,2})/(\d{1,2})(?![\w/])", _english_fraction, text)
    # Flights and models: MH370 is three seventy.
    text = re.sub(
        r"\b(?:([A-Z]{1,3})|((?:Boeing|Airbus) ))([1-9])([1-9]\d)\b",
        lambda m: f"{' '.join(m[1]) + ' ' if m[1] else m[2]}{m[3]} {m[4]}",
        text,
    )
    text = re.sub(r"\bWW(I{1,2})\b", lambda m: f"World War {'one' if m[1] == 'I' else 'two'}", text)
    return re.sub(rf"\b({_KINGS_EN}) ([IVX]+)\b", _english_king, text)


def spanish_signs(text: str) -> str:
    """`text` with signs in words.

    >>> spanish_signs("Felipe VI bebe 1.5 l a 9,8 m/s")
    'Felipe sexto bebe 1,5 litros a 9,8 metros por segundo'
    """
    words = _SPANISH
    text = _telephones(text, words, r"\b[6-9]\d{2} \d{3} \d{3}\b|\b[6-9]\d{2} \d{2} \d{2} \d{2}\b")
    text = _slash_dates(text, words)
    text = re.sub(
        r"(?<![\d.,])\d+(?:\.\d+){2,}(?![\d.,])",
        lambda m: m[0] if re.fullmatch(r"\d{1,3}(?:\.\d{3})+", m[0]) else m[0].replace(".", " punto "),
        text,
    )
    text = re.sub(r"(?<![\d.,])(\d+)\.(\d{1,2})(?![\d.,]?\d|[ºª])", r"\1,\2", text)
    text = re.sub(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d.,])", lambda m: m[0].replace(" ", ""), text)
    text = re.sub(r"\b([1-9])(?:er|ro)\b", r"\1º", text)
    text = re.sub(r"\b([1-9])ra\b", r"\1ª", text)
    text = re.sub(r"\b1/2 (?=[^\W\d_]+a\b)", "media ", text)
    text = _common(text, words)
    text = re.sub(r"\b([Ss]iglos?) ([IVX]+)\b", lambda m: f"{m[1]} {_roman(m[2]) or m[2]}", text)
    return re.sub(rf"\b({_KINGS_ES}|{_QUEENS_ES}) ([IVX]+)\b", _spanish_king, text)


def _common(text: str, words: _Words) -> str:
    text = text.replace("μ", "µ").replace("㎡", "m²").replace("㎥", "m³")
    text = _powers(text, words)
    text = _money(text, words)
    text = re.sub(r"(?<![\w.])(\d{1,3}) ?[x×] ?(?=\d)", rf"\1 {words.by} ", text)
    text = _units(text, words)
    # What is no time of day is a ratio.
    text = re.sub(
        r"(?<![\d:])(\d{1,4}):(\d{1,4})(?![\d:])",
        lambda m: m[0] if re.fullmatch(r"(?:[01]?\d|2[0-4]):[0-5]\d", m[0]) else f"{m[1]} {words.to} {m[2]}",
        text,
    )
    return re.sub(r" ?([<>≥≤≈]) ?(?=\d)", lambda m: f" {words.comparisons[m[1]]} ", text)


def _powers(text: str, words: _Words) -> str:
    text = re.sub(
        r"(?<![\w.,])(\d[\d.,]*)[eE]([-−+]?)(\d{1,3})\b",
        lambda m: f"{m[1]} e {words.minus + ' ' if m[2] in {'-', '−'} else ''}{m[3]}",
        text,
    )
    text = re.sub(r"(?<=[\dA-Za-z)])([⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)", _superscript, text)

    def power(match: re.Match[str]) -> str:
        base, minus, exponent = match[1], match[2], match[3]
        if not minus and exponent in {"2", "3"} and not base.isdigit():
            return f"{base} {words.squared if exponent == '2' else words.cubed}"
        return f"{base} {words.power} {words.minus + ' ' if minus else ''}{exponent}"

    return re.sub(r"(\d+|\b[A-Za-z]|\))\^([-−]?)(\d+)", power, text)


def _superscript(match: re.Match[str]) -> str:
    """As ^ behind numbers and single letters that are no unit behind a number; units keep theirs."""
    before = match.string[: match.start()]
    is_unit = re.search(r"(?:\d ?|/)[A-Za-z]{1,2}$", before) and match[1] in {"²", "³"}
    is_word = re.search(r"[A-Za-z]{2}$", before)
    return match[0] if is_unit or is_word else "^" + match[1].translate(_SUPERSCRIPTS)


def _money(text: str, words: _Words) -> str:
    marks = "".join(map(re.escape, words.money))
    scales = "|".join(sorted(words.scales, key=len, reverse=True))
    below = "|".join(map(re.escape, sorted([*words.units, *words.times], key=len, reverse=True)))
    for pattern in (
        rf"(?:US)?(?P<mark>[{marks}]) ?(?P<number>{_NUMBER})(?: ?/(?P<below>{below})|(?P<scale>{scales}))\b",
        rf"(?P<number>{_NUMBER})(?: ?(?P<scale>{scales}))? ?(?P<mark>[{marks}])/(?P<below>{below})\b",
        rf"(?P<number>{_NUMBER}) ?(?P<scale>{scales})(?P<mark>[{marks}])",
    ):
        text = re.sub(pattern, lambda m: _sum(m, words), text)
    return text


def _sum(match: re.Match[str], words: _Words) -> str:
    found = match.groupdict()
    scale = words.scales.get(found.get("scale") or "", "")
    one, many = words.money[found["mark"]]
    unit = one if _is_adjective(match, words) else many
    below = found.get("below")
    per = f" {words.per} {words.units[below][0] if below in words.units else below}" if below else ""
    return " ".join(part for part in (found["number"], scale, unit) if part) + per


def _units(text: str, words: _Words) -> str:
    every = "|".join(map(re.escape, sorted(words.units, key=len, reverse=True)))
    below = "|".join(map(re.escape, sorted([*words.units, *words.below], key=len, reverse=True)))

    def unit(match: re.Match[str]) -> str:
        one, many = words.units[match[2]]
        spoken = one if match[1] == "1" or _is_adjective(match, words) else many
        if match[3]:
            lower = words.below.get(match[3]) or words.units[match[3]][0]
            spoken = f"{spoken} {words.per} {lower}"
        return f"{match[1]} {spoken}"

    text = re.sub(rf"({_NUMBER}) ?-?({every})(?:/({below}))?{_END}", unit, text)
    if words is _ENGLISH:
        text = re.sub(
            r"(\d+) ?in\b(?=$|[.,;?!)])|(?<=feet )(\d+) ?in\b|(?<=foot )(\d+) ?in\b",
            lambda m: f"{m[1] or m[2] or m[3]} inches",
            text,
        )
        if text.count('"') == 1:
            text = re.sub(r'(\d+)"', lambda m: f"{m[1]} inch", text)
    return text


def _is_adjective(match: re.Match[str], words: _Words) -> bool:
    """English: "a 5 kg parcel" is of five kilogram."""
    if words is not _ENGLISH:
        return False
    before, after = match.string[: match.start()], match.string[match.end() :]
    return bool(
        re.search(r"(?i)\b(?:an?|the)(?: \d+ by)? $", before)
        and re.match(r" (?!(?:of|in|and|or|per|a|an|to|is|for|on|at|from)\b)[a-zA-Z]", after)
    )


def _telephones(text: str, words: _Words, local: str) -> str:
    def digits(match: re.Match[str]) -> str:
        plus = f"{words.plus} " if "+" in match[0] else ""
        return plus + _each(re.sub(r"\D", "", match[0]), words)

    text = re.sub(r"\+\d{1,3}(?:[ .-]?\(?\d{2,4}\)?){2,4}(?!\d)", digits, text)
    return re.sub(rf"(?<![\w.-])(?:1[ .-])?(?:{local})(?![\w-]|[.,]\d)", digits, text)


def _each(digits: str, words: _Words) -> str:
    return " ".join(words.digits[int(digit)] for digit in digits)


def _slash_dates(text: str, words: _Words) -> str:
    def date(match: re.Match[str]) -> str:
        first, second, year = int(match[1]), int(match[2]), match[3]
        day, month = (first, second) if words is _SPANISH or first > 12 else (second, first)
        if not (1 <= month <= 12 and 1 <= day <= 31):
            return match[0]
        if words is _SPANISH:
            return f"{day} de {_MONTHS_ES[month - 1]} de {year}"
        return f"{_MONTHS_EN[month - 1]} {day}, {year}"

    return re.sub(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4})(?![\d/])", date, text)


_LOWER = {3: "third", 5: "fifth", 6: "sixth", 7: "seventh", 8: "eighth", 9: "ninth", 10: "tenth", 12: "twelfth",
          16: "sixteenth"}  # fmt: skip


def _english_fraction(match: re.Match[str]) -> str:
    upper, lower = int(match[1]), int(match[2])
    if upper >= lower or lower not in _LOWER or upper == 0:
        return match[0]
    return f"{upper} {_LOWER[lower]}{'' if upper == 1 else 's'}"


_KINGS_EN = (
    "Louis|Henry|Edward|George|Charles|James|William|Richard|Elizabeth|Mary|Philip|Frederick|Napoleon|Catherine|Peter|"
    "Alexander|Ivan|Nicholas|Benedict|Pius|Leo|Gregory|Innocent|John Paul|Ramses|Ramesses|Ferdinand|Francis|Rama"
)
_ORDINALS_EN = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth",
)  # fmt: skip
_KINGS_ES = (
    "Felipe|Alfonso|Carlos|Fernando|Juan|Juan Pablo|Pablo|Luis|Enrique|Pío|Benedicto|Jaime|Sancho|Pedro|León|Napoleón|"
    "Guillermo|Jorge|Francisco|Gregorio|Inocencio|Alejandro|Eduardo|Ramiro|Jacobo|Federico"
)
_QUEENS_ES = "Isabel|Catalina|Juana|María|Margarita"
_ORDINALS_ES = (
    "primero", "segundo", "tercero", "cuarto", "quinto", "sexto", "séptimo", "octavo", "noveno", "décimo",
)  # fmt: skip


def _roman(written: str) -> int:
    """Its value up to 39; 0 for what is no Roman number.

    >>> _roman("XIV"), _roman("VX"), _roman("IIII")
    (14, 0, 0)
    """
    match = re.fullmatch(r"(X{0,3})(IX|IV|V?I{0,3})", written)
    if not match or not written:
        return 0
    ones = {"": 0, "I": 1, "II": 2, "III": 3, "IV": 4, "V": 5, "VI": 6, "VII": 7, "VIII": 8, "IX": 9}
    return 10 * len(match[1]) + ones[match[2]]


def _english_king(match: re.Match[str]) -> str:
    value = _roman(match[2])
    # "Mary I think": a king's I is read only at the end of what follows.
    if not 0 < value <= len(_ORDINALS_EN) or match[2] == "I":
        return match[0]
    return f"{match[1]} the {_ORDINALS_EN[value - 1]}"


def _spanish_king(match: re.Match[str]) -> str:
    value = _roman(match[2])
    if value == 0:
        return match[0]
    if value > len(_ORDINALS_ES):
        return f"{match[1]} {value}"
    ordinal = _ORDINALS_ES[value - 1]
    return f"{match[1]} {ordinal[:-1] + 'a' if re.fullmatch(_QUEENS_ES, match[1]) else ordinal}"
