"""Building a paired data set into a folder that `datasets.load_dataset` reads.

Every file is written to a temporary name and renamed, so a build that was stopped at any point continues with the first
missing file and ends with the same bytes.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .. import __version__
from ..errors import RecipeMismatchError, StorageError
from .card import dataset_card
from .conditions import parse_condition
from .manifest import MANIFEST_NAME, Manifest, Shard, file_sha256, read_manifest
from .recipe import Kitchen
from .records import Query
from .rows import (
    ROWS_PER_TABLE,
    batches,
    corpus_features,
    corpus_table,
    qrels_features,
    qrels_table,
    query_features,
    query_table,
    render_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

QUERIES_PER_SHARD = 2000
"""About 300 MB of clips, within the Hub's preferred 200 to 500 MB."""

DOCUMENTS_PER_SHARD = 500_000
DOCUMENTS_PER_TABLE = 5_000

Progress = Callable[[int], None]
"""Called with the number of clips that were finished since the last call."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """One parquet file that the build will write."""

    path: str
    rows: int
    tables: Callable[[], Iterable[pa.Table]]
    schema: pa.Schema
    clips: bool


def count_clips(kitchen: Kitchen) -> int:
    """How many clips a build makes, for a progress bar."""
    return sum(len(kitchen.queries(s)) for s, _ in kitchen.recipe.subsets) * len(kitchen.recipe.conditions)


def build(kitchen: Kitchen, out: Path, *, workers: int = 0, progress: Progress | None = None) -> Manifest:
    """Write the data set of `kitchen.recipe` to the folder `out` and return its manifest.

    `workers` is the number of threads (0: one per core); it changes the speed only, never a byte. What an earlier,
    stopped build of the same recipe finished is kept. Raises `RecipeMismatchError` if the folder holds anything else,
    `StorageError` if the disk refuses, `AudioError` or `DataError` for unusable input.
    """
    report = progress or (lambda _: None)
    with _clear_storage_errors(out):
        _claim(kitchen, out)
        shards = []
        for plan in _plans(kitchen, workers or os.cpu_count() or 1, report):
            path = out / plan.path
            if _finished(path, plan.rows):
                report(plan.rows if plan.clips else 0)
            else:
                _write(path, plan)
            shards.append(Shard(path=plan.path, sha256=file_sha256(path), bytes=path.stat().st_size, rows=plan.rows))
        manifest = _manifest(kitchen, complete=True, shards=shards)
        _replace(out / "README.md", dataset_card(manifest, out).encode("utf-8"))
        _replace(out / MANIFEST_NAME, manifest.to_json())
    return manifest


def _manifest(kitchen: Kitchen, *, complete: bool, shards: list[Shard]) -> Manifest:
    return Manifest(
        squtr_version=__version__,
        recipe_fingerprint=kitchen.recipe.fingerprint,
        recipe=kitchen.recipe.as_dict(),
        complete=complete,
        shards=shards,
    )


def _claim(kitchen: Kitchen, out: Path) -> None:
    """Make `out` ours: refuse a folder that holds something else, mark a new one as begun."""
    if out.exists() and not out.is_dir():
        raise RecipeMismatchError(f"{out} is a file.", hint="Choose another folder with --out.")
    if (out / MANIFEST_NAME).exists():
        held = read_manifest(out)
        if held.recipe_fingerprint != kitchen.recipe.fingerprint:
            ours = kitchen.recipe.as_dict()
            differing = sorted(key for key in ours if held.recipe.get(key) != ours[key])
            shown = ", ".join(f"{key} {held.recipe.get(key)!r} there, {ours[key]!r} here" for key in differing[:3])
            raise RecipeMismatchError(
                f"{out} holds another recipe ({shown}).", hint="Choose another folder with --out, or remove it."
            )
        return
    if out.is_dir() and any(out.iterdir()):
        raise RecipeMismatchError(
            f"{out} is not empty and was not made by `squtr build`.", hint="Choose another folder with --out."
        )
    out.mkdir(parents=True, exist_ok=True)
    _replace(out / MANIFEST_NAME, _manifest(kitchen, complete=False, shards=[]).to_json())


def _plans(kitchen: Kitchen, workers: int, report: Progress) -> Iterator[_Plan]:
    corpus_schema, qrels_schema = corpus_features().arrow_schema, qrels_features().arrow_schema
    query_schema = query_features().arrow_schema
    for subset, _ in kitchen.recipe.subsets:
        documents = list(kitchen.source.documents(subset))
        pieces = list(batches(documents, DOCUMENTS_PER_SHARD))
        for index, piece in enumerate(pieces):
            yield _Plan(
                f"corpus/{subset}/{_shard_name(index, len(pieces))}",
                len(piece),
                lambda piece=piece: (corpus_table(b, corpus_schema) for b in batches(piece, DOCUMENTS_PER_TABLE)),  # type: ignore[misc]
                corpus_schema,
                clips=False,
            )
        kept = {query.id for query in kitchen.queries(subset)}
        qrels = [qrel for qrel in kitchen.source.qrels(subset) if qrel.query_id in kept]
        yield _Plan(
            f"qrels/{subset}/{_shard_name(0, 1)}",
            len(qrels),
            lambda qrels=qrels: [qrels_table(qrels, qrels_schema)],  # type: ignore[misc]
            qrels_schema,
            clips=False,
        )
    for subset, language in kitchen.recipe.subsets:
        pieces = list(batches(kitchen.queries(subset), QUERIES_PER_SHARD))
        for condition in kitchen.recipe.conditions:
            for index, piece in enumerate(pieces):

                def tables(piece: list[Query] = piece, condition: str = condition) -> Iterator[pa.Table]:
                    rows = render_rows(kitchen, parse_condition(condition), piece, workers=workers)
                    for batch in batches(rows, ROWS_PER_TABLE):
                        yield query_table(batch, query_schema)
                        report(len(batch))

                folder = f"queries/{language}/{subset}/{condition}"
                yield _Plan(f"{folder}/{_shard_name(index, len(pieces))}", len(piece), tables, query_schema, clips=True)


def _shard_name(index: int, count: int) -> str:
    return f"test-{index:05d}-of-{count:05d}.parquet"


def _finished(path: Path, rows: int) -> bool:
    """Whether an earlier build completed this file: files get their name only when complete."""
    if not path.exists():
        return False
    try:
        return bool(pq.read_metadata(path).num_rows == rows)
    except (OSError, pa.ArrowInvalid):
        # Damaged after it was written: made again.
        return False


def _write(path: Path, plan: _Plan) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        temporary = Path(file.name)
        try:
            options: dict[str, Any] = {"compression": "zstd", "write_page_index": True}
            if plan.clips:
                # FLAC does not compress further.
                leaves = [name for name in plan.schema.names if name != "audio"]
                options["compression"] = {"audio.bytes": "none", "audio.path": "zstd"} | dict.fromkeys(leaves, "zstd")
                options["use_dictionary"] = [name for name in leaves if name not in {"id", "text"}]
            with pq.ParquetWriter(file, plan.schema, **options) as writer:
                for table in plan.tables():
                    writer.write_table(table)
            file.close()
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        temporary = Path(file.name)
        try:
            file.write(content)
            file.close()
            temporary.chmod(0o644)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _clear_storage_errors(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        if error.errno == errno.ENOSPC:
            raise StorageError(
                f"no space is left for {out}.", hint="Free some and run the same command again: it continues."
            ) from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise StorageError(f"{out} cannot be written: {error.strerror}.", hint="Choose another --out.") from error
        raise
