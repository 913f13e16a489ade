"""What the card says of the clips of a built folder, read back from its shards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .manifest import Average, Manifest, Statistics

MEANS = ("snr_db", "snr_active_db", "rt60_s", "drr_db", "tts_error_rate")
_COLUMNS = ["duration_s", *MEANS, "noise_family", "voice"]


def statistics_of(manifest: Manifest, folder: Path) -> list[Statistics]:
    """The statistics of every subset, condition and split of the data set whose shards lie in `folder`."""
    found = []
    for subset, language in manifest.subsets.items():
        for condition in manifest.conditions:
            for split in manifest.splits:
                shards = manifest.below(f"queries/{language}/{subset}/{condition}", split)
                if shards:
                    paths = [folder / shard.path for shard in shards]
                    table = pq.read_table(paths, columns=_COLUMNS, partitioning=None)
                    found.append(_statistics(subset, condition, split, table))
    return found


def _statistics(subset: str, condition: str, split: str, table: pa.Table) -> Statistics:
    return Statistics(
        subset=subset,
        condition=condition,
        split=split,
        clips=table.num_rows,
        seconds=pc.sum(table.column("duration_s")).as_py() or 0.0,
        means={name: _average(table.column(name)) for name in MEANS},
        noise_families=_counts(table.column("noise_family")),
        voices=_counts(table.column("voice")),
    )


def _average(column: pa.ChunkedArray) -> Average:
    # NaN is "does not apply".
    values = column.filter(pc.invert(pc.is_nan(column)))
    return Average(sum=pc.sum(values).as_py() or 0.0, count=len(values))


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return dict(sorted(Counter(value for value in column.to_pylist() if value).items()))
