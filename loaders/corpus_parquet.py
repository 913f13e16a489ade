"""The corpus of a built data set: parquet, of which a row group is read when it is needed.

Documents in order (to encode, to index) come straight from the parquet files. Documents by position (to rerank) would
decompress a whole row group each; for a corpus that does not fit into the memory set aside for row groups, they are
therefore read from an uncompressed copy, mapped into memory, which is made once and kept below `squtr_home()`.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ..errors import DataError, StorageError, disk_hint
from .document_ids import DocumentIds
from .home import squtr_home
from .lru import LruCache
from .manifest import Shard
from .records import Document

HELD_BYTES = 1 << 27
"""The most that row groups take in memory, in bytes."""

_COLUMNS = ["id", "title", "text"]


class ParquetRows:
    """The rows of the parquet shards in `folder`. Raises `DataError` for a missing, damaged or shorter one."""

    def __init__(self, folder: Path, shards: Sequence[Shard]) -> None:
        self._folder = folder
        self._shards = list(shards)
        self._groups: LruCache[int, pa.Table] = LruCache(HELD_BYTES, _bytes)

    def __len__(self) -> int:
        return sum(shard.rows for shard in self._shards)

    @cached_property
    def _layout(self) -> tuple[list[tuple[Path, int, pq.FileMetaData]], list[int], int]:
        """Shard, number and metadata of every row group, the position that each begins at, and all bytes unpacked."""
        groups: list[tuple[Path, int, pq.FileMetaData]] = []
        starts: list[int] = [0]
        unpacked = 0
        for shard in self._shards:
            path = self._folder / shard.path
            with _readable(path):
                metadata = pq.read_metadata(path)
            if metadata.num_rows != shard.rows:
                raise DataError(
                    f"{path} has {metadata.num_rows} rows, the manifest says {shard.rows}.",
                    hint="Build the folder again.",
                )
            for number in range(metadata.num_row_groups):
                groups.append((path, number, metadata))
                starts.append(starts[-1] + metadata.row_group(number).num_rows)
                unpacked += metadata.row_group(number).total_byte_size
        return groups, starts, unpacked

    def ids(self) -> DocumentIds:
        chunks: list[pa.Array] = []
        for shard in self._shards:
            path = self._folder / shard.path
            with _readable(path), pq.ParquetFile(path) as file:
                chunks += file.read(columns=["id"]).column("id").cast(pa.large_binary()).chunks
        return DocumentIds(pa.chunked_array(chunks, pa.large_binary()))

    def read(self, start: int, stop: int) -> list[Document]:
        found: list[Document] = []
        _, starts, _ = self._layout
        while start < stop:
            number = bisect.bisect_right(starts, start) - 1
            last = min(stop, starts[number + 1])
            found += _documents(self._group(number).slice(start - starts[number], last - start))
            start = last
        return found

    def take(self, positions: NDArray[np.int64]) -> list[Document]:
        _, starts, unpacked = self._layout
        numbers = np.searchsorted(np.asarray(starts), positions, side="right") - 1
        copy = None if unpacked <= HELD_BYTES else self._copy
        found: list[Document | None] = [None] * len(positions)
        # A row group at a time, whatever the order asked for.
        for number in np.unique(numbers):
            places = np.flatnonzero(numbers == number)
            table = self._group(int(number)) if copy is None else copy.get_batch(int(number))
            rows = table.take(pa.array(positions[places] - starts[int(number)]))
            for place, document in zip(places, _documents(rows), strict=True):
                found[int(place)] = document
        return [document for document in found if document is not None]

    def _group(self, number: int) -> pa.Table:
        def read() -> pa.Table:
            path, group, metadata = self._layout[0][number]
            with _readable(path), pq.ParquetFile(path, metadata=metadata) as file:
                return file.read_row_group(group, columns=_COLUMNS)

        return self._groups.get(number, read)

    @cached_property
    def _copy(self) -> pa.ipc.RecordBatchFileReader:
        """The uncompressed copy: record batch i is row group i."""
        groups, _, _ = self._layout
        key = hashlib.sha256("".join(shard.sha256 for shard in self._shards).encode()).hexdigest()[:32]
        path = squtr_home() / "corpora" / f"{key}.arrow"
        with contextlib.suppress(OSError, pa.ArrowInvalid):
            # One that is damaged is made again.
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            if reader.num_record_batches == len(groups):
                return reader
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{key}.{os.getpid()}.{secrets.token_hex(4)}.part")
            try:
                with temporary.open("xb") as stream:
                    self._write_copy(stream)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
            return pa.ipc.open_file(pa.memory_map(str(path)))
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(
                f"the corpus cannot be unpacked into {path.parent}: {error.strerror or error}.",
                hint=disk_hint(error, path.parent, "set SQUTR_HOME to another folder"),
            ) from error

    def _write_copy(self, stream: object) -> None:
        schema = pa.schema([(name, pa.string()) for name in _COLUMNS])
        with pa.ipc.new_file(stream, schema) as writer:
            for path, group, metadata in self._layout[0]:
                with _readable(path), pq.ParquetFile(path, metadata=metadata) as file:
                    table = file.read_row_group(group, columns=_COLUMNS)
                (batch,) = table.cast(schema).combine_chunks().to_batches()
                writer.write_batch(batch)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self._folder, self._shards))


def _bytes(table: pa.Table) -> int:
    return int(table.nbytes)


def _documents(rows: pa.Table | pa.RecordBatch) -> list[Document]:
    columns = (rows.column(name).to_pylist() for name in _COLUMNS)
    return [Document(*row) for row in zip(*columns, strict=True)]


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read: {error}.", hint="Build the folder again.") from error
