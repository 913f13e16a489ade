"""Lines and rows of a file, with errors that name file and line."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...loaders.text import parse_json, tell_replaced

Remark = Callable[[str], None]
"""Told in one sentence what was odd about a file, but read all the same."""
_OTHER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def no_remark(sentence: str) -> None:
    """Say nothing."""


def read_bytes(path: Path) -> bytes:
    """The file's content. Raises `DataError` if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.", hint="Check the path.") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.", hint="Give a readable file.") from error


def read_lines(path: Path, remark: Remark = no_remark) -> list[tuple[int, str]]:
    """Number (from 1) and text of every line that is not blank, without its LF or CRLF (U+2028 belongs to the text)."""
    data = read_bytes(path)
    for mark, encoding in _OTHER_MARKS:
        if data.startswith(mark):
            raise DataError(f"{path} is {encoding}.", hint="Convert it to UTF-8.")
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
        remark(f"{path} begins with a byte order mark, which was left out.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8.", hint="Convert the file to UTF-8."
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise DataError(f"{path}, line {line}: a NUL character.", hint="Is it UTF-16? Convert it to UTF-8.")
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        remark(f"{path} has CRLF line ends, which were read as LF.")
    elif "\r" in text and "\n" not in text:
        text = text.replace("\r", "\n")
        remark(f"{path} has CR line ends, which were read as LF.")
    return [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]


def place(path: Path, number: int, kind: str = "line") -> str:
    """How errors name a line.

    >>> place(Path("run.trec"), 3)
    'run.trec, line 3'
    """
    return f"{path}, {kind} {number}"


def read_rows(path: Path, format_: str, remark: Remark = no_remark) -> list[tuple[str, dict[str, Any]]]:
    """Place and fields of every row of a JSONL or Parquet file, or of a TSV file whose first line names the fields."""
    if format_ == "parquet":
        return [(place(path, n, "row"), row) for n, row in enumerate(_parquet(path), start=1)]
    lines = read_lines(path, remark)
    if format_ == "jsonl":
        replaced: list[str] = []
        found = [(place(path, number), _object(place(path, number), line, replaced)) for number, line in lines]
        tell_replaced(replaced, str(path))
        return found
    if not lines:
        return []
    names = [name.strip() for name in lines[0][1].split("\t")]
    if len(set(names)) != len(names):
        raise DataError(f"{place(path, lines[0][0])}: a field is named twice.", hint="Name each field once.")
    rows = []
    for number, line in lines[1:]:
        fields = line.split("\t")
        if len(fields) != len(names):
            raise DataError(
                f"{place(path, number)}: {len(fields)} fields, but the first line names {len(names)}.",
                hint="Separate fields by one tab each (not by blanks).",
            )
        rows.append((place(path, number), dict(zip(names, fields, strict=True))))
    return rows


def _object(where: str, line: str, replaced: list[str]) -> dict[str, Any]:
    try:
        value = parse_json(line, where, replaced)
    except json.JSONDecodeError as error:
        raise DataError(f"{where}: not JSON ({error.msg}).", hint="Write one JSON object per line.") from error
    if not isinstance(value, dict):
        raise DataError(f"{where}: a JSON object is expected.", hint="Write one JSON object per line.")
    return value


def _parquet(path: Path) -> list[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = read_bytes(path)
    try:
        rows: list[dict[str, Any]] = pq.read_table(pa.BufferReader(content)).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} is not a Parquet file: {error}.", hint="Check the file.") from error
    return rows


def id_field(row: Mapping[str, Any], keys: tuple[str, ...], where: str) -> str:
    key = next((k for k in keys if k in row), None)
    if key is None:
        raise DataError(f"{where}: there is no field {keys[0]!r}, only {', '.join(row)}.", hint="Name the fields so.")
    value = row[key]
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise DataError(f"{where}: the id {key!r} is {value!r}.", hint="Ids are texts or whole numbers.")
    return str(value)


def finite(value: Any, what: str, where: str) -> float:
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise DataError(f"{where}: the {what} is {value!r}.", hint="A finite number is expected.")
    return number
