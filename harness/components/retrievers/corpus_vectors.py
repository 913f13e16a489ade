"""The vectors of a corpus: encoded once, in fixed blocks of documents, by any number of processes.

A block of `BLOCK_DOCUMENTS` is encoded on its own and its file named after its texts, so a document's vector does not
depend on how many processes share the work or on where an earlier run was stopped.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ....errors import DataError, ModelError, StorageError
from ....loaders.corpus import Corpus
from ....loaders.records import Document
from ...protocols import TextEncoder
from .. import checked
from .stored_vectors import FileBlock, HeldBlock, Storage, VectorBlock, open_block, stored, write_block

BLOCK_DOCUMENTS = 4096
"""Documents in a block: what a killed run encodes again, and what processes take in turn."""

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    stop: int
    name: str


class CorpusVectors:
    """Encodes corpora into `<root>/<encoder fingerprint>-document-<storage>/<sha256 of the texts>.npy`.

    Without `root` they are held in memory. Equal texts of a block are encoded once.
    """

    def __init__(self, encoder: TextEncoder, *, root: Path | None = None, storage: Storage = "float32") -> None:
        self._encoder = encoder
        self._root = root
        self._storage: Storage = storage

    @property
    def folder(self) -> Path | None:
        if self._root is None:
            return None
        return self._root / f"{self._encoder.spec.fingerprint}-document-{self._storage}"

    def prepare(self, corpus: Corpus, *, rank: int = 0, size: int = 1, progress: Progress | None = None) -> None:
        folder = self.folder
        if folder is None:
            return
        room = _Room(folder, len(corpus))
        for place, texts in self._texts(corpus, rank, size):
            path = folder / f"{place.name}.npy"
            if not path.exists():
                array = self._encoded(corpus, place, texts)
                room.check(array, path)
                write_block(path, array)
            if progress is not None:
                progress(place.stop - place.start)

    def prepared(self, corpus: Corpus) -> int:
        """How many documents of the corpus lie in blocks that are there; 0 without a folder."""
        folder = self.folder
        if folder is None:
            return 0
        there = (place for place, _ in self._texts(corpus) if (folder / f"{place.name}.npy").exists())
        return sum(place.stop - place.start for place in there)

    def blocks(self, corpus: Corpus, *, progress: Progress | None = None) -> list[VectorBlock]:
        """All blocks in corpus order, encoding what is missing. Raises `DataError` if all documents are empty."""
        folder = self.folder
        if folder is None:
            _check_texts(corpus)
            held = [
                HeldBlock(self._encoded(corpus, place, texts))
                for place, texts in self._texts(corpus, progress=progress)
            ]
            return list(_checked_widths(held, self._encoder.spec.name))
        places: list[_Place] = []
        some_text = False
        for place, texts in self._texts(corpus):
            places.append(place)
            some_text = some_text or any(text.strip() for text in texts)
        if not some_text:
            raise _all_empty(corpus)
        if any(not (folder / f"{place.name}.npy").exists() for place in places):
            self.prepare(corpus, progress=progress)
        blocks: list[FileBlock] = [
            open_block(folder / f"{place.name}.npy", place.stop - place.start, self._storage) for place in places
        ]
        return list(_checked_widths(blocks, self._encoder.spec.name))

    def _texts(
        self, corpus: Corpus, rank: int = 0, size: int = 1, progress: Progress | None = None
    ) -> Iterator[tuple[_Place, list[str]]]:
        """The blocks of one process with their texts."""
        for start in range(rank * BLOCK_DOCUMENTS, len(corpus), size * BLOCK_DOCUMENTS):
            stop = min(start + BLOCK_DOCUMENTS, len(corpus))
            texts = [document.contents for document in corpus[start:stop]]
            name = "" if self._root is None else _texts_sha256(texts)
            yield _Place(start, stop, name), texts
            if progress is not None:
                progress(stop - start)

    def _encoded(self, corpus: Corpus, place: _Place, texts: Sequence[str]) -> NDArray[Any]:
        row = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        distinct = list(row)

        def name(i: int) -> str:
            document = corpus[place.start + texts.index(distinct[i])]
            return f"the document {document.id!r}, which reads {distinct[i][:80]!r}"

        vectors = checked.encode(self._encoder, distinct, role="document", name=name)
        if len(distinct) < len(texts):
            vectors = vectors[[row[text] for text in texts]]
        return stored(vectors, self._storage)


class _Room:
    def __init__(self, folder: Path, documents: int) -> None:
        self._folder = folder
        self._documents = documents
        self._checked = False

    def check(self, array: NDArray[Any], path: Path) -> None:
        if self._checked:
            return
        self._checked = True
        present = sum(1 for file in self._folder.glob("*.npy")) * BLOCK_DOCUMENTS if self._folder.is_dir() else 0
        needed = max(len(array), self._documents - present) * array.shape[1] * array.itemsize
        near = next(parent for parent in path.parents if parent.exists())
        free = shutil.disk_usage(near).free
        if needed > free:
            raise StorageError(
                f"the embeddings of {self._documents} documents take {needed / 1e9:.1f} GB, {near} has "
                f"{free / 1e9:.1f} GB left.",
                hint="Make room there, or store them as float16.",
            )


def _texts_sha256(texts: Sequence[str]) -> str:
    sha256 = hashlib.sha256()
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        sha256.update(len(encoded).to_bytes(8, "big"))
        sha256.update(encoded)
    return sha256.hexdigest()


def _check_texts(corpus: Sequence[Document]) -> None:
    if not any(document.contents.strip() for document in corpus):
        raise _all_empty(corpus)


def _all_empty(corpus: Sequence[Document]) -> DataError:
    return DataError(
        f"all {len(corpus)} documents are empty (the first is {corpus[0].id!r}).", hint="Check the text of the corpus."
    )


def _checked_widths(blocks: Sequence[VectorBlock], name: str) -> Sequence[VectorBlock]:
    widths = {block.shape[1] for block in blocks}
    if len(widths) > 1:
        raise ModelError(f"{name} gave vectors of {' and '.join(map(str, sorted(widths)))} dimensions for one corpus.")
    return blocks
