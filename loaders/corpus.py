"""A corpus as the harness reads it: documents by position, slice and id, millions of them in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Protocol, cast, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import DataError
from .document_ids import DocumentIds
from .records import Document

_STEP = 4096


class Rows(Protocol):
    def __len__(self) -> int: ...

    def ids(self) -> DocumentIds: ...

    def read(self, start: int, stop: int) -> list[Document]:
        """The documents at positions `start` to `stop` (not included)."""
        ...

    def take(self, positions: NDArray[np.int64]) -> list[Document]: ...


class Corpus(Sequence[Document]):
    """The documents of a subset in publication order, and a `DocumentLookup`. Equal documents make equal corpora.

    >>> corpus = as_corpus([Document("d1", "", "a"), Document("d2", "t", "b")])
    >>> len(corpus), corpus[1].contents, corpus.by_id(["d2", "d1"])[1].text, list(corpus.ids)
    (2, 't b', 'a', ['d1', 'd2'])
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._length = len(rows)

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Corpus:
        return cls(_ArrowRows(documents))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> Document: ...
    @overload
    def __getitem__(self, place: slice) -> list[Document]: ...
    def __getitem__(self, place: int | slice) -> Document | list[Document]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step == 1:
                return self._rows.read(start, max(start, stop))
            return self._rows.take(np.arange(start, stop, step, dtype=np.int64))
        position = range(len(self))[place]
        return self._rows.read(position, position + 1)[0]

    def __iter__(self) -> Iterator[Document]:
        for start in range(0, len(self), _STEP):
            yield from self._rows.read(start, min(start + _STEP, len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str | bytes) or not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<Corpus of {len(self)} documents>"

    @cached_property
    def ids(self) -> DocumentIds:
        return self._rows.ids()

    def check_ids(self) -> None:
        """Raise `DataError` for a corpus without documents or an id that occurs twice."""
        if not len(self):
            raise DataError("the corpus holds no documents.", hint="Check the corpus file of this subset.")
        if self.ids.repeated is not None:
            id_, first, second = self.ids.repeated
            raise DataError(
                f"document id {id_!r} occurs twice, at positions {first} and {second} of the corpus.",
                hint="Ids must be unique within a subset.",
            )

    def by_id(self, ids: Sequence[str]) -> list[Document]:
        """These documents, in order. Raises `DataError` that names an unknown id."""
        positions = self.ids.positions(ids)
        unknown = np.flatnonzero(positions < 0)
        if len(unknown):
            raise DataError(
                f"the document {ids[int(unknown[0])]!r} is not in the corpus.", hint="Check the ids of the ranking."
            )
        return self._rows.take(positions)

    @cached_property
    def digest(self) -> str:
        """The sha256, in hexadecimal, over ids and contents in order. Reads the whole corpus the first time."""
        sha256 = hashlib.sha256()
        for document in self:
            for text in (document.id, document.contents):
                encoded = text.encode("utf-8", "surrogatepass")
                sha256.update(len(encoded).to_bytes(8, "big"))
                sha256.update(encoded)
        return sha256.hexdigest()


def as_corpus(documents: Sequence[Document]) -> Corpus:
    """`documents` itself if it is a corpus, else a corpus around it: nothing is copied."""
    return documents if isinstance(documents, Corpus) else Corpus(_SequenceRows(documents))


class _SequenceRows:
    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents

    def __len__(self) -> int:
        return len(self._documents)

    def ids(self) -> DocumentIds:
        return DocumentIds.of(document.id for document in self._documents)

    def read(self, start: int, stop: int) -> list[Document]:
        return list(self._documents[start:stop])

    def take(self, positions: NDArray[np.int64]) -> list[Document]:
        return [self._documents[int(position)] for position in positions]


class _ArrowRows:
    """Arrow arrays of UTF-8 bytes in steps, each text held once."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._steps: list[tuple[pa.Array, pa.Array, pa.Array]] = []
        self._length = 0
        left = iter(documents)
        while step := list(islice(left, _STEP)):
            columns = ([d.id for d in step], [d.title for d in step], [d.text for d in step])
            self._steps.append(cast("tuple[pa.Array, pa.Array, pa.Array]", tuple(map(_encoded, columns))))
            self._length += len(step)

    def __len__(self) -> int:
        return self._length

    def ids(self) -> DocumentIds:
        return DocumentIds(pa.chunked_array([ids for ids, _, _ in self._steps], pa.large_binary()))

    def read(self, start: int, stop: int) -> list[Document]:
        found: list[Document] = []
        while start < stop:
            number, offset = divmod(start, _STEP)
            length = min(_STEP - offset, stop - start)
            found += _documents(*(column.slice(offset, length) for column in self._steps[number]))
            start += length
        return found

    def take(self, positions: NDArray[np.int64]) -> list[Document]:
        return [self.read(int(position), int(position) + 1)[0] for position in positions]


def _encoded(texts: Sequence[str]) -> pa.Array:
    return pa.array([text.encode("utf-8", "surrogatepass") for text in texts], pa.large_binary())


def _documents(ids: pa.Array, titles: pa.Array, texts: pa.Array) -> list[Document]:
    rows = zip(ids.to_pylist(), titles.to_pylist(), texts.to_pylist(), strict=True)
    return [Document(*(value.decode("utf-8", "surrogatepass") for value in row)) for row in rows]
