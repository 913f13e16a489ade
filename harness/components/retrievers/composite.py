"""What retrievers made of others share: indexing and searching on their own, without the pipeline."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ....errors import UsageError
from ....loaders.corpus import Corpus, as_corpus
from ....loaders.records import Document
from ...protocols import DocumentLookup, Hit, Retriever, Setting
from ..batches import require_positive
from .ranking import checked_k


class Composite(ABC):
    """A retriever made of `parts`, of each of which the best `depth` hits are used.

    A part is a retriever, or the name of one (`bm25`, `dense:all-minilm-l6-v2`).
    Raises `UsageError` for a precomputed run, which answers ids and not texts.
    """

    def __init__(self, parts: Sequence[Retriever | str], depth: int) -> None:
        require_positive(depth=depth)
        self._depth = depth
        self._parts = [loaded_part(part) for part in parts]
        self._corpus: Corpus | None = None

    @property
    def parts(self) -> Sequence[Retriever]:
        return self._parts

    def supports(self, language: str) -> bool:
        return all(part.supports(language) for part in self._parts)

    def part_depth(self, k: int) -> int:
        return max(k, self._depth)

    @abstractmethod
    def combine(
        self, queries: Sequence[str], rankings: Sequence[Sequence[Sequence[Hit]]], documents: DocumentLookup, *, k: int
    ) -> list[list[Hit]]:
        """As `search`, from the parts' rankings: `rankings[part][query]` is best first, with `part_depth(k)` hits."""

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        self._corpus = None
        corpus = as_corpus(documents)
        corpus.check_ids()
        for part in self._parts:
            part.index(corpus, language=language)
        self._corpus = corpus

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        checked_k(k)
        if self._corpus is None:
            raise UsageError(
                "the retriever was asked to search before a corpus was indexed.", hint="Call index() first."
            )
        rankings = [part.search(queries, k=self.part_depth(k)) for part in self._parts]
        return self.combine(queries, rankings, self._corpus, k=k)

    def _part_settings(self) -> list[Setting]:
        """The parts' specs. Raises `UsageError` for two equal ones."""
        specs = [part.spec for part in self._parts]
        if len({spec.fingerprint for spec in specs}) < len(specs):
            raise UsageError("two parts are the same retriever.", hint="Leave one out.")
        return [spec.as_dict() for spec in specs]


def loaded_part(part: Retriever | str) -> Retriever:
    """A part of another retriever, itself or by its name. Raises `UsageError` for a precomputed run or a route."""
    from .. import load_retriever

    retriever = load_retriever(part) if isinstance(part, str) else part
    if hasattr(retriever, "routed"):
        raise UsageError(
            "a route is a part of another retriever, which is given no confidence.",
            hint="Put the route outside: 'route(confidence < 0.6 ? dense:<model> > rerank:<model> : bm25)'.",
        )
    if not hasattr(retriever, "search"):
        raise UsageError(
            f"{part if isinstance(part, str) else type(part).__name__} is a precomputed run, which cannot be combined.",
            hint="Give retrievers.",
        )
    return retriever


def checked_rankings(
    queries: Sequence[str], rankings: Sequence[Sequence[Sequence[Hit]]], parts: Sequence[Retriever]
) -> None:
    """Raise `UsageError` unless there is one ranking per part and query."""
    if len(rankings) != len(parts) or any(len(of_part) != len(queries) for of_part in rankings):
        raise UsageError(
            f"{len(parts)} parts and {len(queries)} queries need as many rankings, not "
            f"{[len(of_part) for of_part in rankings]}."
        )
