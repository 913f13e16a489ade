"""BM25 retrieval (Robertson and Zaragoza 2009, doi 10.1561/1500000019) in Lucene's form, through bm25s.

score(q, d) = sum over the terms of q of ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 (1 - b + b |d| / avgdl))

with |d| counted in terms after stop words are dropped, and a term that the query repeats counted as often as it is
repeated. The defaults are k1 0.9 and b 0.4, Anserini's (Yang, Fang and Lin 2018, doi 10.1145/3239571). Kamphuis et al.
2020 (doi 10.1007/978-3-030-45442-5_4) compare this form with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, UsageError
from ...loaders.records import Document
from ..protocols import ComponentSpec, Hit, Setting
from .lexical_tokens import TOKENS_VERSION, Tokenizer, has_words, tokenizer_for
from .ranking import checked_ids, checked_k, id_ranks, top_hits


class BM25Retriever:
    """BM25 over title and text of the documents.

    `k1` (at least 0) bends the term frequency, `b` (0 to 1) sets how much long documents are held back. Sums are kept
    in float64 and taken in a fixed order, so documents with the same terms tie exactly and the ranking does not depend
    on the order of the query's words.
    """

    def __init__(self, *, k1: float = 0.9, b: float = 0.4) -> None:
        if not (np.isfinite(k1) and k1 >= 0):
            raise UsageError(f"BM25 needs k1 of at least 0, not {k1}.")
        if not 0 <= b <= 1:
            raise UsageError(f"BM25 needs b between 0 and 1, not {b}.")
        self._k1, self._b = float(k1), float(b)
        self._index: _Index | None = None

    @property
    def spec(self) -> ComponentSpec:
        """What decides the ranking. The rules for terms follow from the language and `tokens_version`."""
        settings: dict[str, Setting] = {
            "b": self._b,
            "k1": self._k1,
            "method": "lucene",
            "tokens_version": TOKENS_VERSION,
        }
        return ComponentSpec("retriever", "bm25", "BM25", settings=settings)

    def supports(self, language: str) -> bool:
        """Whether the language's words can be told apart (not in Japanese or Thai, for example)."""
        return has_words(language)

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        """Replace the corpus.

        Raises `DataError` for an empty corpus, a duplicate id or documents that hold no term at all, `UsageError` for
        an unsupported language.
        """
        self._index = None
        ids = checked_ids(documents)
        self._index = _Index(documents, ids, tokenizer_for(language), self._k1, self._b)

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """At most `k` hits per query, best first, ties by document id descending.

        A document that shares no term with the query is not a hit; a query without a known term has none. Raises
        `UsageError` before `index` or for `k` below 1.
        """
        checked_k(k)
        if self._index is None:
            raise UsageError("BM25 was asked to search before a corpus was indexed.", hint="Call index() first.")
        return [self._index.search(query, k) for query in queries]


class _Index:
    def __init__(
        self, documents: Sequence[Document], ids: list[str], tokenizer: Tokenizer, k1: float, b: float
    ) -> None:
        import bm25s
        from tqdm import tqdm

        self._ids = ids
        self._ranks = id_ranks(ids)
        self._tokenizer = tokenizer
        # Numbers in the order of first sight: bm25s would number a set, in another order in every process.
        self._vocabulary: dict[str, int] = {}
        terms = [
            [self._vocabulary.setdefault(term, len(self._vocabulary)) for term in tokenizer(document.contents)]
            # A bar on a terminal once it has taken two seconds, nothing elsewhere.
            for document in tqdm(documents, desc="indexing (BM25)", unit="doc", disable=None, delay=2, leave=False)
        ]
        if not self._vocabulary:
            raise DataError(
                f"none of the {len(ids)} documents holds a word (the first is {ids[0]!r}).",
                hint="Check the text of the corpus and its language.",
            )
        self._bm25: Any = bm25s.BM25(k1=k1, b=b, method="lucene", dtype="float64", backend="numpy")
        self._bm25.index((terms, self._vocabulary), create_empty_token=False, show_progress=False)

    def search(self, query: str, k: int) -> list[Hit]:
        known = sorted(self._vocabulary[term] for term in self._tokenizer(query) if term in self._vocabulary)
        if not known:
            return []
        scores: NDArray[np.float64] = self._bm25.get_scores_from_ids(known)
        found = np.flatnonzero(scores > 0)
        return top_hits(found, scores[found], self._ids, self._ranks, k)
