"""The tables: rates, kinds of error, bins, the map, the onset, spread over rooms, size and speed."""

from __future__ import annotations

from collections.abc import Sequence

from ...results.old import Score
from ...rir_mega.results import ArmFailures, Bin, Difference
from ..formats import UNDEFINED, escape, number, percent, plural
from ..tables import scrollable
from ..timing import memory_words
from .data import Entry, Section, bin_words, bounds, named, p_words, signed, signed_percent
from .plots import pareto

HEAT_STEPS = 8
FEW_PAIRS = 10
"""A cell of the map with fewer pairs is shown pale: its value rests on a handful of utterances."""
KIND_WORDS = {"substitutions": "Wrong", "deletions": "Missed", "insertions": "Added"}
UNIT_WORDS = {"word": "words", "char": "characters"}
FAILURE_WORDS = {
    "undecodable": "not decoded",
    "loops": "loop",
    "truncated": "truncated",
    "empty": "empty",
    "hallucinations": "words on silence",
}


def _head(columns: Sequence[tuple[str, str]], first: str = "Recognizer") -> str:
    cells = "".join(
        f'<th scope="col" class="num">{name}{f"<small>{below}</small>" if below else ""}</th>'
        for name, below in columns
    )
    return f'<thead><tr><th scope="col">{first}</th>{cells}</tr></thead>'


def _cell(value: str, below: str = "", css: str = "") -> str:
    return f'<td class="num{f" {css}" if css else ""}">{value}{f"<small>{below}</small>" if below else ""}</td>'


def rate_cell(score: Score) -> str:
    """A rate in percent with its interval."""
    return _cell(percent(score.value), bounds(score))


def delta_cell(difference: Difference, css: str = "main") -> str:
    """A difference in percentage points with its interval."""
    return _cell(signed(difference.absolute.value), bounds(difference.absolute), css)


def rates_table(section: Section) -> str:
    """Every recognizer clean and in the room: corpus and macro, words and characters, raw text; and its failures."""
    bodies = []
    for entry in section.entries:
        result = entry.result
        failed = _failures(entry)
        below = f" <small>{escape(failed)}</small>" if failed else ""
        rows = [f'<tr class="group"><th scope="rowgroup" colspan="6"><span>{named(entry)}{below}</span></th></tr>']
        shown = [(_metric_words(name), rates) for name, rates in result.rates.items()]
        for normalizer, others in result.other_normalizers.items():
            shown += [
                (f"{name.upper()}<small>normalizer {escape(normalizer)}</small>", r) for name, r in others.items()
            ]
        for words, rates in shown:
            delta = rates.delta
            css = "main" if rates is entry.main else ""
            rows.append(
                f'<tr><th scope="row">{words}</th>{rate_cell(rates.clean)}{rate_cell(rates.reverb)}'
                f"{delta_cell(delta, css)}{_cell(signed_percent(delta.relative.value), bounds(delta.relative, 0))}"
                f"{_cell(escape(p_words(delta.p_value)), 'exact' if delta.exact else '')}</tr>"
            )
        bodies.append(f"<tbody>{''.join(rows)}</tbody>")
    columns = (
        ("Clean", "95 % interval"),
        ("In a room", "95 % interval"),
        ("Δ", "percentage points"),
        ("Relative", "Δ / clean"),
        ("p", "sign flips"),
    )
    table = f'<table class="bins">{_head(columns, "Rate")}{"".join(bodies)}</table>'
    return scrollable(table, f"Error rates, {section.title}")


def _metric_words(name: str) -> str:
    kind = "mean of the pairs' own rates" if name.endswith("_macro") else "of all pairs together"
    macro = ", macro" if name.endswith("_macro") else ""
    return f"{name.removesuffix('_macro').upper()}{macro}<small>{kind}</small>"


def _failures(entry: Entry) -> str:
    """What went wrong, by arm; "" if nothing did."""
    arms = (("clean", "clean"), ("reverb", "in a room"))
    said = [f"{words}: {own}" for arm, words in arms if (own := failure_words(entry.result.failures[arm]))]
    return "; ".join(said)


def failure_words(failures: ArmFailures) -> str:
    """The counts that are not 0, with their share of the clips; "" if all are.

    >>> failure_words(ArmFailures(n=40, undecodable=0, loops=2, truncated=0, empty=1, hallucinations=0)).replace(
    ...     chr(0x202f), " ")
    '2 loops (5.0 %), 1 empty (2.5 %)'
    """
    parts = []
    for name, words in FAILURE_WORDS.items():
        count = int(getattr(failures, name))
        if count:
            said = plural(count, words) if words == "loop" else f"{count} {words}"
            parts.append(f"{said} ({percent(count / failures.n)})")
    return ", ".join(parts)


def kinds_table(section: Section) -> str:
    """What kind of error the room makes, per reference token: the change, and below it the two rates."""
    kinds = [(unit, kind) for unit, own in section.first.kinds.items() for kind in own]
    rows = []
    for entry in section.entries:
        cells = []
        for unit, kind in kinds:
            own = entry.result.kinds[unit][kind]
            sides = f"{percent(own.clean.value)} → {percent(own.reverb.value)}"
            cells.append(
                f'<td class="num"><b>{signed(own.change.value)}</b><small>{bounds(own.change)}</small>'
                f"<small>{sides}</small></td>"
            )
        rows.append(f'<tr><th scope="row">{named(entry)}</th>{"".join(cells)}</tr>')
    head = _head([(f"{KIND_WORDS[kind]} {UNIT_WORDS[unit]}", kind) for unit, kind in kinds])
    return scrollable(
        f'<table class="bins">{head}<tbody>{"".join(rows)}</tbody></table>', f"Kinds of error, {section.title}"
    )


def bins_table(section: Section, measure: str) -> str:
    """The rates in every bin of RT60 ("rt60_s") or DRR ("drr_db")."""
    unit, words = ("s", "RT60") if measure == "rt60_s" else ("dB", "DRR")
    bins = _bins(section.entries[0], measure)
    bodies = []
    for place, found in enumerate(bins):
        size = f"{plural(found.pairs, 'pair')}, {plural(found.utterances, 'utterance')}, {plural(found.rooms, 'room')}"
        rows = [
            f'<tr class="group"><th scope="rowgroup" colspan="5"><span>{bin_words(found, unit)} '
            f"<small>{size}</small></span></th></tr>"
        ]
        for entry in section.entries:
            own = _bins(entry, measure)
            if place >= len(own):
                continue
            rates = own[place].rates[section.first.main_metric]
            rows.append(
                f'<tr><th scope="row">{named(entry)}</th>{_cell(percent(rates.clean.value))}'
                f"{_cell(percent(rates.reverb.value))}{delta_cell(rates.delta)}"
                f"{_cell(escape(p_words(own[place].p_holm)))}</tr>"
            )
        bodies.append(f"<tbody>{''.join(rows)}</tbody>")
    head = _head(
        ((section.metric, "clean"), (section.metric, "in a room"), ("Δ", "percentage points"), ("p", "corrected"))
    )
    table = f'<table class="bins"><caption>By {words}</caption>{head}{"".join(bodies)}</table>'
    return scrollable(table, f"By {words}, {section.title}")


def _bins(entry: Entry, measure: str) -> list[Bin]:
    return entry.result.by_rt60 if measure == "rt60_s" else entry.result.by_drr


def map_tables(section: Section) -> str:
    """RT60 × DRR of every recognizer; beyond two they fold."""
    cells = {entry.index: {(c.rt60, c.drr): c for c in entry.result.map} for entry in section.entries}
    values = [c.rates.delta.absolute.value for own in cells.values() for c in own.values()]
    most = max((abs(v) for v in values if v is not None), default=0.0)
    if not most and not any(cells.values()):
        return '<p class="note">No pair has both RT60 and DRR.</p>'
    rt60 = {b.number: bin_words(b, "s") for b in section.entries[0].result.by_rt60 if b.known}
    drr = {b.number: bin_words(b, "dB") for b in section.entries[0].result.by_drr if b.known}
    parts = []
    for place, entry in enumerate(section.entries):
        rows = []
        for first, words in rt60.items():
            shown = []
            for second in drr:
                cell = cells[entry.index].get((first, second))
                if cell is None:
                    shown.append('<td class="none">no pair</td>')
                    continue
                delta = cell.rates.delta.absolute
                few = " few" if cell.pairs < FEW_PAIRS else ""
                size = f"n = {cell.pairs}"
                shown.append(
                    f'<td class="{heat(delta.value, most)}{few}"><b>{signed(delta.value)}</b>'
                    f"<small>{bounds(delta, 0)}</small><small>{size}</small></td>"
                )
            rows.append(f'<tr><th scope="row">{words}</th>{"".join(shown)}</tr>')
        head = "".join(f'<th scope="col">{words}</th>' for words in drr.values())
        table = (
            f'<table class="heat"><caption>{named(entry)}: Δ{section.metric} in percentage points</caption>'
            f'<thead><tr><th scope="col">RT60 ↓ DRR →</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
        )
        body = scrollable(table, f"RT60 and DRR, {entry.name}, {section.title}")
        if place >= 2:
            body = f'<details class="more"><summary>{escape(entry.name)}</summary>{body}</details>'
        parts.append(body)
    return "".join(parts)


def heat(value: float | None, most: float) -> str:
    """The class of a cell's color: h0 to h8 for a loss, g1 to g8 for a gain.

    >>> heat(0.2, 0.2), heat(0.0, 0.2), heat(-0.1, 0.2), heat(None, 0.2)
    ('h8', 'h0', 'g4', '')
    """
    if value is None:
        return ""
    step = round(HEAT_STEPS * abs(value) / most) if most else 0
    return f"{'g' if value < 0 and step else 'h'}{step}"


def onset_table(section: Section) -> str:
    """From which RT60 on each recognizer loses."""
    rows = []
    for entry in section.entries:
        onset = entry.result.onset
        if onset.threshold_s is None:
            point, slope = "none found", UNDEFINED
        else:
            high = "open" if onset.high_s is None else number(onset.high_s, 2)
            at = "from the driest room on" if onset.threshold_s == 0 else f"{number(onset.threshold_s, 2)} s"
            point = f"{at}<small>[{number(onset.low_s, 2)}, {high}]</small>"
            slope = signed(onset.slope_per_s)
        from_ = onset.significant_from_s
        first = "no bin" if from_ is None else "all bins" if from_ == 0 else f"over {number(from_, 2)} s"
        rows.append(
            f'<tr><th scope="row">{named(entry)}</th><td class="num main">{point}</td>{_cell(slope)}'
            f"{_cell(escape(p_words(onset.p_value)))}{_cell(first)}{_cell(str(onset.n))}</tr>"
        )
    head = _head(
        (
            ("Change point", "RT60, 95 % interval"),
            ("Slope beyond", "percentage points per s"),
            ("p", "one-sided"),
            ("Bins that lose", "RT60, fixed-sequence test"),
            ("n", ""),
        )
    )
    return scrollable(f'<table class="bins">{head}<tbody>{"".join(rows)}</tbody></table>', f"Onset, {section.title}")


def spread_table(section: Section) -> str:
    """How much the loss differs from room to room."""
    rows = "".join(
        f'<tr><th scope="row">{named(entry)}</th>{_spread(spread.within_utterances)}{_spread(spread.between_rooms)}'
        f"{_spread(spread.room_component)}</tr>"
        for entry in section.entries
        for spread in (entry.result.spread,)
    )
    head = _head(
        (
            ("One utterance, several rooms", "σ, percentage points"),
            ("Between rooms", "σ as observed"),
            ("Between rooms, chance removed", "σ, variance component"),
        )
    )
    return scrollable(f'<table class="bins">{head}<tbody>{rows}</tbody></table>', f"Spread over rooms, {section.title}")


def _spread(score: Score) -> str:
    below = " ".join(filter(None, (bounds(score), f"n = {score.n}" if score.value is not None else "")))
    return _cell(number(None if score.value is None else 100 * score.value, 1), below)


def cost_table(section: Section) -> str:
    """Size, loss, speed, latency and memory of every recognizer."""
    front = pareto(section)
    rows = []
    for entry in section.entries:
        result = entry.result
        timing, measured = result.timing, result.measured
        latency = timing.latency
        arms = [result.arm_timing[arm].rtfx if arm in result.arm_timing else None for arm in ("clean", "reverb")]
        gpu = (
            UNDEFINED
            if measured is None or measured.peak_gpu_memory_mb is None
            else memory_words(measured.peak_gpu_memory_mb)
        )
        best = " <small>Pareto front</small>" if entry in front and len(section.entries) > 1 else ""
        rows.append(
            f'<tr><th scope="row">{named(entry)}{best}</th>{_cell(_size(result.system.parameters))}'
            f"{delta_cell(entry.main.delta)}{_cell(number(timing.rtfx, 1), '', 'main')}"
            f"{_cell(f'{number(arms[0], 1)} / {number(arms[1], 1)}')}"
            f"{_cell(number(None if latency is None else latency.p50_s, 2))}"
            f"{_cell(number(None if latency is None else latency.p95_s, 2))}"
            f"{_cell(UNDEFINED if measured is None else memory_words(measured.peak_memory_mb))}{_cell(gpu)}</tr>"
        )
    head = _head(
        (
            ("Parameters", "transcriber"),
            (f"Δ{section.metric}", "percentage points"),
            ("RTFx", "sound / time"),
            ("RTFx", "clean / in a room"),
            ("Latency", "p50, s"),
            ("Latency", "p95, s"),
            ("Memory", "host, peak"),
            ("Memory", "GPU, peak"),
        )
    )
    return scrollable(f'<table class="bins">{head}<tbody>{"".join(rows)}</tbody></table>', f"Cost, {section.title}")


def _size(parameters: int | None) -> str:
    """A number of parameters to read.

    >>> _size(72_603_136), _size(1_543_490_560), _size(None)
    ('73 M', '1.54 B', '–')
    """
    if parameters is None:
        return UNDEFINED
    return f"{number(parameters / 1e9, 2)} B" if parameters >= 1e9 else f"{number(parameters / 1e6, 0)} M"
