"""The result of a run: one JSON file, validated by the model that writes it, and per-query records beside it.

A run is one system on one config. Its folder is

    results/<system>/<config>.json            this model
    results/<system>/<config>.queries.parquet one row per query, the columns of `ITEM_SCHEMA`
    samples/<subset>/<query id>/<condition>.flac   a few clips, for the report's players

Numbers that do not apply are absent or null in the JSON and NaN in the table.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from ..errors import DataError, StorageError

SCHEMA_VERSION: Final = "1"
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
        ("seconds", pa.float64()),
        ("audio_sha256", pa.string()),
    ]
)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Score(_Model):
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


class Loss(_Model):
    """What is lost on one metric against a baseline condition, paired by query; positive is worse than the baseline."""

    absolute: Score
    relative: Score


class DataInfo(_Model):
    """What the run read."""

    source: str
    source_version: str
    revision: str
    licence: str
    config: str
    language: str
    condition: str
    subsets: list[str]
    n: int
    manifest_sha256: str
    recipe: dict[str, Any]


class SystemInfo(_Model):
    """What was judged. `transcriber` is null under `text`."""

    kind: Literal["cascade"]
    name: str
    transcriber: dict[str, Any] | None
    retriever: dict[str, Any]
    normalizer: str
    normalizer_version: str
    script_folding: str
    depth: int


class Failures(_Model):
    """Counts of what went wrong; no failure is turned into text. `missing`: queries that found nothing, scored 0."""

    undecodable: int
    loops: int
    truncated: int
    empty: int
    hallucinations: int
    missing: int
    no_relevant: int
    unjudged: int


class Timing(_Model):
    """Seconds per stage. Cached transcripts count with the seconds that they took when they were made."""

    transcribe_s: float | None
    index_s: float
    search_s: float
    audio_s: float | None
    rtfx: float | None
    peak_memory_mb: float


class Environment(_Model):
    """Where it ran."""

    hardware: str
    threads: int
    python: str
    packages: dict[str, str]


class Result(_Model):
    """The versioned summary of a run.

    `scores` has `wer`, `wer_macro`, `cer`, `cer_macro` (as far as they apply to the language) and the ranking metrics;
    `losses` maps a baseline (`clean`, `text`) to losses by metric, where that baseline was evaluated too.
    """

    schema_version: Literal["1"] = SCHEMA_VERSION
    benchmark: str = "squtr"
    benchmark_version: str
    squtr_version: str
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
    """A result with its per-query table (columns of `ITEM_SCHEMA`)."""

    result: Result
    items: pa.Table


def file_name(name: str) -> str:
    """`name` as a safe file name.

    >>> file_name("whisper-base + BM25")
    'whisper-base+BM25'
    """
    return re.sub(r"[^\w.+-]+", "-", name.replace(" + ", "+")).strip("-")


def write_atomically(path: Path, content: bytes) -> None:
    """Write to a temporary name beside `path`, then rename. Raises `StorageError` if the disk refuses."""
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            temporary = file.name
            file.write(content)
        # Temporary files are private; a result is not.
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}.", hint="Free space or choose another folder."
        ) from error


def items_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The per-query table of these rows, all columns of `ITEM_SCHEMA` required."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=ITEM_SCHEMA)


def write_run(folder: Path, record: RunRecord) -> Path:
    """Write a run below `folder` and return the path of its JSON, which is written last."""
    base = folder / "results" / file_name(record.result.system.name)
    sink = pa.BufferOutputStream()
    pq.write_table(record.items, sink, compression="zstd")
    write_atomically(base / f"{record.result.data.config}.queries.parquet", sink.getvalue().to_pybytes())
    path = base / f"{record.result.data.config}.json"
    content = json.dumps(record.result.model_dump(mode="json"), ensure_ascii=False, indent=2, allow_nan=False)
    write_atomically(path, content.encode("utf-8") + b"\n")
    return path


def read_result(path: Path) -> Result:
    """The result in a JSON file. Raises `DataError` naming file and field."""
    try:
        return Result.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.", hint="Check the path.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"{path} is not a result: {place}: {first['msg']}.", hint="Run the evaluation again."
        ) from error


def read_runs(folder: Path) -> list[RunRecord]:
    """All runs below `folder`, in path order. Raises `DataError` if there are none or a table is missing."""
    paths = sorted((folder / "results").glob("*/*.json")) if folder.is_dir() else []
    if not paths:
        raise DataError(f"{folder} holds no results.", hint="Run `squtr evaluate` with --out on that folder first.")
    return [read_record(path) for path in paths]


def read_record(path: Path) -> RunRecord:
    """The result in a JSON file, with the per-query table beside it. Raises `DataError` naming the file."""
    result = read_result(path)
    table_path = path.with_suffix(".queries.parquet")
    try:
        table = pq.read_table(table_path)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{table_path} cannot be read: {error}.", hint="Run the evaluation again.") from error
    if table.schema.names != ITEM_SCHEMA.names or table.num_rows != result.data.n:
        raise DataError(f"{table_path} does not fit {path.name}.", hint="Run the evaluation again.")
    return RunRecord(result, table)
