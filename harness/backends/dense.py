"""Dense retrieval: exact search over unit vectors by cosine similarity.

A float32 matrix product is not the same to the last bit in every block size and with every number of threads. It is
therefore used only to choose candidates: all documents within twice its rounding bound of the k-th score. Their scores
are then computed again in float64, row by row, so that the ranking depends on the vectors alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError, ModelError, UsageError
from ...loaders.records import Document
from ..protocols import ComponentSpec, Hit, TextEncoder
from .embedding_cache import EmbeddingCache, text_key
from .encoders import Role, SentenceTransformerEncoder
from .ranking import checked_ids, checked_k, id_ranks, top_hits

_CHUNK_TEXTS = 4096
_BLOCK_SCORES = 1 << 25
_UNIT_ROUNDOFF = 2.0**-24
_NORM_TOLERANCE = 1e-3


class DenseRetriever:
    """Dense retrieval with a `TextEncoder`.

    Give either `encoder`, or `model` with options of `SentenceTransformerEncoder` (`query_prompt`, `document_prompt`,
    `revision`, `device`, `dtype`, `token_budget`, `max_tokens`, `trust_remote_code`). With a `cache`, a text is encoded
    once per encoder and role, in chunks that are stored as they are done, so an interrupted run goes on where it was.
    """

    def __init__(
        self,
        model: str | Path = "",
        *,
        encoder: TextEncoder | None = None,
        cache: EmbeddingCache | None = None,
        **options: Any,
    ) -> None:
        if encoder is not None and (str(model) or options):
            raise UsageError("a dense retriever takes an encoder or a model with options, not both.")
        if encoder is None:
            try:
                encoder = SentenceTransformerEncoder(model, **options)
            except TypeError as error:
                raise UsageError(f"unknown option for the dense retriever: {error}.") from error
        self._encoder: TextEncoder = encoder
        self._cache = cache
        self._ids: list[str] = []
        self._ranks = np.zeros(0, dtype=np.int64)
        self._vectors = np.zeros((0, 0), dtype=np.float32)

    @property
    def spec(self) -> ComponentSpec:
        """What decides the ranking: the encoder's own spec, as a retriever."""
        inner = self._encoder.spec
        settings = {**inner.settings, "encoder_backend": inner.backend, "similarity": "cosine"}
        return ComponentSpec("retriever", "dense", inner.name, inner.model, inner.revision, settings)

    def supports(self, language: str) -> bool:
        """Whether the encoder was made for this language."""
        return self._encoder.supports(language)

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        """Replace the corpus; title and text are encoded together.

        Raises `DataError` for an empty corpus, a duplicate id or documents that are all empty, `UsageError` for a
        language that the encoder was not made for.
        """
        self._ids = []
        ids = checked_ids(documents)
        if not self.supports(language):
            raise UsageError(
                f"{self._encoder.spec.name} was not made for language {language!r}.",
                hint="Use a multilingual encoder, for example dense:multilingual-e5-small.",
            )
        contents = [document.contents for document in documents]
        if not any(text.strip() for text in contents):
            raise DataError(
                f"all {len(ids)} documents are empty (the first is {ids[0]!r}).", hint="Check the text of the corpus."
            )
        self._vectors = self._embed(contents, "document")
        self._ranks = id_ranks(ids)
        self._ids = ids

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        """At most `k` hits per query, best first, ties by document id descending; none for an empty query.

        Scores are cosines in [-1, 1]. Raises `UsageError` before `index` or for `k` below 1.
        """
        checked_k(k)
        if not self._ids:
            raise UsageError(
                "the retriever was asked to search before a corpus was indexed.", hint="Call index() first."
            )
        hits: list[list[Hit]] = [[] for _ in queries]
        asked = [i for i, query in enumerate(queries) if query.strip()]
        vectors = self._embed([queries[i] for i in asked], "query")
        block = max(1, _BLOCK_SCORES // len(self._ids))
        for start in range(0, len(asked), block):
            part = vectors[start : start + block]
            for i, vector, rough in zip(asked[start : start + block], part, part @ self._vectors.T, strict=True):
                hits[i] = self._ranked(vector, rough, k)
        return hits

    def _ranked(self, query: NDArray[np.float32], rough: NDArray[np.float32], k: int) -> list[Hit]:
        candidates = _candidates(rough, k, width=len(query))
        # Not a matrix product: equal rows must give equal sums wherever they stand.
        scores = np.sum(self._vectors[candidates].astype(np.float64) * query.astype(np.float64), axis=1)
        return top_hits(candidates, scores, self._ids, self._ranks, k)

    def _embed(self, texts: Sequence[str], role: Role) -> NDArray[np.float32]:
        """(len(texts), D) float32, from the cache where it knows the text; (0, 0) for no texts."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        keys = [text_key(text) for text in texts]
        distinct = dict(zip(keys, texts, strict=True))
        row = {key: i for i, key in enumerate(distinct)}
        matrix: NDArray[np.float32] | None = None
        for chunk, vectors in self._vectors_of(distinct, role):
            if matrix is None:
                matrix = np.empty((len(distinct), vectors.shape[1]), dtype=np.float32)
            matrix[[row[key] for key in chunk]] = vectors
        if matrix is None:
            raise ModelError(f"{self._encoder.spec.name} gave no vectors for {len(texts)} texts.")
        return matrix if len(distinct) == len(texts) else matrix[[row[key] for key in keys]]

    def _vectors_of(
        self, distinct: Mapping[str, str], role: Role
    ) -> Iterator[tuple[Sequence[str], NDArray[np.float32]]]:
        """Chunks of keys with their vectors: first what the cache knows, then what is encoded now."""
        space = f"{self._encoder.spec.fingerprint}-{role}"
        missing = list(distinct)
        if self._cache is not None:
            asked, missing = missing, []
            for start in range(0, len(asked), _CHUNK_TEXTS):
                chunk = asked[start : start + _CHUNK_TEXTS]
                known = self._cache.get_many(space, chunk)
                missing += [key for key in chunk if key not in known]
                if known:
                    yield list(known), np.stack(list(known.values()))
        # Texts of similar length share a chunk, so that chunking costs no padding.
        missing.sort(key=lambda key: (len(distinct[key]), key))
        for start in _progress(range(0, len(missing), _CHUNK_TEXTS), role):
            chunk = missing[start : start + _CHUNK_TEXTS]
            vectors = self._encoder.encode([distinct[key] for key in chunk], role=role)
            self._check(vectors, [distinct[key] for key in chunk])
            if self._cache is not None:
                self._cache.put_many(space, chunk, vectors)
            yield chunk, vectors

    def _check(self, vectors: NDArray[np.float32], texts: Sequence[str]) -> None:
        name = self._encoder.spec.name
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ModelError(f"{name} gave vectors of shape {vectors.shape} for {len(texts)} texts.")
        norms = np.sqrt(np.sum(np.square(vectors, dtype=np.float64), axis=1))
        wrong = np.flatnonzero(~(np.abs(norms - 1.0) < _NORM_TOLERANCE))
        if len(wrong):
            first = int(wrong[0])
            raise ModelError(
                f"{name} gave a vector of length {norms[first]} instead of 1 for the text {texts[first][:80]!r}."
            )


def _candidates(rough: NDArray[np.float32], k: int, *, width: int) -> NDArray[np.int64]:
    """The positions that can be among the best `k` once `rough` ((N,) float32 scores) is computed exactly.

    A float32 inner product of two unit vectors of `width` dimensions is off by at most width * 2**-24, whatever the
    order of its sums (Higham 2002, section 3.1), a little more for rows whose length is rounded.
    """
    if len(rough) <= k:
        return np.arange(len(rough))
    bound = (width + 8) * _UNIT_ROUNDOFF * 1.01
    last = float(np.partition(rough, len(rough) - k)[len(rough) - k])
    return np.flatnonzero(rough >= last - 2 * bound)


def _progress(steps: range, role: Role) -> Any:
    """A bar on a terminal once it has taken two seconds, nothing elsewhere."""
    from tqdm import tqdm

    return tqdm(steps, desc=f"encoding ({role})", unit=f"x{_CHUNK_TEXTS}", disable=None, delay=2, leave=False)
