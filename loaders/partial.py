"""A part of a data set: some utterances of every subset, with the whole corpus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import UsageError
from .data import SpeechData
from .keyed import keyed_seed
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


def held_out(data: SpeechData, fraction: float, seed: int) -> tuple[SelectedData, SelectedData]:
    """The data without a part, and that part: a `fraction` (rounded up) of the utterances of every subset.

    An utterance is in one of the two with all its rows and conditions. Which are taken follows from the seed and the
    ids alone. Raises `UsageError` for a fraction that is not between 0 and 1, and when a subset has none left.
    """
    if not 0 < fraction < 1:
        raise UsageError(f"a share of {fraction} cannot be held out.", hint="Give one between 0 and 1, such as 0.2.")

    def part(queries: Sequence[Query], *, inside: bool) -> list[Query]:
        clusters = {query.cluster: query.subset for query in queries}
        number = math.ceil(len(clusters) * fraction)
        if queries and number >= len(clusters):
            raise UsageError(
                f"{queries[0].subset} has {len(clusters)} queries: with a share of {fraction} held out none is left.",
                hint="Hold out less, or take more queries.",
            )
        drawn = sorted(clusters, key=lambda cluster: keyed_seed(seed, "dev", clusters[cluster], cluster))
        taken = set(drawn[:number])
        return [query for query in queries if (query.cluster in taken) == inside]

    return (
        SelectedData(data, lambda queries: part(queries, inside=False)),
        SelectedData(data, lambda queries: part(queries, inside=True)),
    )


class SelectedData:
    """The utterances that `choose` takes of every subset, with all their rows; corpora are whole."""

    # The rows taken lie far from each other: a wide window would read many that are not taken.
    rows_at_once = 64

    def __init__(self, data: SpeechData, choose: Callable[[Sequence[Query]], Sequence[Query]]) -> None:
        self._data = data
        self.recipe: Mapping[str, Any] = data.recipe
        self.revision = data.revision
        self.manifest_sha256 = data.manifest_sha256
        self.benchmark = data.benchmark
        self.split = data.split
        self.subsets: Mapping[str, str] = data.subsets
        self.conditions: Sequence[str] = data.conditions
        self.edges = data.edges
        self._choose = choose
        self._chosen: dict[str, Sequence[Query]] = {}
        self._rows: dict[tuple[str, str], tuple[list[Query], list[int]]] = {}

    def _taken(self, subset: str, condition: str) -> tuple[list[Query], list[int]]:
        if (subset, condition) not in self._rows:
            ids = {query.id for query in self.queries(subset)}
            taken = [(row, i) for i, row in enumerate(self._data.rows(subset, condition)) if row.utterance in ids]
            self._rows[subset, condition] = [row for row, _ in taken], [i for _, i in taken]
        return self._rows[subset, condition]

    def total(self, subset: str) -> int:
        """How many queries the whole has, also of a part of a part."""
        if isinstance(self._data, SelectedData):
            return self._data.total(subset)
        return len(self._data.queries(subset))

    def total_rows(self, subset: str, condition: str) -> int:
        if isinstance(self._data, SelectedData):
            return self._data.total_rows(subset, condition)
        return len(self._data.rows(subset, condition))

    def queries(self, subset: str) -> Sequence[Query]:
        if subset not in self._chosen:
            self._chosen[subset] = self._choose(self._data.queries(subset))
        return self._chosen[subset]

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


class PartialData(SelectedData):
    """At most `limit` utterances of every subset (0: all), or a `fraction` (rounded up), with all their rows.

    Drawn by the keyed rule of `choose_queries`, so the same everywhere. A part that has all is still marked as a part.
    """

    def __init__(self, data: SpeechData, *, limit: int = 0, fraction: float = 1.0, seed: int = 0) -> None:
        check_part(limit, fraction)

        def choose(queries: Sequence[Query]) -> Sequence[Query]:
            number = math.ceil(len(queries) * fraction)
            if limit:
                number = min(number, limit)
            return choose_queries(queries, number, seed) if number else []

        super().__init__(data, choose)


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
