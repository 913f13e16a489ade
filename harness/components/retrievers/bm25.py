"""BM25 (Robertson and Zaragoza 2009) in Lucene's form, which Kamphuis et al. 2020 compare with others.

score(q, d) = sum over the terms of q of ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 (1 - b + b |d| / avgdl))

|d| counts terms without stop words; a term that the query repeats counts as often. Defaults k1 0.9, b 0.4: Anserini's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import DataError, UsageError, unknown_name
from ....loaders.corpus import Corpus, as_corpus
from ....loaders.records import Document
from ...protocols import ComponentSpec, Hit, Setting
from .lexical_tokens import ANALYZERS, TOKENS_VERSION, Analyzer, Tokenizer, has_words, tokenizer_for
from .postings import Postings, count_terms
from .ranking import checked_k, hits_of
from .sparse_search import search_products

_BLOCK_PAIRS = 1 << 19


class BM25Retriever:
    """BM25 over title and text of the documents.

    `k1` (at least 0) bends the term frequency, `b` (0 to 1) sets how much long documents are held back. `analyzer` is
    `default`, or `squtr-compat` for the published baselines' terms with their quirks (see `lexical_tokens`); the
    published scripts also return documents with score 0, in an order of chance, and these are no hits here. `threads`
    share a search (None: one per core, 8 at most) and change no result.

    Sums are kept in float64 and taken in a fixed order, so documents with the same terms tie exactly and the ranking
    does not depend on the order of the query's words. An index takes 12 bytes per document and distinct term in it,
    beside ids and vocabulary; building it takes 13.
    """

    def __init__(
        self, *, k1: float = 0.9, b: float = 0.4, analyzer: Analyzer = "default", threads: int | None = None
    ) -> None:
        if not (np.isfinite(k1) and k1 >= 0):
            raise UsageError(f"BM25 needs k1 of at least 0, not {k1}.")
        if not 0 <= b <= 1:
            raise UsageError(f"BM25 needs b between 0 and 1, not {b}.")
        if analyzer not in ANALYZERS:
            raise unknown_name("analyzer", analyzer, ANALYZERS)
        if threads is not None and threads < 1:
            raise UsageError(f"BM25 needs at least 1 thread, not {threads}.")
        self._k1, self._b = float(k1), float(b)
        self._analyzer: Analyzer = analyzer
        self._threads = threads
        self._index: _Index | None = None

    @property
    def spec(self) -> ComponentSpec:
        settings: dict[str, Setting] = {
            "b": self._b,
            "k1": self._k1,
            "method": "lucene",
            "tokens_version": TOKENS_VERSION,
        }
        if self._analyzer == "default":
            return ComponentSpec("retriever", "bm25", "BM25", settings=settings)
        settings["analyzer"] = self._analyzer
        return ComponentSpec("retriever", "bm25", f"BM25 ({self._analyzer})", settings=settings)

    def supports(self, language: str) -> bool:
        return has_words(language, analyzer=self._analyzer)

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        self._index = None
        corpus = as_corpus(documents)
        corpus.check_ids()
        self._index = _Index(corpus, tokenizer_for(language, analyzer=self._analyzer), self._k1, self._b)

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        checked_k(k)
        if self._index is None:
            raise UsageError("BM25 was asked to search before a corpus was indexed.", hint="Call index() first.")
        return self._index.search(queries, k, self._threads)


class _Index:
    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, k1: float, b: float) -> None:
        from scipy import sparse
        from tqdm import tqdm

        # A bar on a terminal once it has taken two seconds, nothing elsewhere.
        bar = tqdm(corpus, desc="indexing (BM25)", unit="doc", disable=None, delay=2, leave=False)
        postings = count_terms((document.contents for document in bar), tokenizer)
        if not postings.vocabulary:
            raise DataError(
                f"none of the {len(corpus)} documents holds a word (the first is {corpus.ids[0]!r}).",
                hint="Check the text of the corpus and its language.",
            )
        self._ids = corpus.ids
        self._tokenizer = tokenizer
        self._vocabulary = postings.vocabulary
        # 32 bits for where a term starts too, if they suffice: scipy would widen the documents otherwise.
        narrow = len(postings.documents) < 2**31
        self._weights: Any = sparse.csr_array(
            (_weights(postings, k1, b), postings.documents, postings.starts.astype(np.int32 if narrow else np.int64)),
            shape=(len(self._vocabulary), len(corpus)),
        )

    def search(self, queries: Sequence[str], k: int, threads: int | None) -> list[list[Hit]]:
        from scipy import sparse

        # Equal queries are searched once. A repeated term stays an entry of its own: it is added that many times.
        distinct = {query: i for i, query in enumerate(dict.fromkeys(queries))}
        known = [
            sorted(self._vocabulary[term] for term in self._tokenizer(query) if term in self._vocabulary)
            for query in distinct
        ]
        starts = np.concatenate([[0], np.cumsum([len(terms) for terms in known], dtype=np.int64)])
        terms = np.array([term for own in known for term in own], dtype=self._weights.indices.dtype)
        rows: Any = sparse.csr_array(
            (np.ones(len(terms)), terms, starts.astype(terms.dtype)), shape=(len(distinct), len(self._vocabulary))
        )
        found = search_products(rows, self._weights, self._ids.ranks, k=k, threads=threads)
        hits = hits_of(found, self._ids)
        return [list(hits[distinct[query]]) for query in queries]


def _weights(postings: Postings, k1: float, b: float) -> NDArray[np.float64]:
    """(P,) what each pair of a term and a document adds to the document's score."""
    lengths = postings.lengths.astype(np.float64)
    norms = k1 * ((1 - b) + b * lengths / (lengths.sum() / len(lengths)))
    frequencies = np.diff(postings.starts)
    distinct, place = np.unique(frequencies, return_inverse=True)
    n = len(lengths)
    idf = np.array([math.log(1 + (n - df + 0.5) / (df + 0.5)) for df in distinct.tolist()])[place]
    weights = np.empty(len(postings.documents))
    # In blocks of terms, so that what is in between stays small.
    first = 0
    while first < len(frequencies):
        last = int(np.searchsorted(postings.starts, postings.starts[first] + _BLOCK_PAIRS, side="right")) - 1
        last = max(last, first + 1)
        pairs = slice(int(postings.starts[first]), int(postings.starts[last]))
        tf = postings.counts[pairs].astype(np.float64)
        weights[pairs] = np.repeat(idf[first:last], frequencies[first:last])
        weights[pairs] *= tf / (norms[postings.documents[pairs]] + tf)
        first = last
    return weights
