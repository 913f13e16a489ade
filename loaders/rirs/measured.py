"""The RIRs of a bank, measured once, with what their publisher says beside it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...errors import AudioError
from ..banks.details import own_values, read_at, room_of
from ..banks.protocols import RirBank
from ..faults import Fault, Faults
from ..home import squtr_home
from ..in_order import SIGNAL_PACKAGES, import_before_threads, in_order
from ..records import NAN, Samples
from ..rir_checks import check_is_rir
from ..rir_measures import decay_curve, measure_rir
from ..shards import replace_file

MEASURES = (
    "rt60_s", "rt60_method", "edt_s", "drr_db", "c50_db", "c80_db", "source_rt60_s", "source_drr_db", "source_c50_db",
)  # fmt: skip
"""What a row says of its RIR: measures and the publisher's values."""

DECAY_STEP_S, DECAY_DECIMALS = 0.01, 2
MEASURES_VERSION = "2"
"""Raised whenever the same RIR would give other measures: what was kept is then measured again."""

Progress = Callable[[int, int], None]
"""Called with the number of RIRs measured and the number there are."""


@dataclass(frozen=True, slots=True)
class MeasuredRir:
    """A RIR: room, measures, publisher's values (NaN where there are none, see `reasons`), decay in dB per 10 ms."""

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


def measured_rir(bank: RirBank, rir_id: str, rir: Samples, rate: int, *, decay: bool = False) -> MeasuredRir:
    """Measure (L,) `rir`, a RIR of `bank` at `rate` Hz, with its decay curve if asked. Raises `AudioError`."""
    measures = measure_rir(check_is_rir(rir, f"the impulse response {rir_id!r} of {bank.name}", rate), rir_id, rate)
    published = own_values(bank, rir_id)
    curve = decay_curve(rir, rir_id, rate, DECAY_STEP_S) if decay else ()
    return MeasuredRir(
        rir_id=rir_id,
        room_id=room_of(bank, rir_id),
        rt60_s=measures.rt60_s,
        rt60_method=measures.rt60_method,
        edt_s=measures.edt_s,
        drr_db=measures.drr_db,
        c50_db=measures.c50_db,
        c80_db=measures.c80_db,
        source_rt60_s=published.get("rt60_s", NAN),
        source_drr_db=published.get("drr_db", NAN),
        source_c50_db=published.get("c50_db", NAN),
        onset_samples=measures.onset_samples,
        reasons=tuple(sorted(measures.reasons.items())),
        decay_db=tuple(round(float(level), DECAY_DECIMALS) for level in curve),
    )


def measure_rirs(
    bank: RirBank, rate: int, *, workers: int = 0, progress: Progress | None = None
) -> tuple[MeasuredRir, ...]:
    """All RIRs of a bank, sorted by id, measured at `rate` Hz.

    Raises `AudioError` that lists all RIRs that cannot be used. What was measured is kept in
    `$SQUTR_HOME/rir_measures`, under everything that decides it; where that folder cannot be written, only time is
    lost.
    """
    ids = bank.rirs()
    report = progress or (lambda *_: None)
    path = squtr_home() / "rir_measures" / f"{_key(bank, ids, rate)}.json"
    kept = _read(path, ids)
    if kept is not None:
        report(len(ids), len(ids))
        return kept
    found: list[MeasuredRir] = []
    faults = Faults()

    def measure(rir_id: str) -> MeasuredRir | Fault:
        try:
            return measured_rir(bank, rir_id, read_at(bank, rir_id, rate), rate, decay=True)
        except AudioError as error:
            return Fault.of(error)

    import_before_threads(*SIGNAL_PACKAGES)
    for number, rir in enumerate(in_order(measure, ids, workers=workers or os.cpu_count() or 1), start=1):
        if isinstance(rir, Fault):
            faults.add([rir])
        else:
            found.append(rir)
        report(number, len(ids))
    faults.refuse(f"the RIR bank {bank.name}")
    with contextlib.suppress(OSError):
        replace_file(path, json.dumps([asdict(rir) for rir in found]).encode())
    return tuple(found)


def rirs_digest(rirs: Sequence[MeasuredRir]) -> str:
    """The first 16 hex digits of the sha256 over ids, rooms, measures and publisher's values."""
    digest = hashlib.sha256()
    for rir in rirs:
        values = {key: value for key, value in asdict(rir).items() if key not in {"decay_db", "reasons"}}
        digest.update(json.dumps(values, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()[:16]


def is_known(value: float) -> bool:
    return not math.isnan(value)


def _key(bank: RirBank, ids: Sequence[str], rate: int) -> str:
    """Everything that decides the measures: the bank's content, and what its metadata say now."""
    digest = hashlib.sha256(f"{MEASURES_VERSION}\n{rate}\n{bank.name}\n{bank.version}\n".encode())
    for rir_id in ids:
        published = json.dumps([rir_id, room_of(bank, rir_id), dict(own_values(bank, rir_id))], sort_keys=True)
        digest.update(published.encode() + b"\n")
    return digest.hexdigest()[:32]


def _read(path: Path, ids: Sequence[str]) -> tuple[MeasuredRir, ...] | None:
    try:
        rirs = tuple(_of_json(row) for row in json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError):
        # Not there, or not whole: measured again.
        return None
    return rirs if [rir.rir_id for rir in rirs] == list(ids) else None


def _of_json(row: Mapping[str, object]) -> MeasuredRir:
    values = dict(row)
    reasons, decay = values["reasons"], values["decay_db"]
    if not (isinstance(reasons, list) and isinstance(decay, list)):
        raise TypeError("a kept RIR has no lists.")
    values["reasons"] = tuple((str(name), str(reason)) for name, reason in reasons)
    values["decay_db"] = tuple(float(level) for level in decay)
    return MeasuredRir(**values)  # type: ignore[arg-type]
