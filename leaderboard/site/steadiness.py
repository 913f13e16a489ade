"""How steady systems are over conditions: σ in a language, and the SNR at which a tenth of the clean score is lost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ...harness.metrics.registry import metric_of
from ...harness.metrics.robustness import Items, snr_at_loss, stability
from ...harness.results.envelope import finite
from ...harness.results.item_numbers import item_numbers
from .order import Records
from .tables import Group, Row, Table, known_condition

SHARE = 0.1  # of the clean score; of an error rate, in its units
_CLEAN = "clean"


def steadiness(groups: Sequence[Group], made: Sequence[Table], records: Records | None = None) -> list[dict[str, Any]]:
    """One object per language of a group, by its first metric: `systems` (entry ids), and in that order `sigma`, `snr`.

    `sigma` holds (value, low, high), null where it is not known: from per-item records with a 95 % interval, else from
    the scores. `snr` is text in dB: "<−5" is not yet at the lowest level, ">20" already at the highest.
    """
    found = []
    for number, group in enumerate(groups):
        metric = group.metrics[0] if group.metrics else ""
        here = [one for one in made if (one.group, one.metric, one.place.subset) == (number, metric, "")]
        for language in dict.fromkeys(one.place.language for one in here):
            rows: dict[str, dict[str, Row]] = {}
            for table in here:
                # Parts of a set are no conditions.
                if table.place.language == language and known_condition(table.place.condition) is not None:
                    for row in table.rows:
                        if row.in_order and row.score.value is not None:
                            rows.setdefault(row.entry.id, {})[table.place.condition] = row
            steady = {id_: _steady(own, metric, records) for id_, own in sorted(rows.items()) if len(own) > 1}
            if steady:
                sigma, snr = (list(column) for column in zip(*steady.values(), strict=True))
                place = {"group": number, "language": language, "metric": metric}
                found.append({**place, "systems": list(steady), "sigma": sigma, "snr": snr})
    return found


def _steady(rows: Mapping[str, Row], metric: str, records: Records | None) -> tuple[list[float | None], str]:
    items = {condition: _items(row, metric, records) for condition, row in rows.items()}
    if not all(items.values()):
        items = {condition: {"": {"": (row.score.value or 0.0, 1.0)}} for condition, row in rows.items()}
    sigma = stability({("", condition): own for condition, own in items.items()}, seed=0).pooled
    numbers = [finite(one) for one in (sigma.value, sigma.interval.low, sigma.interval.high)]
    levels = {
        step.snr_db: own
        for condition, own in items.items()
        if (step := known_condition(condition)) is not None and step.snr_db is not None and not step.reverb
    }
    if len(levels) < 2 or _CLEAN not in items:
        return numbers, ""
    better = metric_of(metric).better or "higher"
    at = snr_at_loss(levels, items[_CLEAN], loss=SHARE, relative=better == "higher", better=better, seed=0, resamples=1)
    return numbers, _decibels(at.snr_db, min(levels), max(levels))


def _items(row: Row, metric: str, records: Records | None) -> Items:
    table = None if records is None else records(row.entry, row.config)
    return {} if table is None else item_numbers(table).weighted(metric)


def _decibels(value: float, lowest: float, highest: float) -> str:
    """
    >>> _decibels(4.24, -5, 20), _decibels(-math.inf, -5, 20), _decibels(math.inf, -5, 20), _decibels(math.nan, -5, 20)
    ('4.2', '<−5', '>20', '')
    """
    if math.isnan(value):
        return ""
    shown = f"{value:.1f}" if math.isfinite(value) else (f"<{lowest:g}" if value < 0 else f">{highest:g}")
    return shown.replace("-", "−")
