"""Parquet shards: written side by side to temporary names, and renamed when all are complete."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


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


def is_finished(path: Path, rows: int) -> bool:
    """Whether an earlier build completed this file: files get their name only when complete."""
    if not path.exists():
        return False
    try:
        return bool(pq.read_metadata(path).num_rows == rows)
    except (OSError, pa.ArrowInvalid):
        # Damaged after it was written: made again.
        return False


def write_shards(folder: Path, plans: Sequence[ShardPlan], rows: Iterable[Sequence[pa.Table]]) -> None:
    """Write several shards at once: each of `rows` holds the next table of every plan. A failure leaves none."""
    with ExitStack() as stack:
        files = [stack.enter_context(_Unfinished(folder / plan.path)) for plan in plans]
        writers = [
            # Given the path, arrow writes by itself: through a Python file every byte would be copied under the lock.
            stack.enter_context(pq.ParquetWriter(file.temporary, plan.schema, **_options(plan)))
            for file, plan in zip(files, plans, strict=True)
        ]
        for tables in rows:
            for writer, table in zip(writers, tables, strict=True):
                writer.write_table(table)
        for writer in writers:
            writer.close()
        for file in files:
            file.finish()


def replace_file(path: Path, content: bytes) -> None:
    with _Unfinished(path) as file:
        file.temporary.write_bytes(content)
        file.finish()


def _options(plan: ShardPlan) -> dict[str, Any]:
    options: dict[str, Any] = {"compression": "zstd", "write_page_index": True}
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

    def finish(self) -> None:
        self.temporary.chmod(0o644)
        self.temporary.replace(self._path)

    def __exit__(self, *_: object) -> None:
        self.temporary.unlink(missing_ok=True)
