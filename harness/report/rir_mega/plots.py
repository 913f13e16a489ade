"""The drawings: loss by bin, loss by size, loss by speed, and a room's decay."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...rir_mega.results import Bin
from ...rir_mega.samples import SampleRoom
from .. import svg
from ..formats import MINUS, number
from ..speed import decades
from .data import Entry, Section, bin_words, bounds, difference_words, signed

WIDTH, HEIGHT = 420.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 14.0, 14.0, 50.0
DECAY_WIDTH, DECAY_HEIGHT = 300.0, 150.0
DECAY_FLOOR_DB = -60.0
LEAST_SYSTEMS = 2


@dataclass(frozen=True, slots=True)
class _Axis:
    """A vertical axis in percentage points that may reach below 0."""

    scale: svg.Scale
    marks: list[float]

    def clipped(self, value: float) -> float:
        """The coordinate of a ratio, kept inside the plot."""
        return self.scale(min(max(100 * value, self.scale.low), self.scale.high))


def _axis(values: Sequence[float], ends: Sequence[float]) -> _Axis:
    """For these values; the ends of intervals are shown as far as they do not crush the values."""
    high = max([100 * v for v in values] + [0.5])
    low = min([100 * v for v in values] + [0.0])
    room = high - low
    high = max([high, *(min(100 * e, high + room) for e in ends)])
    low = min([low, *(max(100 * e, low - room / 2) for e in ends)])
    step = svg.ticks(high - low)[1]
    marks = [round(k * step, 10) for k in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]
    return _Axis(svg.Scale(marks[0], marks[-1], HEIGHT - BOTTOM, TOP), marks)


def _vertical(axis: _Axis, title: str) -> str:
    parts = []
    for mark in axis.marks:
        y = axis.scale(mark)
        parts.append(svg.line(LEFT, y, WIDTH - RIGHT, y, "axis" if mark == 0 else "grid"))
        parts.append(svg.label(LEFT - 6, y + 4, f"{mark:g}".replace("-", MINUS), "tick", "end"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 12 {svg.coordinate(middle)})"'
    parts.append(svg.label(12, middle, title, "axis-title", "middle", extra=turned))
    return "".join(parts)


def _whisker(axis: _Axis, x: float, low: float | None, high: float | None, color: str) -> str:
    if low is None or high is None:
        return ""
    top, bottom = axis.clipped(high), axis.clipped(low)
    css = f"whisker {color}"
    parts = [svg.line(x, bottom, x, top, css)]
    # An end outside the plot has no bar.
    for value, y in ((low, bottom), (high, top)):
        if axis.scale.low <= 100 * value <= axis.scale.high:
            parts.append(svg.line(x - 3, y, x + 3, y, css))
    return "".join(parts)


def bin_plot(section: Section, measure: str) -> str:
    """What the room costs by bin of RT60 ("rt60_s") or DRR ("drr_db"); "" for fewer than two known bins."""
    bins = {entry: [b for b in _bins(entry, measure) if b.known] for entry in section.entries}
    middles = section.middles(measure)
    if len(middles) < 2:
        return ""
    unit, words = ("s", "RT60") if measure == "rt60_s" else ("dB", "DRR")
    deltas = [b.rates[section.first.main_metric].delta.absolute for own in bins.values() for b in own]
    axis = _axis(
        [d.value for d in deltas if d.value is not None],
        [end for d in deltas for end in (d.low, d.high) if end is not None],
    )
    lowest, highest = min(middles.values()), max(middles.values())
    margin = 0.08 * (highest - lowest) or 1.0
    x = svg.Scale(lowest - margin, highest + margin, LEFT, WIDTH - RIGHT)
    base = HEIGHT - BOTTOM
    parts = [_vertical(axis, f"Δ{section.metric}, percentage points")]
    for edge in section.first.data.edges[section.column(measure)]:
        if x.low < edge < x.high:
            parts.append(svg.line(x(edge), TOP, x(edge), base, "divider"))
    last = -math.inf
    for value in _round_marks(x.low, x.high):
        parts.append(svg.line(x(value), base, x(value), base + 4, "axis"))
        if x(value) - last > 30:
            parts.append(svg.label(x(value), base + 17, f"{value:g}".replace("-", MINUS), "tick", "middle"))
            last = x(value)
    side = "more reverberant to the right" if measure == "rt60_s" else "more direct sound to the right"
    parts.append(svg.label((LEFT + WIDTH - RIGHT) / 2, base + 38, f"{words} ({unit}), {side}", "axis-title", "middle"))
    count = len(section.entries)
    over, said = [], []
    for entry, own in bins.items():
        color = svg.series_class(entry.index)
        shift = (entry.index - (count - 1) / 2) * min(5.0, 22.0 / count)
        points = []
        for found in own:
            delta = found.rates[section.first.main_metric].delta.absolute
            if delta.value is None:
                continue
            place = x(middles[found.number]) + shift, axis.clipped(delta.value)
            points.append(place)
            parts.append(_whisker(axis, place[0], delta.low, delta.high, color))
            tip = (
                f"{entry.name}, {words} {bin_words(found, unit)}: "
                f"{difference_words(found.rates[section.first.main_metric].delta)}, n = {found.pairs}"
            )
            over.append(svg.marker(entry.index, *place, hollow=bool(entry.front_end), title=tip))
            said.append(tip)
        over.insert(0, svg.path(points, f"curve {color}{' room' if entry.front_end else ''}"))
        if measure == "rt60_s" and entry.result.onset.threshold_s is not None:
            at = entry.result.onset.threshold_s
            if x.low <= at <= x.high:
                parts.append(svg.line(x(at), TOP, x(at), base, f"typed-line {color}"))
    return svg.figure(
        f"{section.anchor}-{'rt60' if measure == 'rt60_s' else 'drr'}",
        f"What the room costs by {words}, {section.title}",
        ". ".join(said) + ".",
        (WIDTH, HEIGHT),
        "".join((*parts, *over)),
    )


def _bins(entry: Entry, measure: str) -> list[Bin]:
    return entry.result.by_rt60 if measure == "rt60_s" else entry.result.by_drr


def _round_marks(low: float, high: float) -> list[float]:
    """Round numbers inside a range, five or so.

    >>> _round_marks(0.1, 1.2), _round_marks(-9.3, 0.4)
    ([0.2, 0.4, 0.6, 0.8, 1.0, 1.2], [-8.0, -6.0, -4.0, -2.0, 0.0])
    """
    step = svg.ticks(high - low)[1]
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 10) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


def size_plot(section: Section) -> str:
    """What the room costs by the number of parameters; "" for fewer than two sizes."""
    sized = [(entry, size) for entry in section.entries if (size := entry.result.system.parameters)]
    if len({size for _, size in sized}) < LEAST_SYSTEMS:
        return ""
    return _scatter(
        section,
        [(entry, float(size)) for entry, size in sized],
        place="size",
        words="by size",
        title="parameters (millions), larger to the right",
        show=lambda value: f"{value / 1e6:g}",
        tip=lambda value: f"{value / 1e6:.0f} million parameters",
    )


def speed_plot(section: Section) -> str:
    """What the room costs by RTFx, the Pareto front joined by a line; "" for fewer than two recognizers with both."""
    timed = [(entry, rtfx) for entry in section.entries if (rtfx := entry.result.timing.rtfx)]
    if len(timed) < LEAST_SYSTEMS:
        return ""
    return _scatter(
        section,
        timed,
        place="speed",
        words="by speed",
        title="RTFx: seconds of sound per second, faster to the right",
        show=lambda value: f"{value:g}",
        tip=lambda value: f"RTFx {number(value, 1)}",
        front=pareto(section),
    )


def pareto(section: Section) -> list[Entry]:
    """The recognizers that no other beats in both: as fast and a smaller delta, or faster and as small a delta."""
    points = [
        (entry, rtfx, delta)
        for entry in section.entries
        if (rtfx := entry.result.timing.rtfx) and (delta := entry.main.delta.absolute.value) is not None
    ]

    def beaten(rtfx: float, delta: float) -> bool:
        return any(a >= rtfx and b <= delta and (a > rtfx or b < delta) for _, a, b in points)

    return [entry for entry, rtfx, delta in points if not beaten(rtfx, delta)]


def _scatter(
    section: Section,
    placed: Sequence[tuple[Entry, float]],
    *,
    place: str,
    words: str,
    title: str,
    show: Callable[[float], str],
    tip: Callable[[float], str],
    front: Sequence[Entry] = (),
) -> str:
    """Deltas with intervals over a logarithmic axis."""
    points = [
        (entry, value, delta) for entry, value in placed if (delta := entry.main.delta.absolute).value is not None
    ]
    if len(points) < LEAST_SYSTEMS:
        return ""
    axis = _axis(
        [delta.value for _, _, delta in points if delta.value is not None],
        [end for _, _, delta in points for end in (delta.low, delta.high) if end is not None],
    )
    low, high, marks = decades([value for _, value, _ in points])
    x = svg.Scale(math.log10(low), math.log10(high), LEFT, WIDTH - RIGHT)
    base = HEIGHT - BOTTOM
    parts = [_vertical(axis, f"Δ{section.metric}, percentage points")]
    for mark in marks:
        at = x(math.log10(mark))
        parts.append(svg.line(at, TOP, at, base, "grid"))
        parts.append(svg.label(at, base + 17, show(mark), "tick", "middle"))
    parts.append(svg.label((LEFT + WIDTH - RIGHT) / 2, base + 38, title, "axis-title", "middle"))
    over, said = [], []
    joined = []
    for entry, value, delta in points:
        if delta.value is None:
            continue
        # Recognizers at the same place (a model with and without front ends) stand side by side.
        same = [other for other, at, _ in points if at == value]
        shift = 6.0 * (same.index(entry) - (len(same) - 1) / 2)
        spot = x(math.log10(value)) + shift, axis.clipped(delta.value)
        parts.append(_whisker(axis, spot[0], delta.low, delta.high, svg.series_class(entry.index)))
        text = f"{entry.name}: {tip(value)}, Δ{section.metric} {signed(delta.value)} {bounds(delta)}".strip()
        over.append(svg.marker(entry.index, *spot, hollow=bool(entry.front_end), title=text, radius=5.2))
        said.append(text)
        if entry in front:
            joined.append(spot)
    parts.append(svg.path(sorted(joined), "curve typed front"))
    return svg.figure(
        f"{section.anchor}-{place}",
        f"What the room costs {words}, {section.title}",
        ". ".join(said) + ".",
        (WIDTH, HEIGHT),
        "".join((*parts, *over)),
    )


def decay_plot(identity: str, room: SampleRoom) -> str:
    """The decay of a room with the straight line of its RT60; "" where it is not known."""
    if len(room.decay_db) < 2:
        return ""
    times = [k * room.step_s for k in range(len(room.decay_db))]
    left, right, top, bottom = 40.0, 8.0, 8.0, 36.0
    longest = max(times[-1], min(room.rt60_s or 0.0, 2 * times[-1]))
    x = svg.Scale(0.0, longest, left, DECAY_WIDTH - right)
    y = svg.Scale(DECAY_FLOOR_DB, 0.0, DECAY_HEIGHT - bottom, top)
    parts = []
    for mark in (0.0, -20.0, -40.0, -60.0):
        parts.append(svg.line(left, y(mark), DECAY_WIDTH - right, y(mark), "axis" if mark == -60 else "grid"))
        parts.append(svg.label(left - 5, y(mark) + 4, f"{mark:g}".replace("-", MINUS), "tick", "end"))
    for mark in _round_marks(0.0, longest)[:8]:
        parts.append(svg.line(x(mark), y(-60), x(mark), y(-60) + 4, "axis"))
        parts.append(svg.label(x(mark), y(-60) + 16, f"{mark:g}", "tick", "middle"))
    parts.append(
        svg.label(
            (left + DECAY_WIDTH - right) / 2, DECAY_HEIGHT - 4, "s after the direct sound; dB", "axis-title", "middle"
        )
    )
    if room.rt60_s:
        # From 0 dB: the slope is that of the fit, the height is not.
        end = min(longest, room.rt60_s)
        parts.append(svg.line(x(0), y(0), x(end), y(-60 * end / room.rt60_s), "typed-line s1"))
    shown = [(x(t), y(max(DECAY_FLOOR_DB, level))) for t, level in zip(times, room.decay_db, strict=True)]
    parts.append(svg.path(shown, "curve s0"))
    rt60 = "not known" if room.rt60_s is None else f"{number(room.rt60_s, 2)} s"
    words = f"Falls to {number(room.decay_db[-1], 0)} dB in {number(times[-1], 2)} s; RT60 {rt60}."
    return svg.figure(identity, f"Energy decay of {room.rir_id}", words, (DECAY_WIDTH, DECAY_HEIGHT), "".join(parts))
