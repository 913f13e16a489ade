"""The result of one answerer on one config: a JSON file, validated by the model that writes it, and tables beside it.

    results/<answerer>/<config>.json             this model
    results/<answerer>/<config>.asks.parquet     one row per item, order and way of asking, the columns of `ASK_SCHEMA`
    results/<answerer>/<config>.seconds.parquet  what depends on the machine stands apart

Numbers that do not apply are null in the JSON, NaN or null in the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa

from ..results.old import Environment, Score
from ..results.files import (
    FileModel,
    holds_benchmark,
    read_model,
    read_result_table,
    result_path,
    result_paths,
    write_model,
    write_tables,
)

SCHEMA_VERSION: Final = "1"
BENCHMARK: Final = "escucha"
BENCHMARK_VERSION: Final = "1"

ASK_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("spoken", pa.bool_()),
        # The options as they were shown, as letters of the item's own ones ("CAB"); "" for the own order.
        ("order", pa.string()),
        ("question", pa.string()),
        ("options", pa.list_(pa.string())),
        # The letter of the right option among the item's own; "" for an instruction.
        ("answer", pa.string()),
        ("reply", pa.string()),
        ("error", pa.string()),
        ("truncated", pa.bool_()),
        ("audio_truncated", pa.bool_()),
        # The letter of the item's own option that was chosen, null for none; how it was said.
        ("parsed", pa.string()),
        ("status", pa.string()),
        ("how", pa.string()),
        # 1 or 0; NaN where the sound is missing.
        ("correct", pa.float64()),
        ("verifiers", pa.list_(pa.string())),
        ("followed", pa.list_(pa.bool_())),
        ("followed_loose", pa.list_(pa.bool_())),
        # "ok", or why the sound is missing.
        ("audio_status", pa.string()),
        ("audios", pa.list_(pa.string())),
        ("audio_sha256", pa.list_(pa.string())),
        ("duration_s", pa.float64()),
        ("perception", pa.list_(pa.string())),
        ("reasoning", pa.list_(pa.string())),
        ("aetiology", pa.string()),
        ("intelligibility", pa.string()),
        ("sex", pa.string()),
    ]
)
SECONDS_SCHEMA = pa.schema(
    [("id", pa.string()), ("spoken", pa.bool_()), ("order", pa.string()), ("seconds", pa.float64())]
)


class DataInfo(FileModel):
    """What was asked. `partial`: only `n` of `n_total` items, so it stands beside no full result.

    `missing_audio` counts items without their sound by why it is missing; they are in `n`, and in no score.
    """

    name: str
    revision: str
    license: str
    config: str
    language: str
    n: int
    n_total: int
    partial: bool
    missing_audio: dict[str, int]
    coverage: float | None
    audio_s: float
    manifest_sha256: str


class AnswererInfo(FileModel):
    """What answered. `role` is `control` for a text-only control, `ready` for replies that were made elsewhere."""

    name: str
    role: Literal["answerer", "control", "ready"]
    spec: dict[str, Any]


class Asking(FileModel):
    """How it was asked. `permutations` is the largest number of orders of an item's options."""

    prompts_version: str
    prompts: dict[str, str]
    permutations: int
    order_seed: int
    spoken: bool


class Slice(FileModel):
    """The scores of a part of the items; `missing_audio` items of it are not in them."""

    scores: dict[str, Score]
    n: int
    missing_audio: int


class Paired(FileModel):
    """First minus second over the same `n` items."""

    first: float
    second: float
    difference: Score
    p_value: float | None
    minimum_detectable: float | None
    n: int


class Control(FileModel):
    """The answerer (first) against a control (second): the text alone, or its own options in another order."""

    name: str
    mcqa: Paired | None
    aif: Paired | None


class Mcqa(FileModel):
    """Multiple choice.

    `scores` has `accuracy` (of the mean over orders), `accuracy_wilson` (the same with Wilson's interval),
    `accuracy_parsed`, `accuracy_corrected`, `chance`, `unparsed`; with several orders also `consistency`, `consistent`,
    `accuracy_all_orders`. `counts` are of replies: ambiguous, absent, empty, missing. `spoken` is spoken minus written.
    """

    scores: dict[str, Score]
    n: int
    n_orders: int
    counts: dict[str, int]
    missing_audio: int
    coverage: float | None
    position_bias: dict[str, Any] | None
    spoken: Paired | None
    breakdowns: dict[str, dict[str, Slice]]
    parser_version: str


class Aif(FileModel):
    """Following instructions: `scores` has `accuracy` (prompt level, strict) and the four levels of IFEval.

    `verifiers` has the instruction level of each kind. `spoken` is spoken minus written.
    """

    scores: dict[str, Score]
    n: int
    n_instructions: int
    counts: dict[str, int]
    missing_audio: int
    coverage: float | None
    spoken: Paired | None
    verifiers: dict[str, Slice]
    breakdowns: dict[str, dict[str, Slice]]
    verifiers_version: str


class Failures(FileModel):
    """Of `n` asks: without a reply because of an error, cut by the length cap, with sound that was cut, empty.

    `errors` are the most frequent messages.
    """

    n: int
    failed: int
    truncated: int
    audio_truncated: int
    empty: int
    errors: dict[str, int]


class Judge(FileModel):
    """One judge of open-ended replies: the mean of its marks (1 to 5) over the `n` that it gave.

    `failed`: replies that it did not mark as it should; they are in no score.
    """

    name: str
    spec: dict[str, Any]
    mark: Score
    n: int
    failed: int
    marks: dict[str, int]


class Agreement(FileModel):
    """Two judges on the `n` replies that both marked: the share of equal marks, quadratic weighted kappa."""

    first: str
    second: str
    n: int
    equal: float | None
    kappa: float | None


class OpenEnded(FileModel):
    """The items that are flagged as open-ended, as judges mark them. `rubric` is what they were told."""

    rubric_version: str
    rubric: str
    n: int
    judges: list[Judge]
    agreement: list[Agreement]


class Timing(FileModel):
    """Seconds of answering, kept replies with the seconds that they took; `rtfx` is sound per second of it."""

    answer_s: float
    audio_s: float
    rtfx: float | None
    peak_memory_mb: float | None
    peak_gpu_memory_mb: float | None
    energy_j: float | None
    processes: int


class Result(FileModel):
    """The versioned summary of one answerer on one config.

    `overall` is the mean over all items of both kinds, no weighting. `controls` has `text_only` and `shuffled` where
    they were asked. `inputs_sha256` covers all that the scores follow from.
    """

    schema_version: Literal["1"] = SCHEMA_VERSION
    benchmark: Literal["escucha"] = BENCHMARK
    benchmark_version: str = BENCHMARK_VERSION
    squtr_version: str
    inputs_sha256: str
    data: DataInfo
    answerer: AnswererInfo
    asking: Asking
    overall: Score
    mcqa: Mcqa | None
    aif: Aif | None
    controls: dict[str, Control]
    open_ended: OpenEnded | None
    failures: Failures
    timing: Timing
    environment: Environment
    duration_edges_s: list[float]
    seed: int
    resamples: int

    @property
    def key(self) -> tuple[str, str]:
        """Answerer and config."""
        return self.answerer.name, self.data.config


@dataclass(frozen=True)
class AskRecord:
    """A result with its table (`ASK_SCHEMA`), and the seconds of each ask (`SECONDS_SCHEMA`; None if not read)."""

    result: Result
    asks: pa.Table
    seconds: pa.Table | None = None


def asks_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The table of these rows, all columns of `ASK_SCHEMA` required."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=ASK_SCHEMA)


def write_record(folder: Path, record: AskRecord) -> Path:
    """Write a record below `folder` and return the path of its JSON, which is written last."""
    path = result_path(folder, *record.result.key)
    write_tables(path, {"asks": record.asks, "seconds": record.seconds})
    return write_model(path, record.result)


def read_result(path: Path) -> Result:
    """The result in a JSON file. Raises `DataError` naming file and field."""
    return read_model(Result, path, otherwise=f"no result of {BENCHMARK}")


def read_record(path: Path) -> AskRecord:
    """The result in a JSON file, with the table beside it. Raises `DataError` naming the file."""
    result = read_result(path)
    # A question has a row for every order and way in which it was asked.
    return AskRecord(result, read_result_table(path, "asks", ASK_SCHEMA, rows=None))


def read_records(folder: Path) -> list[AskRecord]:
    """All records below `folder`, in path order. Raises `DataError` if there are none or a table is missing."""
    return [read_record(path) for path in result_paths(folder, command=f"squtr evaluate {BENCHMARK}")]


def holds_escucha(folder: Path) -> bool:
    """Whether the results below `folder` are this benchmark's, by what they say. Raises `DataError` for a mixture."""
    return holds_benchmark(folder, BENCHMARK)
