"""A row of the benchmark's data: one utterance, clean and in one room, and the tables that rows are stored in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..records import NAN
from .rooms import RATE, MeasuredRir

if TYPE_CHECKING:
    import datasets

AUDIO = ("clean_audio", "reverb_audio")

_UNSAFE = re.compile(r"[^\w.@-]+")


@dataclass(frozen=True, slots=True)
class PairRow:
    """An utterance, clean and in a room. What does not apply is NaN for numbers and "" for texts.

    Both clips are complete 16 kHz mono FLAC files (16 bit) of the same recording, aligned at their first sample: the
    reverberant one is cut at the direct path and keeps its tail, so it is longer. Times in s, levels in dB.

    - `sample_id`: unique; `utterance_id` and `rir_id` joined by "@".
    - `room_id`: the room of the response `rir_id`; no room is in two splits.
    - `duration_s`, `reverb_duration_s`: length of the clean and of the reverberant clip.
    - `rt60_s` (with `rt60_method` "T30" or "T20"), `edt_s`, `drr_db`, `c50_db`, `c80_db`: measured by `rir_measures`
      on the whole response; `source_rt60_s`, `source_drr_db`, `source_c50_db`: what its publisher says.
    - `onset_samples`: what was cut from the response before its direct path, at 16 kHz.
    - `gain_db`, `clean_gain_db`: the gain that kept the peak of the reverberant and of the clean clip at or below 0.9.
      Nothing else was done to levels, but that a response has unit energy.
    - `noise_id`, `noise_family`, `noise_offset_s`, `snr_db`: noise added after the room, against the reverberant
      speech.
    - `stratum`: the group of rooms that the pair was drawn from.
    """

    sample_id: str
    utterance_id: str
    subset: str
    language: str
    speaker: str
    text: str
    clean_audio: bytes
    reverb_audio: bytes
    duration_s: float
    reverb_duration_s: float
    rir_id: str
    room_id: str
    rt60_s: float = NAN
    rt60_method: str = ""
    edt_s: float = NAN
    drr_db: float = NAN
    c50_db: float = NAN
    c80_db: float = NAN
    source_rt60_s: float = NAN
    source_drr_db: float = NAN
    source_c50_db: float = NAN
    onset_samples: int = 0
    gain_db: float = 0.0
    clean_gain_db: float = 0.0
    noise_id: str = ""
    noise_family: str = ""
    noise_offset_s: float = NAN
    snr_db: float = NAN
    stratum: str = ""


COLUMNS = tuple(field.name for field in fields(PairRow))
_INTEGERS = {"onset_samples"}
_TEXTS = {
    "sample_id", "utterance_id", "subset", "language", "speaker", "text", "rir_id", "room_id", "rt60_method",
    "noise_id", "noise_family", "stratum",
}  # fmt: skip

_SHARED = ("sample_id", "utterance_id", "subset", "language", "speaker", "text", "duration_s")
CONFIGS: Mapping[str, tuple[str, ...]] = {
    "paired": COLUMNS,
    "clean": (*_SHARED, "clean_audio", "clean_gain_db"),
    "reverb": tuple(name for name in COLUMNS if name not in {"clean_audio", "clean_gain_db"}),
}
"""Config to its columns. All three read the same files: an arm is a choice of columns, so nothing is stored twice."""

ROOMS_CONFIG = "rooms"
ROOM_COLUMNS = (
    "rir_id", "room_id", "stratum", "pairs", "rt60_s", "rt60_method", "edt_s", "drr_db", "c50_db", "c80_db",
    "source_rt60_s", "source_drr_db", "source_c50_db", "onset_samples", "reasons", "decay_db",
)  # fmt: skip


def pair_features(columns: Sequence[str] = COLUMNS) -> datasets.Features:
    """The features of pairs. The sound is not decoded by default, which needs no FFmpeg."""
    import datasets

    found: dict[str, Any] = {}
    for name in columns:
        if name in AUDIO:
            found[name] = datasets.Audio(sampling_rate=RATE, decode=False)
        elif name in _TEXTS:
            found[name] = datasets.Value("string")
        else:
            found[name] = datasets.Value("int64" if name in _INTEGERS else "float64")
    return datasets.Features(found)


def room_features() -> datasets.Features:
    """The features of the rooms: measures, why one is missing (`reasons`, as text), and the decay curve (`decay_db`,
    every 10 ms from the direct path on)."""
    import datasets

    texts = {"rir_id", "room_id", "stratum", "rt60_method", "reasons"}
    found: dict[str, Any] = {}
    for name in ROOM_COLUMNS:
        if name == "decay_db":
            found[name] = datasets.List(datasets.Value("float32"))
        elif name in texts:
            found[name] = datasets.Value("string")
        else:
            found[name] = datasets.Value("int64" if name in {"pairs", "onset_samples"} else "float64")
    return datasets.Features(found)


def config_features(config: str) -> datasets.Features:
    """The features of a config."""
    return room_features() if config == ROOMS_CONFIG else pair_features(CONFIGS[config])


def clip_name(sample_id: str, arm: str) -> str:
    """The file name of a clip, for people who save it.

    >>> clip_name("61-70968-0000@hall/rir 1", "clean")
    '61-70968-0000@hall_rir_1_clean.flac'
    """
    return f"{_UNSAFE.sub('_', sample_id)}_{arm}.flac"


def pair_table(rows: Sequence[PairRow], schema: pa.Schema) -> pa.Table:
    """A table of pairs, with the columns of `schema`."""
    listed = []
    for row in rows:
        values = {name: getattr(row, name) for name in schema.names}
        for name in AUDIO:
            if name in values:
                arm = name.removesuffix("_audio")
                # The clean clip is named after the utterance: in every room it is the same.
                owner = row.utterance_id if arm == "clean" else row.sample_id
                values[name] = {"bytes": values[name], "path": clip_name(owner, arm)}
        listed.append(values)
    return pa.Table.from_pylist(listed, schema=schema)


def row_of(values: Mapping[str, Any]) -> PairRow:
    """The row that a stored one holds."""
    return PairRow(**{name: values[name]["bytes"] if name in AUDIO else values[name] for name in COLUMNS})


def room_table(rooms: Iterable[tuple[MeasuredRir, str, int]], schema: pa.Schema) -> pa.Table:
    """A table of rooms: each with its stratum and the number of pairs that are in it."""
    return pa.Table.from_pylist(
        [
            {
                "rir_id": room.rir_id,
                "room_id": room.room_id,
                "stratum": stratum,
                "pairs": pairs,
                "rt60_s": room.rt60_s,
                "rt60_method": room.rt60_method,
                "edt_s": room.edt_s,
                "drr_db": room.drr_db,
                "c50_db": room.c50_db,
                "c80_db": room.c80_db,
                "source_rt60_s": room.source_rt60_s,
                "source_drr_db": room.source_drr_db,
                "source_c50_db": room.source_c50_db,
                "onset_samples": room.onset_samples,
                "reasons": "; ".join(f"{name}: {reason}" for name, reason in room.reasons),
                "decay_db": list(room.decay_db),
            }
            for room, stratum, pairs in rooms
        ],
        schema=schema,
    )
