"""Reading tables of questions: JSON, JSON lines, TSV or CSV, whatever their spellings (see `fields`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import DataError
from ..jsonl import read_jsonl
from ..sources.published_questions import PUBLISHED_QUESTIONS
from ..text import parse_json, tell_replaced
from .fields import question_of
from .question import Question

OWN_TABLES = ("questions.jsonl", "questions.json", "questions.tsv", "questions.csv")
"""Where a folder of one's own has them."""
TABLES = (".jsonl", ".json", ".tsv", ".csv")
_LISTS = ("data", "questions", "items", "examples", "preguntas")
"""Keys of a JSON object under which the list of items may lie."""


def read_questions(path: Path, *, extra: Mapping[str, str] | None = None) -> list[Question]:
    """All questions of a table, in file order; its ending is .json, .jsonl, .tsv or .csv.

    A JSON table is a list of objects, an object with such a list under `data` (or `questions`, `items`, …), or an
    object from id to object. Raises `DataError` naming file, item and field.
    """
    questions: list[Question] = []
    places: dict[str, str] = {}
    for place, row in read_rows(path):
        question = question_of(row, place, extra=extra)
        if question.id in places:
            raise DataError(f"{place}: the id {question.id!r} was used at {places[question.id]}.", hint="Rename one.")
        places[question.id] = place
        questions.append(question)
    if not questions:
        raise DataError(f"{path} holds no questions.", hint="Give a table with one row per question.")
    return questions


def read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Place ("FILE, line 3") and row of every line of a table, as they are written."""
    ending = path.suffix.lower()
    if ending in {".jsonl", ".ndjson"}:
        for number, row in read_jsonl(path):
            yield f"{path.name}, line {number}", row
    elif ending == ".json":
        yield from _json_rows(path)
    elif ending in {".tsv", ".csv"}:
        yield from _table_rows(path, "\t" if ending == ".tsv" else ",")
    else:
        raise DataError(f"{path} is no table that can be read.", hint="Give .json, .jsonl, .tsv or .csv.")


def _content(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.", hint="Check the path.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}.", hint="Give a file in UTF-8.") from error


def _json_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    replaced: list[str] = []
    try:
        value = parse_json(_content(path), path.name, replaced)
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}.", hint="Mend the file.") from error
    tell_replaced(replaced, str(path))
    listed = _listed(value, path)
    for number, row in enumerate(listed, start=1):
        if not isinstance(row, dict):
            raise DataError(f"{path.name}, item {number}: an object is expected.", hint="Mend the file.")
        yield f"{path.name}, item {number}", row


def _listed(value: Any, path: Path) -> Sequence[Any]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        for key in _LISTS:
            if isinstance(value.get(key), list):
                return list(value[key])
        if value and all(isinstance(row, dict) for row in value.values()):
            return [{"id": id_, **row} if "id" not in row else row for id_, row in value.items()]
    raise DataError(f"{path} holds no list of items.", hint="Give a list of objects, or an object from id to object.")


def _table_rows(path: Path, delimiter: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    reader = csv.DictReader(io.StringIO(_content(path), newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            place = f"{path.name}, line {reader.line_num}"
            if None in row:
                raise DataError(f"{place}: more cells than the header has.", hint="Quote cells that hold a separator.")
            yield place, row
    except csv.Error as error:
        raise DataError(f"{path.name}, line {reader.line_num}: {error}.", hint="Mend the line.") from error


def find_table(folder: Path) -> Path | None:
    """The table of questions in a folder, own ones before those of published sets; None if there is none."""
    published = (name for row in PUBLISHED_QUESTIONS.values() for name in row.tables)
    return next((folder / name for name in (*OWN_TABLES, *published) if (folder / name).is_file()), None)
