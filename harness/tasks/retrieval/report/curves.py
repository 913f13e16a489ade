"""Degradation curves: the main metric against the severity of the noise, without and with reverberation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....report import svg
from ....report.formats import MINUS, condition_words, in_room, interval, metric_name, number, series_of, snr_of
from ....report.sections import Run, Section, System
from ....results.envelope import Score

WIDTH, HEIGHT = 420.0, 320.0
LEFT, TOP, BOTTOM = 48.0, 12.0, 54.0
LEAST_RIGHT, MOST_RIGHT = 84.0, 160.0
LABEL_SIZE, LABEL_GAP = 11.5, 12.5
MOST_WRAPPED = 6
BOLD = 1.08
"""How much wider the names are than plain text."""
TICK_SIZE, TICK_GAP = 12.0, 5.0
SERIES_GAP = 8.0


@dataclass(frozen=True)
class _Axis:
    """Where a condition lies: the typed query, no noise, then the SNR on a linear scale that falls to the right.

    `edge` is the right end of the plot; the systems' names lie behind it.
    """

    typed: float | None
    quiet: float
    levels: tuple[float, ...]
    first: float
    last: float
    edge: float

    def of(self, snr_db: float | None) -> float:
        if snr_db is None:
            return self.quiet
        if len(self.levels) == 1:
            return (self.first + self.last) / 2
        return svg.Scale(self.levels[0], self.levels[-1], self.first, self.last)(snr_db)


def curve_panels(section: Section, top: float) -> list[tuple[str, str]]:
    """Caption and drawing of each panel: noise alone, and with reverberation if any run has it.

    `top` is the upper end of the vertical axis, the same for all panels of a report.
    """
    rooms = {in_room(condition) for condition in section.spoken}
    panels = []
    if rooms != {True}:
        panels.append(("Noise alone", _panel(section, False, top)))
    if True in rooms:
        panels.append(("Noise and reverberation", _panel(section, True, top)))
    return panels


def axis_top(sections: Sequence[Section]) -> float:
    """The upper end of the main metric's axis: the highest value or interval end, at most 1."""
    scores = [s for section in sections for run in section.runs if (s := run.score()) is not None]
    highest = max((v for s in scores for v in (s.value, s.high) if v is not None), default=1.0)
    return svg.ticks(min(highest, 1.0), 10)[-1]


def _axis(section: Section) -> _Axis:
    # Both panels have all levels, so that the same place is the same level.
    levels = sorted({snr for c in section.spoken if (snr := snr_of(c)) is not None}, reverse=True)
    typed = LEFT + 20 if any(system.text for system in section.systems) else None
    quiet = LEFT + (24 if typed is None else 74)
    widest = max(BOLD * svg.text_width(line, LABEL_SIZE) for lines in _label_lines(section.systems) for line in lines)
    edge = WIDTH - min(MOST_RIGHT, max(LEAST_RIGHT, widest + 20))
    return _Axis(typed, quiet, tuple(levels), quiet + 44, edge - 12, edge)


def _panel(section: Section, reverb: bool, top: float) -> str:
    axis = _axis(section)
    frame = svg.Frame(WIDTH, HEIGHT, LEFT, WIDTH - axis.edge, TOP, BOTTOM)
    y, upwards = frame.share_axis(top, metric_name(section.metric))
    parts = [upwards, _horizontal(axis)]
    over: list[str] = []
    ends: list[tuple[System, float, float]] = []
    for system in section.systems:
        under, upper, end = _series(system, len(section.systems), axis, y, reverb)
        parts.append(under)
        over.append(upper)
        if end is not None:
            ends.append((system, *end))
    place = f"{section.anchor}-{'reverb' if reverb else 'noise'}"
    kind = "with reverberation" if reverb else "without reverberation"
    title = f"{metric_name(section.metric)} by noise level {kind}, {section.title}"
    body = "".join((*parts, *over, _labels(ends, axis.edge)))
    return frame.figure(place, title, _describe(section, reverb), body)


def _horizontal(axis: _Axis) -> str:
    base = HEIGHT - BOTTOM
    parts = []
    if axis.typed is not None:
        parts.append(svg.label(axis.typed, base + 17, "typed", "tick", "middle"))
        parts.append(svg.line((axis.typed + axis.quiet) / 2, TOP, (axis.typed + axis.quiet) / 2, base, "divider"))
    parts.append(svg.label(axis.quiet, base + 17, "no noise", "tick", "middle"))
    last = axis.quiet + svg.text_width("no noise", TICK_SIZE) / 2
    for level in axis.levels:
        x = axis.of(level)
        parts.append(svg.line(x, base, x, base + 4, "axis"))
        text = f"{level:g}".replace("-", MINUS)
        half = svg.text_width(text, TICK_SIZE) / 2
        if x - half >= last + TICK_GAP:
            parts.append(svg.label(x, base + 17, text, "tick", "middle"))
            last = x + half
    if axis.levels:
        # A break in the axis: between no noise and the first level there is no scale.
        middle = (axis.quiet + axis.first) / 2 if len(axis.levels) > 1 else (axis.quiet + axis.of(axis.levels[0])) / 2
        parts.append(svg.line(middle - 4, base + 5, middle, base - 5, "axis"))
        parts.append(svg.line(middle + 1, base + 5, middle + 5, base - 5, "axis"))
        title = "SNR (dB), louder noise to the right"
        parts.append(svg.label((LEFT + axis.edge) / 2, base + 38, title, "axis-title", "middle"))
    return "".join(parts)


def _series(
    system: System, systems: int, axis: _Axis, y: svg.Scale, reverb: bool
) -> tuple[str, str, tuple[float, float] | None]:
    """What lies under the lines, the lines with markers, and the point where the system's label belongs."""
    shown = [run for run in system.runs if in_room(run.condition) == reverb and run.score() is not None]
    names = list(dict.fromkeys(series_of(run.condition) for run in shown))
    points: list[tuple[float, Run, Score]] = []
    color = svg.series_class(system.index)
    under, over, drawn = [], [], list[tuple[float, float]]()
    for place, name in enumerate(names):
        # Conditions with the same SNR stand side by side, each on the curve of what it has beside noise.
        shift = SERIES_GAP * (place - (len(names) - 1) / 2)
        own = [
            (axis.of(snr_of(run.condition)) + shift, run, score)
            for run in shown
            if series_of(run.condition) == name and (score := run.score()) is not None and score.value is not None
        ]
        curve = [(x, y(s.value)) for x, _, s in own if s.value is not None]
        bounded = [(x, s.low, s.high) for x, _, s in own if s.low is not None and s.high is not None]
        under.append(svg.band([(x, y(low)) for x, low, _ in bounded], [(x, y(high)) for x, _, high in bounded], color))
        if len(bounded) == 1:
            under.append(svg.whisker(bounded[0][0], y(bounded[0][1]), y(bounded[0][2]), color))
        over.append(svg.path(curve, f"curve {color}{' room' if reverb else ''}"))
        if curve and len(names) > 1:
            over.append(svg.label(curve[0][0], curve[0][1] - 8, name or "noise", "point halo", "middle"))
        points += own
        drawn += curve
    end = max(drawn, default=None)
    typed = None if system.text is None else system.text.score()
    if typed is not None and typed.value is not None and axis.typed is not None and system.text is not None:
        # Systems that share a retriever share this point: side by side instead of on top of each other.
        x = axis.typed + (system.index - (systems - 1) / 2) * min(10.0, 36.0 / systems)
        if typed.low is not None and typed.high is not None:
            under.append(svg.whisker(x, y(typed.low), y(typed.high), color))
        if drawn:
            over.append(svg.path([(x, y(typed.value)), drawn[0]], f"curve typed {color}"))
        over.append(svg.marker(system.index, x, y(typed.value), title=_tip(system, system.text, typed)))
        end = end or (x, y(typed.value))
    for x, run, score in points:
        if score.value is not None:
            over.append(svg.marker(system.index, x, y(score.value), hollow=reverb, title=_tip(system, run, score)))
    return "".join(under), "".join(over), end


def _tip(system: System, run: Run, score: Score) -> str:
    bounds = interval(score)
    return (
        f"{system.name}, {condition_words(run.condition)}: {metric_name(run.result.main_metric)} {number(score.value)}"
        f"{' ' + bounds if bounds else ''}, n = {score.n}"
    )


def _labels(ends: Sequence[tuple[System, float, float]], edge: float) -> str:
    """The systems' names at the right end of their lines, moved apart, with a leader where they moved."""
    texts = _label_lines([system for system, _, _ in ends])
    lines = max((len(text) for text in texts), default=1)
    places = svg.spread([end[2] for end in ends], lines * LABEL_GAP + 5, TOP + 8, HEIGHT - BOTTOM)
    parts = []
    width = (WIDTH - edge - 8) / BOLD
    cut = [svg.shorten(line, width, LABEL_SIZE) for text in texts for line in text]
    for (system, x, y), place, text in zip(ends, places, texts, strict=True):
        parts.append(svg.line(x + 6, y, edge + 4, place, f"leader {svg.series_class(system.index)}"))
        start = place + 4 - (len(text) - 1) * LABEL_GAP / 2
        for k, part in enumerate(text):
            shown = svg.shorten(part, width, LABEL_SIZE)
            if shown != part and cut.count(shown) > 1:
                shown = svg.shorten_middle(part, width, LABEL_SIZE)
            parts.append(svg.label(edge + 8, start + k * LABEL_GAP, shown, "direct halo"))
    return "".join(parts)


def _label_lines(systems: Sequence[System]) -> list[list[str]]:
    """The systems' names: in two lines, transcriber and retriever, unless there are many."""
    if len(systems) > MOST_WRAPPED:
        return [[system.name] for system in systems]
    return [system.name.replace(" + ", "\n+ ", 1).split("\n") for system in systems]


def _describe(section: Section, reverb: bool) -> str:
    sentences = []
    for system in section.systems:
        values = []
        for run in system.shown:
            score = run.score()
            if score is not None and (run is system.text or in_room(run.condition) == reverb):
                values.append(f"{condition_words(run.condition)} {number(score.value)} {interval(score)}".strip())
        sentences.append(f"{system.name}: {'; '.join(values)}.")
    return " ".join(sentences)
