"""The drawings: loss by bin, loss by size, loss by speed, and the decay of an RIR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ....report import svg
from ....report.formats import MINUS, group_words, interval, measure_of, number, signed, where_words
from ....report.sections import Run, Section, System
from ....results.envelope import Group, Score
from .tables import details_of, hardest_condition, loss_of, pareto

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

    @classmethod
    def of(cls, scores: Sequence[Score]) -> _Axis:
        """For these values; the ends of intervals are shown as far as they do not crush the values."""
        values = [100 * score.value for score in scores if score.value is not None]
        ends = [100 * end for score in scores for end in (score.low, score.high) if end is not None]
        high, low = max([*values, 0.5]), min([*values, 0.0])
        space = high - low
        high = max([high, *(min(end, high + space) for end in ends)])
        low = min([low, *(max(end, low - space / 2) for end in ends)])
        step = svg.ticks(high - low)[1]
        marks = [round(k * step, 10) for k in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]
        return cls(svg.Scale(marks[0], marks[-1], HEIGHT - BOTTOM, TOP), marks)

    def at(self, value: float) -> float:
        """The coordinate of a ratio, kept inside the plot."""
        return self.scale(min(max(100 * value, self.scale.low), self.scale.high))

    def drawn(self, title: str) -> str:
        """Grid, tick labels and title."""
        parts = []
        for mark in self.marks:
            y = self.scale(mark)
            parts.append(svg.line(LEFT, y, WIDTH - RIGHT, y, "axis" if mark == 0 else "grid"))
            parts.append(svg.label(LEFT - 6, y + 4, f"{mark:g}".replace("-", MINUS), "tick", "end"))
        middle = (TOP + HEIGHT - BOTTOM) / 2
        turned = f'transform="rotate(-90 12 {svg.coordinate(middle)})"'
        return "".join([*parts, svg.label(12, middle, title, "axis-title", "middle", extra=turned)])

    def whisker(self, x: float, score: Score, color: str) -> str:
        """The interval; an end outside the plot has no bar."""
        if score.low is None or score.high is None:
            return ""
        css = f"whisker {color}"
        parts = [svg.line(x, self.at(score.low), x, self.at(score.high), css)]
        for value in (score.low, score.high):
            if self.scale.low <= 100 * value <= self.scale.high:
                parts.append(svg.line(x - 3, self.at(value), x + 3, self.at(value), css))
        return "".join(parts)


def _below(title: str) -> str:
    return svg.label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 38, title, "axis-title", "middle")


def _has_front_end(system: System) -> bool:
    return "front_end" in system.info.components


def bin_plot(section: Section, condition: str, measure: str) -> str:
    """The loss against clean by bin of RT60 ("rt60_s") or DRR ("drr_db"); "" for fewer than two known bins."""
    runs = [(system, run) for system in section.systems if (run := system.run(condition)) is not None]
    bins = [(system, run, _known_bins(run, measure, section.metric)) for system, run in runs]
    middles = _middles(bins[0][1], measure, [group for group, _ in bins[0][2]]) if bins else {}
    if len(middles) < LEAST_SYSTEMS:
        return ""
    name, unit, _ = measure_of(measure)
    metric = section.metric.upper()
    axis = _Axis.of([loss for _, _, own in bins for _, loss in own])
    lowest, highest = min(middles.values()), max(middles.values())
    margin = 0.08 * (highest - lowest) or 1.0
    x = svg.Scale(lowest - margin, highest + margin, LEFT, WIDTH - RIGHT)
    side = "more reverberant to the right" if measure == "rt60_s" else "more direct to the right"
    edges = {edge for _, _, own in bins for group, _ in own for edge in (group.low, group.high) if edge is not None}
    parts = [axis.drawn(f"Δ{metric}, percentage points"), _value_axis(x, edges), _below(f"{name} ({unit}), {side}")]
    over: list[str] = []
    words: list[str] = []
    for place, (system, run, own) in enumerate(bins):
        color = svg.series_class(system.index)
        shift = (place - (len(bins) - 1) / 2) * min(5.0, 22.0 / len(bins))
        spots = []
        for group, loss in own:
            if loss.value is None or group.label not in middles:
                continue
            spot = x(middles[group.label]) + shift, axis.at(loss.value)
            spots.append(spot)
            parts.append(axis.whisker(spot[0], loss, color))
            ends = interval(loss, 1, as_percent=True)
            tip = f"{system.name}, {name} {group_words(group, measure)}: {signed(loss.value)} {ends}, n = {group.n}"
            over.append(svg.marker(system.index, *spot, hollow=_has_front_end(system), title=tip))
            words.append(tip)
        over.insert(0, svg.path(spots, f"curve {color}{' room' if _has_front_end(system) else ''}"))
        parts.append(_change_point(run, x, color) if measure == "rt60_s" else "")
    return svg.figure(
        f"{section.anchor}-{condition}-{name.lower()}",
        f"Δ{metric} by {name}, {where_words(condition)}, {section.title}",
        ". ".join(words) + ".",
        (WIDTH, HEIGHT),
        "".join((*parts, *over)),
    )


def _known_bins(run: Run, measure: str, metric: str) -> list[tuple[Group, Score]]:
    return [
        (group, group.losses["clean"][metric].absolute)
        for group in run.result.by_group.get(measure, ())
        if (group.low is not None or group.high is not None) and metric in group.losses.get("clean", {})
    ]


def _middles(run: Run, measure: str, groups: Sequence[Group]) -> dict[str, float]:
    """The median value of the items in each bin: measured, or the source's own where the bins are of those."""
    source = f"source_{measure}"
    values = run.numbers(source if source in run.result.data.edges else measure)
    found = {}
    for group in groups:
        low = -math.inf if group.low is None else group.low
        high = math.inf if group.high is None else group.high
        own = values[(values > low) & (values <= high)]
        if own.size:
            found[group.label] = float(np.median(own))
    return found


def _value_axis(x: svg.Scale, edges: set[float]) -> str:
    """Ticks below, and the edges of the bins as dotted lines."""
    base = HEIGHT - BOTTOM
    parts = [svg.line(x(edge), TOP, x(edge), base, "divider") for edge in sorted(edges) if x.low < edge < x.high]
    last = -math.inf
    for value in svg.round_marks(x.low, x.high):
        parts.append(svg.line(x(value), base, x(value), base + 4, "axis"))
        if x(value) - last > 30:
            parts.append(svg.label(x(value), base + 17, f"{value:g}".replace("-", MINUS), "tick", "middle"))
            last = x(value)
    return "".join(parts)


def _change_point(run: Run, x: svg.Scale, color: str) -> str:
    found = details_of(run).change_point
    at = None if found is None else found.threshold_s
    if at is None or not x.low <= at <= x.high:
        return ""
    return svg.line(x(at), TOP, x(at), HEIGHT - BOTTOM, f"typed-line {color}")


def size_plot(section: Section) -> str:
    """The loss by the number of parameters; "" for fewer than two sizes."""
    sized = [(system, float(size)) for system in section.systems if (size := system.info.parameters)]
    if len({size for _, size in sized}) < LEAST_SYSTEMS:
        return ""
    return _scatter(
        section,
        sized,
        "size",
        "parameters (millions), larger to the right",
        show=lambda value: f"{value / 1e6:g}",
        tip=lambda value: f"{value / 1e6:.0f} million parameters",
    )


def speed_plot(section: Section) -> str:
    """The loss by RTFx, the Pareto front joined by a line; "" for fewer than two systems with both."""
    timed = [(system, rtfx) for system in section.systems if (rtfx := system.rtfx)]
    return _scatter(
        section,
        timed,
        "speed",
        "RTFx: seconds of audio per second, faster to the right",
        show=lambda value: f"{value:g}",
        tip=lambda value: f"RTFx {number(value, 1)}",
        front=pareto(section),
    )


def _scatter(
    section: Section,
    placed: Sequence[tuple[System, float]],
    place: str,
    title: str,
    *,
    show: Callable[[float], str],
    tip: Callable[[float], str],
    front: Sequence[System] = (),
) -> str:
    """Losses under the hardest condition, with intervals, over a logarithmic axis."""
    condition = hardest_condition(section)
    dots = [(s, at, loss) for s, at in placed if (loss := loss_of(s, condition)) is not None and loss.value is not None]
    if len(dots) < LEAST_SYSTEMS:
        return ""
    axis = _Axis.of([loss for _, _, loss in dots])
    low, high, marks = svg.decades([at for _, at, _ in dots])
    x = svg.Scale(math.log10(low), math.log10(high), LEFT, WIDTH - RIGHT)
    metric = section.metric.upper()
    parts = [axis.drawn(f"Δ{metric}, percentage points"), _below(title)]
    for mark in marks:
        parts.append(svg.line(x(math.log10(mark)), TOP, x(math.log10(mark)), HEIGHT - BOTTOM, "grid"))
        parts.append(svg.label(x(math.log10(mark)), HEIGHT - BOTTOM + 17, show(mark), "tick", "middle"))
    over, words, joined = [], [], []
    for system, at, loss in dots:
        # Systems at the same place (a model with and without front ends) are drawn side by side.
        same = [other for other, value, _ in dots if value == at]
        shift = 6.0 * (same.index(system) - (len(same) - 1) / 2)
        spot = x(math.log10(at)) + shift, axis.at(loss.value or 0.0)
        parts.append(axis.whisker(spot[0], loss, svg.series_class(system.index)))
        ends = interval(loss, 1, as_percent=True)
        text = f"{system.name}: {tip(at)}, Δ{metric} {signed(loss.value)} {ends}".strip()
        over.append(svg.marker(system.index, *spot, hollow=_has_front_end(system), title=text, radius=5.2))
        words.append(text)
        if system in front:
            joined.append(spot)
    parts.append(svg.path(sorted(joined), "curve typed front"))
    heading = f"Δ{metric} by {place}, {where_words(condition)}, {section.title}"
    body = "".join((*parts, *over))
    return svg.figure(f"{section.anchor}-{place}", heading, ". ".join(words) + ".", (WIDTH, HEIGHT), body)


def decay_plot(identity: str, rir_id: str, rt60_s: float | None, decay_db: Sequence[float], step_s: float) -> str:
    """The decay of an RIR with the straight line of its RT60; "" where it is not known."""
    if len(decay_db) < 2:
        return ""
    times = [k * step_s for k in range(len(decay_db))]
    left, right, top, bottom = 40.0, 8.0, 8.0, 36.0
    longest = max(times[-1], min(rt60_s or 0.0, 2 * times[-1]))
    x = svg.Scale(0.0, longest, left, DECAY_WIDTH - right)
    y = svg.Scale(DECAY_FLOOR_DB, 0.0, DECAY_HEIGHT - bottom, top)
    parts = []
    for mark in (0.0, -20.0, -40.0, -60.0):
        parts.append(svg.line(left, y(mark), DECAY_WIDTH - right, y(mark), "axis" if mark == -60 else "grid"))
        parts.append(svg.label(left - 5, y(mark) + 4, f"{mark:g}".replace("-", MINUS), "tick", "end"))
    for mark in svg.round_marks(0.0, longest)[:8]:
        parts.append(svg.line(x(mark), y(-60), x(mark), y(-60) + 4, "axis"))
        parts.append(svg.label(x(mark), y(-60) + 16, f"{mark:g}", "tick", "middle"))
    middle = (left + DECAY_WIDTH - right) / 2
    parts.append(svg.label(middle, DECAY_HEIGHT - 4, "s after the direct path; dB", "axis-title", "middle"))
    if rt60_s:
        # From 0 dB: the slope is that of the fit, the height is not.
        end = min(longest, rt60_s)
        parts.append(svg.line(x(0), y(0), x(end), y(-60 * end / rt60_s), "typed-line s1"))
    shown = [(x(t), y(max(DECAY_FLOOR_DB, level))) for t, level in zip(times, decay_db, strict=True)]
    parts.append(svg.path(shown, "curve s0"))
    rt60 = "not known" if rt60_s is None else f"{number(rt60_s, 2)} s"
    words = f"Falls to {number(decay_db[-1], 0)} dB in {number(times[-1], 2)} s; RT60 {rt60}."
    return svg.figure(identity, f"Energy decay of {rir_id}", words, (DECAY_WIDTH, DECAY_HEIGHT), "".join(parts))
