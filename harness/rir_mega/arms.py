"""Pairs as what can be heard: by language, a cell of distinct clean utterances and a cell of reverberant pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

from ...errors import DataError, unknown_name
from ...loaders.partial import check_part
from ...loaders.recipe import choose_queries
from ...loaders.records import Query, SpokenQuery
from ...loaders.rir_mega.data import Arm, PairData, RirMegaData
from ...loaders.rir_mega.strata import bin_of
from ..evaluation.plan import Cell

CLEAN, REVERB = "clean", "reverb"
_GAP = 32
"""Rows between two wanted ones that are read on the way: about a row group."""


@dataclass(frozen=True, slots=True)
class PairInfo:
    """A pair without sound; the fields are those of the data's rows, `position` is its place in the split."""

    position: int
    sample_id: str
    utterance_id: str
    subset: str
    language: str
    speaker: str
    text: str
    duration_s: float
    reverb_duration_s: float
    rir_id: str
    room_id: str
    rt60_s: float
    edt_s: float
    drr_db: float
    c50_db: float
    source_rt60_s: float
    source_drr_db: float
    noise_family: str
    snr_db: float
    stratum: str


_COLUMNS = tuple(field.name for field in fields(PairInfo) if field.name != "position")


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of one column: `edges` ascending, bin i above edge i−1 and at most edge i, None where there is no value."""

    column: str
    edges: tuple[float, ...]

    def number(self, pair: PairInfo) -> int | None:
        """The bin of a pair."""
        return bin_of(self.value(pair), self.edges)

    def value(self, pair: PairInfo) -> float:
        """The pair's value of the column, NaN where it is not known."""
        return float(getattr(pair, self.column))

    def bounds(self, number: int | None) -> tuple[float | None, float | None]:
        """The ends of a bin; None is open, or not known."""
        ends: list[float | None] = [None, *self.edges, None]
        return (None, None) if number is None else (ends[number], ends[number + 1])

    @property
    def numbers(self) -> list[int | None]:
        """All bins in order, that of the unknown last."""
        return [*range(len(self.edges) + 1), None]


class PairArms:
    """The pairs of a split, or a part of them, as `Audible`: cells (language, "clean") and (language, "reverb").

    The clean cell has every utterance once, by its utterance id; the reverberant cell has every pair, by its sample id.
    `limit` (0: all) and `fraction` take whole utterances with all their rooms, drawn by the keyed rule of
    `choose_queries`, by stratum where each has one room; `limit` counts pairs and is rounded up to whole utterances.

    Raises `UnknownNameError` for a split, `UsageError` for such numbers, `DataError` for pairs that contradict each
    other.
    """

    def __init__(
        self, data: PairData, *, split: str = "test", limit: int = 0, fraction: float = 1.0, seed: int = 0
    ) -> None:
        check_part(limit, fraction)
        if split not in data.splits:
            raise unknown_name("split", split, data.splits)
        self.pair_data = data
        self.split = split
        self.partial = limit > 0 or fraction < 1
        every = read_infos(data, split)
        if not every:
            raise DataError(f"the split {split!r} has no pairs.", hint="Choose another split, or build the data again.")
        by_language: dict[str, list[PairInfo]] = {}
        for pair in every:
            by_language.setdefault(pair.language, []).append(pair)
        self.totals: Mapping[str, int] = {language: len(pairs) for language, pairs in by_language.items()}
        self._pairs = {
            language: _part(pairs, limit, fraction, seed) if self.partial else pairs
            for language, pairs in by_language.items()
        }
        self._positions: dict[Cell, list[int]] = {}
        self._queries: dict[Cell, list[Query]] = {}
        for language, pairs in self._pairs.items():
            utterances: dict[str, PairInfo] = {}
            for pair in pairs:
                other = utterances.setdefault(pair.utterance_id, pair)
                if other.text != pair.text:
                    raise DataError(
                        f"the utterance {pair.utterance_id!r} has two texts: {other.text!r} and {pair.text!r}.",
                        hint="Build the data again.",
                    )
            self._add((language, CLEAN), {p.utterance_id: p for p in utterances.values()})
            self._add((language, REVERB), {p.sample_id: p for p in pairs})

    def _add(self, cell: Cell, pairs: Mapping[str, PairInfo]) -> None:
        self._positions[cell] = [pair.position for pair in pairs.values()]
        self._queries[cell] = [Query(id_, cell[0], cell[0], pair.text) for id_, pair in pairs.items()]

    @property
    def languages(self) -> list[str]:
        """The languages, in the order of the data."""
        return list(self._pairs)

    def pairs(self, language: str) -> Sequence[PairInfo]:
        """The pairs taken of a language, in the order of the data."""
        return self._pairs[language]

    @cached_property
    def rt60(self) -> Bins:
        """The bins of RT60."""
        return self._bins("rt60_s")

    @cached_property
    def drr(self) -> Bins:
        """The bins of DRR."""
        return self._bins("drr_db")

    def _bins(self, column: str) -> Bins:
        """Those of the measured value, or of the publisher's where nothing could be measured."""
        for name in (column, f"source_{column}"):
            if name in self.pair_data.edges:
                return Bins(name, tuple(self.pair_data.edges[name]))
        raise DataError(
            f"the data has no edges for bins of {column}, but of {', '.join(self.pair_data.edges) or 'nothing'}.",
            hint="Build the data again.",
        )

    @property
    def data(self) -> PairArms:
        """The sound: this object itself."""
        return self

    def expected(self, cell: Cell) -> Sequence[Query]:
        """The utterances, or the pairs, of a cell."""
        return self._queries[cell]

    def language(self, cell: Cell) -> str:
        """The language of a cell."""
        return cell[0]

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """The sound of a cell: `subset` is the language, `condition` the arm."""
        cell = (subset, condition)
        if cell not in self._positions:
            raise unknown_name("cell", "_".join(cell), ["_".join(known) for known in self._positions])
        wanted, queries = self._positions[cell][start:stop], self._queries[cell][start:stop]
        arm: Arm = "clean" if condition == CLEAN else "reverb"
        at = 0
        for first, last in spans(wanted):
            for position, query in enumerate(self.pair_data.arm(self.split, arm, start=first, stop=last), start=first):
                if at < len(wanted) and position == wanted[at]:
                    yield replace(query, id=queries[at].id)
                    at += 1


def spans(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Sorted positions as half-open ranges to read; small gaps are read over.

    >>> list(spans([0, 2, 4, 90])), list(spans([]))
    ([(0, 5), (90, 91)], [])
    """
    first = 0
    for i in range(1, len(positions) + 1):
        if i == len(positions) or positions[i] - positions[i - 1] > _GAP:
            yield positions[first], positions[i - 1] + 1
            first = i


def read_infos(data: PairData, split: str) -> list[PairInfo]:
    """All pairs of a split without sound. Raises `DataError` for a sample id that occurs twice."""
    if isinstance(data, RirMegaData):
        rows = data.table(split, _COLUMNS).to_pylist()
    else:
        rows = [{name: getattr(pair, name) for name in _COLUMNS} for pair in data.pairs(split)]
    seen: set[str] = set()
    for row in rows:
        if row["sample_id"] in seen:
            raise DataError(f"the sample {row['sample_id']!r} occurs twice.", hint="Build the data again.")
        seen.add(row["sample_id"])
    return [PairInfo(position=position, **row) for position, row in enumerate(rows)]


def _part(pairs: Sequence[PairInfo], limit: int, fraction: float, seed: int) -> list[PairInfo]:
    rooms: dict[str, list[PairInfo]] = {}
    for pair in pairs:
        rooms.setdefault(pair.utterance_id, []).append(pair)
    each = len(pairs) / len(rooms)
    number = math.ceil(len(rooms) * fraction)
    if limit:
        number = min(number, math.ceil(limit / each))
    queries = [
        Query(id_, own[0].language, own[0].language, own[0].text, own[0].stratum if len(own) == 1 else "")
        for id_, own in rooms.items()
    ]
    taken = {query.id for query in choose_queries(queries, number, seed)}
    return [pair for pair in pairs if pair.utterance_id in taken]
