"""The result of a recognizer on a language's pairs: one JSON file, and per-pair records beside it.

    results/<recognizer>/<language>_<split>.json           this model
    results/<recognizer>/<language>_<split>.pairs.parquet  one row per pair, the columns of `PAIR_SCHEMA`
    results/<recognizer>/<language>_<split>.seconds.parquet  what hearing each clip took: two runs never have the same
    samples/<sample id>/{clean,reverb,<front end>}.flac, room.json   a few pairs, for the report's players

Rates and their differences are ratios (0.05 is 5 %, or five percentage points). Numbers that do not apply are null in
the JSON and NaN in the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa

from ..metrics.attribution import Estimate
from ..results.old import Environment, Score, Timing
from ..results.files import (
    FileModel,
    holds_benchmark,
    is_of_benchmark,
    read_model,
    read_result_table,
    result_path,
    result_paths,
    write_model,
    write_tables,
)

SCHEMA_VERSION: Final = "1"
BENCHMARK: Final = "rir_mega"
ARMS = ("clean", "reverb")
FLAGS = ("loop", "truncated", "empty", "hallucination")

_FLOAT, _TEXT, _BOOL = pa.float64(), pa.string(), pa.bool_()
PAIR_SCHEMA = pa.schema(
    [
        ("id", _TEXT),
        ("utterance_id", _TEXT),
        ("subset", _TEXT),
        ("language", _TEXT),
        ("speaker", _TEXT),
        ("text", _TEXT),
        ("rir_id", _TEXT),
        ("room_id", _TEXT),
        ("stratum", _TEXT),
        ("rt60_s", _FLOAT),
        ("edt_s", _FLOAT),
        ("drr_db", _FLOAT),
        ("c50_db", _FLOAT),
        ("source_rt60_s", _FLOAT),
        ("source_drr_db", _FLOAT),
        # Number of the bin (see `Result.by_rt60`), -1 where the value is not known.
        ("rt60_bin", pa.int64()),
        ("drr_bin", pa.int64()),
        ("snr_db", _FLOAT),
        ("noise_family", _TEXT),
        ("clean_duration_s", _FLOAT),
        ("reverb_duration_s", _FLOAT),
        *[
            (f"{arm}_{name}", kind)
            for arm in ARMS
            for name, kind in (("transcript", _TEXT), ("error", _TEXT), *((flag, _BOOL) for flag in FLAGS))
        ],
        # Counts are NaN where an arm could not be decoded (and of words where the language has none).
        *[
            (f"{arm}_{unit}_{kind}", _FLOAT)
            for unit in ("word", "char")
            for arm in ARMS
            for kind in ("substitutions", "deletions", "insertions", "errors")
        ],
        ("delta_word_errors", _FLOAT),
        ("word_reference_length", _FLOAT),
        ("delta_char_errors", _FLOAT),
        ("char_reference_length", _FLOAT),
        ("clean_sha256", _TEXT),
        ("reverb_sha256", _TEXT),
    ]
)
SECONDS_SCHEMA = pa.schema(
    [("id", _TEXT), ("arm", _TEXT), ("seconds", _FLOAT), ("front_end_seconds", _FLOAT), ("duration_s", _FLOAT)]
)


def score_of(estimate: Estimate) -> Score:
    """An estimate as it stands in a result: what is not finite is null."""

    def finite(number: float) -> float | None:
        return number if math.isfinite(number) else None

    interval = estimate.interval
    return Score(value=finite(estimate.value), low=finite(interval.low), high=finite(interval.high), n=estimate.n)


class Difference(FileModel):
    """A difference of two rates (`absolute`), by the rate it is compared with (`relative`), and a test of 0.

    `p_value` is that of the two-sided sign-flip test over utterances (`exact`: all sign patterns were tried), null
    without pairs.
    """

    absolute: Score
    relative: Score
    p_value: float | None
    exact: bool


class Rates(FileModel):
    """One rate clean and in the room, and what the room costs: `delta` = reverberant − clean."""

    clean: Score
    reverb: Score
    delta: Difference


class KindRates(FileModel):
    """One kind of error per reference token, clean and in the room, and the change."""

    clean: Score
    reverb: Score
    change: Score


class Spread(FileModel):
    """Standard deviations over rooms (see `metrics.paired_arms.RoomSpread`)."""

    within_utterances: Score
    between_rooms: Score
    room_component: Score


class Bin(FileModel):
    """The pairs above `low` and at most `high` (null is open); both null with `known` false: the value is not known.

    `p_holm` belongs to the main metric's delta, corrected over the bins.
    """

    number: int
    known: bool
    low: float | None
    high: float | None
    pairs: int
    utterances: int
    rooms: int
    rates: dict[str, Rates]
    p_holm: float | None


class MapCell(FileModel):
    """The pairs of one bin of RT60 and one of DRR (numbers as in `Bin`), with the main metric."""

    rt60: int
    drr: int
    pairs: int
    utterances: int
    rooms: int
    rates: Rates


class Onset(FileModel):
    """From which RT60 on the main metric is lost.

    `threshold_s` with its interval and `slope_per_s` are the change point's (see `metrics.change_point`); null where no
    growing loss was found, `high_s` also where some resamples have none. `significant_from_s` is the lower edge of the
    first bin from which on all bins lose significantly, tested from the most reverberant down; 0 if all do, null if
    none does.
    """

    method: str
    threshold_s: float | None
    low_s: float | None
    high_s: float | None
    slope_per_s: float | None
    p_value: float | None
    n: int
    significant_from_s: float | None


class ArmFailures(FileModel):
    """How many of `n` clips went wrong, and how; no failure is turned into text."""

    n: int
    undecodable: int
    loops: int
    truncated: int
    empty: int
    hallucinations: int


class Effect(FileModel):
    """What the front end changes against none, paired: with − without, so below 0 it helps.

    `clean`, `reverb` are differences of the arm's rates by metric, `delta` the difference of the two deltas. `by_rt60`
    and `by_drr` map bin numbers to the difference in the reverberant arm. `seconds_per_second` is what it takes per
    second of sound.
    """

    clean: dict[str, Difference]
    reverb: dict[str, Difference]
    delta: dict[str, Difference]
    by_rt60: dict[int, Difference]
    by_drr: dict[int, Difference]
    seconds_per_second: float | None


class DataInfo(FileModel):
    """What was read. `partial`: only `n` of `n_total` pairs, so it stands beside no full result.

    `edges` are those of the bins, by the column that they belong to.
    """

    speech: str
    speech_version: str
    rooms: str
    rooms_version: str
    license: str
    revision: str
    config: str
    language: str
    split: str
    n: int
    n_total: int
    utterances: int
    responses: int
    rooms_used: int
    partial: bool
    edges: dict[str, list[float]]
    manifest_sha256: str
    recipe: dict[str, Any]


class SystemInfo(FileModel):
    """What was judged. `parameters` are those of the transcriber, null where its weights do not tell."""

    name: str
    front_end: dict[str, Any] | None
    transcriber: dict[str, Any]
    preset: str
    parameters: int | None
    normalizer: str
    normalizer_version: str


class ArmTiming(FileModel):
    """Seconds of one arm; each sound counts once."""

    audio_s: float
    transcribe_s: float
    front_end_s: float
    rtfx: float | None


class Measured(FileModel):
    """One recognizer alone in a process of its own: memory at its peak; `load_s` until the first clip was heard."""

    load_s: float
    peak_memory_mb: float
    peak_gpu_memory_mb: float | None
    device: str


class Result(FileModel):
    """The versioned summary of one recognizer on the pairs of one language.

    `rates` has `wer`, `wer_macro`, `cer`, `cer_macro` (as far as they apply to the language); `main_metric` is the one
    that bins, map and onset are about. `other_normalizers` has the corpus rates under other text normalizers.
    `inputs_sha256` covers all that the scores follow from.
    """

    schema_version: Literal["1"] = SCHEMA_VERSION
    benchmark: Literal["rir_mega"] = BENCHMARK
    benchmark_version: str
    squtr_version: str
    inputs_sha256: str
    data: DataInfo
    system: SystemInfo
    main_metric: str
    rates: dict[str, Rates]
    other_normalizers: dict[str, dict[str, Rates]]
    kinds: dict[str, dict[str, KindRates]]
    spread: Spread
    by_rt60: list[Bin]
    by_drr: list[Bin]
    map: list[MapCell]
    onset: Onset
    effect: Effect | None
    failures: dict[str, ArmFailures]
    timing: Timing
    arm_timing: dict[str, ArmTiming]
    measured: Measured | None = None
    environment: Environment
    seed: int
    resamples: int

    @property
    def key(self) -> tuple[str, str]:
        """Recognizer and config."""
        return self.system.name, self.data.config

    @property
    def main(self) -> Rates:
        """The main metric."""
        return self.rates[self.main_metric]


@dataclass(frozen=True)
class PairRecord:
    """A result with its per-pair table (`PAIR_SCHEMA`), and the seconds of each clip (`SECONDS_SCHEMA`).

    The seconds are None where nothing was heard, or where they were not read.
    """

    result: Result
    pairs: pa.Table
    seconds: pa.Table | None = None


def pairs_table(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The per-pair table of these rows, all columns of `PAIR_SCHEMA` required."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=PAIR_SCHEMA)


def write_record(folder: Path, record: PairRecord) -> Path:
    """Write a record below `folder` and return the path of its JSON, which is written last."""
    write_tables(result_path(folder, *record.result.key), {"pairs": record.pairs, "seconds": record.seconds})
    return write_result(folder, record.result)


def write_result(folder: Path, result: Result) -> Path:
    """Write the JSON of a result below `folder` and return its path. Its tables lie beside it already."""
    return write_model(result_path(folder, *result.key), result)


def read_result(path: Path) -> Result:
    """The result in a JSON file. Raises `DataError` naming file and field."""
    return read_model(Result, path, otherwise=f"no result of {BENCHMARK}")


def read_record(path: Path) -> PairRecord:
    """The result in a JSON file, with the per-pair table beside it. Raises `DataError` naming the file."""
    result = read_result(path)
    return PairRecord(result, read_result_table(path, "pairs", PAIR_SCHEMA, rows=result.data.n))


def read_records(folder: Path) -> list[PairRecord]:
    """All records below `folder`, in path order. Raises `DataError` if there are none or a table is missing."""
    return [read_record(path) for path in result_paths(folder, command=f"squtr evaluate {BENCHMARK}")]


def is_rir_mega(path: Path) -> bool:
    """Whether a JSON file is a result of this benchmark, by what it says itself; False for what cannot be read."""
    return is_of_benchmark(path, BENCHMARK)


def holds_rir_mega(folder: Path) -> bool:
    """Whether the results below `folder` are this benchmark's. Raises `DataError` where only some of them are."""
    return holds_benchmark(folder, BENCHMARK)
