"""Late interaction (ColBERT, arXiv 2004.12832; PyLate) through sentence-transformers' `MultiVectorEncoder`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError
from ....loaders.corpus import Corpus
from ....loaders.records import Document
from ...protocols import Setting
from ..batches import in_token_batches
from ..encoders.prompts import Role
from .corpus_blocks import Block
from .encoded_corpus import EncodedCorpusRetriever, query_names
from .max_similarity import best_of_block, on_grid
from .ranking import NOTHING, Best, merged

_LONGEST = 1.01
"""Vectors are of unit length, but for the rounding of half-precision models."""


class ColBERTRetriever(EncodedCorpusRetriever):
    """Exact MaxSim search with a multi-vector encoder of sentence-transformers.

    `model` is a path or a Hub repository. A prompt that is None is the model's own. `languages` are those that the
    model was made for (None: any). Without `max_tokens` the model has limits of its own for queries and documents. The
    other options are those of `SentenceTransformersModel`.

    With a `cache`, a corpus is encoded once, by all processes that call `prepare`. The documents' vectors are kept in
    float16; scores are those of the vectors as kept, and exact. A document of which no token is scored is no hit.
    """

    backend = "colbert"
    model_kind = "MultiVectorEncoder"
    label = "ColBERT"
    kept = "tokens"
    block_documents = 1024

    @property
    def _settings(self) -> Mapping[str, Setting]:
        return {"similarity": "maxsim", "storage": "float16"}

    def _best(self, texts: list[str], corpus: Corpus, k: int) -> list[Best]:
        ids = corpus.ids
        vectors = [on_grid(own) for own in self._encoded(texts, "query", query_names(texts))]
        found = [NOTHING for _ in texts]
        for start, block in self._blocks:
            ranks = ids.ranks[start : start + len(block["lengths"])]
            floors = [float(best.scores[-1]) if len(best.scores) == k else -np.inf for best in found]
            scored = best_of_block(
                vectors,
                block["vectors"],
                block["lengths"],
                ranks,
                floors=floors,
                k=k,
                longest=_LONGEST,
                device=self._model.device,
            )
            for i, best in enumerate(scored):
                found[i] = merged(found[i], Best(best.positions + start, best.scores), ids.ranks, k)
        return found

    def _block(self, documents: Sequence[Document]) -> Block:
        """`vectors` ((T, D) float16) of all documents' tokens, and how many each document has ((n,) `lengths`)."""
        texts = [document.contents for document in documents]
        names = {document.contents: f"document {document.id!r}" for document in reversed(documents)}
        distinct = list(dict.fromkeys(texts))
        encoded = dict(zip(distinct, self._encoded(distinct, "document", [names[t] for t in distinct]), strict=True))
        return {
            "lengths": np.array([len(encoded[text]) for text in texts], dtype=np.int32),
            "vectors": on_grid(np.concatenate([encoded[text] for text in texts])).astype(np.float16),
        }

    def _encoded(self, texts: list[str], role: Role, names: Sequence[str]) -> list[NDArray[np.float32]]:
        """(tokens, D) of each text."""
        model = self._model.model
        encode = model.encode_query if role == "query" else model.encode_document

        def work(batch: list[str]) -> list[NDArray[np.float32]]:
            found: list[Any] = encode(batch, prompt=self._prompts[role], batch_size=len(batch), show_progress_bar=False)
            return [vectors.float().cpu().numpy() for vectors in found]

        encoded = in_token_batches(texts, self._model.lengths(texts), self._budget, work, who=self._model.name)
        for name, vectors in zip(names, encoded, strict=True):
            lengths = np.sqrt(np.sum(np.square(vectors, dtype=np.float64), axis=1))
            wrong = np.flatnonzero(~(lengths <= _LONGEST))
            if len(wrong):
                first = int(wrong[0])
                raise ModelError(
                    f"{self._model.name} gave token {first} of {name} a vector of length {lengths[first]}.",
                    hint="The model cannot encode this text, or not in its number type.",
                )
        return encoded
