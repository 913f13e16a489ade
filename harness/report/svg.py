"""Primitives for hand-written SVG: scales, ticks, markers, axes, and labels that do not overlap.

Colors come from the style sheet: the classes `s0` … `s5` set `color`, shapes draw with `currentColor`, so that one
drawing serves light, dark and paper. Coordinates are in user units of about one CSS pixel on a phone.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

SERIES_COLORS = 6
SHAPES = ("circle", "square", "triangle", "diamond", "wedge", "pentagon", "cross")
"""More shapes than colors and no common factor, so that a pair repeats only after 42 systems."""


def escape(text: str) -> str:
    """`text` safe inside SVG, in elements and in quoted attributes; characters that XML forbids become U+FFFD.

    >>> escape('<b>"')
    '&lt;b&gt;&quot;'
    """
    return html.escape("".join(c if c >= " " or c in "\t\n\r" else "\ufffd" for c in text), quote=True)


@dataclass(frozen=True, slots=True)
class Scale:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Box:
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area in common.

        >>> Box(0, 0, 2, 2).overlap(Box(1, 1, 3, 3))
        1.0
        """
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return float(width * height) if width > 0 and height > 0 else 0.0

    def within(self, outer: Box) -> bool:
        return (
            self.left >= outer.left
            and self.right <= outer.right
            and self.top >= outer.top
            and self.bottom <= outer.bottom
        )


def coordinate(value: float) -> str:
    """A coordinate with one decimal at most.

    >>> coordinate(3.0), coordinate(-0.04)
    ('3', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def ticks(high: float, most: int = 6) -> list[float]:
    """Round numbers from 0 that cover `high` with at most `most` steps of 1, 2 or 5 times a power of ten.

    >>> ticks(0.87)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not math.isfinite(high) or high <= 0:
        high = 1.0
    power = 10.0 ** math.floor(math.log10(high / most))
    step = next(factor * power for factor in (1, 2, 5, 10, 20) if math.ceil(high / (factor * power) - 1e-9) <= most)
    return [round(i * step, 10) for i in range(math.ceil(high / step - 1e-9) + 1)]


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


def text_width(text: str, size: float = 11) -> float:
    """A generous estimate of the width of `text` in a sans-serif font of this size.

    >>> text_width("中文") > text_width("ab")
    True
    """
    return size * sum(1.0 if ord(c) > 0x2E7F else 0.3 if c in "il.,:;'|\u202f " else 0.58 for c in text)


def shorten(text: str, width: float, size: float = 11) -> str:
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def shorten_middle(text: str, width: float, size: float = 11) -> str:
    """`text` with an ellipsis in its middle where it would be wider than `width`; its end tells it apart.

    >>> shorten_middle("whisper-base + rrf(BM25) > judge", 110)
    'whisper-…) > judge'
    """
    kept = len(text)
    shown = text
    while text_width(shown, size) > width and kept > 2:
        kept -= 1
        head = kept // 2
        shown = f"{text[:head].rstrip()}…{text[len(text) - (kept - head) :].lstrip()}"
    return shown


def series_class(index: int) -> str:
    return f"s{index % SERIES_COLORS}"


def marker(index: int, x: float, y: float, *, hollow: bool = False, title: str = "", radius: float = 4.2) -> str:
    """The marker of system number `index` at (x, y); hollow for reverberation or a front end."""
    shape = SHAPES[index % len(SHAPES)]
    look = "hollow" if hollow else "solid"
    inside = f"<title>{escape(title)}</title>" if title else ""
    attributes = f'class="marker {look} {series_class(index)}"'
    if shape == "circle":
        return (
            f'<circle {attributes} cx="{coordinate(x)}" cy="{coordinate(y)}" r="{coordinate(radius)}">{inside}</circle>'
        )
    r = radius
    corners = {
        "square": [(-0.9 * r, -0.9 * r), (0.9 * r, -0.9 * r), (0.9 * r, 0.9 * r), (-0.9 * r, 0.9 * r)],
        "triangle": [(0, -1.2 * r), (1.15 * r, 0.85 * r), (-1.15 * r, 0.85 * r)],
        "diamond": [(0, -1.3 * r), (1.3 * r, 0), (0, 1.3 * r), (-1.3 * r, 0)],
        "wedge": [(0, 1.2 * r), (1.15 * r, -0.85 * r), (-1.15 * r, -0.85 * r)],
        "pentagon": [
            (1.15 * r * math.sin(2 * math.pi * k / 5), -1.15 * r * math.cos(2 * math.pi * k / 5)) for k in range(5)
        ],
        "cross": [
            (r * a, r * b)
            for a, b in (
                *((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4)),
                *((0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4)),
            )
        ],
    }[shape]
    points = " ".join(f"{coordinate(x + dx)},{coordinate(y + dy)}" for dx, dy in corners)
    return f'<polygon {attributes} points="{points}">{inside}</polygon>'


def path(points: Sequence[tuple[float, float]], css: str) -> str:
    """A polyline through the points; "" for fewer than two."""
    if len(points) < 2:
        return ""
    joined = " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in points)
    return f'<polyline class="{css}" points="{joined}"/>'


def band(low: Sequence[tuple[float, float]], high: Sequence[tuple[float, float]], css: str) -> str:
    """The area between two polylines; "" for fewer than two points."""
    if len(low) < 2:
        return ""
    joined = " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in (*high, *reversed(low)))
    return f'<polygon class="band {css}" points="{joined}"/>'


def line(x1: float, y1: float, x2: float, y2: float, css: str) -> str:
    ends = f'x1="{coordinate(x1)}" y1="{coordinate(y1)}" x2="{coordinate(x2)}" y2="{coordinate(y2)}"'
    return f'<line class="{css}" {ends}/>'


def label(x: float, y: float, text: str, css: str, anchor: str = "start", *, extra: str = "") -> str:
    place = f'x="{coordinate(x)}" y="{coordinate(y)}" text-anchor="{anchor}"'
    return f'<text class="{css}" {place} {extra}>{escape(text)}</text>'


@dataclass(frozen=True, slots=True)
class Frame:
    """A chart: its size, and the margins around the plot."""

    width: float = 420.0
    height: float = 320.0
    left: float = 48.0
    right: float = 14.0
    top: float = 12.0
    bottom: float = 50.0

    @property
    def base(self) -> float:
        return self.height - self.bottom

    @property
    def end(self) -> float:
        return self.width - self.right

    def x(self, low: float, high: float) -> Scale:
        return Scale(low, high, self.left, self.end)

    def y(self, low: float, high: float) -> Scale:
        return Scale(low, high, self.base, self.top)

    def vertical(
        self, scale: Scale, marks: Sequence[float], title: str = "", *, digits: str = "g", zero: float = 0.0
    ) -> str:
        """Grid lines, tick labels and the rotated title; the line at `zero` is the axis."""
        parts = []
        for mark in marks:
            y = scale(mark)
            parts.append(line(self.left, y, self.end, y, "axis" if mark == zero else "grid"))
            parts.append(label(self.left - 6, y + 4, signed(f"{mark:{digits}}"), "tick", "end"))
        middle = (scale.start + scale.end) / 2
        place = f'transform="rotate(-90 12 {coordinate(middle)})"'
        return "".join([*parts, label(12, middle, title, "axis-title", "middle", extra=place) if title else ""])

    def share_axis(self, top: float, title: str) -> tuple[Scale, str]:
        """A vertical axis from 0 to a score, and what is drawn of it."""
        scale = self.y(0, top)
        return scale, self.vertical(scale, [m for m in ticks(top) if m <= top + 1e-9], title, digits=".1f")

    def horizontal(
        self, marks: Sequence[tuple[float, str]], title: str, *, grid: bool = False, gap: float = 0.0
    ) -> str:
        """Ticks (or grid lines) at coordinates, with labels more than `gap` apart, and the title."""
        parts = [label((self.left + self.end) / 2, self.base + 38, title, "axis-title", "middle")]
        last = -math.inf
        for x, text in marks:
            ends = (self.top, self.base) if grid else (self.base, self.base + 4)
            parts.append(line(x, ends[0], x, ends[1], "grid" if grid else "axis"))
            if x - last > gap:
                parts.append(label(x, self.base + 17, signed(text), "tick", "middle"))
                last = x
        return "".join(parts)

    def decades(
        self, values: Sequence[float], title: str, show: Callable[[float], str] = "{:g}".format
    ) -> tuple[Callable[[float], float], str]:
        """A logarithmic horizontal axis: where a value lies, and what is drawn of it."""
        low, high, marks = decades(values)
        scale = self.x(math.log10(low), math.log10(high))

        def x(value: float) -> float:
            return scale(math.log10(value))

        return x, self.horizontal([(x(mark), show(mark)) for mark in marks], title, grid=True)

    def figure(self, identity: str, title: str, description: str, body: str) -> str:
        return figure(identity, title, description, (self.width, self.height), body)


def signed(text: str) -> str:
    """A number with a true minus sign."""
    return text.replace("-", "\u2212")


def round_marks(low: float, high: float) -> list[float]:
    """Round numbers inside a range, five or so.

    >>> round_marks(0.1, 1.2), round_marks(-9.3, 0.4)
    ([0.2, 0.4, 0.6, 0.8, 1.0, 1.2], [-8.0, -6.0, -4.0, -2.0, 0.0])
    """
    step = ticks(high - low)[1]
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 10) + 0.0 for k in range(first, math.floor(high / step + 1e-9) + 1)]


def whisker(x: float, low: float, high: float, css: str) -> str:
    css = f"whisker {css}"
    return line(x, low, x, high, css) + line(x - 3, low, x + 3, low, css) + line(x - 3, high, x + 3, high, css)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near the wanted ones, at least `gap` apart and within [low, high] if they fit, order kept.

    >>> spread([10, 11, 50], 12, 0, 100)
    [4.5, 16.5, 50.0]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    # Merge neighbors that collide into blocks, each centered on the mean of what its members want.
    blocks: list[list[int]] = []
    for i in order:
        blocks.append([i])
        while len(blocks) > 1 and _start(blocks[-2], wanted, gap, low, high) + gap * len(blocks[-2]) > _start(
            blocks[-1], wanted, gap, low, high
        ):
            last = blocks.pop()
            blocks[-1].extend(last)
    out = [0.0] * len(wanted)
    for block in blocks:
        start = _start(block, wanted, gap, low, high)
        for k, i in enumerate(block):
            out[i] = start + k * gap
    return out


def _start(block: list[int], wanted: Sequence[float], gap: float, low: float, high: float) -> float:
    length = gap * (len(block) - 1)
    start = sum(wanted[i] for i in block) / len(block) - length / 2
    return max(low, min(start, high - length))


def figure(identity: str, title: str, description: str, size: tuple[float, float], body: str) -> str:
    width, height = size
    return (
        f'<svg viewBox="0 0 {coordinate(width)} {coordinate(height)}" role="img" '
        f'aria-labelledby="{identity}-t {identity}-d"><title id="{identity}-t">{escape(title)}</title>'
        f'<desc id="{identity}-d">{escape(description)}</desc>{body}</svg>'
    )
