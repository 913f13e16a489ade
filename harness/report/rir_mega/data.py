"""Results arranged for a report: sections of comparable results, recognizers within a section."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ....errors import DataError
from ...results.old import Score
from ...rir_mega.comparable import aspects, part_words, refuse_mixture
from ...rir_mega.results import Bin, Difference, PairRecord, Rates, Result
from ...text.languages import is_written_without_spaces
from .. import svg
from ..data import component_name
from ..formats import MINUS, escape, interval, language_name, number, percent

NARROW_SPACE = "\u202f"


@dataclass(frozen=True, eq=False)
class Entry:
    """One recognizer in a section; `index` decides its color and shape."""

    record: PairRecord
    index: int

    @property
    def result(self) -> Result:
        """The summary."""
        return self.record.result

    @property
    def name(self) -> str:
        """As shown in tables."""
        return self.result.system.name

    @property
    def front_end(self) -> str:
        """The front end's short name; "" without one."""
        return component_name(self.result.system.front_end)

    @property
    def main(self) -> Rates:
        """The main metric."""
        return self.result.main

    @cached_property
    def rows(self) -> dict[str, int]:
        """Row number of every pair by sample id."""
        return {id_: row for row, id_ in enumerate(self.record.pairs.column("id").to_pylist())}

    def cell(self, sample_id: str, column: str) -> Any:
        """One cell of the per-pair table; None if the pair is not there."""
        row = self.rows.get(sample_id)
        return None if row is None else self.record.pairs.column(column)[row].as_py()


@dataclass(frozen=True, eq=False)
class Section:
    """Results that may share a table. `mark` says what sets it apart from others of its language and split."""

    anchor: str
    entries: tuple[Entry, ...]
    mark: str = ""

    @property
    def first(self) -> Result:
        """Any result, for what all share."""
        return self.entries[0].result

    @property
    def title(self) -> str:
        """Language and split."""
        data = self.first.data
        name = f"{language_name(data.language)}, {data.split}"
        return f"{name} ({self.mark})" if self.mark else name

    @property
    def metric(self) -> str:
        """The main metric as it is written: WER or CER."""
        return self.first.main_metric.upper()

    @property
    def by_character(self) -> bool:
        """Whether errors are counted by character."""
        return is_written_without_spaces(self.first.data.language)

    @property
    def lang(self) -> str:
        """A `lang` attribute for text of this language."""
        return f'lang="{escape(self.first.data.language)}"'

    @property
    def part(self) -> str:
        """How much of the pairs a partial result covers, "" if all."""
        return part_words(self.first)

    @property
    def plain(self) -> list[Entry]:
        """The recognizers without front end."""
        return [entry for entry in self.entries if not entry.front_end]

    def column(self, measure: str) -> str:
        """The column that bins of `rt60_s` or `drr_db` belong to: measured here, or the publisher's."""
        return next(name for name in self.first.data.edges if name.endswith(measure))

    def middles(self, measure: str) -> dict[int, float]:
        """The median value of the pairs in each bin."""
        column = self.column(measure)
        bins = "rt60_bin" if measure == "rt60_s" else "drr_bin"
        table = self.entries[0].record.pairs
        values = np.array(table.column(column).to_pylist(), dtype=np.float64)
        numbers = np.array(table.column(bins).to_pylist(), dtype=np.int64)
        return {int(n): float(np.median(values[numbers == n])) for n in np.unique(numbers[numbers >= 0]).tolist()}


def sections(records: Sequence[PairRecord]) -> list[Section]:
    """Records in comparable sections, by language and split; [] for none.

    Raises `DataError` if results on all pairs and on parts are mixed, or two are the same recognizer's.
    """
    refuse_mixture(record.result for record in records)
    groups: dict[tuple[str, ...], list[PairRecord]] = {}
    for record in records:
        own = {**aspects(record.result), "seed": str(record.result.seed)}
        key = (record.result.data.config, *(f"{name} {value}" for name, value in own.items()))
        groups.setdefault(key, []).append(record)
    found = []
    ordered = sorted(groups)
    for place, key in enumerate(ordered, start=1):
        others = [other for other in ordered if other[0] == key[0] and other != key]
        mark = ", ".join(text for text in key[1:] if any(text not in other for other in others))
        entries = _entries(groups[key])
        found.append(Section(f"s{place}", entries, mark))
    return found


def _entries(records: Sequence[PairRecord]) -> tuple[Entry, ...]:
    """Small models first, each followed by itself behind front ends."""
    seen: set[str] = set()
    for record in records:
        name, config = record.result.key
        if name in seen:
            raise DataError(f"there are two results of {name!r} on {config!r}.", hint="Remove one of them.")
        seen.add(name)

    def order(record: PairRecord) -> tuple[Any, ...]:
        system = record.result.system
        size = math.inf if system.parameters is None else system.parameters
        listener = json.dumps(system.transcriber, sort_keys=True)
        return size, component_name(system.transcriber), listener, system.front_end is not None, system.name

    return tuple(Entry(record, index) for index, record in enumerate(sorted(records, key=order)))


def swatch(entry: Entry) -> str:
    """The recognizer's marker as a small picture."""
    return f'<svg class="swatch" viewBox="0 0 14 14" aria-hidden="true">{svg.marker(entry.index, 7, 7)}</svg>'


def named(entry: Entry) -> str:
    """Marker and name."""
    return f"{swatch(entry)}{escape(entry.name)}"


def signed(value: float | None, digits: int = 1) -> str:
    """A difference of rates in percentage points, with its sign.

    >>> signed(0.0734), signed(-0.01), signed(0.0), signed(None)
    ('+7.3', '−1.0', '0.0', '–')
    """
    text = number(None if value is None else 100 * value, digits)
    return f"+{text}" if value is not None and value > 0 and text.strip("0.") and not text.startswith(MINUS) else text


def signed_percent(value: float | None) -> str:
    """A relative difference in percent, with its sign.

    >>> signed_percent(0.889).replace(chr(0x202f), " ")
    '+89 %'
    """
    text = percent(value, 0)
    return f"+{text}" if value is not None and value > 0 and text[:1] not in ("0", "–") else text


def bounds(score: Score, digits: int = 1) -> str:
    """The interval of a rate or difference, in percent or percentage points; "" without one."""
    return interval(score, digits, as_percent=True)


def p_words(value: float | None) -> str:
    """A p-value; small ones as a bound.

    >>> p_words(0.00009), p_words(0.0312), p_words(None)
    ('<0.001', '0.031', '–')
    """
    return "<0.001" if value is not None and value < 0.001 else number(value)


def difference_words(difference: Difference) -> str:
    """A difference with its interval, as text."""
    return f"{signed(difference.absolute.value)} {bounds(difference.absolute)}".strip()


def bin_words(found: Bin, unit: str) -> str:
    """The range of a bin.

    >>> class Known: known, low, high = True, None, 0.27545
    >>> bin_words(Known(), "s").replace(chr(0x202f), " ")
    'up to 0.28 s'
    """
    if not found.known:
        return "not known"
    digits = 2 if unit == "s" else 1
    if found.low is None:
        return "all" if found.high is None else f"up to {number(found.high, digits)}{NARROW_SPACE}{unit}"
    if found.high is None:
        return f"over {number(found.low, digits)}{NARROW_SPACE}{unit}"
    return f"{number(found.low, digits)} to {number(found.high, digits)}{NARROW_SPACE}{unit}"
