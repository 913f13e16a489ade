"""Parquet shards: written side by side to temporary names, and renamed when all are complete."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DataError
from .manifest import Shard, file_sha256

_TEMPORARY = re.compile(r"\.(?:.+\.parquet|.+\.json|README\.md|eval\.yaml)\.[a-z0-9_]{8}")

Finishing = Callable[[Sequence[Shard]], None]
"""Told of shards that are complete, just before they get their names."""


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """One parquet file to be; `condition` is "" for plain tables, `audio` are the columns that hold audio."""

    path: str
    rows: int
    schema: pa.Schema
    condition: str = ""
    audio: tuple[str, ...] = ("audio",)


def shard_name(index: int, count: int, split: str = "test") -> str:
    """The Hub's name of shard `index` of `count`.

    >>> shard_name(0, 3)
    'test-00000-of-00003.parquet'
    """
    return f"{split}-{index:05d}-of-{count:05d}.parquet"


def is_temporary(name: str) -> bool:
    """Whether a file has the name of one that is not complete: a build that was killed leaves some.

    >>> is_temporary(".test-00000-of-00001.parquet.ab_1cd2e"), is_temporary(".mine")
    (True, False)
    """
    return _TEMPORARY.fullmatch(name) is not None


def write_shards(
    folder: Path, plans: Sequence[ShardPlan], rows: Iterable[Sequence[pa.Table]], *, finishing: Finishing | None = None
) -> list[Shard]:
    """Write several shards at once: each of `rows` holds the next table of every plan. A failure leaves none.

    Raises `DataError` where `rows` do not hold what is planned.
    """
    with ExitStack() as stack:
        files = [_ShardFile(stack, folder / plan.path, plan) for plan in plans]
        for tables in rows:
            for file, table in zip(files, tables, strict=True):
                file.write(table)
        made = [file.close(plan.path) for file, plan in zip(files, plans, strict=True)]
        for shard, plan in zip(made, plans, strict=True):
            if shard.rows != plan.rows:
                raise DataError(
                    f"{plan.path} has {shard.rows:,} rows where {plan.rows:,} were planned.",
                    hint="Files of the source changed while they were read: run the same command again.",
                )
        if finishing:
            finishing(made)
        for file in files:
            file.finish()
    return made


def write_series(
    folder: Path,
    place: str,
    schema: pa.Schema,
    shards: Iterable[Iterable[pa.Table]],
    *,
    wanted: Collection[int] | None = None,
    finishing: Finishing | None = None,
) -> list[Shard]:
    """Write the shards of one table below `place` as they come, how many there are being known at the end only.

    Those that are not among `wanted` (None: all are) are read and not written; all are told to `finishing` and
    returned, with the hash "" and 0 bytes where they were not written. A failure leaves none.
    """
    with ExitStack() as stack:
        files: list[_ShardFile | None] = []
        rows: list[int] = []
        for index, tables in enumerate(shards):
            plan = ShardPlan(f"{place}/test-{index:05d}.parquet", 0, schema)
            file = _ShardFile(stack, folder / plan.path, plan) if wanted is None or index in wanted else None
            rows.append(0)
            for table in tables:
                rows[-1] += table.num_rows
                if file:
                    file.write(table)
            if file:
                file.close_writer()
            files.append(file)
        paths = [f"{place}/{shard_name(index, len(files))}" for index in range(len(files))]
        made = [
            file.close(path) if file else Shard(path=path, sha256="", bytes=0, rows=count)
            for file, path, count in zip(files, paths, rows, strict=True)
        ]
        if finishing:
            finishing(made)
        for file, path in zip(files, paths, strict=True):
            if file:
                file.finish(folder / path)
    return made


def replace_file(path: Path, content: bytes) -> None:
    with _Unfinished(path) as file:
        file.temporary.write_bytes(content)
        file.finish()


def _options(plan: ShardPlan) -> dict[str, Any]:
    options: dict[str, Any] = {"compression": "zstd", "write_page_index": True, "write_page_checksum": True}
    if plan.condition:
        # FLAC does not compress further.
        leaves = [name for name in plan.schema.names if name not in plan.audio]
        options["compression"] = dict.fromkeys(leaves, "zstd")
        for column in plan.audio:
            options["compression"] |= {f"{column}.bytes": "none", f"{column}.path": "zstd"}
        options["use_dictionary"] = [name for name in leaves if name not in {"id", "utterance_id", "text"}]
    return options


class _Unfinished:
    """An empty file under a temporary name beside its own, which it gets from `finish`; removed if it never does."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as made:
            self.temporary = Path(made.name)

    def __enter__(self) -> _Unfinished:
        return self

    def finish(self, path: Path | None = None) -> None:
        """Give the file its name, or that of `path` in the same folder."""
        self.temporary.chmod(0o644)
        self.temporary.replace(path or self._path)

    def __exit__(self, *_: object) -> None:
        self.temporary.unlink(missing_ok=True)


class _ShardFile:
    """A shard that is being written; it and its writer are closed, and removed unless finished, by `stack`."""

    def __init__(self, stack: ExitStack, path: Path, plan: ShardPlan) -> None:
        self._file = stack.enter_context(_Unfinished(path))
        # Given the path, arrow writes by itself: through a Python file every byte would be copied under the lock.
        self._writer = stack.enter_context(pq.ParquetWriter(self._file.temporary, plan.schema, **_options(plan)))
        self._rows = 0

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table)
        self._rows += table.num_rows

    def close_writer(self) -> None:
        self._writer.close()

    def close(self, path: str) -> Shard:
        """What was written, under the name that it will have."""
        self._writer.close()
        temporary = self._file.temporary
        return Shard(path=path, sha256=file_sha256(temporary), bytes=temporary.stat().st_size, rows=self._rows)

    def finish(self, path: Path | None = None) -> None:
        self._file.finish(path)
