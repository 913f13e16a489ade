"""The responses of a RIR bank as the benchmark sees them: measured once, with what their publisher says beside it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...errors import UsageError
from ..banks import load_rir_bank
from ..banks.details import own_values, read_at, room_of
from ..banks.protocols import RirBank
from ..home import squtr_home
from ..records import NAN
from ..rir_measures import decay_curve, measure_rir
from ..rows import in_order
from ..shards import replace_file

RATE = 16_000
"""Sample rate of clips and responses in Hz: that of LibriSpeech, of RIR-Mega and of the published set."""

EARLY_S = 0.05
"""How long after the direct path sound counts as early (the limit of C50, ISO 3382-1)."""

DECAY_STEP_S, DECAY_DECIMALS = 0.01, 2
MEASURES_VERSION = "1"
"""Raised whenever the same response would give other measures: what was kept is then measured again."""

RIR_MEGA, RIR_MEGA_SPLITS = "rir_mega", ("train", "val", "test")

Progress = Callable[[int, int], None]
"""Called with the number of responses measured and the number there are."""


@dataclass(frozen=True, slots=True)
class MeasuredRir:
    """A response: its room, its measures (see `RirMeasures`), its publisher's values, and its decay in dB every 10 ms.

    Numbers are NaN where there are none; `reasons` says why a measure is missing.
    """

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
    reasons: tuple[tuple[str, str], ...] = ()
    decay_db: tuple[float, ...] = ()


def open_rirs(name: str, channel: int | None = None) -> RirBank:
    """The RIR bank called `name`, as `load_rir_bank` knows it; `rir_mega:train` is RIR-Mega's train split as well.

    A folder of that name is written `./train`. Raises what `load_rir_bank` raises.
    """
    kind, _, place = name.partition(":")
    if kind == RIR_MEGA and place in RIR_MEGA_SPLITS and not Path(place).is_dir():
        name = f"{RIR_MEGA}?split={place}"
    return load_rir_bank(name, channel)


def measured_room(bank: RirBank, rir_id: str) -> MeasuredRir:
    """Measure a response. Raises `AudioError` naming it where it cannot be used."""
    response = read_at(bank, rir_id, RATE)
    measures = measure_rir(response, rir_id, RATE)
    said = own_values(bank, rir_id)
    return MeasuredRir(
        rir_id=rir_id,
        room_id=room_of(bank, rir_id),
        rt60_s=measures.rt60_s,
        rt60_method=measures.rt60_method,
        edt_s=measures.edt_s,
        drr_db=measures.drr_db,
        c50_db=measures.c50_db,
        c80_db=measures.c80_db,
        source_rt60_s=said.get("rt60_s", NAN),
        source_drr_db=said.get("drr_db", NAN),
        source_c50_db=said.get("c50_db", NAN),
        onset_samples=measures.onset_samples,
        reasons=tuple(sorted(measures.reasons.items())),
        decay_db=tuple(
            round(float(level), DECAY_DECIMALS) for level in decay_curve(response, rir_id, RATE, DECAY_STEP_S)
        ),
    )


def measure_rirs(bank: RirBank, *, workers: int = 0, progress: Progress | None = None) -> tuple[MeasuredRir, ...]:
    """All responses of a bank, sorted by id.

    What was measured is kept in `$SQUTR_HOME/rir_measures`, under everything that decides it; where that folder cannot
    be written, only time is lost.
    """
    ids = bank.rirs()
    report = progress or (lambda *_: None)
    path = squtr_home() / "rir_measures" / f"{_key(bank, ids)}.json"
    kept = _read(path, ids)
    if kept is not None:
        report(len(ids), len(ids))
        return kept
    found = []
    for room in in_order(lambda rir_id: measured_room(bank, rir_id), ids, workers=workers or os.cpu_count() or 1):
        found.append(room)
        report(len(found), len(ids))
    with contextlib.suppress(OSError):
        replace_file(path, json.dumps([asdict(room) for room in found]).encode())
    return tuple(found)


def rirs_digest(rooms: Sequence[MeasuredRir]) -> str:
    """The first 16 hex digits of the sha256 over ids, rooms, measures and publisher's values."""
    digest = hashlib.sha256()
    for room in rooms:
        values = {key: value for key, value in asdict(room).items() if key not in {"decay_db", "reasons"}}
        digest.update(json.dumps(values, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()[:16]


def early_part(onset: int, length: int, rate: int = RATE) -> slice:
    """The samples of a response of `length` samples up to 50 ms after its direct path at `onset`.

    >>> early_part(100, 16000)
    slice(0, 900, None)
    """
    if not 0 <= onset < length:
        raise UsageError(f"the direct path {onset} lies outside of a response of {length} samples.")
    return slice(0, min(length, onset + round(EARLY_S * rate)))


def _key(bank: RirBank, ids: Sequence[str]) -> str:
    """Everything that decides the measures: the bank's content, and what its metadata say now."""
    digest = hashlib.sha256(f"{MEASURES_VERSION}\n{RATE}\n{bank.name}\n{bank.version}\n".encode())
    for rir_id in ids:
        said = json.dumps([rir_id, room_of(bank, rir_id), dict(own_values(bank, rir_id))], sort_keys=True)
        digest.update(said.encode() + b"\n")
    return digest.hexdigest()[:32]


def _read(path: Path, ids: Sequence[str]) -> tuple[MeasuredRir, ...] | None:
    try:
        rows = json.loads(path.read_bytes())
        rooms = tuple(_room_of_json(row) for row in rows)
    except (OSError, ValueError, TypeError, KeyError):
        # Not there, or not whole: measured again.
        return None
    return rooms if [room.rir_id for room in rooms] == list(ids) else None


def _room_of_json(row: Mapping[str, object]) -> MeasuredRir:
    values = dict(row)
    reasons, decay = values["reasons"], values["decay_db"]
    if not (isinstance(reasons, list) and isinstance(decay, list)):
        raise TypeError("a kept room has no lists.")
    values["reasons"] = tuple((str(name), str(reason)) for name, reason in reasons)
    values["decay_db"] = tuple(float(level) for level in decay)
    return MeasuredRir(**values)  # type: ignore[arg-type]


def is_known(value: float) -> bool:
    """Whether a measure is there."""
    return not math.isnan(value)
