"""Speed against quality: one point per system."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..results.old import MAIN_METRIC
from . import svg
from .data import Section, System
from .formats import condition_words, escape, number
from .tables import scrollable, swatch

WIDTH, HEIGHT = 420.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 14.0, 12.0, 50.0
LEAST_SYSTEMS = 2
"""Below this there is nothing to compare."""


@dataclass(frozen=True, slots=True)
class Point:
    """A system with its RTFx and mean nDCG@10."""

    system: System
    rtfx: float
    value: float


@dataclass(frozen=True, slots=True)
class Speed:
    """The drawing, its points, the conditions averaged over, and the systems without RTFx (or a score on them)."""

    drawing: str
    points: tuple[Point, ...]
    conditions: tuple[str, ...]
    left_out: tuple[str, ...]


def speed(section: Section, top: float) -> Speed | None:
    """nDCG@10 over RTFx, None if fewer than two systems have both.

    The score is the mean over the spoken conditions that all systems drawn share, so that none gains by leaving a hard
    one out. `top` is the upper end of the vertical axis.
    """
    timed = [system for system in section.systems if system.rtfx is not None]
    conditions = _shared_conditions(section, timed)
    points = [p for system in timed if (p := _point(system, conditions)) is not None]
    if len(points) < LEAST_SYSTEMS:
        return None
    low, high, marks = decades([p.rtfx for p in points])
    scale = svg.Scale(math.log10(low), math.log10(high), LEFT, WIDTH - RIGHT)
    y = svg.Scale(0, top, HEIGHT - BOTTOM, TOP)
    base = HEIGHT - BOTTOM
    parts = [svg.vertical_axis(y, [m for m in svg.ticks(top) if m <= top + 1e-9], LEFT, WIDTH - RIGHT, "nDCG@10")]
    for mark in marks:
        x = scale(math.log10(mark))
        parts.append(svg.line(x, TOP, x, base, "grid"))
        parts.append(svg.label(x, base + 17, f"{mark:g}", "tick", "middle"))
    title = "RTFx: seconds of sound per second, faster to the right"
    parts.append(svg.label((LEFT + WIDTH - RIGHT) / 2, base + 38, title, "axis-title", "middle"))
    for point in points:
        place = scale(math.log10(point.rtfx)), y(point.value)
        tip = f"{point.system.name}: RTFx {number(point.rtfx, 1)}, nDCG@10 {number(point.value)}"
        parts.append(svg.marker(point.system.index, *place, title=tip, radius=5.2))
    description = " ".join(f"{p.system.name}: RTFx {number(p.rtfx, 1)}, nDCG@10 {number(p.value)}." for p in points)
    words = ", ".join(condition_words(c) for c in conditions)
    drawing = svg.figure(
        f"{section.anchor}-speed",
        f"nDCG@10 over RTFx, mean over {words}, {section.title}",
        description,
        (WIDTH, HEIGHT),
        "".join(parts),
    )
    shown = {point.system.name for point in points}
    left_out = tuple(system.name for system in section.systems if system.name not in shown)
    return Speed(drawing, tuple(points), conditions, left_out)


def _shared_conditions(section: Section, systems: Sequence[System]) -> tuple[str, ...]:
    own = [{run.condition for run in system.runs} for system in systems]
    shared = set.intersection(*own) if own else set()
    return tuple(c for c in section.conditions if c in shared)


def _point(system: System, conditions: Sequence[str]) -> Point | None:
    scores = [run.score(MAIN_METRIC) for run in system.runs if run.condition in conditions]
    values = [score.value for score in scores if score is not None and score.value is not None]
    if system.rtfx is None or not values or len(values) < len(conditions):
        return None
    return Point(system, system.rtfx, math.fsum(values) / len(values))


def decades(values: Sequence[float]) -> tuple[float, float, list[float]]:
    """The ends of a logarithmic axis and its marks: round numbers, three at least, the ends among them.

    >>> decades([3.0, 40.0])
    (2.0, 50.0, [2.0, 5.0, 10.0, 20.0, 50.0])
    """
    first, last = math.floor(math.log10(min(values))) - 1, math.ceil(math.log10(max(values))) + 1
    marks = [round(factor * 10.0**power, 10 - power) for power in range(first, last + 1) for factor in (1, 2, 5)]
    start = max(i for i, mark in enumerate(marks) if mark < min(values))
    stop = min(i for i, mark in enumerate(marks) if mark > max(values))
    shown = marks[start : stop + 1]
    # Over many decades powers of ten suffice.
    most = 8
    spaced = shown if len(shown) <= most else [m for m in shown if math.log10(m).is_integer() or m in (shown[0],)]
    return shown[0], shown[-1], spaced


def speed_table(drawn: Speed) -> str:
    """The points in numbers, fastest first; it is the chart's legend too."""
    rows = "".join(
        f'<tr><th scope="row">{swatch(point.system)}{escape(point.system.name)}</th>'
        f'<td class="num">{number(point.rtfx, 1)}</td><td class="num main">{number(point.value)}</td></tr>'
        for point in sorted(drawn.points, key=lambda point: -point.rtfx)
    )
    head = (
        '<thead><tr><th scope="col">System</th><th scope="col" class="num">RTFx</th>'
        '<th scope="col" class="num">nDCG@10<small>mean</small></th></tr></thead>'
    )
    return scrollable(f'<table class="bins">{head}<tbody>{rows}</tbody></table>', "Speed and quality")
