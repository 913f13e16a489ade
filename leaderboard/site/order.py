"""The standing of each row of a table, from per-query records where there are some: see `ranking`."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ...harness.results.old import Score
from ..entry import Coverage, Entry
from ..ranking import lower_is_better, rank
from .tables import Row, Table

Records = Callable[[Entry, str], pa.Table | None]
"""The per-item table of an entry's config, None where there is none."""
Values = dict[str, dict[str, float]]
"""By stratum and item."""

_MOST_KEPT = 1600
_RATES = {
    "wer": ("word_errors", ""), "cer": ("char_errors", ""),
    "wer_macro": ("word_errors", "word_reference_length"), "cer_macro": ("char_errors", "char_reference_length"),
    "wer_clean": ("clean_word_errors", ""), "wer_reverb": ("reverb_word_errors", ""),
    "delta_wer": ("delta_word_errors", ""), "cer_clean": ("clean_char_errors", ""),
    "cer_reverb": ("reverb_char_errors", ""), "delta_cer": ("delta_char_errors", ""),
}  # fmt: skip
"""Errors of an item, and what they are divided by. A corpus rate needs no divisor: all systems have the same words."""
_MEANS = ("ndcg_at_10", "mrr_at_10", "recall_at_10")
COLUMNS = (
    "id", "subset", *_MEANS, *dict.fromkeys(name for pair in _RATES.values() for name in pair if name),
)  # fmt: skip
"""What is read of records."""
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
class RecordRanker:
    """Ranks by bootstrap over the items that all systems of a table have; by position where records are missing.

    Error rates are ranked among those of one normalizer. The same table is ranked once.
    """

    records: Records | None = None
    seed: int = 0
    _known: dict[tuple[int, str], Mapping[str, Standing]] = field(default_factory=dict)
    _tables: OrderedDict[tuple[str, str], pa.Table | None] = field(default_factory=OrderedDict)

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
        """Of the score, or what it is above the baseline's: that orders systems by their loss."""
        subset = table.place.subset
        own = item_values(self._table(row.entry, row.config), table.metric, subset)
        if not by or not own:
            return own
        if row.losses[by].absolute.low is None:
            # The loss of a part of a config is stored without interval, and shown by position.
            return {}
        base = item_values(self._table(row.entry, _baseline_config(row, table, by)), table.metric, subset)
        return {
            stratum: {id_: value - base[stratum][id_] for id_, value in values.items() if id_ in base.get(stratum, {})}
            for stratum, values in own.items()
        }

    def _table(self, entry: Entry, config: str) -> pa.Table | None:
        if self.records is None or config not in entry.scores:
            return None
        key = (entry.id, config)
        if key in self._tables:
            self._tables.move_to_end(key)
        else:
            found = self.records(entry, config)
            if found is not None:
                found = found.select([name for name in COLUMNS if name in found.column_names])
            self._tables[key] = found
            if len(self._tables) > _MOST_KEPT:
                self._tables.popitem(last=False)
        return self._tables[key]


def measure(row: Row, by: str) -> Score | None:
    """What a row is ranked by: its score, or its absolute loss against the baseline `by`."""
    if not by:
        return row.score
    return row.losses[by].absolute if by in row.losses else None


def item_values(table: pa.Table | None, metric: str, subset: str = "") -> Values:
    """The metric of each item by stratum, empty where the records do not have it.

    Ranking metrics are means over subsets, so these are the strata; a corpus rate has one.
    """
    if table is None or not table.num_rows or not {"id", "subset"} <= set(table.column_names):
        return {}
    names, divisor = ((metric,), "") if metric in _MEANS else ((_RATES.get(metric, ("", ""))[0],), "")
    if metric in _RATES:
        divisor = _RATES[metric][1]
    if names[0] not in table.column_names or (divisor and divisor not in table.column_names):
        return {}
    values = table[names[0]].to_pylist()
    if divisor:
        lengths = table[divisor].to_pylist()
        values = [a / b if b and a is not None else math.nan for a, b in zip(values, lengths, strict=True)]
    found: Values = {}
    for id_, own, value in zip(table["id"].to_pylist(), table["subset"].to_pylist(), values, strict=True):
        if value is None or not math.isfinite(value) or (subset and own != subset):
            continue
        # An id is unique within its subset.
        found.setdefault(own if metric in _MEANS else "", {})[f"{own}/{id_}"] = value
    return found


def _proxy(row: Row, table: Table, by: str) -> Entry:
    """The entry with this one score: `ranking` looks up a config, and a place may come from different ones."""
    score = measure(row, by) or row.score
    value = score.value or 0.0
    # A loss of a metric that is better when higher is better when lower.
    sign = -1.0 if by and not lower_is_better(table.metric) else 1.0
    return replace(
        row.entry,
        scores={_CONFIG: {table.metric: Score(value=sign * value, n=score.n)}},
        coverage={_CONFIG: Coverage(score.n, score.n, False, table.place.language, table.place.condition)},
    )


def _baseline_config(row: Row, table: Table, by: str) -> str:
    return f"{row.config.removesuffix(f'_{table.place.condition}')}_{by}"
