"""The result of a run: one JSON file, validated by the model that writes it, and per-query records beside it.

A run is one system on one config. Its folder is

    results/<system>/<config>.json            this model
    results/<system>/<config>.queries.parquet one row per query, the columns of `ITEM_SCHEMA`
    results/<system>/<config>.seconds.parquet id, seconds, front_end_seconds: what depends on the machine stands apart
    samples/<subset>/<query id>/<condition>.flac   a few clips, for the report's players

Numbers that do not apply are absent or null in the JSON and NaN in the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
from pydantic import field_validator

from .files import (  # noqa: F401 - the names of files stay importable from here
    FileModel,
    file_name,
    read_model,
    read_result_table,
    result_path,
    result_paths,
    write_atomically,
    write_model,
    write_tables,
)

SCHEMA_VERSION: Final = "2"
MAIN_METRIC = "ndcg_at_10"
TEXT_CONDITION = "text"

ITEM_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("subset", pa.string()),
        ("language", pa.string()),
        ("group", pa.string()),
        ("condition", pa.string()),
        ("text", pa.string()),
        # What the system searched with: the transcript after script folding, or the text itself under `text`.
        ("transcript", pa.string()),
        ("error", pa.string()),
        ("loop", pa.bool_()),
        ("truncated", pa.bool_()),
        ("empty", pa.bool_()),
        ("hallucination", pa.bool_()),
        ("word_errors", pa.float64()),
        ("word_reference_length", pa.float64()),
        ("char_errors", pa.float64()),
        ("char_reference_length", pa.float64()),
        ("ndcg_at_10", pa.float64()),
        ("mrr_at_10", pa.float64()),
        ("recall_at_10", pa.float64()),
        # Rank of the best relevant document among the retrieved, from 1; 0 if none was retrieved.
        ("first_relevant_rank", pa.int64()),
        ("documents", pa.list_(pa.string())),
        ("scores", pa.list_(pa.float64())),
        ("snr_db", pa.float64()),
        ("snr_active_db", pa.float64()),
        ("noise_id", pa.string()),
        ("noise_family", pa.string()),
        ("rir_id", pa.string()),
        ("rt60_s", pa.float64()),
        ("drr_db", pa.float64()),
        ("voice", pa.string()),
        ("duration_s", pa.float64()),
        ("audio_sha256", pa.string()),
    ]
)
SECONDS_SCHEMA = pa.schema(
    [("id", pa.string()), ("subset", pa.string()), ("seconds", pa.float64()), ("front_end_seconds", pa.float64())]
)
"""What transcribing a query took, apart from the records: two runs give the same records, never the same seconds."""


class Score(FileModel):
    """A value with its 95 % interval over `n` queries."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int

    @field_validator("value", "low", "high")
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ValueError("must be finite, or null where it is undefined")
        return value


class Loss(FileModel):
    """What is lost on one metric against a baseline condition, paired by query; positive is worse than the baseline."""

    absolute: Score
    relative: Score


class DataInfo(FileModel):
    """What the run read. `partial`: only `n` of `n_total` queries, so it stands beside no full run."""

    source: str
    source_version: str
    revision: str
    license: str
    config: str
    language: str
    condition: str
    subsets: list[str]
    n: int
    n_total: int
    partial: bool
    manifest_sha256: str
    recipe: dict[str, Any]


class SystemInfo(FileModel):
    """What was judged.

    A cascade has a transcriber (null under `text`) and a retriever, an end-to-end system an encoder, a ready run its
    ranking as retriever. `n_best` hypotheses of a transcript were searched and fused by `n_best_fusion`.
    """

    kind: Literal["cascade", "end-to-end", "run"]
    name: str
    front_end: dict[str, Any] | None = None
    transcriber: dict[str, Any] | None = None
    encoder: dict[str, Any] | None = None
    retriever: dict[str, Any] | None = None
    n_best: int = 1
    n_best_fusion: str = ""
    normalizer: str
    normalizer_version: str
    script_folding: str
    depth: int


class Failures(FileModel):
    """Counts of what went wrong; no failure is turned into text. `missing`: queries that found nothing, scored 0."""

    undecodable: int
    loops: int
    truncated: int
    empty: int
    hallucinations: int
    missing: int
    no_relevant: int
    unjudged: int


class Latency(FileModel):
    """Seconds from a query's sound to its ranking, one query at a time, over `n` queries (linear interpolation)."""

    n: int
    p50_s: float
    p90_s: float
    p95_s: float
    p99_s: float


class Timing(FileModel):
    """Seconds per stage. Cached work counts with the seconds that it took when it was done.

    `rtfx` is seconds of sound per second of front end and transcriber. `waiting_share` is the part of this evaluation's
    listening time in which the model waited for sound (null if nothing was heard now). Memory is the peak of the main
    process, energy what the machine's own meters say for this evaluation's stages; null where there is no meter.
    """

    front_end_s: float | None = None
    transcribe_s: float | None = None
    index_s: float | None = None
    search_s: float | None = None
    audio_s: float | None = None
    rtfx: float | None = None
    waiting_share: float | None = None
    latency: Latency | None = None
    peak_memory_mb: float | None = None
    peak_gpu_memory_mb: float | None = None
    energy_j: float | None = None
    processes: int = 1


class Environment(FileModel):
    """Where it ran."""

    hardware: str
    threads: int
    python: str
    packages: dict[str, str]


class Result(FileModel):
    """The versioned summary of a run.

    `origin` is `measured`, or `imported` for aggregates that another tool computed: they have no intervals and no
    records. `inputs_sha256` covers all that the scores follow from: data, system, transcripts, rankings, versions.

    `scores` has `wer`, `wer_macro`, `cer`, `cer_macro` (as far as they apply to the language) and the ranking metrics;
    `losses` maps a baseline (`clean`, `text`) to losses by metric, where that baseline was evaluated too.
    """

    schema_version: Literal["2"] = SCHEMA_VERSION
    benchmark: str = "squtr"
    benchmark_version: str
    squtr_version: str
    origin: Literal["measured", "imported"] = "measured"
    inputs_sha256: str = ""
    data: DataInfo
    system: SystemInfo
    scores: dict[str, Score]
    by_subset: dict[str, dict[str, Score]]
    losses: dict[str, dict[str, Loss]]
    failures: Failures
    timing: Timing
    environment: Environment
    seed: int

    @property
    def key(self) -> tuple[str, str]:
        """System name and config."""
        return self.system.name, self.data.config


@dataclass(frozen=True)
class RunRecord:
    """A result with its per-query table (columns of `ITEM_SCHEMA`), and the seconds of each query (`SECONDS_SCHEMA`).

    An imported result has an empty table; the seconds are None where they are not at hand.
    """

    result: Result
    items: pa.Table
    seconds: pa.Table | None = None


def items_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The per-query table of these rows, all columns of `ITEM_SCHEMA` required."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=ITEM_SCHEMA)


def run_path(folder: Path, system: str, config: str) -> Path:
    """Where the JSON of a run lies below `folder`."""
    return result_path(folder, system, config)


def write_run(folder: Path, record: RunRecord) -> Path:
    """Write a run below `folder` and return the path of its JSON, which is written last."""
    write_tables(run_path(folder, *record.result.key), {"queries": record.items, "seconds": record.seconds})
    return write_result(folder, record.result)


def write_result(folder: Path, result: Result) -> Path:
    """Write the JSON of a run below `folder` and return its path. Its tables lie beside it already."""
    return write_model(run_path(folder, *result.key), result)


def read_result(path: Path) -> Result:
    """The result in a JSON file. Raises `DataError` naming file and field."""
    return read_model(Result, path, otherwise="not a result")


def read_runs(folder: Path) -> list[RunRecord]:
    """All runs below `folder`, in path order. Raises `DataError` if there are none or a table is missing."""
    return [read_record(path) for path in result_paths(folder, command="squtr evaluate")]


def read_record(path: Path) -> RunRecord:
    """The result in a JSON file, with the per-query table beside it. Raises `DataError` naming the file."""
    result = read_result(path)
    rows = 0 if result.origin == "imported" else result.data.n
    return RunRecord(result, read_result_table(path, "queries", ITEM_SCHEMA, rows=rows))
