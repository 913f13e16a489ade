"""Rows of a data set as Arrow tables, and the one loop that renders them.

Every way to a data set (built, on the fly, streamed) goes through `render_rows`, so that all give the same bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from .conditions import Condition
from .recipe import OpenedRecipe
from .records import SAMPLE_RATE, Document, Qrel, Query, SpokenQuery
from .render import render_all

if TYPE_CHECKING:
    import datasets

Item = TypeVar("Item")
Made = TypeVar("Made")

ROWS_PER_TABLE = 32
"""Rows held in memory at once, and the size of a row group: an average clip takes about 150 kB."""

QUERY_COLUMNS = tuple(field.name for field in fields(SpokenQuery))
_INTEGERS = {"onset_samples", "seed"}
_TEXTS = {
    "id", "subset", "language", "text", "condition", "utterance_id", "noise_id", "noise_family", "rir_id", "room_id",
    "rt60_method", "stratum", "speaker", "voice",
}  # fmt: skip


def query_features() -> datasets.Features:
    """The features of spoken queries. The sound is not decoded by default, which needs no FFmpeg.

    `dataset.cast_column("audio", datasets.Audio())` turns decoding on where torchcodec is installed.
    """
    import datasets

    columns: dict[str, Any] = {}
    for name in QUERY_COLUMNS:
        if name == "audio":
            columns[name] = datasets.Audio(sampling_rate=SAMPLE_RATE, decode=False)
        elif name in _TEXTS:
            columns[name] = datasets.Value("string")
        else:
            columns[name] = datasets.Value("int64" if name in _INTEGERS else "float64")
    return datasets.Features(columns)


def corpus_features() -> datasets.Features:
    """The features of a corpus."""
    import datasets

    return datasets.Features({name: datasets.Value("string") for name in ("id", "title", "text")})


def qrels_features() -> datasets.Features:
    """The features of relevance judgments."""
    import datasets

    return datasets.Features(
        {
            "query-id": datasets.Value("string"),
            "corpus-id": datasets.Value("string"),
            "score": datasets.Value("int64"),
        }
    )


def query_table(rows: Sequence[SpokenQuery], schema: pa.Schema) -> pa.Table:
    """A table of spoken queries. The path inside the audio column names the clip for people who save it."""
    return pa.Table.from_pylist(
        [
            {name: getattr(row, name) for name in QUERY_COLUMNS}
            | {"audio": {"bytes": row.audio, "path": f"{row.id}_{row.condition}.flac"}}
            for row in rows
        ],
        schema=schema,
    )


def corpus_table(documents: Iterable[Document], schema: pa.Schema) -> pa.Table:
    """A table of documents."""
    return pa.Table.from_pylist([{"id": d.id, "title": d.title, "text": d.text} for d in documents], schema=schema)


def qrels_table(qrels: Iterable[Qrel], schema: pa.Schema) -> pa.Table:
    """A table of judgments."""
    return pa.Table.from_pylist(
        [{"query-id": q.query_id, "corpus-id": q.document_id, "score": q.score} for q in qrels], schema=schema
    )


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of at most `size` items.

    >>> list(batches("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def render_query(opened: OpenedRecipe, conditions: Sequence[Condition], query: Query) -> list[SpokenQuery]:
    """One query under several conditions: its speech is read once."""
    return render_all(query, opened.source.speech(query), conditions, opened.context)


def render_rows(
    opened: OpenedRecipe, condition: Condition, queries: Iterable[Query], *, workers: int = 1
) -> Iterator[SpokenQuery]:
    """Render `queries` under one condition, in order."""
    work = in_order(lambda query: render_query(opened, [condition], query), queries, workers=workers)
    return (rows[0] for rows in work)


def in_order(
    function: Callable[[Item], Made], items: Iterable[Item], *, workers: int, ahead: int = 0
) -> Iterator[Made]:
    """`map(function, items)` in threads, in order, holding at most `ahead` results (0: 4 per worker).

    Threads suffice for rendering: soundfile and the FFT release the interpreter lock. A single worker is a thread too:
    Ctrl-C reaches the main thread only, and would be lost inside one of soundfile's callbacks.
    """
    workers = max(1, workers)
    ahead = ahead or 4 * workers
    with ThreadPoolExecutor(max_workers=workers) as pool:
        pending: deque[Future[Made]] = deque()
        try:
            for item in items:
                pending.append(pool.submit(function, item))
                if len(pending) >= ahead:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
