"""Which document holds which term how often, counted in bounded memory, a chunk of documents at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .lexical_tokens import Tokenizer

_CHUNK_WORDS = 1 << 18
_DROPPED = -1


@dataclass(frozen=True, slots=True)
class Postings:
    """The counts of a corpus of N documents with V terms and P pairs of a document and one of its terms.

    `vocabulary` numbers the terms in the order of first sight. Term t stands in `documents[starts[t]:starts[t + 1]]`
    ((P,) int32, ascending), as often as `counts` ((P,), as few bytes as hold the largest) says. `lengths` ((N,) int32)
    is the number of terms of each document, repetitions included.
    """

    vocabulary: dict[str, int]
    starts: NDArray[np.int64]
    documents: NDArray[np.int32]
    counts: NDArray[np.unsignedinteger[Any]]
    lengths: NDArray[np.int32]


def count_terms(texts: Iterable[str], tokenizer: Tokenizer) -> Postings:
    """The counts of `texts`, one document each; empty arrays for no texts."""
    counter = _Counter(tokenizer)
    words: list[str] = []
    lengths: list[int] = []
    cut = tokenizer.words
    for text in texts:
        before = len(words)
        words += cut(text)
        lengths.append(len(words) - before)
        if len(words) >= _CHUNK_WORDS:
            counter.add(words, lengths)
            words, lengths = [], []
    counter.add(words, lengths)
    return counter.result()


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Pairs sorted by term, then document: `sizes[i]` of them hold the term `terms[i]`."""

    terms: NDArray[np.int32]
    sizes: NDArray[np.int32]
    documents: NDArray[np.int32]
    counts: NDArray[np.unsignedinteger[Any]]


class _Counter:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._terms_of = tokenizer.terms
        self._vocabulary: dict[str, int] = {}
        self._words: defaultdict[str, int] = defaultdict()
        # Looking up a word that is not there gives it the next number.
        self._words.default_factory = self._words.__len__
        self._term_of_word = np.zeros(0, dtype=np.int32)
        self._lengths: list[NDArray[np.int32]] = []
        self._chunks: list[_Chunk] = []
        self._documents = 0

    def add(self, words: list[str], lengths: list[int]) -> None:
        """The next `len(lengths)` documents, whose words follow each other in `words`."""
        from scipy import sparse

        known = len(self._words)
        numbers = np.fromiter(map(self._words.__getitem__, words), dtype=np.int32, count=len(words))
        self._number_terms([*islice(reversed(self._words), len(self._words) - known)][::-1])
        terms = self._term_of_word[numbers]
        rows = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        kept = terms != _DROPPED
        terms, rows = terms[kept], rows[kept]
        own_lengths = np.bincount(rows, minlength=len(lengths)).astype(np.int32)
        self._lengths.append(own_lengths)
        starts = np.concatenate([[0], np.cumsum(own_lengths)]).astype(np.int32)
        # Rows to columns is one counting sort. It keeps the documents' order, so repetitions come to stand together.
        by_term = sparse.csr_array(
            (np.ones(len(terms), dtype=np.int8), terms, starts), shape=(len(lengths), len(self._vocabulary))
        ).tocsc()
        first = np.ones(len(terms), dtype=bool)
        first[1:] = by_term.indices[1:] != by_term.indices[:-1]
        bounds = by_term.indptr.astype(np.int64)
        first[bounds[:-1][bounds[:-1] < len(terms)]] = True
        sizes = np.diff(np.concatenate([[0], np.cumsum(first)])[bounds])
        places = np.flatnonzero(first)
        present = np.flatnonzero(sizes)
        self._chunks.append(
            _Chunk(
                present.astype(np.int32),
                sizes[present].astype(np.int32),
                (by_term.indices[places] + self._documents).astype(np.int32),
                _narrow(np.diff(np.append(places, len(terms)))),
            )
        )
        self._documents += len(lengths)

    def _number_terms(self, new_words: list[str]) -> None:
        number = self._vocabulary.setdefault
        size = self._vocabulary.__len__
        new = [number(term, size()) if term else _DROPPED for term in self._terms_of(new_words)]
        self._term_of_word = np.concatenate([self._term_of_word, np.array(new, dtype=np.int32)])

    def result(self) -> Postings:
        frequencies = np.zeros(len(self._vocabulary), dtype=np.int64)
        for chunk in self._chunks:
            frequencies[chunk.terms] += chunk.sizes
        starts = np.concatenate([[0], np.cumsum(frequencies)])
        documents = np.empty(starts[-1], dtype=np.int32)
        widest = max((chunk.counts.dtype for chunk in self._chunks), key=lambda dtype: dtype.itemsize)
        counts = np.empty(starts[-1], dtype=widest)
        free = starts[:-1].copy()
        self._chunks.reverse()
        while self._chunks:
            chunk = self._chunks.pop()  # its memory is free again as soon as it is laid out
            own_starts = np.cumsum(chunk.sizes, dtype=np.int64) - chunk.sizes
            places = np.repeat(free[chunk.terms] - own_starts, chunk.sizes) + np.arange(len(chunk.documents))
            documents[places] = chunk.documents
            counts[places] = chunk.counts
            free[chunk.terms] += chunk.sizes
        lengths = np.concatenate([np.zeros(0, dtype=np.int32), *self._lengths])
        return Postings(self._vocabulary, starts, documents, counts, lengths)


def _narrow(counts: NDArray[np.int64]) -> NDArray[np.unsignedinteger[Any]]:
    return counts.astype(np.min_scalar_type(counts.max(initial=0)))
