"""Embeddings kept between runs, so that a corpus is encoded once for all conditions and all transcribers."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ....errors import IntegrityError, UsageError
from ..retrievers.stored_vectors import new_file

_DIGEST_BYTES = 32


class EmbeddingCache(Protocol):
    """Vectors by text, and a folder for those of whole corpora (`corpus_vectors`).

    `space` names what made the vectors and for which role (letters, digits, `-`); `keys` are from `text_key`.
    """

    @property
    def root(self) -> Path: ...

    def get_many(self, space: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors, (D,) float32 each, of those `keys` that are known."""
        ...

    def put_many(self, space: str, keys: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Keep `vectors` ((len(keys), D) float32), one per key."""
        ...


def text_key(text: str) -> str:
    """The sha256 of a text in hexadecimal.

    >>> text_key("")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class DirectoryEmbeddingCache:
    """An `EmbeddingCache` in a folder: `<root>/<space>/<hash of the keys>.npz`, one shard per `put_many`.

    Shards are renamed into place, so processes may share the folder. Only keys stay in memory.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self._places: dict[str, dict[str, tuple[str, int]]] = {}
        self._shards: dict[str, set[str]] = {}

    def get_many(self, space: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        folder = self._folder(space)
        places = self._read_keys(space, folder)
        wanted: dict[str, list[tuple[str, int]]] = {}
        for key in keys:
            if (place := places.get(key)) is not None:
                wanted.setdefault(place[0], []).append((key, place[1]))
        found: dict[str, NDArray[np.float32]] = {}
        for shard, rows in wanted.items():
            vectors = _read(folder / shard, "vectors")
            picked = np.ascontiguousarray(vectors[[row for _, row in rows]], dtype=np.float32)
            found.update(zip((key for key, _ in rows), picked, strict=True))
        return found

    def put_many(self, space: str, keys: Sequence[str], vectors: NDArray[np.float32]) -> None:
        if vectors.ndim != 2 or len(vectors) != len(keys):
            raise UsageError(f"{len(keys)} keys came with vectors of shape {vectors.shape}.")
        if not keys:
            return
        folder = self._folder(space)
        digests = np.frombuffer(bytes.fromhex("".join(keys)), dtype=np.uint8).reshape(len(keys), _DIGEST_BYTES)
        target = folder / f"{hashlib.sha256(digests.tobytes()).hexdigest()[:32]}.npz"
        with new_file(target, what="embeddings") as stream:
            np.savez(stream, keys=digests, vectors=np.ascontiguousarray(vectors, dtype=np.float32))

    def _folder(self, space: str) -> Path:
        if not space or not space.replace("-", "").isalnum():
            raise UsageError(f"{space!r} cannot name a space of embeddings: only letters, digits and '-' can.")
        return self.root / space

    def _read_keys(self, space: str, folder: Path) -> dict[str, tuple[str, int]]:
        """Where every key of `space` lies; shards that appeared since the last call are read in."""
        places = self._places.setdefault(space, {})
        known = self._shards.setdefault(space, set())
        for file in sorted(folder.glob("[!.]*.npz")):
            if file.name not in known:
                for row, digest in enumerate(_read(file, "keys")):
                    places.setdefault(digest.tobytes().hex(), (file.name, row))
                known.add(file.name)
        return places


def _read(file: Path, member: str) -> NDArray[np.generic]:
    try:
        # Opened here, because numpy leaves a file open that turns out not to be a whole zip.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            array: NDArray[np.generic] = stored[member]
        expected = np.uint8 if member == "keys" else np.float32
        if array.ndim != 2 or array.dtype != expected:
            raise ValueError(f"{member} are {array.dtype} of shape {array.shape}")
        return array
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise IntegrityError(
            f"the stored embeddings {file} cannot be read ({type(error).__name__}: {error}).",
            hint="Delete that file; its texts will be encoded again.",
        ) from error
