"""Error rate against retrieval: one point per system and condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....report import svg
from ....report.formats import condition_mark, condition_words, full_rate_words, in_room, metric_name, number
from ....report.sections import Run, Section, System

FRAME = svg.Frame(height=360.0)
LABEL_SIZE = 11.5


@dataclass(frozen=True)
class Scatter:
    """The drawing, how many points had to stay without a label, and the systems without a point."""

    drawing: str
    points: int
    unlabeled: int
    left_out: tuple[str, ...]


@dataclass(frozen=True)
class _Point:
    system: System
    run: Run
    error: float
    value: float
    words: str

    @property
    def reverb(self) -> bool:
        return in_room(self.run.condition)


def scatter(section: Section, top: float) -> Scatter | None:
    """The scatter of a section, None if no run has both an error rate and the main metric."""
    points = _points(section)
    if not points:
        return None
    name, metric = section.error_metric.upper(), metric_name(section.metric)
    marks = svg.ticks(100 * max(p.error for p in points))
    x = FRAME.x(0, marks[-1])
    y, axis = FRAME.share_axis(top, metric)
    parts = [axis, FRAME.horizontal([(x(mark), f"{mark:g}") for mark in marks], f"corpus {name} (%)")]
    drawn = [system for system in section.systems if any(p.system is system for p in points)]
    parts.append(_typed_lines(drawn, y))
    for system in section.systems:
        own = sorted((p for p in points if p.system is system), key=lambda p: p.error)
        parts.append(
            svg.path([(x(100 * p.error), y(p.value)) for p in own], f"thread {svg.series_class(system.index)}")
        )
    for point in points:
        tip = (
            f"{point.system.name}, {condition_words(point.run.condition)}: {name} {point.words}, "
            f"{metric} {number(point.value)}"
        )
        place = x(100 * point.error), y(point.value)
        parts.append(svg.marker(point.system.index, *place, hollow=point.reverb, title=tip))
    labels, unlabeled = _place_labels([(x(100 * p.error), y(p.value), p) for p in points])
    parts.append(labels)
    description = " ".join(
        f"{p.system.name}, {condition_words(p.run.condition)}: {name} {p.words}, {metric} {number(p.value)}."
        for p in points
    )
    title = f"{metric} against corpus {name}, {section.title}"
    drawing = FRAME.figure(f"{section.anchor}-scatter", title, description, "".join(parts))
    left_out = tuple(system.name for system in section.systems if system not in drawn)
    return Scatter(drawing, len(points), unlabeled, left_out)


def _points(section: Section) -> list[_Point]:
    points = []
    for system in section.systems:
        for run in system.runs:
            error, score = run.score(section.error_metric), run.score()
            if error is not None and score is not None and error.value is not None and score.value is not None:
                points.append(_Point(system, run, error.value, score.value, full_rate_words(error)))
    return points


def _typed_lines(systems: Sequence[System], y: svg.Scale) -> str:
    """A tick at the left edge where each system would be without recognition errors."""
    parts = []
    for system in systems:
        score = None if system.text is None else system.text.score()
        if score is not None and score.value is not None:
            at = y(score.value)
            parts.append(svg.line(FRAME.left, at, FRAME.end, at, f"typed-line {svg.series_class(system.index)}"))
    return "".join(parts)


def _candidates(width: float) -> list[tuple[float, float, bool]]:
    """Where a label may start, relative to its point, best first; whether it then needs a leader."""
    near = [(7, 3.5), (-7 - width, 3.5), (-width / 2, -8), (-width / 2, 15), (6, -6), (6, 13), (-6 - width, -6)]
    far = [
        (x, y)
        for reach in (20.0, 34.0)
        for x, y in (
            *((0.5 * reach, 3.5 + reach), (-0.5 * reach - width, 3.5 + reach), (-width / 2, 3.5 + reach)),
            *((0.5 * reach, 3.5 - reach), (-0.5 * reach - width, 3.5 - reach), (reach, 3.5), (-reach - width, 3.5)),
        )
    ]
    return [(x, y, False) for x, y in near] + [(x, y, True) for x, y in far]


def _place_labels(points: Sequence[tuple[float, float, _Point]]) -> tuple[str, int]:
    """Labels beside their points where nothing is hit; the number of points that no label fits."""
    frame = svg.Box(FRAME.left + 1, FRAME.top - 6, FRAME.width - 2, FRAME.base - 1)
    taken = [svg.Box(x - 5, y - 5, x + 5, y + 5) for x, y, _ in points]
    parts, unlabeled = [], 0
    for x, y, point in points:
        text = condition_mark(point.run.condition)
        width = svg.text_width(text, LABEL_SIZE)
        for dx, dy, leader in _candidates(width):
            box = svg.Box(x + dx, y + dy - 8, x + dx + width, y + dy + 1)
            if box.within(frame) and not any(box.overlap(other) for other in taken):
                taken.append(box)
                if leader:
                    end = min(max(x, box.left), box.right), box.bottom if dy < 0 else box.top
                    parts.append(svg.line(x, y, *end, f"leader {svg.series_class(point.system.index)}"))
                parts.append(svg.label(x + dx, y + dy, text, "point halo"))
                break
        else:
            unlabeled += 1
    return "".join(parts), unlabeled
