"""Approximate search with faiss, which chooses candidates; scores are computed again from the stored vectors.

An index is not the same twice, so it is built once, by one process, and kept beside the vectors.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import DataError, StorageError, UsageError, missing_extra
from ....loaders.document_ids import DocumentIds
from ...protocols import Hit
from .ranking import checked_k
from .stored_vectors import FileBlock, VectorBlock, restored
from .vector_index import check_queries, hits_of, rescored

DEFAULT_INDEX = "HNSW32"
DEFAULT_EFFORT = 128
_MORE_CANDIDATES = 2
_TRAINING_VECTORS = 1 << 18
_BATCH_QUERIES = 4096


class FaissIndex:
    """Approximate search in `blocks` of unit vectors, which are the documents `ids` in order.

    `kind` is what `faiss.index_factory` takes ("HNSW32", "IVF4096,Flat", "IVF4096,SQfp16", "IVF4096,PQ64"), `effort` is
    `efSearch` of a graph, `nprobe` of an inverted file. With `folder` the index is kept there. Raises `UsageError` for
    a kind that faiss does not know, `StorageError` if the disk refuses.
    """

    def __init__(
        self,
        ids: DocumentIds,
        blocks: Sequence[VectorBlock],
        *,
        kind: str = DEFAULT_INDEX,
        effort: int = DEFAULT_EFFORT,
        folder: Path | None = None,
    ) -> None:
        if sum(block.shape[0] for block in blocks) != len(ids) or not len(ids):
            raise DataError(f"{len(ids)} documents need one vector each.", hint="Encode the corpus again.")
        self._ids = ids
        self._blocks = list(blocks)
        self._width = self._blocks[0].shape[1]
        self._kind = kind
        self._index = self._built() if folder is None else self._kept(folder)
        _set_effort(self._index, effort)

    def __len__(self) -> int:
        return len(self._ids)

    def search(self, vectors: NDArray[np.float32], *, k: int) -> list[list[Hit]]:
        checked_k(k)
        check_queries(vectors, self._width)
        hits: list[list[Hit]] = []
        for start in range(0, len(vectors), _BATCH_QUERIES):
            queries = np.ascontiguousarray(vectors[start : start + _BATCH_QUERIES], dtype=np.float32)
            _, positions = self._index.search(queries, min(_MORE_CANDIDATES * k, len(self)))
            rows, columns = np.nonzero(positions >= 0)
            found = rescored(queries, rows, positions[rows, columns], self._blocks, ranks=self._ids.ranks, k=k)
            hits += hits_of(found, self._ids)
        return hits

    def _kept(self, folder: Path) -> Any:
        faiss = _faiss()
        from filelock import FileLock

        sha256 = hashlib.sha256(self._kind.encode())
        for block in self._blocks:
            sha256.update(block.path.name.encode() if isinstance(block, FileBlock) else block.read().tobytes())
        path = folder / f"{sha256.hexdigest()[:32]}.faiss"
        found = self._read(path)
        if found is not None:
            return found
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{path}.lock"):
                found = self._read(path)
                if found is not None:
                    return found
                index = self._built()
                temporary = path.with_name(f".{path.stem}.{os.getpid()}.{secrets.token_hex(4)}.part")
                try:
                    faiss.write_index(index, str(temporary))
                    temporary.replace(path)
                finally:
                    temporary.unlink(missing_ok=True)
        except (OSError, RuntimeError) as error:
            raise StorageError(
                f"the search index {path} cannot be written: {error}.", hint="Make room there, or leave the cache out."
            ) from error
        return index

    def _read(self, path: Path) -> Any:
        """The index in a file, None if it is not there or damaged: then it is built again."""
        with contextlib.suppress(RuntimeError):
            index = _faiss().read_index(str(path))
            if index.ntotal == len(self) and index.d == self._width:
                return index
        return None

    def _built(self) -> Any:
        faiss = _faiss()
        try:
            index = faiss.index_factory(self._width, self._kind, faiss.METRIC_INNER_PRODUCT)
        except RuntimeError as error:
            raise UsageError(
                f"faiss knows no index {self._kind!r} of {self._width} dimensions.",
                hint="For example HNSW32, or IVF4096,Flat.",
            ) from error
        if not index.is_trained:
            try:
                index.train(self._sample())
            except RuntimeError as error:
                raise UsageError(
                    f"faiss cannot train {self._kind!r} on {len(self)} documents: {str(error).splitlines()[-1]}.",
                    hint="Take fewer lists, for example IVF64,Flat.",
                ) from error
        for array in self._arrays():
            index.add(array)
        return index

    def _arrays(self) -> Iterator[NDArray[np.float32]]:
        for block in self._blocks:
            yield np.ascontiguousarray(restored(block.read()))

    def _sample(self) -> NDArray[np.float32]:
        """Vectors to train on, evenly spread over the corpus."""
        step = max(1, -(-len(self) // _TRAINING_VECTORS))
        return np.concatenate([array[::step] for array in self._arrays()])


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise missing_extra("faiss", "faiss") from error
    return faiss


def _set_effort(index: Any, effort: int) -> None:
    faiss = _faiss()
    # An index behind a transformation (OPQ, PCA) has its parameters further in.
    inner = faiss.downcast_index(index)
    while isinstance(inner, faiss.IndexPreTransform):
        inner = faiss.downcast_index(inner.index)
    if hasattr(inner, "nprobe"):
        inner.nprobe = effort
    elif hasattr(inner, "hnsw"):
        inner.hnsw.efSearch = effort
