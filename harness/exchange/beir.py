"""The texts of a data set in the layout of BEIR, which `beir:` reads again.

    <out>/<subset>/corpus.jsonl        {"_id": …, "title": …, "text": …}
    <out>/<subset>/queries.jsonl       {"_id": …, "text": …}
    <out>/<subset>/qrels/<split>.tsv   query-id, corpus-id, score, with tabs between

Layout: https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ...errors import DataError, unknown_name
from ...loaders.data import TEST, SpeechData
from ...loaders.records import Document, Query
from ...loaders.text import valid_text
from ..data import open_speech
from ..results.files import write_in_pieces
from . import Exchanged

_HEAD = "query-id\tcorpus-id\tscore\n"


def export_named(name: str, out: Path, *, subsets: Sequence[str] = (), split: str = TEST) -> Exchanged:
    """`export_beir` of data by name (see `open_data`)."""
    return export_beir(open_speech(name, split=split), out, subsets=subsets)


def export_beir(data: SpeechData, out: Path, *, subsets: Sequence[str] = ()) -> Exchanged:
    """Write corpus, queries and judgments of every subset with a corpus, or of `subsets`.

    Audio stays where it is. Raises `UnknownNameError` for a subset, `DataError` if one has no corpus or an id holds a
    tab or a line break; `StorageError` if the disk refuses.
    """
    for name in subsets:
        if name not in data.subsets:
            raise unknown_name("subset", name, data.subsets)
        if not data.has_corpus(name):
            raise DataError(f"{name} has no corpus.", hint="Choose other subsets.")
    chosen = [name for name in data.subsets if (name in subsets if subsets else data.has_corpus(name))]
    if not chosen:
        raise DataError("this data has no corpus, so there are no judgments.", hint="Give data for retrieval.")
    files: list[Path] = []
    remarks: list[str] = []
    for subset in chosen:
        queries, qrels = data.queries(subset), data.qrels(subset)
        place = out / subset
        for path, lines in (
            (place / "corpus.jsonl", map(_document_line, data.documents(subset))),
            (place / "queries.jsonl", map(_query_line, queries)),
            (place / "qrels" / f"{data.split}.tsv", _qrels_lines(qrels)),
        ):
            write_in_pieces(path, lines)
            files.append(path)
        bare = sum(not qrels.get(query.id) for query in queries)
        if bare:
            remarks.append(f"{subset}: {bare} of {len(queries)} queries are not judged, and readers of BEIR skip them.")
        remarks.append(f"{subset} reads back as beir:{place}?language={data.subsets[subset]}")
    count = f"{len(chosen)} subset{'s' if len(chosen) != 1 else ''}"
    return Exchanged(tuple(files), f"Wrote {count} into {out}.", tuple(remarks))


def _document_line(document: Document) -> str:
    row = {"_id": _written(document.id), "title": valid_text(document.title), "text": valid_text(document.text)}
    return json.dumps(row, ensure_ascii=False) + "\n"


def _query_line(query: Query) -> str:
    row = {"_id": _written(query.id), "text": valid_text(query.text)} | ({"domain": query.group} if query.group else {})
    return json.dumps(row, ensure_ascii=False) + "\n"


def _qrels_lines(qrels: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    yield _HEAD
    for query, grades in qrels.items():
        for document, grade in grades.items():
            yield f"{_written(query)}\t{_written(document)}\t{grade}\n"


def _written(id_: str) -> str:
    if any(sign in id_ for sign in "\t\r\n") or valid_text(id_) != id_:
        raise DataError(f"the id {id_!r} holds a sign that the files of BEIR cannot hold.", hint="Rename it.")
    return id_
