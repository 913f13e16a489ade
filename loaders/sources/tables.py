"""The tables of a text collection: queries, documents, judgments, read row by row and checked.

Every source reads through here, so the same mistake gives the same error, with file, line and id.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError
from ..jsonl import read_jsonl, text_field
from ..records import Document, Qrel, Query
from .rules import (
    DOCUMENT_TWICE,
    DOCUMENT_UNKNOWN,
    EMPTY_ID,
    JUDGED_TWICE,
    QUERY_TEXT,
    QUERY_TWICE,
    QUERY_UNKNOWN,
    OnFault,
    broken,
    refuse,
    told,
    whole_grade,
)

ID_KEYS = ("_id", "id")
QUERY_ID_KEYS = ("query-id", "query_id", "qid")
DOCUMENT_ID_KEYS = ("corpus-id", "corpus_id", "doc-id", "doc_id", "pid", "docid")
SCORE_KEYS = ("score", "relevance")
"""Spellings of the same column in the wild; the first that a row has is taken."""

Row = tuple[int, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table that can be read again and again. `read` gives each row's number (from 1) and content, and hands what is
    wrong with the form of a row to its argument."""

    name: str
    read: Callable[[OnFault], Iterator[Row]]
    unit: str = "line"

    def rows(self, bad: OnFault = refuse) -> Iterator[Row]:
        return self.read(bad)

    def place(self, number: int) -> str:
        return f"{self.name}, {self.unit} {number}"


def jsonl_table(path: Path) -> Table:
    return Table(str(path), lambda bad: read_jsonl(path, bad))


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


def _id(row: Mapping[str, Any], keys: tuple[str, ...], place: str) -> str:
    key = aliased(row, keys)
    id_ = text_field(row, key, place)
    if not id_.strip():
        raise broken(EMPTY_ID, f"{place}: the id {key!r} is empty.", "Give it an id.")
    return id_


def grade_field(row: Mapping[str, Any], place: str, example: str = "") -> int:
    """The grade of a judgment (see `rules.whole_grade`)."""
    key = aliased(row, SCORE_KEYS)
    return whole_grade(row.get(key), place, f"field {key!r}", example)


def read_queries(
    table: Table, subset: str, language: str, *, only: Container[str] | None = None, bad: OnFault = refuse
) -> list[Query]:
    """All queries in order, or those with an id in `only`. Raises `DataError` for a duplicate id, no text, or none."""
    found: dict[str, Query] = {}
    for number, row in table.rows(bad):
        with told(bad):
            query = _query(row, table.place(number), subset, language, only)
            if query is None:
                continue
            if query.id in found:
                message = f"{table.place(number)}: the query id {query.id!r} occurs twice."
                raise broken(QUERY_TWICE, message, "Ids must be unique.", query.id)
            found[query.id] = query
    if not found:
        judged = "" if only is None else " that is judged"
        raise DataError(f"{table.name} holds no queries{judged}.", hint="Add at least one.")
    return list(found.values())


def _query(row: Mapping[str, Any], place: str, subset: str, language: str, only: Container[str] | None) -> Query | None:
    id_ = _id(row, ID_KEYS, place)
    if only is not None and id_ not in only:
        return None
    text = "" if "text" in row and row["text"] is None else text_field(row, "text", place).strip()
    if not text:
        raise broken(QUERY_TEXT, f"{place}: query {id_!r} has no text.", "Give it a text or remove it.", id_)
    return Query(id_, subset, language, text, _passage(row, "domain", place, default=""))


def stream_documents(
    table: Table, bad: OnFault = refuse, *, repeated: Collection[int] | None = None
) -> Iterator[Document]:
    """All documents, one at a time. Raises `DataError`, after the last for a duplicate id or an empty corpus.

    With `repeated`, the hashes of ids that occur twice (see `repeated_ids`), only the first of these is given.
    """
    hashes = array("q")
    seen: set[str] = set()
    for number, row in table.rows(bad):
        # Nearly every row of millions is as it should be, so that is asked first.
        id_, title, text = row.get("_id"), row.get("title"), row.get("text")
        if not (id_ and type(id_) is type(title) is type(text) is str):
            place = table.place(number)
            try:
                id_ = _id(row, ID_KEYS, place)
                title, text = _passage(row, "title", place, default=""), _passage(row, "text", place)
            except DataError as error:
                bad(error)
                continue
        hashed = hash(id_)
        hashes.append(hashed)
        if repeated and hashed in repeated:
            if id_ in seen:
                bad(_twice(table, number, id_))
                continue
            seen.add(id_)
        yield Document(id_, title, text)
    if not hashes:
        raise DataError(f"{table.name} holds no documents.", hint="Add at least one.")
    if repeated is None:
        _tell_repeated(table, hashes, bad)


def repeated_ids(table: Table) -> frozenset[int]:
    """The hashes of document ids that occur more than once; two ids may share one by chance. Reads the table."""
    found = (row.get(aliased(row, ID_KEYS)) for _, row in table.rows(lambda _: None))
    return _suspects(array("q", (hash(str(id_)) for id_ in found)))


def _suspects(hashes: array[int]) -> frozenset[int]:
    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    return frozenset(ordered[1:][ordered[1:] == ordered[:-1]].tolist())


def _tell_repeated(table: Table, hashes: array[int], bad: OnFault) -> None:
    suspects = _suspects(hashes)
    if not suspects:
        return
    # Two ids may share a hash by chance, so these few are compared in full.
    seen: set[str] = set()
    for number, row in table.rows(lambda _: None):
        id_ = str(row.get(aliased(row, ID_KEYS)))
        if hash(id_) not in suspects:
            continue
        if id_ in seen:
            bad(_twice(table, number, id_))
        seen.add(id_)


def _twice(table: Table, number: int, id_: str) -> DataError:
    message = f"{table.place(number)}: the document id {id_!r} occurs twice."
    return broken(DOCUMENT_TWICE, message, "Ids must be unique.", id_)


def read_qrels(table: Table, bad: OnFault = refuse) -> dict[Qrel, int]:
    """All judgments with the numbers of their rows. Raises `DataError` for a bad grade, a pair twice, or if none."""
    found: dict[Qrel, int] = {}
    pairs: set[tuple[str, str]] = set()
    for number, row in table.rows(bad):
        with told(bad):
            place = table.place(number)
            query_id, document_id = _id(row, QUERY_ID_KEYS, place), _id(row, DOCUMENT_ID_KEYS, place)
            qrel = Qrel(query_id, document_id, grade_field(row, place, f"{query_id} {document_id}"))
            if (query_id, document_id) in pairs:
                raise broken(
                    JUDGED_TWICE,
                    f"{place}: query {query_id!r} and document {document_id!r} are judged twice.",
                    "Keep one line.",
                    f"{query_id} {document_id}",
                )
            pairs.add((query_id, document_id))
            found[qrel] = number
    if not found:
        raise DataError(f"{table.name} holds no judgments.", hint="Add at least one.")
    return found


def check_judged(
    table: Table,
    qrels: Mapping[Qrel, int],
    queries: Iterable[str],
    documents: Iterable[Document],
    bad: OnFault = refuse,
) -> list[Qrel]:
    """The judgments of queries (given by id) and documents that exist. `documents` is streamed. Raises `DataError`."""
    query_ids = set(queries)
    missing = unknown_documents(qrels, documents)
    kept = []
    for qrel, number in qrels.items():
        named = f"{qrel.query_id} {qrel.document_id}"
        if qrel.query_id not in query_ids:
            message = f"{table.place(number)}: the query {qrel.query_id!r} is not in queries."
            bad(broken(QUERY_UNKNOWN, message, "Mend the id.", named))
        elif qrel.document_id in missing:
            message = f"{table.place(number)}: the document {qrel.document_id!r} is not in the corpus."
            bad(broken(DOCUMENT_UNKNOWN, message, "Mend the id.", named))
        else:
            kept.append(qrel)
    return kept


def unknown_documents(qrels: Iterable[Qrel], documents: Iterable[Document]) -> set[str]:
    """The ids of judged documents that are not in the corpus, which is streamed to its end."""
    wanted = {qrel.document_id for qrel in qrels}
    wanted.difference_update(document.id for document in documents)
    return wanted
