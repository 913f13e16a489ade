"""The ids of a corpus, held compactly: millions of strings as one Arrow array instead of as many Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_STEP = 1 << 16


class DocumentIds(Sequence[str]):
    """Document ids in corpus order.

    Held as UTF-8 bytes, whose order is that of code points. An id may hold any code point, lone surrogates included.

    >>> ids = DocumentIds.of(["b", "a", "c"])
    >>> ids[0], ids.ranks.tolist(), ids.positions(["c", "x"]).tolist()
    ('b', [1, 0, 2], [2, -1])
    """

    def __init__(self, encoded: pa.Array | pa.ChunkedArray) -> None:
        """`encoded` holds the ids as Arrow strings or as UTF-8 bytes, without nulls."""
        self._encoded = _joined(encoded)

    @classmethod
    def of(cls, ids: Iterable[str]) -> DocumentIds:
        chunks: list[pa.Array] = []
        step: list[bytes] = []
        for id_ in ids:
            step.append(id_.encode("utf-8", "surrogatepass"))
            if len(step) == _STEP:
                chunks.append(pa.array(step, pa.large_binary()))
                step = []
        chunks.append(pa.array(step, pa.large_binary()))
        return cls(pa.chunked_array(chunks))

    def __len__(self) -> int:
        return len(self._encoded)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step == 1:
                return _decoded(self._encoded[start : max(start, stop)])
            return self.take(np.arange(start, stop, step, dtype=np.int64))
        return _decoded(self._encoded[range(len(self))[place] :][:1])[0]

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _STEP):
            yield from _decoded(self._encoded[start : start + _STEP])

    def take(self, positions: NDArray[np.int64]) -> list[str]:
        """The ids at `positions` ((n,), each in [0, len))."""
        return _decoded(self._encoded.take(pa.array(positions)))

    @cached_property
    def _order(self) -> NDArray[np.int64]:
        """Positions in the order of ids; equal ids in corpus order."""
        order: NDArray[np.int64] = pc.sort_indices(self._encoded).to_numpy(zero_copy_only=False).astype(np.int64)
        return order

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """(N,) the place of each id among all ids sorted by code points."""
        ranks = np.empty(len(self), dtype=np.int64)
        ranks[self._order] = np.arange(len(self))
        return ranks

    @cached_property
    def repeated(self) -> tuple[str, int, int] | None:
        """The first id that occurs a second time, with its first two positions; None if all differ."""
        order = self._order
        first: tuple[str, int, int] | None = None
        for start in range(0, len(self) - 1, _STEP):
            # One more than a step, so that neighbors across steps meet.
            part = order[start : start + _STEP + 1]
            ids = self._encoded.take(pa.array(part))
            same = pc.equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
            for at in np.flatnonzero(same):
                one, two = int(part[at]), int(part[at + 1])
                if first is None or two < first[2]:
                    first = self[two], one, two
        return first

    @cached_property
    def _by_hash(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Hashes of the ids in ascending order, and the positions that they belong to."""
        hashes = np.fromiter((hash(id_) for id_ in self), dtype=np.int64, count=len(self))
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order

    def positions(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """(len(ids),) where each id stands, the first place if it occurs twice; -1 for an unknown one."""
        hashes, order = self._by_hash
        wanted = np.fromiter((hash(id_) for id_ in ids), dtype=np.int64, count=len(ids))
        lows = np.searchsorted(hashes, wanted)
        found = np.full(len(ids), -1, dtype=np.int64)
        for i, low in enumerate(lows):
            # Two ids may share a hash by chance: the id itself decides.
            at = int(low)
            while at < len(hashes) and hashes[at] == wanted[i]:
                if self[int(order[at])] == ids[i]:
                    found[i] = order[at]
                    break
                at += 1
        return found

    def unknown(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """(U,) the places in `ids` of those that are not here, ascending.

        By their hashes of 64 bits alone: millions are looked up, and an unknown id passes once in 10^12 of them.
        """
        hashes, _ = self._by_hash
        wanted = np.fromiter((hash(id_) for id_ in ids), dtype=np.int64, count=len(ids))
        places = np.searchsorted(hashes, wanted)
        known = np.zeros(len(ids), dtype=bool)
        inside = places < len(hashes)
        known[inside] = hashes[places[inside]] == wanted[inside]
        return np.flatnonzero(~known)

    def __reduce__(self) -> tuple[object, ...]:
        # Hashes of strings differ between processes, so what was derived from them does not travel.
        return (type(self), (self._encoded,))


def _joined(encoded: pa.Array | pa.ChunkedArray) -> pa.LargeBinaryArray:
    array = encoded.cast(pa.large_binary())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _decoded(array: pa.Array) -> list[str]:
    return [id_.decode("utf-8", "surrogatepass") for id_ in array.to_pylist()]
