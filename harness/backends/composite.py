"""What all retrievers made of others share: indexing and searching alone, without the pipeline."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import UsageError
from ...loaders.corpus import Corpus, as_corpus
from ...loaders.records import Document
from ..protocols import DocumentLookup, Hit, Retriever
from .ranking import checked_k


class Composite:
    """Base of retrievers made of others: they say how many hits they need of each part, and combine them."""

    def __init__(self, parts: Sequence[Retriever]) -> None:
        self._parts = tuple(parts)
        self._corpus: Corpus | None = None

    @property
    def parts(self) -> Sequence[Retriever]:
        """What it is made of."""
        return self._parts

    def supports(self, language: str) -> bool:
        """Whether all parts were made for this language."""
        return all(part.supports(language) for part in self._parts)

    def part_depth(self, k: int) -> int:
        """How many hits of every part it needs for `k` of its own."""
        raise NotImplementedError

    def combine(
        self,
        queries: Sequence[str],
        rankings: Sequence[Sequence[Sequence[Hit]]],
        documents: DocumentLookup,
        *,
        k: int,
    ) -> list[list[Hit]]:
        """One ranking per query from those of the parts."""
        raise NotImplementedError

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        """Replace the corpus of every part. Raises what they raise."""
        self._corpus = None
        corpus = as_corpus(documents)
        for part in self._parts:
            part.index(corpus, language=language)
        self._corpus = corpus

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """At most `k` hits per query, best first, ties by document id descending.

        Raises `UsageError` before `index` or for `k` below 1.
        """
        checked_k(k)
        if self._corpus is None:
            raise UsageError(
                "the retriever was asked to search before a corpus was indexed.", hint="Call index() first."
            )
        depth = self.part_depth(k)
        rankings = [part.search(queries, k=depth) for part in self._parts]
        return self.combine(queries, rankings, self._corpus, k=k)


def retriever_of(part: Retriever | str) -> Retriever:
    """A part, or the retriever of that name. Raises `UsageError` for a ready run, which answers ids, not texts."""
    if not isinstance(part, str):
        return part
    from . import load_retriever

    made = load_retriever(part)
    if not hasattr(made, "search"):
        raise UsageError(f"{part!r} is a ready run, which cannot be combined.", hint="Give retrievers.")
    return made
