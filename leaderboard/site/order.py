"""The standing of each row of a table, from per-query records where there are some: see `ranking`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ...harness.results.envelope import Score
from ...harness.tasks.verification import load_verifier
from ..entry import Coverage, Entry
from ..ranking import lower_is_better, rank
from .tables import Row, Table

Records = Callable[[Entry, str], pa.Table | None]
"""The per-item table of an entry's config, None where there is none."""
Values = dict[str, dict[str, float]]
"""By stratum and item."""

_MOST_KEPT = 1600
_CONFIG = "place"


@dataclass(frozen=True, slots=True)
class Standing:
    """`position` is the place of the value alone, from 1; the others, from records, are those of `ranking.Ranked`."""

    position: int
    rank: int | None = None
    low: int | None = None
    high: int | None = None


Ranker = Callable[[Table, str], Mapping[str, Standing]]
"""From a table and what it is ranked by ("" is the score, else the baseline of a loss) to standings by entry id."""


@dataclass(frozen=True, slots=True)
class KeptRecords:
    """`Records` that reads each table once, as long as few enough are kept: ranks, paired tests and σ need the same."""

    records: Records
    _tables: OrderedDict[tuple[str, str], pa.Table | None] = field(default_factory=OrderedDict)

    def __call__(self, entry: Entry, config: str) -> pa.Table | None:
        key = (entry.id, config)
        if key in self._tables:
            self._tables.move_to_end(key)
        else:
            self._tables[key] = self.records(entry, config)
            if len(self._tables) > _MOST_KEPT:
                self._tables.popitem(last=False)
        return self._tables[key]


@dataclass(frozen=True, slots=True)
class RecordRanker:
    """Ranks by bootstrap over the items that all systems of a table have; by position where records are missing.

    Error rates are ranked among those of one normalizer. The same table is ranked once.
    """

    records: Records | None = None
    seed: int = 0
    _known: dict[tuple[int, str], Mapping[str, Standing]] = field(default_factory=dict)

    def __call__(self, table: Table, by: str = "") -> Mapping[str, Standing]:
        """The standings of the rows that have one, by entry id."""
        key = (id(table), by)
        if key not in self._known:
            self._known[key] = self._standings(table, by)
        return self._known[key]

    def _standings(self, table: Table, by: str) -> dict[str, Standing]:
        groups: dict[str, list[Row]] = {}
        for row in table.rows:
            if row.in_order and (score := measure(row, by)) and score.value is not None:
                groups.setdefault(row.normalizer if lower_is_better(table.metric) else "", []).append(row)
        found: dict[str, Standing] = {}
        for rows in groups.values():
            proxies = [_proxy(row, table, by) for row in rows]
            items = {row.entry.id: values for row in rows if (values := self._values(row, table, by))}
            ranked = rank(proxies, items, config=_CONFIG, metric=table.metric, seed=self.seed)
            found |= {one.entry.id: Standing(one.position, one.rank, one.low, one.high) for one in ranked.rows}
        return found

    def _values(self, row: Row, table: Table, by: str) -> Values:
        """Of the score, or what it is above the baseline's: that orders systems by their loss. By cluster."""
        subset = table.place.subset
        records = self._table(row.entry, row.config)
        own = item_values(records, row.entry.task, table.metric, subset)
        clusters = _clusters(records) if own else {}
        if not by or not own:
            return _by_cluster(own, clusters)
        if row.losses[by].absolute.low is None:
            # The loss of a part of a config is stored without interval, and shown by position.
            return {}
        before = self._table(row.entry, _baseline_config(row, table, by))
        # What failed there had no error, as in the bounds of a loss: failing on clean clips must not lower it.
        found = item_values(before, row.entry.task, table.metric, subset, lenient=True)
        # One utterance may have several rows: each is compared with what the baseline has of the utterance.
        base = _by_cluster(found, _clusters(before) if found else {})
        changes: Values = {}
        for stratum, values in own.items():
            known = base.get(stratum, {})
            names = {id_: clusters.get(id_, id_) for id_ in values}
            changes[stratum] = {id_: value - known[names[id_]] for id_, value in values.items() if names[id_] in known}
        return _by_cluster(changes, clusters)

    def _table(self, entry: Entry, config: str) -> pa.Table | None:
        if self.records is None or config not in entry.scores:
            return None
        return self.records(entry, config)


def measure(row: Row, by: str) -> Score | None:
    """What a row is ranked by: its score, or its absolute loss against the baseline `by`."""
    if not by:
        return row.score
    return row.losses[by].absolute if by in row.losses else None


def item_values(table: pa.Table | None, task: str, metric: str, subset: str = "", *, lenient: bool = False) -> Values:
    """The metric of each item by stratum, as the task tells; empty where the records do not have it.

    In an error rate all words of a failed item are deleted; `lenient`: it has no error.
    """
    if table is None or not table.num_rows:
        return {}
    return load_verifier(task).item_values(table, metric, subset, lenient=lenient)


def _clusters(table: pa.Table | None) -> dict[str, str]:
    """What is drawn together, by item; both with their subset, as in `item_values`."""
    if table is None:
        return {}
    rows = zip(*(table[name].to_pylist() for name in ("subset", "id", "cluster")), strict=True)
    return {f"{subset}/{id_}": f"{subset}/{cluster}" for subset, id_, cluster in rows}


def _by_cluster(values: Values, clusters: Mapping[str, str]) -> Values:
    """One value per cluster whose mean over clusters is the mean over items: the sum, divided by the mean size."""
    found: Values = {}
    for stratum, own in values.items():
        sums: dict[str, float] = {}
        for id_, value in own.items():
            name = clusters.get(id_, id_)
            sums[name] = sums.get(name, 0.0) + value
        scale = len(sums) / len(own) if own else 1.0
        found[stratum] = sums if len(sums) == len(own) else {name: total * scale for name, total in sums.items()}
    return found


def _proxy(row: Row, table: Table, by: str) -> Entry:
    """The entry with this one score: `ranking` looks up a config, and a place may come from different ones."""
    score = measure(row, by) or row.score
    value = score.value or 0.0
    # A loss of a metric that is better when higher is better when lower.
    sign = -1.0 if by and not lower_is_better(table.metric) else 1.0
    return replace(
        row.entry,
        scores={_CONFIG: {table.metric: Score(value=sign * value, n=score.n, bounds=score.bounds)}},
        coverage={_CONFIG: Coverage(score.n, score.n, False, table.place.language, table.place.condition)},
    )


def _baseline_config(row: Row, table: Table, by: str) -> str:
    return f"{row.config.removesuffix(f'_{table.place.condition}')}_{by}"
