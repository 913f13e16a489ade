"""The tables of a text collection: queries, documents, judgments, read row by row and checked.

Every source reads through here, so the same mistake gives the same error, with file, line and id.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError
from ..jsonl import integer_field, read_jsonl, text_field
from ..records import Document, Qrel, Query

ID_KEYS = ("_id", "id")
QUERY_ID_KEYS = ("query-id", "query_id", "qid")
DOCUMENT_ID_KEYS = ("corpus-id", "corpus_id", "doc-id", "doc_id", "pid", "docid")
SCORE_KEYS = ("score", "relevance")
"""Spellings of the same column in the wild; the first that a row has is taken."""

Row = tuple[int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be read again and again. `rows` gives each row's number (from 1) and content."""

    name: str
    rows: Callable[[], Iterator[Row]]
    unit: str = "line"

    def place(self, number: int) -> str:
        return f"{self.name}, {self.unit} {number}"


def jsonl_table(path: Path) -> Table:
    return Table(str(path), lambda: read_jsonl(path))


def subset_name(text: str) -> str:
    """A subset name made from the name of a folder or repository: lower case, without "_" and "/".

    Raises `DataError` if nothing is left.

    >>> subset_name("My_Help.Center 2")
    'my-help.center-2'
    """
    name = re.sub(r"(?:[^\w.]|_)+", "-", text.lower()).strip("-")
    if not name:
        raise DataError(f"no subset can be named after {text!r}.", hint="Rename the folder, or give a name.")
    return name


def aliased(row: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """The first of `keys` that `row` has, else the first of all (which errors then name)."""
    return next((key for key in keys if key in row), keys[0])


def _passage(row: Mapping[str, Any], key: str, place: str, *, default: str | None = None) -> str:
    return "" if key in row and row[key] is None else text_field(row, key, place, default=default)


def grade_field(row: Mapping[str, Any], place: str) -> int:
    """The grade of a judgment: an integer, also written as text or as a float without a fraction.

    >>> grade_field({"score": 1.0}, "row 1"), grade_field({"score": "2"}, "row 1")
    (1, 2)
    """
    key = aliased(row, SCORE_KEYS)
    value = row.get(key)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return integer_field(row, key, place)


def read_queries(table: Table, subset: str, language: str, *, only: Container[str] | None = None) -> list[Query]:
    """All queries in order, or those with an id in `only`. Raises `DataError` for a duplicate id, no text, or none."""
    found: dict[str, Query] = {}
    for number, row in table.rows():
        place = table.place(number)
        id_ = text_field(row, aliased(row, ID_KEYS), place)
        if only is not None and id_ not in only:
            continue
        text = text_field(row, "text", place).strip()
        if id_ in found:
            raise DataError(f"{place}: the query id {id_!r} occurs twice.", hint="Ids must be unique.")
        if not text:
            raise DataError(f"{place}: query {id_!r} has no text.", hint="Give it a text or remove it.")
        found[id_] = Query(id_, subset, language, text, _passage(row, "domain", place, default=""))
    if not found:
        judged = "" if only is None else " that is judged"
        raise DataError(f"{table.name} holds no queries{judged}.", hint="Add at least one.")
    return list(found.values())


def stream_documents(table: Table) -> Iterator[Document]:
    """All documents, one at a time. Raises `DataError`, after the last for a duplicate id or an empty corpus."""
    hashes = array("q")
    for number, row in table.rows():
        # Nearly every row of millions is as it should be, so that is asked first.
        id_, title, text = row.get("_id"), row.get("title"), row.get("text")
        if not (type(id_) is type(title) is type(text) is str):
            place = table.place(number)
            id_ = text_field(row, aliased(row, ID_KEYS), place)
            title, text = _passage(row, "title", place, default=""), _passage(row, "text", place)
        hashes.append(hash(id_))
        yield Document(id_, title, text)
    if not hashes:
        raise DataError(f"{table.name} holds no documents.", hint="Add at least one.")
    _refuse_repeated(table, hashes)


def _refuse_repeated(table: Table, hashes: array[int]) -> None:
    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    suspects = set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())
    if not suspects:
        return
    # Two ids may share a hash by chance, so these few are compared in full.
    seen: set[str] = set()
    for number, row in table.rows():
        id_ = text_field(row, aliased(row, ID_KEYS), table.place(number))
        if hash(id_) not in suspects:
            continue
        if id_ in seen:
            raise DataError(f"{table.place(number)}: the document id {id_!r} occurs twice.", hint="Ids must be unique.")
        seen.add(id_)


def read_qrels(table: Table) -> dict[Qrel, int]:
    """All judgments with the numbers of their rows. Raises `DataError` for a bad grade, a pair twice, or if none."""
    found: dict[Qrel, int] = {}
    pairs: set[tuple[str, str]] = set()
    for number, row in table.rows():
        place = table.place(number)
        qrel = Qrel(
            text_field(row, aliased(row, QUERY_ID_KEYS), place),
            text_field(row, aliased(row, DOCUMENT_ID_KEYS), place),
            grade_field(row, place),
        )
        pair = (qrel.query_id, qrel.document_id)
        if pair in pairs:
            raise DataError(
                f"{place}: query {qrel.query_id!r} and document {qrel.document_id!r} are judged twice.",
                hint="Keep one line.",
            )
        pairs.add(pair)
        found[qrel] = number
    if not found:
        raise DataError(f"{table.name} holds no judgments.", hint="Add at least one.")
    return found


def check_judged(
    table: Table, qrels: Mapping[Qrel, int], queries: Iterable[Query], documents: Iterable[Document]
) -> None:
    """Raise `DataError` where a judgment names a query or document that does not exist. `documents` is streamed."""
    query_ids = {query.id for query in queries}
    for qrel, number in qrels.items():
        if qrel.query_id not in query_ids:
            raise DataError(
                f"{table.place(number)}: the query {qrel.query_id!r} is not in queries.", hint="Mend the id."
            )
    missing = unknown_documents(qrels, documents)
    for qrel, number in qrels.items():
        if qrel.document_id in missing:
            raise DataError(
                f"{table.place(number)}: the document {qrel.document_id!r} is not in the corpus.", hint="Mend the id."
            )


def unknown_documents(qrels: Iterable[Qrel], documents: Iterable[Document]) -> set[str]:
    """The ids of judged documents that are not in the corpus, which is streamed to its end."""
    wanted = {qrel.document_id for qrel in qrels}
    wanted.difference_update(document.id for document in documents)
    return wanted
