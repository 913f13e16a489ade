"""Learned sparse retrieval (SPLADE, Formal et al. 2021, arXiv 2107.05720) through sentence-transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError, UsageError
from ....loaders.corpus import Corpus
from ....loaders.records import Document
from ...protocols import Setting
from ..batches import in_token_batches
from ..encoders.prompts import Role
from .corpus_blocks import Block
from .encoded_corpus import EncodedCorpusRetriever, query_names
from .ranking import NOTHING, Best, merged
from .sparse_search import search_products

_Row = tuple[NDArray[np.int32], NDArray[np.float32]]


class SpladeRetriever(EncodedCorpusRetriever):
    """Exact search with a sparse encoder of sentence-transformers.

    `model` is a path or a Hub repository. A prompt that is None is the model's own. `max_active_terms` keeps the
    heaviest terms of a text (None: what the model says). `languages` are those that the model was made for (None: any).
    `threads` share a search and change no result. A `token_budget` of None is 16384 on a GPU. The other options are
    those of `SentenceTransformersModel`.

    With a `cache`, a corpus is encoded once, by all processes that call `prepare`. Weights are kept in float32, sums in
    float64. A document whose score is not above 0 is no hit.
    """

    backend = "splade"
    model_kind = "SparseEncoder"
    label = "SPLADE"
    kept = "sparse"
    block_documents = 4096
    # A batch has a score for every token and every term of the vocabulary: 30,522 numbers per token for BERT.
    gpu_tokens = 16_384

    def __init__(
        self, model: str | Path, *, max_active_terms: int | None = None, threads: int | None = None, **torch: Any
    ) -> None:
        for name, value in (("max_active_terms", max_active_terms), ("threads", threads)):
            if value is not None and value < 1:
                raise UsageError(f"{name} must be at least 1, not {value}.")
        super().__init__(model, **torch)
        self._max_active_terms = max_active_terms
        self._threads = threads

    @property
    def _settings(self) -> Mapping[str, Setting]:
        return {"max_active_terms": self._max_active_terms, "similarity": "dot"}

    def _best(self, texts: list[str], corpus: Corpus, k: int) -> list[Best]:
        from scipy import sparse

        ids = corpus.ids
        rows: Any = None
        found = [NOTHING for _ in texts]
        for start, block in self._blocks:
            shape = (len(block["starts"]) - 1, int(block["documents"]))
            # In float64: a product of two of float32 is exact then.
            by_term = sparse.csr_array(
                (block["weights"].astype(np.float64), block["rows"], block["starts"]), shape=shape
            )
            if rows is None:
                rows = _matrix(self._encoded(texts, "query", query_names(texts)), shape[0], np.float64)
            ranks = ids.ranks[start : start + shape[1]]
            for i, best in enumerate(search_products(rows, by_term, ranks, k=k, threads=self._threads)):
                found[i] = merged(found[i], Best(best.positions + start, best.scores), ids.ranks, k)
        return found

    def _block(self, documents: Sequence[Document]) -> Block:
        """The weights by term: those of term t are `weights[starts[t]:starts[t + 1]]`, of the documents `rows`."""
        texts = [document.contents for document in documents]
        row = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        names = {document.contents: document.id for document in reversed(documents)}
        encoded = self._encoded(list(row), "document", [f"document {names[text]!r}" for text in row])
        by_term = _matrix([encoded[row[text]] for text in texts], self._width, np.float32).tocsc()
        by_term.sort_indices()
        return {
            "documents": np.array(len(texts)),
            "rows": by_term.indices.astype(np.int32),
            "starts": by_term.indptr.astype(np.int32),
            "weights": by_term.data,
        }

    @cached_property
    def _width(self) -> int:
        width = self._model.model.get_embedding_dimension()
        if not width:
            raise ModelError(f"{self._model.name} does not say how many terms it has.")
        return int(width)

    def _encoded(self, texts: list[str], role: Role, names: Sequence[str]) -> list[_Row]:
        model = self._model.model
        encode = model.encode_query if role == "query" else model.encode_document

        def work(batch: list[str]) -> list[_Row]:
            weights = (
                encode(
                    batch,
                    prompt=self._prompts[role],
                    batch_size=len(batch),
                    show_progress_bar=False,
                    convert_to_sparse_tensor=True,
                    save_to_cpu=True,
                    max_active_dims=self._max_active_terms,
                )
                .coalesce()
                .float()
            )
            places, values = weights.indices().numpy(), weights.values().numpy()
            bounds = np.searchsorted(places[0], np.arange(len(batch) + 1))
            return [(places[1, start:end].astype(np.int32), values[start:end]) for start, end in pairwise(bounds)]

        rows = in_token_batches(texts, self._model.lengths(texts), self._budget, work, who=self._model.name)
        for name, (terms, weights) in zip(names, rows, strict=True):
            wrong = np.flatnonzero(~np.isfinite(weights))
            if len(wrong):
                first = int(wrong[0])
                raise ModelError(
                    f"{self._model.name} gave {name} the weight {weights[first]} for term {terms[first]}.",
                    hint="The model cannot encode this text, or not in its number type.",
                )
        return rows


def _matrix(rows: Sequence[_Row], width: int, dtype: Any) -> Any:
    """(len(rows), width) csr_array."""
    from scipy import sparse

    starts = np.concatenate([[0], np.cumsum([len(terms) for terms, _ in rows])]).astype(np.int32)
    terms = np.concatenate([np.zeros(0, dtype=np.int32), *(terms for terms, _ in rows)])
    weights = np.concatenate([np.zeros(0, dtype=dtype), *(weights.astype(dtype) for _, weights in rows)])
    return sparse.csr_array((weights, terms, starts), shape=(len(rows), width))
