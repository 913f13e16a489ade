"""Paired tests for the page: the first systems of each place, two by two, on the same queries.

They are what `squtr compare` computes, so that the page and the command never say different things. The number of
tests is bounded by how many systems are taken; for others the page names the command.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import SqutrError
from ...harness.metrics.compare_items import MetricComparison, compare_items, metric_names
from ...harness.metrics.registry import metric_of
from ...harness.results.item_numbers import ItemNumbers, item_numbers
from .order import Ranker, RecordRanker, Records
from .tables import Place, Row, Table

FIRST = 6
"""Systems of a place that are compared with each other: 15 pairs."""
RESAMPLES = 1000
PERMUTATIONS = 10_000


def paired_tests(
    made: Sequence[Table],
    records: Records,
    *,
    first: int = FIRST,
    ranker: Ranker | None = None,
    progress: Callable[[int, int], None] | None = None,
    seed: int = 0,
) -> dict[str, dict[str, dict[str, list[float | None]]]]:
    """By place ("group/language/subset/condition") and pair ("id id") the tests by metric.

    A test is [a, b, a − b, low, high, p, p after Holm over the metrics of the pair, detectable difference, n]. The
    systems are the first by the place's first metric; pairs without common queries, or of other
    references, have no test.
    """
    places, ranker = _first_tables(made), ranker or RecordRanker(records)
    found: dict[str, dict[str, dict[str, list[float | None]]]] = {}
    for number, table in enumerate(places):
        if progress:
            progress(number, len(places))
        tests = _tests(table, records, first, ranker, seed)
        if tests:
            found[place_key(table)] = tests
    return found


def place_key(table: Table) -> str:
    """The name of a place, as the page looks it up."""
    place = table.place
    return "/".join((str(table.group), place.language, place.subset, place.condition))


def _first_tables(made: Iterable[Table]) -> list[Table]:
    """The first table of each place: that of the metric the benchmark is about.

    Subsets count only where their language as a whole is not there: their tests would be many and weak.
    """
    found: dict[tuple[int, Place], Table] = {}
    for table in made:
        found.setdefault((table.group, table.place), table)
    return [
        table
        for (group, place), table in found.items()
        if not place.subset or (group, Place(place.language, "", place.condition)) not in found
    ]


def _tests(
    table: Table, records: Records, first: int, ranker: Ranker, seed: int
) -> dict[str, dict[str, list[float | None]]]:
    ranks = ranker(table, "")
    own = [row for row in table.rows if row.entry.id in ranks and row.entry.who != "published"]
    own.sort(key=lambda row: (ranks[row.entry.id].position, row.entry.id))
    sides: list[tuple[Row, ItemNumbers]] = []
    for row in own:
        if len(sides) == first:
            break
        side = _side(records(row.entry, row.config), table.place.subset)
        if side is not None:
            sides.append((row, side))
    found: dict[str, dict[str, list[float | None]]] = {}
    for (row, left), (other, right) in itertools.combinations(sides, 2):
        same_words = row.normalizer == other.normalizer
        compared = _compared(left, right, seed, words=same_words)
        if compared:
            found[f"{row.entry.id} {other.entry.id}"] = {one.metric: _numbers(one) for one in compared}
    return found


def _side(table: pa.Table | None, subset: str) -> ItemNumbers | None:
    if table is None or not {"id", "subset", "cluster"} <= set(table.column_names) or not table.num_rows:
        return None
    if subset:
        table = table.filter(pc.equal(pc.cast(table["subset"], pa.string()), subset))
    found = item_numbers(table)
    return found if found.items else None


def _compared(left: ItemNumbers, right: ItemNumbers, seed: int, *, words: bool) -> list[MetricComparison]:
    if left.items.keys() != right.items.keys():
        return []
    names = metric_names(left.items, right.items)
    if not words:
        names = [name for name in names if metric_of(name).better != "lower"]
    if not names:
        return []
    try:
        return compare_items(
            left.items,
            right.items,
            names,
            subsets=left.subsets,
            clusters=left.clusters if left.has_clusters else None,
            seed=seed,
            resamples=RESAMPLES,
            permutations=PERMUTATIONS,
        )
    except SqutrError:
        # Other references, or a metric that one side lacks for some query: these two have no paired test.
        return []


def _numbers(one: MetricComparison) -> list[float | None]:
    test = one.comparison
    values = (
        one.a,
        one.b,
        test.difference,
        test.interval.low,
        test.interval.high,
        test.p_value,
        one.p_holm,
        test.minimum_detectable,
    )
    return [*(float(f"{v:.6g}") if math.isfinite(v) else None for v in values), test.n]
