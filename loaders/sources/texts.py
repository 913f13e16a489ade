"""Texts alone: a source of queries, documents and judgments, however its tables are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from ...errors import AudioError
from ..records import CleanSpeech, Document, Query
from .checked import CheckedTables, Part

__all__ = ["Part", "TextSource"]


class TextSource(CheckedTables):
    """Tables by subset. Queries are those that the judgments name; documents are streamed, never held together."""

    def __init__(self, name: str, subsets: Mapping[str, str], on_bad: str = "refuse") -> None:
        super().__init__(on_bad)
        self.name = name
        self._subsets = dict(subsets)

    @property
    def subsets(self) -> Mapping[str, str]:
        return MappingProxyType(self._subsets)

    def documents(self, subset: str) -> Iterator[Document]:
        return self.stream(subset)

    def speech(self, query: Query) -> CleanSpeech:
        raise AudioError(
            f"{self.name} has texts only, so query {query.id!r} of {query.subset} has no recording.",
            hint="Record or synthesize the queries into a folder with a manifest.jsonl, and add it to the source's "
            "name: ?speech=DIR (or &speech=DIR behind another option).",
        )
