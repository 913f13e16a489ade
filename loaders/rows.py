"""Rows of a data set as Arrow tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa

from .audio import resample
from .conditions.step import NOT_APPLICABLE, ColumnType
from .records import SAMPLE_RATE, CleanSpeech, Document, Qrel, Query, Source, SpokenQuery

if TYPE_CHECKING:
    import datasets

ROWS_PER_TABLE = 32
"""Rows held in memory at once, and the size of a row group: an average clip takes about 150 kB."""

QUERY_COLUMNS = tuple(field.name for field in fields(SpokenQuery) if field.name != "extra")
_INTEGERS = {"onset_samples", "seed", "tts_takes"}
_TEXTS = {
    "id", "subset", "language", "text", "condition", "utterance_id", "query_id", "noise_id", "noise_family", "rir_id",
    "room_id", "rt60_method", "stratum", "speaker", "voice", "tts_transcriber",
}  # fmt: skip
_UNSAFE = re.compile(r"[^\w.@-]+")


def query_features(rate: int = SAMPLE_RATE, extra: Mapping[str, ColumnType] | None = None) -> datasets.Features:
    """The features of spoken rows at `rate` Hz, with the columns that steps add; audio is not decoded."""
    import datasets

    from .undecoded import UndecodedAudio

    columns: dict[str, Any] = {}
    for name in QUERY_COLUMNS:
        if name == "audio":
            columns[name] = UndecodedAudio(rate)
        elif name in _TEXTS:
            columns[name] = datasets.Value("string")
        else:
            columns[name] = datasets.Value("int64" if name in _INTEGERS else "float64")
    columns |= {name: datasets.Value(type_) for name, type_ in (extra or {}).items()}
    return datasets.Features(columns)


def corpus_features() -> datasets.Features:
    import datasets

    return datasets.Features({name: datasets.Value("string") for name in ("id", "title", "text")})


def qrels_features() -> datasets.Features:
    import datasets

    return datasets.Features(
        {"query-id": datasets.Value("string"), "corpus-id": datasets.Value("string"), "score": datasets.Value("int64")}
    )


def query_table(rows: Sequence[SpokenQuery], schema: pa.Schema) -> pa.Table:
    """A table of spoken rows. The path inside the audio column names the clip for people who save it."""
    extra = {field.name: _not_applicable(field.type) for field in schema if field.name not in QUERY_COLUMNS}
    return pa.Table.from_pylist(
        [
            {name: getattr(row, name) for name in QUERY_COLUMNS}
            | {name: row.extra.get(name, none) for name, none in extra.items()}
            | {"audio": audio_cell(row)}
            for row in rows
        ],
        schema=schema,
    )


def audio_cell(row: SpokenQuery) -> dict[str, Any]:
    """The cell of the column `audio`: the clip's file, and a name for it."""
    return {"bytes": row.audio, "path": f"{_UNSAFE.sub('_', row.id)}_{row.condition}.flac"}


def _not_applicable(type_: pa.DataType) -> Any:
    names: Mapping[str, ColumnType] = {"string": "string", "double": "float64", "int64": "int64"}
    return NOT_APPLICABLE[names[str(type_)]]


def spoken_row(values: Mapping[str, Any]) -> SpokenQuery:
    own = {name: values[name] for name in QUERY_COLUMNS}
    extra = {name: value for name, value in values.items() if name not in own}
    return SpokenQuery(**(own | {"audio": own["audio"]["bytes"], "extra": extra}))


def corpus_table(documents: Iterable[Document], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([{"id": d.id, "title": d.title, "text": d.text} for d in documents], schema=schema)


def qrels_table(qrels: Iterable[Qrel], schema: pa.Schema) -> pa.Table:
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


@runtime_checkable
class _AtRate(Protocol):
    def speech_at(self, query: Query, rate: int) -> CleanSpeech: ...


def speech_of(source: Source, query: Query, rate: int) -> CleanSpeech:
    """The clean recording of `query` at `rate` Hz, resampled once where the source can. Raises what `speech` raises."""
    if rate == SAMPLE_RATE:
        return source.speech(query)
    if isinstance(source, _AtRate):
        return source.speech_at(query, rate)
    given = source.speech(query)
    samples = resample(given.samples, SAMPLE_RATE, rate)
    return replace(given, samples=samples)
