"""Recognition errors against retrieval: one point per system and condition."""

from __future__ import annotations

from dataclasses import dataclass

from ...loaders.conditions import parse_condition
from ..results import MAIN_METRIC
from . import svg
from .data import Run, Section, System
from .formats import condition_mark, condition_words, number, percent
from .point_labels import PointLabel, place_labels

WIDTH, HEIGHT = 420.0, 360.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 14.0, 12.0, 50.0


@dataclass(frozen=True)
class Scatter:
    """The drawing, and how many points had to stay without a label."""

    drawing: str
    points: int
    unlabelled: int


@dataclass(frozen=True)
class _Point:
    system: System
    run: Run
    error: float
    value: float

    @property
    def reverb(self) -> bool:
        return parse_condition(self.run.condition).reverb


def scatter(section: Section, top: float) -> Scatter | None:
    """The scatter of a section, None if no run has both an error rate and the main metric."""
    points = _points(section)
    if not points:
        return None
    name = section.error_metric.upper()
    marks = svg.ticks(100 * max(p.error for p in points))
    x = svg.Scale(0, marks[-1], LEFT, WIDTH - RIGHT)
    y = svg.Scale(0, top, HEIGHT - BOTTOM, TOP)
    base = HEIGHT - BOTTOM
    parts = [svg.vertical_axis(y, [m for m in svg.ticks(top) if m <= top + 1e-9], LEFT, WIDTH - RIGHT, "nDCG@10")]
    for mark in marks:
        parts.append(svg.line(x(mark), base, x(mark), base + 4, "axis"))
        parts.append(svg.label(x(mark), base + 17, f"{mark:g}", "tick", "middle"))
    title = f"corpus {name} (%)"
    parts.append(svg.label((LEFT + WIDTH - RIGHT) / 2, base + 38, title, "axis-title", "middle"))
    parts.append(_typed_lines(section, y))
    for system in section.systems:
        own = sorted((p for p in points if p.system is system), key=lambda p: p.error)
        parts.append(
            svg.path([(x(100 * p.error), y(p.value)) for p in own], f"thread {svg.series_class(system.index)}")
        )
    for point in points:
        tip = (
            f"{point.system.name}, {condition_words(point.run.condition)}: {name} {percent(point.error)}, "
            f"nDCG@10 {number(point.value)}"
        )
        place = x(100 * point.error), y(point.value)
        parts.append(svg.marker(point.system.index, *place, hollow=point.reverb, title=tip))
    frame = svg.Box(LEFT + 1, TOP - 6, WIDTH - 2, HEIGHT - BOTTOM - 1)
    wanted = [
        PointLabel(x(100 * p.error), y(p.value), condition_mark(p.run.condition), svg.series_class(p.system.index))
        for p in points
    ]
    labels, unlabelled = place_labels(wanted, frame)
    parts.append(labels)
    description = " ".join(
        f"{p.system.name}, {condition_words(p.run.condition)}: {name} {percent(p.error)}, nDCG@10 {number(p.value)}."
        for p in points
    )
    drawing = svg.figure(
        f"{section.anchor}-scatter",
        f"nDCG@10 against corpus {name}, {section.title}",
        description,
        (WIDTH, HEIGHT),
        "".join(parts),
    )
    return Scatter(drawing, len(points), unlabelled)


def _points(section: Section) -> list[_Point]:
    points = []
    for system in section.systems:
        for run in system.runs:
            error, score = run.score(section.error_metric), run.score(MAIN_METRIC)
            if error is not None and score is not None and error.value is not None and score.value is not None:
                points.append(_Point(system, run, error.value, score.value))
    return points


def _typed_lines(section: Section, y: svg.Scale) -> str:
    """A tick at the left edge where each system would be without recognition errors."""
    parts = []
    for system in section.systems:
        score = None if system.text is None else system.text.score(MAIN_METRIC)
        if score is not None and score.value is not None:
            at = y(score.value)
            parts.append(svg.line(LEFT, at, WIDTH - RIGHT, at, f"typed-line {svg.series_class(system.index)}"))
    return "".join(parts)
