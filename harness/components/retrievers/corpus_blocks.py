"""What a model made of a corpus, in fixed blocks of documents, each in a file (`.npz`) named after its texts.

As `corpus_vectors`, for encodings that are not one vector per document.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....errors import DataError, IntegrityError
from ....loaders.corpus import Corpus
from ....loaders.records import Document
from .stored_vectors import new_file

Block = Mapping[str, NDArray[Any]]
"""Arrays by name, of documents that stand one after the other."""

Encode = Callable[[Sequence[Document]], Block]

_HELD_BYTES = 1 << 30


class CorpusBlocks:
    """Encodes corpora with `encode`, `documents` at a time, into `folder`, or into memory if that is None."""

    def __init__(self, folder: Path | None, encode: Encode, *, documents: int) -> None:
        self._folder = folder
        self._encode = encode
        self._documents = documents
        self._places: list[tuple[int, str]] = []
        self._held: dict[int, Block] = {}
        self._held_bytes = 0

    def prepare(self, corpus: Corpus, *, rank: int = 0, size: int = 1, what: str = "encoding") -> None:
        """Encode the blocks that fall to process `rank` of `size` and are not there yet. Nothing without a folder."""
        if self._folder is None:
            return
        for _, documents in self._batches(corpus, rank, size, what):
            path = self._folder / f"{_sha256(documents)}.npz"
            if not path.exists():
                _write(path, self._encode(documents))

    def open(self, corpus: Corpus, *, what: str = "encoding") -> None:
        """Open the blocks of `corpus`, encoding what is missing. Raises `DataError` if all documents are empty."""
        self._places, self._held, self._held_bytes = [], {}, 0
        some_text = False
        for start, documents in self._batches(corpus, 0, 1, what):
            some_text = some_text or any(document.contents.strip() for document in documents)
            name = "" if self._folder is None else _sha256(documents)
            if self._folder is None:
                self._held[start] = self._encode(documents)
            elif not (path := self._folder / f"{name}.npz").exists():
                _write(path, self._encode(documents))
            self._places.append((start, name))
        if not some_text:
            raise DataError(
                f"all {len(corpus)} documents are empty (the first is {corpus.ids[0]!r}).",
                hint="Check the text of the corpus.",
            )

    def __iter__(self) -> Iterator[tuple[int, Block]]:
        """The position of each block's first document, and the block. Raises `IntegrityError` for a damaged file."""
        for start, name in self._places:
            block = self._held.get(start)
            if block is None and self._folder is not None:
                block = _read(self._folder / f"{name}.npz")
                size = sum(array.nbytes for array in block.values())
                if self._held_bytes + size <= _HELD_BYTES:
                    self._held[start] = block
                    self._held_bytes += size
            if block is not None:
                yield start, block

    def _batches(self, corpus: Corpus, rank: int, size: int, what: str) -> Iterator[tuple[int, list[Document]]]:
        from tqdm import tqdm

        starts = range(rank * self._documents, len(corpus), size * self._documents)
        # A bar on a terminal once it has taken two seconds, nothing elsewhere.
        for start in tqdm(starts, desc=what, unit=f"x{self._documents}", disable=None, delay=2, leave=False):
            yield start, corpus[start : start + self._documents]


def _sha256(documents: Sequence[Document]) -> str:
    sha256 = hashlib.sha256()
    for document in documents:
        encoded = document.contents.encode("utf-8", "surrogatepass")
        sha256.update(len(encoded).to_bytes(8, "big"))
        sha256.update(encoded)
    return sha256.hexdigest()


def _write(path: Path, block: Block) -> None:
    with new_file(path, what="what was made of the corpus") as stream:
        np.savez(stream, **block)  # type: ignore[arg-type]  # its other parameters are not arrays


def _read(path: Path) -> Block:
    try:
        # Opened here, because numpy leaves a file open that turns out not to be a whole zip.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise IntegrityError(
            f"the stored block {path} cannot be read ({type(error).__name__}: {error}).",
            hint="Delete that file; its texts will be encoded again.",
        ) from error
