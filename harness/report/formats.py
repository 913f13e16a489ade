"""Numbers, names and conditions as they appear in a report."""

from __future__ import annotations

import math
import re

from ...errors import UnknownNameError, UsageError
from ...loaders.conditions import known_part, parse_condition
from ..metrics.registry import metric_of
from ..results.envelope import TEXT_CONDITION, Group, Loss, Score

_BOUNDED = Score(value=0.123, n=4, bounds=(0.081, 0.41))
"""For examples."""
UNDEFINED = "–"
MINUS = "−"
NARROW_SPACE = "\u202f"

LANGUAGE_NAMES = {
    "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "hi": "Hindi", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "pt": "Portuguese", "ru": "Russian", "zh": "Chinese",
}  # fmt: skip


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
    return text if text == UNDEFINED else f"{text}{NARROW_SPACE}%"


def signed(value: float | None, digits: int = 1) -> str:
    """A difference of ratios in percentage points, with its sign.

    >>> signed(0.0734), signed(-0.01), signed(0.0), signed(None)
    ('+7.3', '−1.0', '0.0', '–')
    """
    return _with_plus(number(None if value is None else 100 * value, digits))


def signed_percent(value: float | None) -> str:
    """A relative difference in percent, with its sign.

    >>> signed_percent(0.889).replace(chr(0x202f), " ")
    '+89 %'
    """
    return _with_plus(percent(value, 0))


def _with_plus(text: str) -> str:
    return f"+{text}" if text[0].isdigit() and any(c in "123456789" for c in text) else text


def interval(score: Score | None, digits: int = 3, *, as_percent: bool = False) -> str:
    """The 95 % interval of a score as "[low, high]", or "" if it has none.

    >>> interval(Score(value=0.5, low=0.4, high=0.625, n=20), 2)
    '[0.40, 0.62]'
    """
    if score is None or score.low is None or score.high is None:
        return ""
    factor = 100 if as_percent else 1
    return f"[{number(factor * score.low, digits)}, {number(factor * score.high, digits)}]"


def rate_words(score: Score | None) -> str:
    """An error rate in percent, with the number of items that it is over where others failed.

    >>> [rate_words(one).replace(chr(0x202f), " ") for one in (Score(value=0.123, n=6), _BOUNDED)]
    ['12.3 %', '12.3 % of 4']
    """
    if score is None or score.value is None:
        return UNDEFINED
    return percent(score.value) + (f" of {score.n}" if score.bounds is not None else "")


def bounds_words(score: Score | None) -> str:
    """What failed items could make of an error rate, "" where none failed.

    >>> bounds_words(_BOUNDED).replace(chr(0x202f), " ")
    '8.1 to 41.0 % with the failed'
    """
    if score is None or score.bounds is None:
        return ""
    low, high = score.bounds
    return f"{number(100 * low, 1)} to {percent(high)} with the failed"


def full_rate_words(score: Score | None) -> str:
    """An error rate with all that failed items leave open.

    >>> full_rate_words(_BOUNDED).replace(chr(0x202f), " ")
    '12.3 % of 4 (8.1 to 41.0 % with the failed)'
    """
    open_ = bounds_words(score)
    return f"{rate_words(score)} ({open_})" if open_ else rate_words(score)


def points_words(score: Score) -> str:
    """A difference of error rates in percentage points, with the number of items that it is over where others failed.

    >>> points_words(Score(value=0.1, n=6)), points_words(Score(value=0.1, n=4, bounds=(-0.02, 0.3)))
    ('+10.0', '+10.0 of 4')
    """
    return signed(score.value) + (f" of {score.n}" if score.bounds is not None else "")


def points_bounds_words(score: Score) -> str:
    """What failed items could make of a difference of error rates, "" where none failed.

    >>> points_bounds_words(Score(value=0.1, n=4, bounds=(-0.02, 0.3)))
    '−2.0 to +30.0 with the failed'
    """
    return f"{signed(score.bounds[0])} to {signed(score.bounds[1])} with the failed" if score.bounds else ""


def points(loss: Loss | None) -> str:
    if loss is None:
        return UNDEFINED
    return f"{points_words(loss.absolute)} {interval(loss.absolute, 1, as_percent=True)}".strip()


def p_words(value: float | None) -> str:
    """A p-value; small ones as a bound.

    >>> p_words(0.00009), p_words(0.0312), p_words(None)
    ('<0.001', '0.031', '–')
    """
    return "<0.001" if value is not None and value < 0.001 else number(value)


def level(snr_db: float) -> str:
    """An SNR in dB.

    >>> level(-5.0).replace(chr(0x202f), " ")
    '−5 dB'
    """
    return f"{snr_db:g}{NARROW_SPACE}dB".replace("-", MINUS)


def memory_words(megabytes: float | None) -> str:
    """Memory in GB, small amounts in MB.

    >>> memory_words(812.0), memory_words(6144.0)
    ('812 MB', '6.1 GB')
    """
    if megabytes is None:
        return UNDEFINED
    return f"{number(megabytes / 1e3, 1)} GB" if megabytes >= 1e3 else f"{number(megabytes, 0)} MB"


def energy_words(joules: float) -> str:
    """Energy in the unit that suits it.

    >>> energy_words(54321.0), energy_words(12.0)
    ('54.3 kJ', '12.0 J')
    """
    for factor, unit in ((1e6, "MJ"), (1e3, "kJ")):
        if joules >= factor:
            return f"{number(joules / factor, 1)} {unit}"
    return f"{number(joules, 1)} J"


def parameter_words(parameters: int | None) -> str:
    """A number of parameters.

    >>> parameter_words(72_603_136), parameter_words(1_543_490_560), parameter_words(None)
    ('73 M', '1.54 B', '–')
    """
    if parameters is None:
        return UNDEFINED
    return f"{number(parameters / 1e9, 2)} B" if parameters >= 1e9 else f"{number(parameters / 1e6, 0)} M"


def metric_name(metric: str) -> str:
    """A metric as it is written.

    >>> metric_name("ndcg_at_10"), metric_name("wer")
    ('nDCG@10', 'WER')
    """
    return metric_of(metric).label


def language_name(code: str) -> str:
    return LANGUAGE_NAMES.get(code, code)


def in_room(condition: str) -> bool:
    return condition != TEXT_CONDITION and known_part(condition).reverb


def snr_of(condition: str) -> float | None:
    """The SNR of a condition in dB, None without added noise."""
    return None if condition == TEXT_CONDITION else known_part(condition).snr_db


def is_known(condition: str) -> bool:
    """Whether all steps of a condition are this package's; another one is shown by its name."""
    try:
        return condition == TEXT_CONDITION or bool(parse_condition(condition).name)
    except (UnknownNameError, UsageError):
        return False


def _reverb_words(condition: str) -> str:
    if not in_room(condition):
        return ""
    return "early reflections" if condition.startswith("early_") else "reverberation"


def condition_words(condition: str) -> str:
    """What a condition means.

    >>> condition_words("reverb_snr_-5").replace(chr(0x202f), " ")
    'reverberation, noise at −5 dB'
    >>> condition_words("clipped_6")
    'clipped_6'
    """
    if condition == TEXT_CONDITION:
        return "typed query"
    if not is_known(condition):
        return condition
    snr, reverb = snr_of(condition), _reverb_words(condition)
    if snr is None:
        return f"{reverb}, no noise" if reverb else "no noise, no reverberation"
    return f"{f'{reverb}, ' if reverb else ''}noise at {level(snr)}"


def where_words(condition: str) -> str:
    """A spoken condition as it reads in a sentence.

    >>> where_words("reverb"), where_words("snr_5").replace(chr(0x202f), " ")
    ('with reverberation', 'at 5 dB SNR')
    """
    if not is_known(condition):
        return f"under {condition}"
    snr, reverb = snr_of(condition), _reverb_words(condition)
    if snr is None:
        return f"with {reverb}" if reverb else "without noise"
    return f"at {level(snr)} SNR{f' with {reverb}' if reverb else ''}"


def condition_mark(condition: str) -> str:
    """The shortest label of a condition, for points in a chart: the SNR in dB, R for reverberation.

    >>> condition_mark("clean"), condition_mark("snr_-5"), condition_mark("reverb"), condition_mark("reverb_low_noise")
    ('clean', '−5', 'R', 'R 20')
    """
    if condition == TEXT_CONDITION:
        return "typed"
    if not is_known(condition):
        return condition
    snr = snr_of(condition)
    if snr is None:
        return "R" if in_room(condition) else "clean"
    return f"{'R ' if in_room(condition) else ''}{snr:g}".replace("-", MINUS)


def series_of(condition: str) -> str:
    """What a condition has beside noise: conditions that differ in the SNR alone are one curve.

    >>> series_of("early_reverb_snr_5"), series_of("reverb"), series_of("low_noise"), series_of("snr_5_clipped_6")
    ('early_reverb', 'reverb', '', 'clipped_6')
    """
    rest = re.sub(r"snr_-?[\d.]+|(low|medium|high)_noise|^clean$", "", condition)
    return rest.replace("__", "_").strip("_")


def severity(condition: str) -> tuple[int, float, str]:
    """Sort key, mildest first: text, clean, noise by falling SNR, then the same with reverberation.

    >>> sorted(["reverb", "snr_-5", "clean", "low_noise", "text"], key=severity)
    ['text', 'clean', 'low_noise', 'snr_-5', 'reverb']
    """
    if condition == TEXT_CONDITION:
        return 0, -math.inf, condition
    snr = snr_of(condition)
    return (2 if in_room(condition) else 1), (-math.inf if snr is None else -snr), condition


def plural(n: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "query"), plural(2, "query"), plural(0, "loop")
    ('1 query', '2 queries', '0 loops')
    """
    if n == 1:
        return f"1 {noun}"
    return f"{n} {noun[:-1]}ies" if noun.endswith("y") else f"{n} {noun}s"


_MEASURES = {"rt60_s": ("RT60", "s", 2), "drr_db": ("DRR", "dB", 1), "snr_db": ("SNR", "dB", 1)}


def measure_of(column: str) -> tuple[str, str, int]:
    """Name, unit and decimals of a binned column; of a source's own values too.

    >>> measure_of("source_rt60_s"), measure_of("noise_family")
    (('RT60', 's', 2), ('Noise family', '', 2))
    """
    plain = column.removeprefix("source_")
    return _MEASURES.get(plain, (plain.replace("_", " ").capitalize(), "", 2))


def group_words(group: Group, column: str) -> str:
    """The label of a group, of a bin its range.

    >>> group_words(Group(label="x", high=0.27545, n=3, clusters=3), "rt60_s").replace(chr(0x202f), " ")
    'up to 0.28 s'
    """
    _, unit, digits = measure_of(column)
    tail = f"{NARROW_SPACE}{unit}" if unit else ""
    if group.low is None and group.high is None:
        return group.label or "not known"
    if group.low is None:
        return f"up to {number(group.high, digits)}{tail}"
    if group.high is None:
        return f"over {number(group.low, digits)}{tail}"
    return f"{number(group.low, digits)} to {number(group.high, digits)}{tail}"
