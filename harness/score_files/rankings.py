"""Judgments and rankings: TREC files, BEIR's TSV, JSONL, Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import DataError, unknown_name
from ...loaders.sources.rules import JUDGED_TWICE, OnFault, broken, refuse, told, whole_grade
from .lines import Remark, finite, id_field, no_remark, place, read_lines, read_rows

RANKING_FORMATS = ("auto", "trec", "tsv", "jsonl", "parquet")
_BY_SUFFIX = {**dict.fromkeys((".jsonl", ".ndjson", ".json"), "jsonl"), ".parquet": "parquet"}
_QUERY = ("query-id", "query_id", "qid")
_DOCUMENT = ("corpus-id", "corpus_id", "document_id", "doc_id", "docid")
_VALUE = ("score", "grade", "relevance")
_TREC = {"qrels": ("judgments", 4, "query 0 document grade"), "run": ("a run", 6, "query Q0 document rank score tag")}
Entry = tuple[str, str, str, Any]
"""Place, query id, document id, and the grade or score as it was written."""


def read_qrels(
    path: Path, format_: str = "auto", *, remark: Remark = no_remark, bad: OnFault = refuse
) -> dict[str, dict[str, int]]:
    """Judgments: query id → document id → grade.

    - "trec": query, iteration, document and grade, with blanks or tabs between;
    - "tsv" (BEIR): a first line that names the fields, `query-id`, `corpus-id`, `score`, with tabs between;
    - "jsonl", "parquet": the same fields; `query_id`, `document_id`, `grade` and their like are accepted;
    - "auto": by suffix, or else by the first line.

    Raises `DataError` naming file and line for a line of another form and for a file without judgments. A grade that is
    no whole number or below 0, and a pair that is judged twice (see `loaders.sources.rules`), go to `bad`, which raises
    them, or leaves the row out.
    """
    judgments: dict[str, dict[str, int]] = {}
    for where, query_id, document_id, value in _read(path, format_, "qrels", remark):
        named = f"{query_id} {document_id}"
        with told(bad):
            grade = whole_grade(value, where, f"the grade of document {document_id!r} for query {query_id!r}", named)
            documents = judgments.setdefault(query_id, {})
            if document_id in documents:
                message = f"{where}: document {document_id!r} is judged twice for query {query_id!r}."
                raise broken(JUDGED_TWICE, message, "Judge it once.", named)
            documents[document_id] = grade
    if not judgments:
        raise DataError(f"{path} holds no usable judgment.", hint="Mend the file.")
    return judgments


def read_run(path: Path, format_: str = "auto", *, remark: Remark = no_remark) -> dict[str, list[tuple[str, float]]]:
    """A ranking: query id → (document id, score), in the order of the file.

    The formats are those of `read_qrels`; a TREC run has six fields, query, Q0, document, rank, score, tag. As in
    trec_eval the rank is ignored: the scores order. Of a document that stands twice the first entry counts. Raises
    `DataError` naming file and line, also for a score that is no finite number.
    """
    run: dict[str, list[tuple[str, float]]] = {}
    for where, query_id, document_id, value in _read(path, format_, "run", remark):
        run.setdefault(query_id, []).append((document_id, finite(value, "score", where)))
    return run


def _read(path: Path, format_: str, kind: str, remark: Remark) -> list[Entry]:
    if format_ not in RANKING_FORMATS:
        raise unknown_name("format", format_, RANKING_FORMATS)
    if format_ == "auto":
        format_ = _BY_SUFFIX.get(path.suffix.lower(), "")
    lines = [] if format_ in ("jsonl", "parquet", "tsv") else read_lines(path, remark)
    if not format_:
        first = lines[0][1] if lines else ""
        named = {field.strip() for field in first.split("\t")}
        format_ = "jsonl" if first.lstrip().startswith("{") else "tsv" if named & set(_QUERY) else "trec"
    if format_ == "trec":
        found = [_trec(place(path, number), line, kind) for number, line in lines]
    else:
        # The remarks of a file that is read again have been made.
        rows = read_rows(path, format_, no_remark if lines else remark)
        found = [
            (where, id_field(row, _QUERY, where), id_field(row, _DOCUMENT, where), _value(row, where))
            for where, row in rows
        ]
    if not found:
        raise DataError(f"{path} is empty.", hint=f"It should hold {_TREC[kind][0]}.")
    return found


def _trec(where: str, line: str, kind: str) -> Entry:
    fields = line.split()
    what, wanted, names = _TREC[kind]
    if len(fields) != wanted:
        raise DataError(
            f"{where}: {len(fields)} fields, but {what} in TREC's format has {wanted}: {names}.",
            hint="Mend the line; a TSV file needs a first line: query-id, corpus-id, score.",
        )
    return where, fields[0], fields[2], fields[3 if kind == "qrels" else 4]


def _value(row: dict[str, Any], where: str) -> Any:
    key = next((k for k in _VALUE if k in row), None)
    if key is None:
        raise DataError(f"{where}: there is no field 'score', only {', '.join(row)}.", hint="Name the fields so.")
    return row[key]
