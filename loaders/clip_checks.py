"""Checks of a sample of a data set's clips: decoded, every SNR measured again, clean and reverberant ones matched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ..errors import AudioError
from .audio import check_samples, decode_audio
from .keyed import keyed_seed
from .mixing import PCM_STEP, PEAK_LIMIT, Level
from .records import Samples
from .remeasure import measure_snr
from .shard_checks import Finding

LEAST_CAUSAL = 0.5
"""Least `causal_share` of a clean and a reverberant clip. Of the embedded speech with the simulated RIRs, pairs have
0.85 and more, clips of two utterances a quarter on average."""
_LEAD_S = 0.005
_REGULARIZATION = 1e-3
_COLUMNS = ["id", "utterance_id", "audio", "duration_s", "gain_db"]

Clip = tuple[dict[str, Any], Samples]
"""A row and its samples."""


@dataclass(slots=True)
class Checked:
    """What was checked: clips decoded, noisy ones measured and not, how far each measured level was off, in dB."""

    decoded: int = 0
    measured: int = 0
    unmeasured: int = 0
    errors_db: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StoredCondition:
    """A condition of a built folder, as its manifest describes it: `steps` are JSON objects."""

    name: str
    steps: Sequence[Mapping[str, Any]] = field(hash=False)

    def step(self, *kinds: str) -> Mapping[str, Any] | None:
        return next((step for step in self.steps if step["step"] in kinds), None)

    @property
    def snr_db(self) -> float | None:
        noise = self.step("noise")
        return None if noise is None else float(noise["snr_db"])

    @property
    def rir(self) -> str:
        """The kind of its reverberation, "" without."""
        step = self.step("rir", "early_rir")
        return str(step["step"]) if step else ""

    def partner(self, others: Sequence[StoredCondition]) -> StoredCondition | None:
        """The condition that lacks its last step alone, None if there is none."""
        return next((other for other in others if self.steps and list(other.steps) == list(self.steps)[:-1]), None)


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


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows of a condition lie: `name` (for messages), and the shards in order."""

    name: str
    paths: Sequence[Path]


def check_clips(
    subset: str,
    conditions: Mapping[StoredCondition, Place],
    rows: Mapping[str, Sequence[int]],
    *,
    rate: int,
    level: Level,
    sample: int,
    checked: Checked,
) -> list[Finding]:
    """Decode `sample` utterances of a subset under each condition and measure their SNR again; adds to `checked`.

    `rows` has, by condition name, the position of the row of each utterance. The utterances are drawn by a fixed key. A
    level is measured against the stored clip of the condition that lacks the noise alone.
    """
    clips = {condition.name: _Clips(place.paths) for condition, place in conditions.items()}
    count = min(len(positions) for positions in rows.values())
    findings: list[Finding] = []
    for utterance in sorted(sorted(range(count), key=lambda n: keyed_seed(0, "doctor", subset, str(n)))[:sample]):
        decoded: dict[str, Clip] = {}
        for condition, place in conditions.items():
            row = clips[condition.name][rows[condition.name][utterance]]
            try:
                decoded[condition.name] = row, _decode(row, rate)
            except AudioError as error:
                message = f"{place.name}: {error.message.rstrip('.')}"
                findings.append(Finding("audio", place.name, message, row["id"]))
        checked.decoded += len(decoded)
        for condition, place in conditions.items():
            if condition.name not in decoded:
                continue
            partner = condition.partner(list(conditions))
            clip, quiet = decoded[condition.name], decoded.get(partner.name) if partner else None
            finding = None
            if condition.snr_db is not None:
                finding = _measure(clip, quiet, condition.snr_db, level, checked)
            elif condition.rir == "rir" and quiet is not None:
                finding = _match(clip, quiet, rate)
            if finding is not None:
                id_ = clip[0]["id"]
                findings.append(Finding(finding[0], place.name, f"{place.name}: {id_!r} {finding[1]}", id_))
    return findings


def _measure(clip: Clip, partner: Clip | None, snr_db: float, level: Level, checked: Checked) -> tuple[str, str] | None:
    """The kind and the words of what is wrong, None if nothing is or nothing can be measured."""
    row, noisy = clip
    if partner is None or partner[0]["id"] != row["id"]:
        checked.unmeasured += 1
        return None
    if partner[1].size != noisy.size:
        return "pairing", "is not as long as its partner without noise"
    measured = measure_snr(noisy, row["gain_db"], partner[1], partner[0]["gain_db"], level)
    if math.isnan(measured.snr_db):
        checked.unmeasured += 1
        return None
    checked.measured += 1
    error_db = abs(measured.snr_db - snr_db)
    checked.errors_db.append(error_db)
    if error_db <= measured.tolerance_db:
        return None
    return "snr", f"is at {measured.snr_db:.2f} dB instead of {snr_db:g} dB"


def _match(clip: Clip, partner: Clip, rate: int) -> tuple[str, str] | None:
    """What is wrong where a reverberant clip was not made from the clean one."""
    if clip[0]["utterance_id"] != partner[0]["utterance_id"]:
        return None
    if clip[1].size < partner[1].size:
        return "pairing", "is shorter than its clean partner"
    share = causal_share(partner[1], clip[1], rate)
    if share >= LEAST_CAUSAL:
        return None
    return "pairing", f"and its clean partner do not belong together ({share:.0%} of what leads to it is causal)"


def _decode(row: dict[str, Any], expected: int) -> Samples:
    name = repr(row["id"])
    samples, rate = decode_audio(row["audio"]["bytes"], name)
    if rate != expected:
        raise AudioError(f"{name} has {rate} Hz instead of {expected}.")
    check_samples(samples, name)
    if not abs(samples.size / rate - row["duration_s"]) < 0.5 / rate:  # NaN included
        raise AudioError(f"{name} lasts {samples.size / rate:.3f} s, its row says {row['duration_s']:.3f} s.")
    peak = max(float(samples.max()), -float(samples.min()))
    if peak > PEAK_LIMIT + PCM_STEP:
        raise AudioError(f"{name} peaks at {peak:.4f}, above {PEAK_LIMIT}.")
    return samples


def causal_share(clean: Samples, reverb: Samples, rate: int) -> float:
    """How much of the response that leads from (T,) `clean` to (T + n,) `reverb` lies at or after time 0, and within
    the length that was added and half a second more: nearly 1 for a pair, far less for clips of two utterances.

    The response is the quotient of both spectra, with little weight where the clean clip has no energy.
    """
    import numpy as np
    from scipy import fft

    size = fft.next_fast_len(clean.size + reverb.size, real=True)
    one, two = (fft.rfft(samples.astype(np.float64), size) for samples in (clean, reverb))
    power = np.square(np.abs(one))
    response = fft.irfft(two * np.conj(one) / (power + _REGULARIZATION * float(power.max())), size)
    energy = np.square(response)
    lead = round(_LEAD_S * rate)
    reach = max(0, reverb.size - clean.size) + rate // 2
    return float((energy[:reach].sum() + energy[-lead:].sum()) / energy.sum())
