"""The board as a table: one row per system, place and metric, for `datasets`, spreadsheets and scripts."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..entry import Entry
from ..ranking import lower_is_better
from .document import safe_link
from .order import Ranker, RecordRanker, Standing
from .tables import Group, Row, Table, plain

SCHEMA = pa.schema(
    [
        ("benchmark", pa.string()),
        ("benchmark_version", pa.string()),
        ("source", pa.string()),
        ("source_version", pa.string()),
        ("revision", pa.string()),
        ("language", pa.string()),
        # "" is the whole language.
        ("subset", pa.string()),
        ("condition", pa.string()),
        ("config", pa.string()),
        ("metric", pa.string()),
        ("lower_is_better", pa.bool_()),
        ("system", pa.string()),
        ("system_id", pa.string()),
        ("kind", pa.string()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("n", pa.int64()),
        ("n_total", pa.int64()),
        # The place of the value alone; null for partial coverage and what is shown outside the ranking.
        ("position", pa.int64()),
        # Shared by systems that cannot be told apart, with its 95 % interval; null without per-query records.
        ("rank", pa.int64()),
        ("rank_low", pa.int64()),
        ("rank_high", pa.int64()),
        ("partial", pa.bool_()),
        ("ranked", pa.bool_()),
        ("loss_clean", pa.float64()),
        ("loss_clean_low", pa.float64()),
        ("loss_clean_high", pa.float64()),
        ("relative_loss_clean", pa.float64()),
        ("loss_text", pa.float64()),
        ("loss_text_low", pa.float64()),
        ("loss_text_high", pa.float64()),
        ("relative_loss_text", pa.float64()),
        ("models", pa.list_(pa.string())),
        ("links", pa.list_(pa.string())),
        ("parameters", pa.int64()),
        ("open_weights", pa.bool_()),
        ("rtfx", pa.float64()),
        ("peak_memory_mb", pa.float64()),
        ("peak_gpu_memory_mb", pa.float64()),
        ("hardware", pa.string()),
        ("date", pa.string()),
        ("who", pa.string()),
        ("normalizer", pa.string()),
        ("erratum", pa.string()),
        ("path", pa.string()),
        ("sha256", pa.string()),
    ]
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def board_table(found: Sequence[Group], made: Sequence[Table], ranker: Ranker | None = None) -> pa.Table:
    """All rows of all tables, in their order. Numbers that do not exist are null."""
    rows, ranker = [], ranker or RecordRanker()
    for table in made:
        ranks = ranker(table, "")
        rows += [_row(found[table.group], table, row, ranks.get(row.entry.id)) for row in table.rows]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def _row(group: Group, table: Table, row: Row, standing: Standing | None) -> dict[str, Any]:
    entry, config = row.entry, row.config
    covered = entry.coverage.get(config)
    timing = entry.timing.get(config, {})
    return {
        "benchmark": plain(group.benchmark),
        "benchmark_version": plain(group.version),
        "source": plain(entry.source),
        "source_version": plain(entry.source_version),
        "revision": plain(entry.revision),
        "language": plain(table.place.language),
        "subset": plain(table.place.subset),
        "condition": plain(table.place.condition),
        "config": plain(config),
        "metric": plain(table.metric),
        "lower_is_better": lower_is_better(table.metric),
        "system": plain(entry.system),
        "system_id": entry.id,
        "kind": plain(entry.kind),
        "value": row.score.value,
        "low": row.score.low,
        "high": row.score.high,
        "n": row.score.n,
        "n_total": covered.n_total if covered else None,
        "position": standing.position if standing else None,
        "rank": standing.rank if standing else None,
        "rank_low": standing.low if standing else None,
        "rank_high": standing.high if standing else None,
        "partial": entry.partial,
        "ranked": row.in_order,
        **_losses(row),
        **_models(entry),
        "rtfx": timing.get("rtfx"),
        "peak_memory_mb": timing.get("peak_memory_mb"),
        "peak_gpu_memory_mb": timing.get("peak_gpu_memory_mb"),
        "hardware": plain(entry.hardware.get(config, "")),
        "date": plain(entry.date),
        "who": entry.who_by_config.get(config, entry.who),
        "normalizer": plain(row.normalizer),
        "erratum": plain(row.erratum, 2000),
        "path": plain(entry.sources.get(config, "")),
        "sha256": plain(entry.hashes.get(config, "")),
    }


def _losses(row: Row) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for baseline in ("clean", "text"):
        loss = row.losses.get(baseline)
        found[f"loss_{baseline}"] = loss.absolute.value if loss else None
        found[f"loss_{baseline}_low"] = loss.absolute.low if loss else None
        found[f"loss_{baseline}_high"] = loss.absolute.high if loss else None
        found[f"relative_loss_{baseline}"] = loss.relative.value if loss else None
    return found


def _models(entry: Entry) -> dict[str, Any]:
    counted = [model.parameters for model in entry.models]
    known = [model.open_weights for model in entry.models]
    open_weights = (False if False in known else None if None in known else True) if known else None
    return {
        "models": [plain(model.name) for model in entry.models],
        "links": [safe_link(model.link) for model in entry.models],
        "parameters": None if not counted or None in counted else sum(n for n in counted if n is not None),
        "open_weights": open_weights,
    }


def as_parquet(table: pa.Table) -> bytes:
    """The table as parquet: the same rows give the same bytes with one version of pyarrow."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", store_schema=False)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def as_csv(table: pa.Table) -> bytes:
    """The table as CSV, lists joined by `|`.

    A text that a spreadsheet would run as a formula begins with an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    for row in table.to_pylist():
        writer.writerow([_field(value) for value in row.values()])
    return out.getvalue().encode("utf-8")


def _field(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, list):
        value = " | ".join(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
