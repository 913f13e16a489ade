"""The drawings: loss by bin, loss by size, loss by speed, and the decay of an RIR."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ....report import svg
from ....report.formats import group_words, interval, measure_of, number, signed, where_words
from ....report.sections import Run, Section, System
from ....results.envelope import Group, Score
from .tables import details_of, hardest_condition, loss_of, pareto

FRAME = svg.Frame(height=300.0, top=14.0)
DECAY = svg.Frame(300.0, 156.0, left=40.0, right=8.0, top=8.0, bottom=42.0)
DECAY_FLOOR_DB = -60.0
LEAST_SYSTEMS = 2


@dataclass(frozen=True, slots=True)
class _Axis:
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
        return cls(FRAME.y(marks[0], marks[-1]), marks)

    def at(self, value: float) -> float:
        """The coordinate of a ratio, kept inside the plot."""
        return self.scale(min(max(100 * value, self.scale.low), self.scale.high))

    def drawn(self, title: str) -> str:
        return FRAME.vertical(self.scale, self.marks, title)

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
    x = FRAME.x(lowest - margin, highest + margin)
    side = "more reverberant to the right" if measure == "rt60_s" else "more direct to the right"
    edges = {edge for _, _, own in bins for group, _ in own for edge in (group.low, group.high) if edge is not None}
    marks = [(x(value), f"{value:g}") for value in svg.round_marks(x.low, x.high)]
    parts = [
        axis.drawn(f"Δ{metric}, percentage points"),
        *(svg.line(x(e), FRAME.top, x(e), FRAME.base, "divider") for e in sorted(edges) if x.low < e < x.high),
        FRAME.horizontal(marks, f"{name} ({unit}), {side}", gap=30.0),
    ]
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
            tip = f"{system.name}, {name} {group_words(group, measure)}: {signed(loss.value)} {ends}, n = {loss.n}"
            over.append(svg.marker(system.index, *spot, hollow=_has_front_end(system), title=tip))
            words.append(tip)
        over.insert(0, svg.path(spots, f"curve {color}{' room' if _has_front_end(system) else ''}"))
        parts.append(_change_point(run, x, color) if measure == "rt60_s" else "")
    title = f"Δ{metric} by {name}, {where_words(condition)}, {section.title}"
    body = "".join((*parts, *over))
    return FRAME.figure(f"{section.anchor}-{condition}-{name.lower()}", title, ". ".join(words) + ".", body)


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


def _change_point(run: Run, x: svg.Scale, color: str) -> str:
    found = details_of(run).change_point
    at = None if found is None else found.threshold_s
    if at is None or not x.low <= at <= x.high:
        return ""
    return svg.line(x(at), FRAME.top, x(at), FRAME.base, f"typed-line {color}")


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
        tip=lambda value: f"RTFx {number(value, 1)}",
        front=pareto(section),
    )


def _scatter(
    section: Section,
    placed: Sequence[tuple[System, float]],
    place: str,
    title: str,
    *,
    tip: Callable[[float], str],
    show: Callable[[float], str] = "{:g}".format,
    front: Sequence[System] = (),
) -> str:
    """Losses under the hardest condition, with intervals, over a logarithmic axis."""
    condition = hardest_condition(section)
    dots = [(s, at, loss) for s, at in placed if (loss := loss_of(s, condition)) is not None and loss.value is not None]
    if len(dots) < LEAST_SYSTEMS:
        return ""
    axis = _Axis.of([loss for _, _, loss in dots])
    x, across = FRAME.decades([at for _, at, _ in dots], title, show)
    metric = section.metric.upper()
    parts = [axis.drawn(f"Δ{metric}, percentage points"), across]
    over, words, joined = [], [], []
    for system, at, loss in dots:
        # Systems at the same place (a model with and without front ends) are drawn side by side.
        same = [other for other, value, _ in dots if value == at]
        shift = 6.0 * (same.index(system) - (len(same) - 1) / 2)
        spot = x(at) + shift, axis.at(loss.value or 0.0)
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
    return FRAME.figure(f"{section.anchor}-{place}", heading, ". ".join(words) + ".", body)


def decay_plot(identity: str, rir_id: str, rt60_s: float | None, decay_db: Sequence[float], step_s: float) -> str:
    """The decay of an RIR with the straight line of its RT60; "" where it is not known."""
    if len(decay_db) < 2:
        return ""
    times = [k * step_s for k in range(len(decay_db))]
    longest = max(times[-1], min(rt60_s or 0.0, 2 * times[-1]))
    x, y = DECAY.x(0.0, longest), DECAY.y(DECAY_FLOOR_DB, 0.0)
    marks = [(x(mark), f"{mark:g}") for mark in svg.round_marks(0.0, longest)[:8]]
    parts = [
        DECAY.vertical(y, (0.0, -20.0, -40.0, -60.0), zero=DECAY_FLOOR_DB),
        DECAY.horizontal(marks, "s after the direct path; dB"),
    ]
    if rt60_s:
        # From 0 dB: the slope is that of the fit, the height is not.
        end = min(longest, rt60_s)
        parts.append(svg.line(x(0), y(0), x(end), y(-60 * end / rt60_s), "typed-line s1"))
    shown = [(x(t), y(max(DECAY_FLOOR_DB, level))) for t, level in zip(times, decay_db, strict=True)]
    parts.append(svg.path(shown, "curve s0"))
    rt60 = "not known" if rt60_s is None else f"{number(rt60_s, 2)} s"
    words = f"Falls to {number(decay_db[-1], 0)} dB in {number(times[-1], 2)} s; RT60 {rt60}."
    return DECAY.figure(identity, f"Energy decay of {rir_id}", words, "".join(parts))
