"""A folder in the layout of BEIR: `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`. Texts only.

The qrels have a first line `query-id corpus-id score`, with tabs. `queries.jsonl` usually holds the queries of all
splits; the queries of a split are those that its qrels judge, in the file's order.

Layout: https://github.com/beir-cellar/beir/wiki/Load-your-custom-dataset
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from ...errors import DataError, nearest, unknown_name
from ..records import CleanSpeech, Document, Qrel, Query
from .digests import files_version
from .names import SourceName, check_language
from .recorded import delimited_table
from .spoken import no_speech
from .tables import (
    DOCUMENT_ID_KEYS,
    QUERY_ID_KEYS,
    SCORE_KEYS,
    Row,
    Table,
    check_judged,
    jsonl_table,
    read_qrels,
    read_queries,
    stream_documents,
    subset_name,
)


def qrels_table(path: Path) -> Table:
    """A file of judgments with a header, as a table. Raises `DataError` for the TREC format, which has none."""
    table = delimited_table(path)

    def rows() -> Iterator[Row]:
        for number, row in table.rows():
            if not all(set(row) & set(keys) for keys in (QUERY_ID_KEYS, DOCUMENT_ID_KEYS, SCORE_KEYS)):
                raise DataError(
                    f"{path}, line {number}: query, document or grade is missing.",
                    hint="The first line must be query-id, corpus-id, score, with tabs between.",
                )
            yield number, row

    return Table(table.name, rows)


class BeirSource:
    """A BEIR folder as a source with one subset. Documents are streamed, never held together."""

    def __init__(
        self, root: Path, *, language: str, split: str = "test", subset: str = "", license: str = "unknown"
    ) -> None:
        self.root = root
        self._language = check_language(language)
        self._split = split
        self._subset = subset_name(subset or root.resolve().name)
        self._license = license
        missing = [name for name in ("corpus.jsonl", "queries.jsonl", "qrels") if not (root / name).exists()]
        if missing:
            raise DataError(
                f"{root} is not a BEIR folder: {', '.join(missing)} is missing.",
                hint="It must hold corpus.jsonl, queries.jsonl and qrels/<split>.tsv.",
            )
        self._qrels_path = root / "qrels" / f"{split}.tsv"
        splits = sorted(path.stem for path in (root / "qrels").glob("*.tsv"))
        if split not in splits:
            guess = nearest(split, splits)
            raise DataError(
                f"{root} has no split {split!r} (qrels/{split}.tsv).",
                hint=f"{f'Did you mean {guess!r}? ' if guess else ''}It has: {', '.join(splits) or 'none'}.",
            )

    @property
    def name(self) -> str:
        return f"beir:{self._subset}"

    @cached_property
    def version(self) -> str:
        names = ("corpus.jsonl", "queries.jsonl", f"qrels/{self._split}.tsv")
        return files_version(self.root, names, choices=f"{self._subset} {self._language}")

    @property
    def license(self) -> str:
        return self._license

    @property
    def subsets(self) -> Mapping[str, str]:
        return MappingProxyType({self._subset: self._language})

    def _check(self, subset: str) -> None:
        if subset != self._subset:
            raise unknown_name(f"subset of {self.name}:", subset, self.subsets)

    @cached_property
    def _judgements(self) -> dict[Qrel, int]:
        return read_qrels(qrels_table(self._qrels_path))

    @cached_property
    def _queries(self) -> list[Query]:
        judged = {qrel.query_id for qrel in self._judgements}
        return read_queries(jsonl_table(self.root / "queries.jsonl"), self._subset, self._language, only=judged)

    def queries(self, subset: str) -> Sequence[Query]:
        self._check(subset)
        return self._queries

    def documents(self, subset: str) -> Iterator[Document]:
        self._check(subset)
        return stream_documents(jsonl_table(self.root / "corpus.jsonl"))

    @cached_property
    def _checked(self) -> list[Qrel]:
        table = qrels_table(self._qrels_path)
        documents = stream_documents(jsonl_table(self.root / "corpus.jsonl"))
        check_judged(table, self._judgements, self._queries, documents)
        return list(self._judgements)

    def qrels(self, subset: str) -> Sequence[Qrel]:
        self._check(subset)
        return self._checked

    def speech(self, query: Query) -> CleanSpeech:
        raise no_speech(self.name, query)


def open_beir(name: SourceName) -> BeirSource:
    """The source `beir:PATH?language=…`, with the options `split`, `subset` and `license`."""
    folder = name.folder()
    return BeirSource(
        folder,
        language=name.language(f"the BEIR folder {folder}"),
        split=name.option("split", "test"),
        subset=name.option("subset"),
        license=name.option("license", "unknown"),
    )
