"""The result of a run: one JSON file, one schema for every task, validated by the model that writes it.

A run is one system on one config. Its folder is

    results/<system>/<config>.json             this model
    results/<system>/<config>.items.parquet    per-item records: the common columns, then the task's own
    results/<system>/<config>.seconds.parquet  id, subset, stage seconds: what depends on the machine

Rates and metrics are ratios (0.05 is 5 %). Numbers that do not apply are absent or null in the JSON, NaN in the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa
from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer

from ...errors import DataError
from .files import FileModel, read_model, read_table, result_path, result_paths, write_model, write_tables
from .self_check import SelfCheck

SCHEMA_VERSION: Final = "3"
TEXT_CONDITION: Final = "text"
"""Not audio: the typed query, the upper bound."""

_TEXT, _FLOAT = pa.string(), pa.float64()
ITEM_COLUMNS = (
    ("id", _TEXT),
    # What is drawn together by a bootstrap: the utterance of an item that several RIRs share; else its own id.
    ("cluster", _TEXT),
    ("subset", _TEXT),
    ("language", _TEXT),
    ("condition", _TEXT),
    ("audio_sha256", _TEXT),
    # Why the item failed; "" if it did not. A failure is counted, and never turned into text.
    ("error", _TEXT),
    # Of FLAGS.
    ("flags", pa.list_(_TEXT)),
)
"""The columns that the records of every task begin with."""

TRANSCRIPT_FLAGS = ("loop", "truncated", "empty", "hallucination", "invalid_text")
REPLY_FLAGS = ("truncated", "audio_truncated", "empty", "invalid_text")
FLAGS = tuple(dict.fromkeys((*TRANSCRIPT_FLAGS, *REPLY_FLAGS)))

ACOUSTIC_COLUMNS = (
    ("speaker", _TEXT), ("voice", _TEXT), ("duration_s", _FLOAT), ("snr_db", _FLOAT), ("snr_active_db", _FLOAT),
    ("noise_id", _TEXT), ("noise_family", _TEXT), ("rir_id", _TEXT), ("room_id", _TEXT), ("rt60_s", _FLOAT),
    ("edt_s", _FLOAT), ("drr_db", _FLOAT), ("c50_db", _FLOAT), ("source_rt60_s", _FLOAT), ("source_drr_db", _FLOAT),
    ("stratum", _TEXT),
)  # fmt: skip
"""What the data's row says of an item's audio; "" and NaN for typed queries. Tasks on speech data have all of them."""

TRANSCRIPT_COLUMNS = (
    ("text", _TEXT),
    ("transcript", _TEXT),
    # Of the normalized texts; NaN where there are no transcripts, words also where the language has none. An item that
    # failed has its reference length alone.
    *[
        (f"{unit}_{kind}", _FLOAT)
        for unit in ("word", "char")
        for kind in ("substitutions", "deletions", "insertions", "reference_length")
    ],
)
"""Reference, hypothesis and error counts, of tasks that transcribe."""

SECONDS_SCHEMA = pa.schema(
    [("id", _TEXT), ("subset", _TEXT), ("seconds", _FLOAT), ("front_end_seconds", _FLOAT), ("duration_s", _FLOAT)]
)


def item_schema(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    """The schema of a task's records: the common columns, then `columns`."""
    return pa.schema([*ITEM_COLUMNS, *columns])


def finite(value: float) -> float | None:
    """None for NaN and infinities."""
    return value if math.isfinite(value) else None


class Score(FileModel):
    """A value with its 95 % interval over `n` items; null where it is undefined.

    `bounds` are of an error rate whose `n` leaves failed items out: the rate if these had no error, and if all their
    words were deleted. None (and not in the file) where none failed. Of a loss of such a rate likewise: the least and
    the largest that it can be.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int
    bounds: tuple[float, float] | None = None

    @field_validator("value", "low", "high")
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not math.isfinite(value):
            raise ValueError("must be finite, or null where it is undefined")
        return value

    @field_validator("bounds")
    @classmethod
    def _ordered(cls, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
        if bounds is not None and not (math.isfinite(sum(bounds)) and bounds[0] <= bounds[1]):
            raise ValueError("must be two finite numbers, the smaller one first")
        return bounds

    @model_serializer(mode="wrap")
    def _without_bounds(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What older versions read too, where nothing failed."""
        written: dict[str, Any] = handler(self)
        if self.bounds is None:
            written.pop("bounds", None)
        return written

    @classmethod
    def of(cls, value: float, low: float, high: float, n: int, *, bounds: tuple[float, float] | None = None) -> Score:
        """With null for what is not finite."""
        return cls(value=finite(value), low=finite(low), high=finite(high), n=n, bounds=bounds)

    @property
    def ordered_by(self) -> float | None:
        """What systems are ordered by: an error rate counts the words of failed items as deleted."""
        return self.value if self.bounds is None else self.bounds[1]


class Loss(FileModel):
    """What is lost on one metric against a baseline, paired by item; positive is worse than the baseline.

    `relative` is by the baseline's value. `p_value` is that of a two-sided paired permutation test of 0 (null where
    none was made), `p_holm` the same corrected over the groups of one breakdown.
    """

    absolute: Score
    relative: Score
    p_value: float | None = None
    p_holm: float | None = None


class Group(FileModel):
    """The items of one group of a breakdown.

    Of a binned column, `low` and `high` bound the bin (above `low`, at most `high`; null is open); both are null for
    plain labels and where the value is not known. `counts` has what else is counted (`rirs`, `failed` where any did,
    …). `losses` maps baseline to metric to loss.
    """

    label: str
    low: float | None = None
    high: float | None = None
    n: int
    clusters: int
    counts: dict[str, int] = Field(default_factory=dict)
    scores: dict[str, Score] = Field(default_factory=dict)
    losses: dict[str, dict[str, Loss]] = Field(default_factory=dict)


class DataInfo(FileModel):
    """What the run read.

    `n` of `n_total` items in `clusters` (utterances); `partial`: not all, so the result stands beside no full one.
    `edges` are bin edges that the data fixes, by column. `missing_audio` counts items without audio by why it is
    missing: they are in `n`, and in no score.
    """

    source: str
    source_version: str
    revision: str
    license: str
    config: str
    language: str
    condition: str
    split: str = "test"
    subsets: list[str]
    n: int
    n_total: int
    clusters: int
    partial: bool
    audio_s: float | None = None
    edges: dict[str, list[float]] = Field(default_factory=dict)
    missing_audio: dict[str, int] = Field(default_factory=dict)
    manifest_sha256: str
    recipe: dict[str, Any]


class SystemInfo(FileModel):
    """What was evaluated.

    `components` maps a role (`front_end`, `transcriber`, `rewriter`, `retriever`, `encoder`, `answerer`) to the
    specification of the component that this config's language uses. `settings` has what else decides the output
    (`n_best`, `script_folding`, `depth`, `preset`, prompts, …). `reference` marks what is no competitor: a text-only
    baseline. `parameters` are those of the model that takes the audio, null where its weights do not tell. The
    normalizer is "" where no text is compared.
    """

    kind: Literal["cascade", "end-to-end", "run", "transcriber", "answerer"]
    name: str
    components: dict[str, dict[str, Any]]
    settings: dict[str, Any] = Field(default_factory=dict)
    reference: bool = False
    parameters: int | None = None
    normalizer: str = ""
    normalizer_version: str = ""
    self_check: SelfCheck = Field(default_factory=SelfCheck)

    def component_name(self, role: str) -> str:
        """The short name of the component in a role, "" without one."""
        spec = self.components.get(role, {})
        return str(spec.get("name") or spec.get("model") or spec.get("backend") or "")


class Latency(FileModel):
    """Seconds from an item's audio to the output, one item at a time, over `n` items (linear interpolation)."""

    n: int
    p50_s: float
    p90_s: float
    p95_s: float
    p99_s: float


class Isolated(FileModel):
    """One system alone in a process of its own: memory at its peak; `load_s` until the first item was done."""

    load_s: float
    peak_memory_mb: float
    peak_gpu_memory_mb: float | None
    device: str


class Timing(FileModel):
    """Seconds per stage. Cached work counts with the seconds that it took when it was done.

    `stages` maps a stage (`front_end`, `transcribe`, `encode`, `rewrite`, `index`, `search`, `answer`) to seconds.
    `audio_s` and `rtfx` (seconds of audio per second of the stages that take audio) are of the items that did not fail.
    `waiting_share` is the part of this evaluation's inference time in which the model waited for audio (null if nothing
    was inferred now). Memory is the peak of the main process, energy what the machine's meters say for this
    evaluation's stages; null where there is no meter.
    """

    stages: dict[str, float] = Field(default_factory=dict)
    audio_s: float | None = None
    rtfx: float | None = None
    waiting_share: float | None = None
    latency: Latency | None = None
    isolated: Isolated | None = None
    peak_memory_mb: float | None = None
    peak_gpu_memory_mb: float | None = None
    energy_j: float | None = None
    processes: int = 1


class Environment(FileModel):
    """Where it ran.

    `instruction_set` has the processor's extensions by which engines choose their kernels (`avx2 fma avx512_vnni`), ""
    where they are not known: the same weights in the same number type round otherwise on another processor.
    `accelerator` is the GPU, "" without one.
    """

    hardware: str
    instruction_set: str = ""
    accelerator: str = ""
    threads: int
    python: str
    packages: dict[str, str]


class Result(FileModel):
    """The versioned summary of a run.

    `origin` is `measured`, or `imported` for aggregates that another tool computed: they have no intervals and no
    records. `inputs_sha256` covers all that the scores follow from: data, system, outputs, settings, versions.

    `scores` is by metric name (see `harness.metrics.registry`), `main_metric` one of them. `by_group` maps a breakdown
    (`subset`, `noise_family`, `rt60_s`, …) to its groups in order. `losses` maps a baseline (`clean`, `text`,
    `text-only`, …) to losses by metric, where that baseline was evaluated too. `failures` are counts by kind. `details`
    is the task's own block, validated by the task.
    """

    schema_version: Literal["3"] = SCHEMA_VERSION
    task: str
    task_version: str
    benchmark: str
    benchmark_version: str
    metrics_version: str
    squtr_version: str
    origin: Literal["measured", "imported"] = "measured"
    inputs_sha256: str = ""
    data: DataInfo
    system: SystemInfo
    main_metric: str
    scores: dict[str, Score]
    by_group: dict[str, list[Group]] = Field(default_factory=dict)
    losses: dict[str, dict[str, Loss]] = Field(default_factory=dict)
    failures: dict[str, int] = Field(default_factory=dict)
    details: dict[str, Any] = Field(default_factory=dict)
    timing: Timing
    environment: Environment
    seed: int
    resamples: int = Field(default=0, ge=0)

    @property
    def key(self) -> tuple[str, str]:
        """System name, and the name of the config's files: the config, with the split where it is not `test`."""
        config, split = self.data.config, self.data.split
        return self.system.name, config if split == "test" else f"{config}.{split}"

    @property
    def main(self) -> Score:
        """The score of the main metric."""
        return self.scores[self.main_metric]

    def group(self, breakdown: str, label: str) -> Group | None:
        """One group of a breakdown, None where there is none."""
        return next((group for group in self.by_group.get(breakdown, []) if group.label == label), None)


@dataclass(frozen=True)
class RunRecord:
    """A result with its per-item records, and the seconds of each item (`SECONDS_SCHEMA`).

    An imported result has an empty table; the seconds are None where they are not at hand.
    """

    result: Result
    items: pa.Table
    seconds: pa.Table | None = None


def items_table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """The records of these rows, all columns of `schema` required."""
    return pa.Table.from_pylist([{name: row[name] for name in schema.names} for row in rows], schema=schema)


def run_path(folder: Path, system: str, config: str) -> Path:
    """Where the JSON of a run lies below `folder`; `config` as in `Result.key`."""
    return result_path(folder, system, config)


def write_run(folder: Path, record: RunRecord) -> Path:
    """Write a run below `folder` and return the path of its JSON, which is written last."""
    write_tables(run_path(folder, *record.result.key), {"items": record.items, "seconds": record.seconds})
    return write_result(folder, record.result)


def write_result(folder: Path, result: Result) -> Path:
    """Write the JSON of a run below `folder` and return its path. Its tables lie beside it already."""
    return write_model(run_path(folder, *result.key), result)


def read_result(path: Path) -> Result:
    """The result in a JSON file. Raises `DataError` naming file and field."""
    return read_model(Result, path, otherwise="not a result")


def read_record(path: Path, *, documents: int | None = None) -> RunRecord:
    """The result in a JSON file, with the records beside it. Raises `DataError` naming the file.

    `documents` is how many of the retrieved documents of each item are kept, the first ones (None: all).
    """
    result = read_result(path)
    items = read_table(path, "items", documents=documents)
    names = [name for name, _ in ITEM_COLUMNS]
    if items.schema.names[: len(names)] != names:
        raise DataError(
            f"the records beside {path} do not begin with the columns {', '.join(names)}.",
            hint="Run the evaluation again.",
        )
    least = 0 if result.origin == "imported" else result.data.n
    if items.num_rows < least or (items.num_rows and not least):
        raise DataError(
            f"the {items.num_rows} records beside {path} do not fit a result of {result.data.n} items.",
            hint="Run the evaluation again.",
        )
    return RunRecord(result, items)


def read_runs(folder: Path, *, documents: int | None = None) -> list[RunRecord]:
    """All runs below `folder`, in path order, `documents` as in `read_record`.

    Raises `DataError` if there are none or a table is missing.
    """
    return [read_record(path, documents=documents) for path in result_paths(folder)]
