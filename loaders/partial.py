"""A part of a data set: some utterances of every subset, with the whole corpus."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import UsageError
from .data import SpeechData
from .recipe import choose_queries
from .records import Document, Query, SpokenQuery


def check_part(limit: int, fraction: float) -> None:
    """Raise `UsageError` for a limit below 0, or a fraction that is not above 0 and up to 1."""
    if limit < 0 or not 0 < fraction <= 1:
        raise UsageError(
            f"limit {limit}, fraction {fraction}.", hint="Give a limit of at least 0 and a fraction above 0, up to 1."
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
    """At most `limit` utterances of every subset (0: all), or a `fraction` (rounded up), with all their rows.

    Drawn by the keyed rule of `choose_queries`, so the same everywhere. A part that has all is still marked as a part.
    """

    # The rows taken lie far from each other: a wide window would read many that are not taken.
    rows_at_once = 64

    def __init__(self, data: SpeechData, *, limit: int = 0, fraction: float = 1.0, seed: int = 0) -> None:
        check_part(limit, fraction)
        self._data = data
        self.recipe: Mapping[str, Any] = data.recipe
        self.revision = data.revision
        self.manifest_sha256 = data.manifest_sha256
        self.benchmark = data.benchmark
        self.split = data.split
        self.subsets: Mapping[str, str] = data.subsets
        self.conditions: Sequence[str] = data.conditions
        self.edges = data.edges
        self._limit, self._fraction, self._seed = limit, fraction, seed
        self._chosen: dict[str, tuple[list[Query], int]] = {}
        self._rows: dict[tuple[str, str], tuple[list[Query], list[int]]] = {}

    def _choice(self, subset: str) -> tuple[list[Query], int]:
        if subset not in self._chosen:
            every = self._data.queries(subset)
            number = math.ceil(len(every) * self._fraction)
            if self._limit:
                number = min(number, self._limit)
            self._chosen[subset] = choose_queries(every, number, self._seed) if number else [], len(every)
        return self._chosen[subset]

    def _taken(self, subset: str, condition: str) -> tuple[list[Query], list[int]]:
        if (subset, condition) not in self._rows:
            ids = {query.id for query in self.queries(subset)}
            taken = [(row, i) for i, row in enumerate(self._data.rows(subset, condition)) if row.utterance in ids]
            self._rows[subset, condition] = [row for row, _ in taken], [i for _, i in taken]
        return self._rows[subset, condition]

    def total(self, subset: str) -> int:
        return self._choice(subset)[1]

    def total_rows(self, subset: str, condition: str) -> int:
        return len(self._data.rows(subset, condition))

    def queries(self, subset: str) -> Sequence[Query]:
        return self._choice(subset)[0]

    def rows(self, subset: str, condition: str) -> Sequence[Query]:
        return self._taken(subset, condition)[0]

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        for first, last in _runs(self._taken(subset, condition)[1][start:stop]):
            yield from self._data.spoken(subset, condition, start=first, stop=last)

    def has_corpus(self, subset: str) -> bool:
        return self._data.has_corpus(subset)

    def documents(self, subset: str) -> Sequence[Document]:
        return self._data.documents(subset)

    def qrels(self, subset: str) -> dict[str, dict[str, int]]:
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
