"""Per-item scores: what `squtr score --per-item` writes and `squtr compare` reads."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError
from ..results.files import write_atomically
from .lines import Remark, id_field, no_remark, read_rows

_BY_SUFFIX = {".jsonl": "jsonl", ".ndjson": "jsonl", ".tsv": "tsv", ".parquet": "parquet"}


def items_format(path: Path) -> str:
    """The format that the suffix names. Raises `UsageError` for another suffix.

    >>> items_format(Path("a.jsonl"))
    'jsonl'
    """
    found = _BY_SUFFIX.get(path.suffix.lower())
    if found is None:
        raise UsageError(f"{path} is no per-item file.", hint="Name it .jsonl, .tsv or .parquet.")
    return found


def write_items(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write one row per item, all with the same fields. Undefined numbers are null (empty in TSV)."""
    format_ = items_format(path)
    clean = [{key: _plain(value) for key, value in row.items()} for row in rows]
    if format_ == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(clean), sink, compression="zstd")
        write_atomically(path, sink.getvalue().to_pybytes())
        return
    if format_ == "jsonl":
        lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in clean]
    else:
        lines = ["\t".join(clean[0])] if clean else []
        lines += ["\t".join(_cell(value) for value in row.values()) for row in clean]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode("utf-8"))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())


def read_items(path: Path, *, remark: Remark = no_remark) -> dict[str, dict[str, float]]:
    """The numeric fields of each item by id; null, empty and NaN are NaN, fields that are not numeric are left out.

    With a field `subset` the key is "subset/id", so that equal ids of two subsets stay apart. Raises `DataError` naming
    file and line for an id that stands twice, and for a file without items.
    """
    items: dict[str, dict[str, float]] = {}
    rows = read_rows(path, items_format(path), remark)
    numeric = _numeric_fields([row for _, row in rows])
    for where, row in rows:
        id_ = id_field(row, ("id", "_id", *(("query-id",) if "query-id" in row else ())), where)
        if row.get("subset"):
            id_ = f"{row['subset']}/{id_}"
        if id_ in items:
            raise DataError(f"{where}: id {id_!r} stands twice.", hint="Give each item once.")
        items[id_] = {key: _number(row.get(key)) for key in numeric}
    if not items:
        raise DataError(f"{path} holds no items.", hint="Give one item per row, each with its id.")
    return items


def _numeric_fields(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(key for row in rows for key in row)
    return [name for name in names if name not in ("id", "_id", "query-id") and _is_numeric(rows, name)]


def _is_numeric(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    some = False
    for row in rows:
        value = row.get(name)
        if value is None or value == "":
            continue
        if isinstance(value, bool) or (math.isnan(_number(value)) and str(value).lower() != "nan"):
            return False
        some = True
    return some


def _number(value: Any) -> float:
    if value is None or isinstance(value, list | dict):
        return math.nan
    try:
        return float(value)
    except ValueError:
        return math.nan
