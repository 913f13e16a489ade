"""Blocks of vectors as they are stored: three number types, and files that are whole or are named as damaged."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from ....errors import IntegrityError, StorageError, disk_hint, unknown_name

Storage = Literal["float32", "float16", "bfloat16"]
"""How vectors are stored. Half as many bytes cost some accuracy: scores are those of the vectors as stored."""

_NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "float32": np.dtype("<f4"),
    "float16": np.dtype("<f2"),
    # numpy has no bfloat16: its 16 bits, the upper half of a float32, are kept as an integer.
    "bfloat16": np.dtype("<u2"),
}
_DIGEST_BYTES = 32
_READ_BYTES = 1 << 20
_STALE_S = 3600.0


class VectorBlock(Protocol):
    """The vectors of documents that stand one after the other in a corpus."""

    @property
    def shape(self) -> tuple[int, int]: ...

    def read(self) -> NDArray[Any]:
        """(n, D) as stored: float32, float16, or bfloat16 as uint16. May be mapped into memory."""
        ...


@dataclass(frozen=True, slots=True)
class HeldBlock:
    array: NDArray[Any]

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape[0], self.array.shape[1]

    def read(self) -> NDArray[Any]:
        return self.array


@dataclass(frozen=True, slots=True)
class FileBlock:
    """A block in a file: numpy's format, and behind it the sha256 of all of it. Mapped anew for every `read`."""

    path: Path
    shape: tuple[int, int]

    def read(self) -> NDArray[Any]:
        """(n, D) as stored, mapped into memory. Raises `IntegrityError` if the file is gone."""
        try:
            array: NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise _damaged(self.path, error) from error
        return array


def check_storage(storage: str) -> None:
    """Raise `UnknownNameError` for a number type that is none of `Storage`."""
    if storage not in _NUMPY_TYPES:
        raise unknown_name("storage of vectors", storage, get_args(Storage))


def stored(vectors: NDArray[np.float32], storage: Storage) -> NDArray[Any]:
    """`vectors` ((n, D), finite, of unit length) as they are stored, each number rounded to the nearest.

    >>> stored(np.array([[0.1]], dtype=np.float32), "float16").dtype
    dtype('float16')
    """
    if storage == "bfloat16":
        bits = np.ascontiguousarray(vectors, dtype="<f4").view("<u4")
        # Half way, the even one is nearest.
        bits = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
        return np.asarray(bits >> np.uint32(16), dtype="<u2")
    return np.ascontiguousarray(vectors, dtype=_NUMPY_TYPES[storage])


def restored(array: NDArray[Any]) -> NDArray[np.float32]:
    """Stored vectors as float32, without any rounding; float32 itself is not copied.

    >>> ones = np.ones((1, 2), dtype=np.float32)
    >>> restored(stored(ones, "bfloat16")).tolist()
    [[1.0, 1.0]]
    """
    if array.dtype == np.uint16:
        return (array.astype("<u4") << np.uint32(16)).view(np.float32)
    return array.astype(np.float32, copy=False)


def write_block(path: Path, array: NDArray[Any]) -> None:
    """Write a block under a temporary name and rename it. Raises `StorageError` if the disk refuses."""
    with new_file(path, what="embeddings") as stream:
        hashed = _Hashing(stream)
        np.lib.format.write_array_header_1_0(hashed, np.lib.format.header_data_from_array_1_0(array))
        hashed.write(np.ascontiguousarray(array).data.cast("B"))
        stream.write(hashed.sha256.digest())


class _Hashing:
    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.sha256 = hashlib.sha256()

    def write(self, content: Any) -> int:
        self.sha256.update(content)
        return int(self._stream.write(content))


def open_block(path: Path, documents: int, storage: Storage) -> FileBlock:
    """The block in a file, once its checksum was found right. Raises `IntegrityError` that names a damaged file."""
    try:
        size = path.stat().st_size - _DIGEST_BYTES
        sha256 = hashlib.sha256()
        with path.open("rb") as stream:
            left = size
            while left > 0 and (piece := stream.read(min(left, _READ_BYTES))):
                sha256.update(piece)
                left -= len(piece)
            if left or stream.read() != sha256.digest():
                raise ValueError("its checksum is wrong")
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.ndim != 2 or array.dtype != _NUMPY_TYPES[storage] or len(array) != documents:
            raise ValueError(f"it holds {array.dtype} of shape {array.shape} for {documents} documents")
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(path, error) from error
    return FileBlock(path, (documents, int(array.shape[1])))


def _damaged(path: Path, error: Exception) -> IntegrityError:
    return IntegrityError(
        f"the stored embeddings {path} cannot be read ({type(error).__name__}: {error}).",
        hint="Delete that file; its texts will be encoded again.",
    )


@contextlib.contextmanager
def new_file(path: Path, *, what: str) -> Iterator[BinaryIO]:
    """A stream whose content is at `path`, whole, if the block ends without an error; `what` is for errors."""
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_stale(path.parent)
        try:
            with temporary.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"{what} cannot be written to {path.parent}: {error.strerror or error}.",
            hint=disk_hint(error, path.parent, "choose another folder: what is already in it will be used again"),
        ) from error


def remove_stale(folder: Path) -> None:
    for leftover in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _STALE_S:
                leftover.unlink()
