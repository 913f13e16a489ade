"""Reading the table beside a result when it comes from anyone: bounded before it is opened, and of the right form.

A small parquet file can hold much: one long text that a million rows point at. Texts are therefore read as
dictionaries, in which each distinct text lies once, and the file says beforehand how large its columns are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import DataError
from .strict_json import shown

_HINT = "Submit the table as squtr wrote it."


@dataclass(frozen=True, slots=True)
class Limits:
    """What a table may hold: bytes of the file, bytes of its columns unpacked, rows, characters of one text."""

    file_bytes: int = 256 * 2**20
    unpacked_bytes: int = 2**30
    rows: int = 1_000_000
    text: int = 100_000
    listed: int = 1000


LIMITS = Limits()


def file_sha256(path: Path) -> str:
    """The sha256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_items(
    path: Path,
    schema: pa.Schema,
    *,
    columns: Sequence[str] | None = None,
    nullable: frozenset[str] = frozenset(),
    limits: Limits = LIMITS,
) -> pa.Table:
    """The table in a file, with exactly the columns of `schema` (or some of them), texts as dictionaries.

    Raises `DataError` naming file and column for a table that is larger than `limits`, has other columns or types,
    nulls outside the columns `nullable`, or cannot be read.
    """
    try:
        if path.stat().st_size > limits.file_bytes:
            raise _wrong(path, f"has {path.stat().st_size / 2**20:.0f} MB, the limit is {limits.file_bytes >> 20} MB")
        texts = [field.name for field in schema if pa.types.is_string(field.type)]
        lists = [f"{field.name}.list.element" for field in schema if pa.types.is_list(field.type)]
        with pq.ParquetFile(path, read_dictionary=[*texts, *lists]) as file:
            _check_size(path, file, limits)
            _check_schema(path, file.schema_arrow, schema)
            table = file.read(columns=list(columns) if columns is not None else None)
    except FileNotFoundError as error:
        raise _wrong(path, "does not exist") from error
    except (OSError, pa.ArrowException, ValueError, MemoryError) as error:
        if isinstance(error, DataError):
            raise
        raise _wrong(path, f"cannot be read: {shown(str(error), 160)}") from error
    for name in table.column_names:
        _check_column(path, name, table[name], limits, nulls=name in nullable)
    return table


def _check_size(path: Path, file: pq.ParquetFile, limits: Limits) -> None:
    about = file.metadata
    if about.num_rows > limits.rows:
        raise _wrong(path, f"has {about.num_rows} rows, the limit is {limits.rows}")
    unpacked = sum(about.row_group(place).total_byte_size for place in range(about.num_row_groups))
    if unpacked > limits.unpacked_bytes:
        raise _wrong(path, f"has {unpacked >> 20} MB unpacked, the limit is {limits.unpacked_bytes >> 20} MB")


def _check_schema(path: Path, found: pa.Schema, wanted: pa.Schema) -> None:
    for name in wanted.names:
        if name not in found.names:
            raise _wrong(path, f"lacks the column {name!r}")
    for name in found.names:
        if name not in wanted.names:
            raise _wrong(path, f"has the column {shown(name)}, which no evaluation writes")
    if len(found.names) != len(wanted.names):
        raise _wrong(path, "has a column twice")
    for name in wanted.names:
        own, expected = _plain(found.field(name).type), wanted.field(name).type
        if own != expected:
            raise _wrong(path, f"has the column {name!r} as {own}, not as {expected}")


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type without its dictionary."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.list_(_plain(kind.value_type)) if pa.types.is_list(kind) else kind


def _check_column(path: Path, name: str, column: pa.ChunkedArray, limits: Limits, *, nulls: bool) -> None:
    if column.null_count and not nulls:
        raise _wrong(path, f"has {column.null_count} nulls in the column {name!r}")
    for chunk in column.chunks:
        values = chunk
        if pa.types.is_list(values.type):
            if len(values) and (pc.max(pc.list_value_length(values)).as_py() or 0) > limits.listed:
                raise _wrong(path, f"has a list of more than {limits.listed} in the column {name!r}")
            values = values.flatten()
            if values.null_count and not nulls:
                raise _wrong(path, f"has nulls in the lists of the column {name!r}")
        if pa.types.is_dictionary(values.type):
            values = values.dictionary
        if pa.types.is_string(values.type) and len(values):
            longest = pc.max(pc.binary_length(values)).as_py() or 0
            if longest > limits.text:
                raise _wrong(path, f"has a text of {longest} bytes in the column {name!r}, the limit is {limits.text}")


def _wrong(path: Path, what: str) -> DataError:
    return DataError(f"{path} {what}.", hint=_HINT)
