"""Reading JSON with errors that name file and line."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from ..errors import DataError
from .text import parse_json, tell_replaced

OnFault = Callable[[DataError], None]


def _raise(error: DataError) -> None:
    raise error


def read_jsonl(path: Path, bad: OnFault = _raise) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number (from 1) and object of every non-blank line. Raises `DataError` naming file and line, or hands what
    is wrong with a line to `bad` and goes on."""
    try:
        with path.open("rb") as stream:
            yield from read_json_lines(stream, str(path), bad)
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.", hint="Check the folder's layout.") from error


def read_json_lines(stream: IO[bytes], name: str, bad: OnFault = _raise) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same from an open stream of bytes, which stays open; `name` is what errors call it."""
    # utf-8-sig takes a byte order mark if there is one.
    lines = io.TextIOWrapper(stream, encoding="utf-8-sig")
    replaced: list[str] = []
    try:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                value = parse_json(line, f"{name}, line {number}", replaced)
            except json.JSONDecodeError as error:
                bad(DataError(f"{name}, line {number}: not JSON ({error.msg}).", hint="Mend the line."))
                continue
            except DataError as error:
                bad(error)
                continue
            if isinstance(value, dict):
                yield number, value
            else:
                bad(DataError(f"{name}, line {number}: a JSON object is expected.", hint="Mend the line."))
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not UTF-8 ({error.reason}).", hint="Convert it to UTF-8.") from error
    finally:
        tell_replaced(replaced, name)
        if not stream.closed:
            lines.detach()


def text_field(row: Mapping[str, Any], key: str, place: str, *, default: str | None = None) -> str:
    """The string `row[key]`; an integer id is accepted and joined as string. Raises `DataError` naming `place`.

    >>> text_field({"_id": 7}, "_id", "queries.jsonl, line 1")
    '7'
    """
    value = row.get(key, default)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"{place}: field {key!r} is {value!r} where a text is expected.", hint="Mend the line.")
    return str(value)


def integer_field(row: Mapping[str, Any], key: str, place: str) -> int:
    """The integer `row[key]`, which may be written as a string. Raises `DataError` naming `place`.

    >>> integer_field({"score": "2"}, "score", "qrels.jsonl, line 1")
    2
    """
    value = row.get(key)
    try:
        if isinstance(value, str | int) and not isinstance(value, bool):
            return int(value)
    except ValueError:
        pass
    raise DataError(f"{place}: field {key!r} is {value!r} where an integer is expected.", hint="Mend the line.")


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises `DataError` naming it for anything else, and `FileNotFoundError`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not JSON: {error}.", hint="Mend or restore the file.") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} is no JSON object.", hint="Mend or restore the file.")
    return value
