"""A part of paired data: some queries of every subset, with the whole corpus."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import UsageError
from .paired import PairedData
from .recipe import choose_queries
from .records import Document, Query, SpokenQuery


def check_part(limit: int, fraction: float) -> None:
    """Raise `UsageError` for a limit below 0, or a fraction that is not above 0 and up to 1."""
    if limit < 0 or not 0 < fraction <= 1:
        raise UsageError(
            f"limit {limit}, fraction {fraction}.",
            hint="Give a limit of at least 0 and a fraction above 0, up to 1.",
        )


def part_name(limit: int, fraction: float, seed: int) -> str:
    """A name for a part, which no other part has; "" for the whole.

    >>> part_name(0, 1.0, 7), part_name(100, 1.0, 0), part_name(100, 0.05, 7)
    ('', 'first-100', 'first-100-share-0.05-seed-7')
    """
    shares = [f"first-{limit}"] if limit else []
    shares += [f"share-{fraction!r}"] if fraction < 1 else []
    shares += [f"seed-{seed}"] if shares and seed else []
    return "-".join(shares)


class PartialData:
    """At most `limit` queries of every subset (0: all), or a `fraction` of them (rounded up), of `data`.

    They are drawn by the keyed rule of `choose_queries`, stratified by group, so the same part is taken everywhere.
    A part of which all is taken is still marked as what it is: `totals` says how many queries there were.
    """

    def __init__(self, data: PairedData, *, limit: int = 0, fraction: float = 1.0, seed: int = 0) -> None:
        check_part(limit, fraction)
        self._data = data
        self.recipe: Mapping[str, Any] = data.recipe
        self.revision = data.revision
        self.manifest_sha256 = data.manifest_sha256
        self.subsets: Mapping[str, str] = data.subsets
        self.conditions: Sequence[str] = data.conditions
        # Its clips lie apart: a wide window would read many that are not taken.
        self.rows_at_once = 64
        self._limit, self._fraction, self._seed = limit, fraction, seed
        self._chosen: dict[str, tuple[list[Query], list[int], int]] = {}

    def _choice(self, subset: str) -> tuple[list[Query], list[int], int]:
        """The queries taken, their positions in the whole, and how many there were."""
        if subset not in self._chosen:
            every = self._data.queries(subset)
            number = math.ceil(len(every) * self._fraction)
            if self._limit:
                number = min(number, self._limit)
            taken = choose_queries(every, number, self._seed) if number else []
            ids = {query.id for query in taken}
            places = [i for i, query in enumerate(every) if query.id in ids]
            self._chosen[subset] = taken, places, len(every)
        return self._chosen[subset]

    def total(self, subset: str) -> int:
        """How many queries the whole subset has."""
        return self._choice(subset)[2]

    def queries(self, subset: str) -> Sequence[Query]:
        """The typed queries that are taken."""
        return self._choice(subset)[0]

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """The spoken queries that are taken: positions `start` to `stop` among them."""
        for first, last in _runs(self._choice(subset)[1][start:stop]):
            yield from self._data.spoken(subset, condition, start=first, stop=last)

    def documents(self, subset: str) -> Sequence[Document]:
        """The whole corpus."""
        return self._data.documents(subset)

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
        """The grades of the queries that are taken."""
        ids = {query.id for query in self.queries(subset)}
        return {id_: grades for id_, grades in self._data.qrels(subset).items() if id_ in ids}


def _runs(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Sorted positions as half-open ranges.

    >>> list(_runs([0, 1, 4, 6, 7]))
    [(0, 2), (4, 5), (6, 8)]
    """
    start = 0
    for i in range(1, len(positions) + 1):
        if i == len(positions) or positions[i] != positions[i - 1] + 1:
            yield positions[start], positions[i - 1] + 1
            start = i
