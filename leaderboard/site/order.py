"""Ranks of the rows of a table, from their intervals alone: for numbers without per-query records."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...harness.results import Score
from .tables import Row, Table, lower_is_better


@dataclass(frozen=True, slots=True)
class RankRange:
    """The best and the worst rank, from 1, that the numbers allow."""

    best: int
    worst: int


Ranker = Callable[[Table, str], Mapping[str, RankRange]]
"""From a table and what it is ranked by ("" is the score, else the baseline of a loss) to ranks by entry id."""


def by_intervals(values: Sequence[tuple[float, float, float]], *, lower: bool = False) -> list[RankRange]:
    """Rank ranges of (value, low, high): one is behind another only if their intervals do not meet.

    `lower`: smaller is better. A value without interval has its own as both ends.

    >>> by_intervals([(0.5, 0.4, 0.6), (0.55, 0.45, 0.65), (0.1, 0.0, 0.2)])
    [RankRange(best=1, worst=2), RankRange(best=1, worst=2), RankRange(best=3, worst=3)]
    """
    ends = [(-high, -low) for _, low, high in values] if lower else [(low, high) for _, low, high in values]
    lows, highs = sorted(low for low, _ in ends), sorted(high for _, high in ends)
    return [
        RankRange(1 + len(lows) - bisect_right(lows, high), len(ends) - bisect_left(highs, low)) for low, high in ends
    ]


def rank_by_intervals(table: Table, by: str = "") -> dict[str, RankRange]:
    """The `Ranker` that needs no records. Error rates are ranked among those of one normaliser."""
    found: dict[str, RankRange] = {}
    words = lower_is_better(table.metric)
    for own in _alike(table, words=words).values():
        scored = [(row.entry.id, score) for row in own if (score := measure(row, by)) and score.value is not None]
        ranks = by_intervals([_ends(score) for _, score in scored], lower=bool(by) or words)
        found |= {id_: rank for (id_, _), rank in zip(scored, ranks, strict=True)}
    return found


def measure(row: Row, by: str) -> Score | None:
    """What a row is ranked by: its score, or its absolute loss against the baseline `by`."""
    if not by:
        return row.score
    return row.losses[by].absolute if by in row.losses else None


def _alike(table: Table, *, words: bool) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in table.rows:
        if row.in_order:
            found.setdefault(row.normalizer if words else "", []).append(row)
    return found


def _ends(score: Score) -> tuple[float, float, float]:
    value = float(score.value or 0.0)
    return (
        value,
        value if score.low is None else score.low,
        value if score.high is None else score.high,
    )
