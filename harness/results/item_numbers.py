"""The numbers of a run's records that two systems can be compared on, by item."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from .envelope import ACOUSTIC_COLUMNS, TRANSCRIPT_COLUMNS

_OTHER = {name for name, _ in (*ACOUSTIC_COLUMNS, *TRANSCRIPT_COLUMNS)}
_ERRORS = ("substitutions", "deletions", "insertions")
_METRIC_OF = {"correct": "accuracy"}


@dataclass(frozen=True, slots=True)
class ItemNumbers:
    """By key ("subset/id", with the order of the options behind it where there are several).

    `items` has the item's value of every metric, and of each unit `<unit>_errors` (NaN of an item that failed) and
    `<unit>_reference_length`; NaN where one does not apply. `clusters` are unique over subsets. `texts` are references
    or questions.
    """

    items: dict[str, dict[str, float]]
    subsets: dict[str, str]
    clusters: dict[str, str]
    texts: dict[str, str]

    @property
    def has_clusters(self) -> bool:
        """Whether several items share a cluster."""
        return len(set(self.clusters.values())) < len(self.clusters)

    def weighted(self, metric: str) -> dict[str, dict[str, tuple[float, float]]]:
        """By subset and cluster (value, weight), summed over the cluster's items: see `metrics.robustness.Items`.

        The weight of a score is 1. A corpus rate has errors and reference length, in one subset "". Items without the
        metric are left out.
        """
        unit = {"wer": "word", "cer": "char"}.get(metric)
        found: dict[str, dict[str, tuple[float, float]]] = {}
        for key, row in self.items.items():
            value = row.get(f"{unit}_errors" if unit else metric, math.nan)
            weight = row.get(f"{unit}_reference_length", math.nan) if unit else 1.0
            if math.isfinite(value + weight):
                own = found.setdefault("" if unit else self.subsets[key], {})
                before = own.get(self.clusters[key], (0.0, 0.0))
                own[self.clusters[key]] = (before[0] + value, before[1] + weight)
        return found


def item_numbers(table: pa.Table) -> ItemNumbers:
    """Of the records of any task: metrics are the float columns that describe neither the audio nor the transcript."""
    if "spoken" in table.column_names:
        # The spoken version of a question has the id of the written one.
        table = table.filter(pc.invert(table.column("spoken")))
    names = [field.name for field in table.schema if field.name not in _OTHER and pa.types.is_floating(field.type)]
    numbers = {_METRIC_OF.get(name, name): _floats(table, name) for name in names}
    for unit in ("word", "char"):
        if f"{unit}_reference_length" in table.column_names:
            parts = [_floats(table, f"{unit}_{kind}") for kind in _ERRORS]
            numbers[f"{unit}_errors"] = [sum(own) for own in zip(*parts, strict=True)]
            numbers[f"{unit}_reference_length"] = _floats(table, f"{unit}_reference_length")
    subsets = _texts(table, "subset")
    keys = [
        f"{subset}/{id_}" + (f"/{order}" if order else "")
        for subset, id_, order in zip(subsets, _texts(table, "id"), _texts(table, "order"), strict=True)
    ]
    texts = _texts(table, "text" if "text" in table.column_names else "question")
    return ItemNumbers(
        items={key: {name: values[row] for name, values in numbers.items()} for row, key in enumerate(keys)},
        subsets=dict(zip(keys, subsets, strict=True)),
        clusters={
            key: f"{subset}/{cluster}"
            for key, subset, cluster in zip(keys, subsets, _texts(table, "cluster"), strict=True)
        },
        texts=dict(zip(keys, texts, strict=True)),
    )


def with_changes(numbers: ItemNumbers, baseline: ItemNumbers) -> ItemNumbers:
    """With `delta_<unit>_errors` added: the errors beyond those of the same item in `baseline`, or of its utterance
    (cluster) where the baseline has one item for all RIRs and draws of noise. NaN where the baseline has neither.
    """
    same = {cluster: key for key, cluster in baseline.clusters.items()}

    def changed(key: str, row: Mapping[str, float]) -> dict[str, float]:
        other = baseline.items.get(key) or baseline.items.get(same.get(numbers.clusters[key], ""), {})
        changes = {
            f"delta_{unit}_errors": row[f"{unit}_errors"] - other.get(f"{unit}_errors", math.nan)
            for unit in ("word", "char")
            if f"{unit}_errors" in row
        }
        return {**row, **changes}

    items = {key: changed(key, row) for key, row in numbers.items.items()}
    return ItemNumbers(items, numbers.subsets, numbers.clusters, numbers.texts)


def _floats(table: pa.Table, name: str) -> list[float]:
    return [math.nan if value is None else float(value) for value in table.column(name).to_pylist()]


def _texts(table: pa.Table, name: str) -> list[str]:
    if name not in table.column_names:
        return [""] * table.num_rows
    return [value or "" for value in table.column(name).to_pylist()]
