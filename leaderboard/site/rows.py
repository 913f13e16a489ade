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

_TEXT, _INT, _FLOAT, _BOOL, _LIST = pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.list_(pa.string())
# `subset` "" is the whole language. `position` is the place of the value alone; null for partial coverage and what is
# shown outside the ranking. `rank` is shared by systems that cannot be told apart, with its 95 % interval; null without
# per-item records. `failed` is null where nobody says. `with_failed_…` is an error rate if the failed items, which are
# not in `n`, had no error, and if all their words were deleted, by which it is ordered.
SCHEMA = pa.schema([
    ("benchmark", _TEXT), ("benchmark_version", _TEXT), ("source", _TEXT), ("source_version", _TEXT),
    ("revision", _TEXT), ("language", _TEXT), ("subset", _TEXT), ("condition", _TEXT), ("config", _TEXT),
    ("metric", _TEXT), ("lower_is_better", _BOOL), ("system", _TEXT), ("system_id", _TEXT), ("kind", _TEXT),
    ("value", _FLOAT), ("low", _FLOAT), ("high", _FLOAT), ("n", _INT), ("n_total", _INT),
    ("failed", _INT), ("with_failed_low", _FLOAT), ("with_failed_high", _FLOAT),
    ("position", _INT), ("rank", _INT), ("rank_low", _INT), ("rank_high", _INT), ("partial", _BOOL), ("ranked", _BOOL),
    ("loss_clean", _FLOAT), ("loss_clean_low", _FLOAT), ("loss_clean_high", _FLOAT), ("relative_loss_clean", _FLOAT),
    ("loss_text", _FLOAT), ("loss_text_low", _FLOAT), ("loss_text_high", _FLOAT), ("relative_loss_text", _FLOAT),
    ("models", _LIST), ("links", _LIST), ("parameters", _INT), ("open_weights", _BOOL),
    ("rtfx", _FLOAT), ("peak_memory_mb", _FLOAT), ("peak_gpu_memory_mb", _FLOAT), ("hardware", _TEXT),
    ("self_check", _TEXT),
    ("date", _TEXT), ("who", _TEXT), ("normalizer", _TEXT), ("erratum", _TEXT), ("path", _TEXT), ("sha256", _TEXT),
])  # fmt: skip
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
        "failed": row.failed,
        "with_failed_low": row.score.bounds[0] if row.score.bounds else None,
        "with_failed_high": row.score.bounds[1] if row.score.bounds else None,
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
        "self_check": plain(entry.self_checks.get(config, "")),
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
