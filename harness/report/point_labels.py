"""Labels beside the points of a chart, where nothing is hit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from . import svg

LABEL_SIZE = 11.5


@dataclass(frozen=True, slots=True)
class PointLabel:
    """The label of the point at (x, y); `css` is the class of the line that leads to it from afar."""

    x: float
    y: float
    text: str
    css: str


def place_labels(points: Sequence[PointLabel], frame: svg.Box) -> tuple[str, int]:
    """The labels as SVG, inside `frame` and beside their points; the number of points that no label fits."""
    taken = [svg.Box(p.x - 5, p.y - 5, p.x + 5, p.y + 5) for p in points]
    parts, unlabelled = [], 0
    for point in points:
        width = svg.text_width(point.text, LABEL_SIZE)
        for dx, dy, leader in _candidates(width):
            left, base = point.x + dx, point.y + dy
            box = svg.Box(left, base - 8, left + width, base + 1)
            if box.within(frame) and not any(box.overlap(other) for other in taken):
                taken.append(box)
                if leader:
                    end = min(max(point.x, box.left), box.right), box.bottom if dy < 0 else box.top
                    parts.append(svg.line(point.x, point.y, *end, f"leader {point.css}"))
                parts.append(svg.label(left, base, point.text, "point halo"))
                break
        else:
            unlabelled += 1
    return "".join(parts), unlabelled


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
