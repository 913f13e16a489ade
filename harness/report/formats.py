"""Numbers, names and untrusted text as they appear in the report."""

from __future__ import annotations

import html
import math

from ...loaders.conditions import parse_condition
from ..results.old import TEXT_CONDITION, Score

UNDEFINED = "–"
MINUS = "−"
_NARROW_SPACE = "\u202f"

LANGUAGE_NAMES = {
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "hi": "Hindi",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "pt": "Portuguese",
    "ru": "Russian",
    "zh": "Chinese",
}


def escape(text: str) -> str:
    """`text` safe inside HTML and SVG, in elements and in quoted attributes.

    Characters that XML forbids (controls other than tab and line ends) become U+FFFD.

    >>> escape('<b>"')
    '&lt;b&gt;&quot;'
    """
    clean = "".join(c if c >= " " or c in "\t\n\r" else "\ufffd" for c in text)
    return html.escape(clean, quote=True)


def number(value: float | None, digits: int = 3) -> str:
    """A number with a true minus sign, or a dash where it is undefined.

    >>> number(-0.25, 2), number(-0.0001, 2), number(None)
    ('−0.25', '0.00', '–')
    """
    if value is None or not math.isfinite(value):
        return UNDEFINED
    text = f"{value:.{digits}f}"
    if float(text) == 0:
        text = text.removeprefix("-")
    return text.replace("-", MINUS)


def percent(value: float | None, digits: int = 1) -> str:
    """A ratio in percent.

    >>> percent(0.1234).replace(chr(0x202f), " ")
    '12.3 %'
    """
    text = number(None if value is None else 100 * value, digits)
    return text if text == UNDEFINED else f"{text}{_NARROW_SPACE}%"


def interval(score: Score | None, digits: int = 3, *, as_percent: bool = False) -> str:
    """The 95 % interval of a score as "[low, high]", or "" if it has none.

    >>> interval(Score(value=0.5, low=0.4, high=0.625, n=20), 2)
    '[0.40, 0.62]'
    """
    if score is None or score.low is None or score.high is None:
        return ""
    factor = 100 if as_percent else 1
    return f"[{number(factor * score.low, digits)}, {number(factor * score.high, digits)}]"


def level(snr_db: float) -> str:
    """An SNR in dB.

    >>> level(-5.0).replace(chr(0x202f), " ")
    '−5 dB'
    """
    return f"{snr_db:g}{_NARROW_SPACE}dB".replace("-", MINUS)


def language_name(code: str) -> str:
    """The English name of a language, or the code itself."""
    return LANGUAGE_NAMES.get(code, code)


def condition_words(condition: str) -> str:
    """What a condition means.

    >>> condition_words("reverb_snr_-5").replace(chr(0x202f), " ")
    'room, noise at −5 dB'
    """
    if condition == TEXT_CONDITION:
        return "typed query"
    parsed = parse_condition(condition)
    if parsed.snr_db is None:
        return "room, no noise" if parsed.reverb else "no noise, no room"
    return f"{'room, noise' if parsed.reverb else 'noise'} at {level(parsed.snr_db)}"


def condition_mark(condition: str) -> str:
    """The shortest label of a condition, for points in a chart: the SNR in dB, R for a room.

    >>> condition_mark("clean"), condition_mark("snr_-5"), condition_mark("reverb"), condition_mark("reverb_low_noise")
    ('clean', '−5', 'R', 'R 20')
    """
    if condition == TEXT_CONDITION:
        return "typed"
    parsed = parse_condition(condition)
    if parsed.snr_db is None:
        return "R" if parsed.reverb else "clean"
    return f"{'R ' if parsed.reverb else ''}{parsed.snr_db:g}".replace("-", MINUS)


def severity(condition: str) -> tuple[int, float]:
    """Sort key, mildest first: text, clean, noise by falling SNR, then the same in a room.

    >>> sorted(["reverb", "snr_-5", "clean", "low_noise", "text"], key=severity)
    ['text', 'clean', 'low_noise', 'snr_-5', 'reverb']
    """
    if condition == TEXT_CONDITION:
        return 0, -math.inf
    parsed = parse_condition(condition)
    return (2 if parsed.reverb else 1), (-math.inf if parsed.snr_db is None else -parsed.snr_db)


def plural(n: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "query"), plural(2, "query"), plural(0, "loop")
    ('1 query', '2 queries', '0 loops')
    """
    if n == 1:
        return f"1 {noun}"
    return f"{n} {noun[:-1]}ies" if noun.endswith("y") else f"{n} {noun}s"
