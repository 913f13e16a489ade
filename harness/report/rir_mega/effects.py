"""Does a front end help, by how much, at what cost, in which rooms: paired against no front end."""

from __future__ import annotations

from ...rir_mega.results import Difference, Effect
from ..formats import UNDEFINED, escape, number
from ..tables import scrollable
from .data import Entry, Section, bin_words, bounds, named, p_words, signed

SIGNIFICANT = 0.05


def effects_part(section: Section) -> str:
    """Sentences and tables; "" where no front end was evaluated beside none."""
    found = [(entry, effect) for entry in section.entries if (effect := entry.result.effect) is not None]
    if not found:
        return ""
    said = "".join(f"<p>{_verdict(section, entry, effect)}</p>" for entry, effect in found)
    note = (
        "With minus without the front end, over the same pairs: below 0 it helps. Intervals resample utterances; p is "
        "the two-sided sign-flip test. Bold: p below 0.05, of single tests, not corrected over the table."
    )
    return (
        f'<h3 id="{section.anchor}-effects">Does a front end help?</h3>{said}{_whole(section, found)}'
        f'{_by_bin(section, found, "rt60")}{_by_bin(section, found, "drr")}<p class="note">{note}</p>'
    )


def _verdict(section: Section, entry: Entry, effect: Effect) -> str:
    metric = section.first.main_metric
    reverb, clean = effect.reverb[metric], effect.clean[metric]
    sentences = [
        f"<strong>{escape(entry.front_end)}</strong> before {escape(entry.name.partition(' | ')[2] or entry.name)}: "
        f"in a room it {_does(section, reverb)}; on clean speech it {_does(section, clean)}."
    ]
    helped, harmed = _bins_that(section, effect, better=True), _bins_that(section, effect, better=False)
    if helped:
        sentences.append(f"It clearly helps {_where(section, helped)}.")
    if harmed:
        sentences.append(f"It clearly harms {_where(section, harmed)}.")
    if effect.seconds_per_second is not None:
        sentences.append(f"It takes {number(effect.seconds_per_second, 3)} s per second of sound.")
    return " ".join(sentences)


def _where(section: Section, names: list[str]) -> str:
    if len(names) == len(section.entries[0].result.by_rt60):
        return "in every bin of RT60"
    return f"where RT60 is {', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else f"where RT60 is {names[0]}"


def _does(section: Section, difference: Difference) -> str:
    value = difference.absolute.value
    if value is None:
        return "cannot be judged"
    verb = "lowers" if value < 0 else "raises"
    change = f"{verb} {section.metric} by {number(100 * abs(value), 1)} points {_turned(difference, value)}".strip()
    if not value:
        return f"leaves {section.metric} as it is"
    return change if _clear(difference) else f"{change}, which may be chance (p {number(difference.p_value, 2)})"


def _turned(difference: Difference, value: float) -> str:
    """The interval of the size of the change."""
    score = difference.absolute
    if score.low is None or score.high is None:
        return ""
    low, high = (score.low, score.high) if value >= 0 else (-score.high, -score.low)
    return f"[{number(100 * low, 1)}, {number(100 * high, 1)}]"


def _clear(difference: Difference) -> bool:
    return difference.p_value is not None and difference.p_value < SIGNIFICANT


def _bins_that(section: Section, effect: Effect, *, better: bool) -> list[str]:
    names = {b.number: bin_words(b, "s") for b in section.entries[0].result.by_rt60}
    return [
        names[number_]
        for number_, difference in effect.by_rt60.items()
        if _clear(difference) and ((difference.absolute.value or 0.0) < 0) == better and number_ in names
    ]


def _cell(difference: Difference) -> str:
    css = " main" if _clear(difference) else ""
    shown = bounds(difference.absolute)
    below = "".join(f"<small>{text}</small>" for text in (shown, f"p {p_words(difference.p_value)}") if text)
    return f'<td class="num{css}">{signed(difference.absolute.value)}{below.replace("p <", "p &lt;")}</td>'


def _whole(section: Section, found: list[tuple[Entry, Effect]]) -> str:
    metrics = list(section.first.kinds)
    names = [{"word": "wer", "char": "cer"}[unit] for unit in metrics]
    columns = [(f"{name.upper()} {words}", "points") for name in names for words in ("in a room", "clean", "Δ")]
    head = "".join(f'<th scope="col" class="num">{a}<small>{b}</small></th>' for a, b in columns)
    rows = "".join(
        f'<tr><th scope="row">{named(entry)}</th>'
        + "".join(_cell(side[name]) for name in names for side in (effect.reverb, effect.clean, effect.delta))
        + f'<td class="num">{number(effect.seconds_per_second, 3)}</td>'
        + f'<td class="num">{number(entry.result.timing.rtfx, 1)}</td></tr>'
        for entry, effect in found
    )
    more = (
        '<th scope="col" class="num">Cost<small>s per s of sound</small></th>'
        '<th scope="col" class="num">RTFx<small>with it</small></th>'
    )
    table = (
        f'<table class="bins"><thead><tr><th scope="col">Front end and recognizer</th>{head}{more}</tr></thead>'
        f"<tbody>{rows}</tbody></table>"
    )
    return scrollable(table, f"Front ends, {section.title}")


def _by_bin(section: Section, found: list[tuple[Entry, Effect]], measure: str) -> str:
    result = section.entries[0].result
    bins, unit, words = (result.by_rt60, "s", "RT60") if measure == "rt60" else (result.by_drr, "dB", "DRR")
    head = "".join(f'<th scope="col" class="num">{bin_words(b, unit)}<small>n = {b.pairs}</small></th>' for b in bins)
    rows = []
    for entry, effect in found:
        own = effect.by_rt60 if measure == "rt60" else effect.by_drr
        cells = "".join(
            _cell(own[b.number]) if b.number in own else f'<td class="num none">{UNDEFINED}</td>' for b in bins
        )
        rows.append(f'<tr><th scope="row">{named(entry)}</th>{cells}</tr>')
    caption = f"In which rooms: change of {section.metric} in a room, by {words}"
    table = (
        f'<table class="bins"><caption>{caption}</caption><thead><tr><th scope="col">Front end and recognizer</th>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )
    return scrollable(table, f"{caption}, {section.title}")
