"""Listening to a sample of a built data set: every clip decoded, every SNR measured again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ..errors import AudioError
from .audio import check_samples, decode_audio
from .conditions import Condition
from .keyed import keyed_seed
from .mixing import PCM_STEP, PEAK_LIMIT, Level
from .records import SAMPLE_RATE, Samples
from .remeasure import measure_snr
from .shard_checks import Finding

_COLUMNS = ["id", "audio", "duration_s", "gain_db"]


@dataclass(slots=True)
class Heard:
    """What listening gave: clips decoded, noisy ones measured and not, how far each measured level was off, in dB."""

    decoded: int = 0
    measured: int = 0
    unmeasured: int = 0
    errors_db: list[float] = field(default_factory=list)


class _Clips:
    """The rows of one condition by position; the last row group is kept."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._sizes = [pq.read_metadata(path).num_rows for path in paths]
        self._range = range(0)
        self._rows: list[dict[str, Any]] = []

    def __len__(self) -> int:
        return sum(self._sizes)

    def __getitem__(self, position: int) -> dict[str, Any]:
        if position not in self._range:
            self._load(position)
        return self._rows[position - self._range.start]

    def _load(self, position: int) -> None:
        start = 0
        for path, rows in zip(self._paths, self._sizes, strict=True):
            if position >= start + rows:
                start += rows
                continue
            with pq.ParquetFile(path) as file:
                for index in range(file.num_row_groups):
                    size = file.metadata.row_group(index).num_rows
                    if position < start + size:
                        self._rows = file.read_row_group(index, columns=_COLUMNS).to_pylist()
                        self._range = range(start, start + size)
                        return
                    start += size


def listen(
    subset: str,
    conditions: Sequence[Condition],
    *,
    places: Mapping[str, str],
    paths: Mapping[str, Sequence[Path]],
    level: Level,
    sample: int,
    heard: Heard,
) -> list[Finding]:
    """Decode `sample` queries of a subset under each of `conditions` and measure their SNR again; adds to `heard`.

    `places` (for messages) and `paths` (the shards in order) are by condition name. The queries are drawn by a fixed
    key. A level is measured against the stored `clean` or `reverb` clip of the same query.
    """
    clips = {name: _Clips(shards) for name, shards in paths.items()}
    count = min(len(of) for of in clips.values())
    findings: list[Finding] = []
    for position in sorted(sorted(range(count), key=lambda n: keyed_seed(0, "doctor", subset, str(n)))[:sample]):
        sounds: dict[str, tuple[dict[str, Any], Samples]] = {}
        for name, of in clips.items():
            row = of[position]
            try:
                sounds[name] = row, _decode(row)
            except AudioError as error:
                message = f"{places[name]}: {error.message.rstrip('.')}"
                findings.append(Finding("audio", places[name], message, row["id"]))
        heard.decoded += len(sounds)
        for condition in conditions:
            if condition.snr_db is not None and condition.name in sounds:
                partner = sounds.get("reverb" if condition.reverb else "clean")
                finding = _measure(sounds[condition.name], partner, condition.snr_db, level, heard)
                if finding is not None:
                    kind, message = finding
                    id_ = sounds[condition.name][0]["id"]
                    place = places[condition.name]
                    findings.append(Finding(kind, place, f"{place}: {id_!r} {message}", id_))
    return findings


def _measure(
    clip: tuple[dict[str, Any], Samples],
    partner: tuple[dict[str, Any], Samples] | None,
    snr_db: float,
    level: Level,
    heard: Heard,
) -> tuple[str, str] | None:
    """The kind and the words of what is wrong, None if nothing is or nothing can be measured."""
    row, noisy = clip
    if partner is None or partner[0]["id"] != row["id"]:
        heard.unmeasured += 1
        return None
    if partner[1].size != noisy.size:
        return "pairing", "is not as long as its partner without noise"
    measured = measure_snr(noisy, row["gain_db"], partner[1], partner[0]["gain_db"], level)
    if math.isnan(measured.snr_db):
        heard.unmeasured += 1
        return None
    heard.measured += 1
    error_db = abs(measured.snr_db - snr_db)
    heard.errors_db.append(error_db)
    if error_db <= measured.tolerance_db:
        return None
    return "snr", f"is at {measured.snr_db:.2f} dB instead of {snr_db:g} dB"


def _decode(row: dict[str, Any]) -> Samples:
    name = repr(row["id"])
    samples, rate = decode_audio(row["audio"]["bytes"], name)
    if rate != SAMPLE_RATE:
        raise AudioError(f"{name} has {rate} Hz instead of {SAMPLE_RATE}.")
    check_samples(samples, name)
    if not abs(samples.size / SAMPLE_RATE - row["duration_s"]) < 0.5 / SAMPLE_RATE:  # NaN included
        raise AudioError(f"{name} lasts {samples.size / SAMPLE_RATE:.3f} s, its row says {row['duration_s']:.3f} s.")
    peak = max(float(samples.max()), -float(samples.min()))
    if peak > PEAK_LIMIT + PCM_STEP:
        raise AudioError(f"{name} peaks at {peak:.4f}, above {PEAK_LIMIT}.")
    return samples
