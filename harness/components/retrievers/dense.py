"""Dense retrieval: a corpus is encoded once, and searched by cosine similarity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from ....errors import ModelError, UsageError, unknown_name
from ....loaders.corpus import Corpus, as_corpus
from ....loaders.records import Document
from ...progress import current_tick, is_followed, within_call
from ...protocols import ComponentSpec, Hit, Setting, TextEncoder
from .. import checked
from ..encoders.cache import EmbeddingCache, text_key
from ..encoders.sentence_transformers import SentenceTransformerEncoder
from .corpus_vectors import CorpusVectors, Progress
from .faiss_index import DEFAULT_EFFORT, DEFAULT_INDEX, FaissIndex
from .ranking import checked_k
from .stored_vectors import Storage, VectorBlock, check_storage
from .vector_index import VectorIndex
from .vector_products import best_products

Search = Literal["exact", "faiss"]

_CHUNK_TEXTS = 4096


class _Index(Protocol):
    def search(self, vectors: NDArray[np.float32], *, k: int) -> list[list[Hit]]: ...


class DenseRetriever:
    """Dense retrieval with a `TextEncoder` (or an `AudioTextEncoder`, see `search_vectors`).

    Give either `encoder`, or `model` with options of `SentenceTransformerEncoder`.

    With a `cache`, a corpus is encoded once per encoder, by all processes that call `prepare`, and read from disk where
    it is searched; an interrupted run goes on where it was. Without one it is held in memory. `storage` is the number
    type that document vectors are kept in.

    `search` "exact" compares every query with every document. "faiss" is approximate: `faiss_index` is the kind of
    index as `faiss.index_factory` names it, `faiss_effort` what a search may cost (`nprobe` or `efSearch`).

    `search_device` is where products are computed (`cpu`, `cuda:0`); None is the encoder's `device`, else the best.
    """

    backend: ClassVar[str] = "dense"

    def __init__(
        self,
        model: str | Path = "",
        *,
        encoder: TextEncoder | None = None,
        cache: EmbeddingCache | None = None,
        storage: Storage = "float32",
        search: Search = "exact",
        faiss_index: str = DEFAULT_INDEX,
        faiss_effort: int = DEFAULT_EFFORT,
        search_device: str | None = None,
        **options: Any,
    ) -> None:
        if encoder is not None and (str(model) or options):
            raise UsageError("a dense retriever takes an encoder or a model with options, not both.")
        check_storage(storage)
        if search not in get_args(Search):
            raise unknown_name("kind of search", search, get_args(Search))
        if search == "exact" and (faiss_index, faiss_effort) != (DEFAULT_INDEX, DEFAULT_EFFORT):
            raise UsageError("faiss_index and faiss_effort need the search 'faiss'.", hint="Add search: faiss.")
        if faiss_effort < 1:
            raise UsageError(f"faiss_effort must be at least 1, not {faiss_effort}.")
        if encoder is None:
            try:
                encoder = self._encoder_of(model, **options)
            except TypeError as error:
                raise UsageError(f"unknown option for the dense retriever: {error}.") from error
        self._encoder: TextEncoder = encoder
        self._cache = cache
        self._storage: Storage = storage
        self._search: Search = search
        self._faiss = faiss_index, faiss_effort
        device = options.get("device")
        self._search_device: str | None = search_device or (None if device == "auto" else device)
        self._index: _Index | None = None
        self._width = 0
        self._reuse = True

    @staticmethod
    def _encoder_of(model: str | Path, **options: Any) -> TextEncoder:
        return SentenceTransformerEncoder(model, **options)

    @property
    def encoder(self) -> TextEncoder:
        return self._encoder

    @property
    def spec(self) -> ComponentSpec:
        inner = self._encoder.spec
        settings: dict[str, Setting] = {**inner.settings, "encoder_backend": inner.backend, "similarity": "cosine"}
        if self._storage != "float32":
            settings["storage"] = self._storage
        if self._search == "faiss":
            settings |= {"search": "faiss", "faiss_index": self._faiss[0], "faiss_effort": self._faiss[1]}
        return ComponentSpec("retriever", self.backend, inner.name, inner.model, inner.revision, settings)

    def supports(self, language: str) -> bool:
        return self._encoder.supports(language)

    def prepare(
        self,
        documents: Sequence[Document],
        *,
        language: str,
        rank: int = 0,
        size: int = 1,
        progress: Progress | None = None,
    ) -> None:
        corpus = self._checked(documents, language)
        with _Bar(len(range(rank, len(corpus), size)), progress, shown=rank == 0) as bar:
            self._vectors.prepare(corpus, rank=rank, size=size, progress=bar)

    def prepared(self, documents: Sequence[Document], *, language: str) -> int:
        """How many of the documents have vectors in the cache. Raises as `prepare`."""
        return self._vectors.prepared(self._checked(documents, language))

    def index(self, documents: Sequence[Document], *, language: str) -> None:
        self._index = None
        corpus = self._checked(documents, language)
        corpus.check_ids()
        with _Bar(len(corpus), None, shown=True) as bar:
            blocks = self._vectors.blocks(corpus, progress=bar)
        self._index = self._made(corpus, blocks)

    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        checked_k(k)
        index = self._ready()
        hits: list[list[Hit]] = [[] for _ in queries]
        asked = [i for i, query in enumerate(queries) if query.strip()]
        if asked:
            vectors = self._query_vectors([queries[i] for i in asked])
            self._check_width(vectors, "encode")
            found = index.search(vectors, k=k)
            for i, ranking in zip(asked, found, strict=True):
                hits[i] = ranking
        return hits

    def search_vectors(self, vectors: NDArray[np.float32], *, k: int) -> list[list[Hit]]:
        """As `search`, with query vectors ((Q, D) of unit length) that come from elsewhere, for example from audio.

        A row of NaN (a clip that could not be encoded) has no hits. Raises `ModelError` for other rows not of unit
        length.
        """
        checked_k(k)
        index = self._ready()
        given = checked.unit_vectors(
            self._encoder.spec.name, vectors, len(vectors), lambda i: f"query {i}", nan_rows=True
        )
        there = np.flatnonzero(~np.isnan(given).all(axis=1))
        asked = given[there]
        self._check_width(asked, "encode_audio")
        hits: list[list[Hit]] = [[] for _ in given]
        for i, ranking in zip(there, index.search(asked, k=k), strict=True):
            hits[i] = ranking
        return hits

    def _check_width(self, vectors: NDArray[np.float32], method: str) -> None:
        if vectors.shape[1] != self._width:
            raise ModelError(
                f"{type(self._encoder).__name__}.{method} ({self._encoder.spec.name}) gave queries vectors of "
                f"{vectors.shape[1]} dimensions, and documents vectors of {self._width}.",
                hint="One search compares vectors of one space"
                + (f"; if it was mended since, delete {self._vectors.folder}." if self._vectors.folder else "."),
            )

    @contextmanager
    def encoding_anew(self) -> Iterator[None]:
        """Within it, queries are encoded also if the cache knows them: for timing."""
        self._reuse, before = False, self._reuse
        try:
            yield
        finally:
            self._reuse = before

    @property
    def _vectors(self) -> CorpusVectors:
        root = None if self._cache is None else self._cache.root
        return CorpusVectors(self._encoder, root=root, storage=self._storage)

    def _made(self, corpus: Corpus, blocks: Sequence[VectorBlock]) -> _Index:
        self._width = blocks[0].shape[1]
        if self._search == "faiss":
            kind, effort = self._faiss
            return FaissIndex(corpus.ids, blocks, kind=kind, effort=effort, folder=self._vectors.folder)
        return VectorIndex(corpus.ids, blocks, products=best_products(self._search_device))

    def _ready(self) -> _Index:
        if self._index is None:
            raise UsageError(
                "the retriever was asked to search before a corpus was indexed.", hint="Call index() first."
            )
        return self._index

    def _checked(self, documents: Sequence[Document], language: str) -> Corpus:
        corpus = as_corpus(documents)
        if not self.supports(language):
            raise UsageError(
                f"{self._encoder.spec.name} was not made for language {language!r}.",
                hint="Use a multilingual encoder, for example dense:multilingual-e5-small.",
            )
        if not corpus:
            corpus.check_ids()
        return corpus

    def _query_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(len(texts), D) float32, from the cache where it knows the text."""
        keys = [text_key(text) for text in texts]
        distinct = dict(zip(keys, texts, strict=True))
        row = {key: i for i, key in enumerate(distinct)}
        matrix: NDArray[np.float32] | None = None
        for chunk, vectors in self._vectors_of(distinct):
            if matrix is None:
                matrix = np.empty((len(distinct), vectors.shape[1]), dtype=np.float32)
            matrix[[row[key] for key in chunk]] = vectors
        if matrix is None:
            raise ModelError(f"{self._encoder.spec.name} gave no vectors for {len(texts)} texts.")
        return matrix if len(distinct) == len(texts) else matrix[[row[key] for key in keys]]

    def _vectors_of(self, distinct: Mapping[str, str]) -> Iterator[tuple[Sequence[str], NDArray[np.float32]]]:
        """Chunks of keys with their vectors: first what the cache knows, then what is encoded now."""
        space = f"{self._encoder.spec.fingerprint}-query"
        missing = list(distinct)
        if self._cache is not None and self._reuse:
            asked, missing = missing, []
            for start in range(0, len(asked), _CHUNK_TEXTS):
                chunk = asked[start : start + _CHUNK_TEXTS]
                known = self._cache.get_many(space, chunk)
                missing += [key for key in chunk if key not in known]
                if known:
                    yield list(known), np.stack(list(known.values()))
        # Texts of similar length share a chunk, so that chunking costs no padding.
        missing.sort(key=lambda key: (len(distinct[key]), key))
        for start in range(0, len(missing), _CHUNK_TEXTS):
            chunk = missing[start : start + _CHUNK_TEXTS]
            vectors = checked.encode(self._encoder, [distinct[key] for key in chunk], role="query")
            self._check_width(vectors, "encode")
            if self._cache is not None and self._reuse:
                self._cache.put_many(space, chunk, vectors)
            yield chunk, vectors


class ServerDenseRetriever(DenseRetriever):
    """`DenseRetriever` with a `ServerEncoder`, whose options it takes too."""

    backend = "dense-server"

    @staticmethod
    def _encoder_of(model: str | Path, **options: Any) -> TextEncoder:
        from ..encoders.server import ServerEncoder

        return ServerEncoder(str(model), **options)


class _Bar:
    def __init__(self, documents: int, progress: Progress | None, *, shown: bool) -> None:
        from tqdm import tqdm

        self._tell = progress
        # Where the harness shows the documents, the batches of texts within them are not told.
        self._tick, self._texts = current_tick(), within_call(0, lambda _: None)
        off = progress is not None or not shown or is_followed()
        self._bar = tqdm(
            total=documents, desc="encoding documents", unit="doc", disable=off or None, delay=2, leave=False
        )

    def __call__(self, documents: int) -> None:
        if self._tell is not None:
            self._tell(documents)
        self._tick(documents, 0)
        self._bar.update(documents)

    def __enter__(self) -> _Bar:
        self._texts.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._texts.__exit__(*error)
        self._bar.close()
