"""Which rows belong to which group of a breakdown: by a text of the row, by bins of a number, or by two of them."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...loaders.records import SpokenQuery

DEFAULT_EDGES: Mapping[str, Sequence[float]] = {
    "rt60_s": (0.4, 0.6, 0.8, 1.0),
    "drr_db": (0.0, 5.0, 10.0),
    "snr_db": (-5.0, 0.0, 5.0, 10.0, 15.0, 20.0),
    "duration_s": (2.0, 5.0, 10.0, 20.0),
}
"""Edges of the bins of numbers, where the data fixes none."""
UNKNOWN = "unknown"
MOST_GROUPS = 100
"""A text with more values than these tells items apart rather than groups."""


@dataclass(frozen=True, slots=True)
class Members:
    """The rows of a group, by position. `low` and `high` as in `Group`."""

    label: str
    rows: list[int] = field(default_factory=list)
    low: float | None = None
    high: float | None = None


def group_members(rows: Sequence[SpokenQuery], breakdown: str, edges: Mapping[str, Sequence[float]]) -> list[Members]:
    first, _, second = breakdown.partition("|")
    if second:
        return _crossed(group_members(rows, first, edges), group_members(rows, second, edges))
    column = binned_column(first, edges)
    if column:
        bounds = edges[column] if column in edges else DEFAULT_EDGES[column]
        return _bins([_number(row, column) for row in rows], bounds)
    found: dict[str, Members] = {}
    for place, row in enumerate(rows):
        label = str(getattr(row, first, row.extra.get(first, "")))
        if label:
            found.setdefault(label, Members(label)).rows.append(place)
    # A subset is a group only beside others.
    least = 2 if first == "subset" else 1
    return list(found.values()) if least <= len(found) <= MOST_GROUPS else []


def binned_column(name: str, edges: Mapping[str, Sequence[float]]) -> str:
    """The column whose values are binned for a breakdown, "" for texts."""
    return next(
        (column for column in (name, f"source_{name}") if column in edges), name if name in DEFAULT_EDGES else ""
    )


def _number(row: SpokenQuery, column: str) -> float:
    return float(getattr(row, column, row.extra.get(column, math.nan)))


def _bins(values: Sequence[float], edges: Sequence[float]) -> list[Members]:
    if not any(map(math.isfinite, values)):
        return []
    ends = [None, *edges, None]
    bins = [Members(_label(low, high), [], low, high) for low, high in itertools.pairwise(ends)]
    unknown = Members(UNKNOWN)
    for place, value in enumerate(values):
        (bins[bisect_left(edges, value)] if math.isfinite(value) else unknown).rows.append(place)
    return [found for found in (*bins, unknown) if found.rows]


def _label(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "all" if low is high else f"≤{high:g}" if low is None else f">{low:g}"
    return f"{low:g}–{high:g}"


def _crossed(first: Sequence[Members], second: Sequence[Members]) -> list[Members]:
    found = []
    for one in first:
        for other in second:
            shared = set(other.rows)
            rows = [row for row in one.rows if row in shared]
            if rows and UNKNOWN not in (one.label, other.label):
                found.append(Members(f"{one.label}|{other.label}", rows))
    return found
