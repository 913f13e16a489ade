"""Texts alone: what a source of queries, documents and judgments shares, however its tables are stored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from ...errors import AudioError, unknown_name
from ..records import CleanSpeech, Document, Qrel, Query
from .tables import Table, check_judged, read_qrels, read_queries, stream_documents

Part = Literal["corpus", "queries", "qrels"]


class TextSource(ABC):
    """Tables by subset. Queries are those that the judgments name; documents are streamed, never held together."""

    def __init__(self, name: str, subsets: Mapping[str, str]) -> None:
        self.name = name
        self.subsets: Mapping[str, str] = dict(subsets)
        self._queries: dict[str, list[Query]] = {}
        self._judged: dict[str, dict[Qrel, int]] = {}
        self._checked: dict[str, list[Qrel]] = {}

    @abstractmethod
    def table(self, part: Part, subset: str) -> Table: ...

    def _language_of(self, subset: str) -> str:
        if subset not in self.subsets:
            raise unknown_name(f"subset of {self.name}:", subset, self.subsets)
        return self.subsets[subset]

    def _judgments(self, subset: str) -> dict[Qrel, int]:
        if subset not in self._judged:
            self._judged[subset] = read_qrels(self.table("qrels", subset))
        return self._judged[subset]

    def queries(self, subset: str) -> Sequence[Query]:
        language = self._language_of(subset)
        if subset not in self._queries:
            judged = {qrel.query_id for qrel in self._judgments(subset)}
            self._queries[subset] = read_queries(self.table("queries", subset), subset, language, only=judged)
        return self._queries[subset]

    def documents(self, subset: str) -> Iterator[Document]:
        self._language_of(subset)
        return stream_documents(self.table("corpus", subset))

    def qrels(self, subset: str) -> Sequence[Qrel]:
        queries = self.queries(subset)
        if subset not in self._checked:
            judged = self._judgments(subset)
            check_judged(self.table("qrels", subset), judged, queries, self.documents(subset))
            self._checked[subset] = list(judged)
        return self._checked[subset]

    def speech(self, query: Query) -> CleanSpeech:
        raise AudioError(
            f"{self.name} has texts only, so query {query.id!r} of {query.subset} has no recording.",
            hint="Record or synthesize the queries into a folder with a manifest.jsonl, and add it to the source's "
            "name: ?speech=DIR (or &speech=DIR behind another option).",
        )
