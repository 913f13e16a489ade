"""Whether a folder of the benchmark is whole: its files, its tables, the pairing of the arms, its sound on a sample."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...errors import AudioError, UsageError
from ..audio import decode_audio
from ..keyed import keyed_seed
from ..records import Samples
from ..shard_checks import Finding, Progress, check_shards
from .data import RirMegaData
from .manifest import FOLDER, ROOMS_FOLDER, PairManifest, read_pair_manifest
from .plan import SPLITS
from .rooms import RATE
from .rows import AUDIO, COLUMNS, ROOM_COLUMNS, PairRow, pair_features, room_features
from .strata import Strata, bin_of

SAMPLE = 8
"""Pairs per split whose sound is checked, unless told otherwise."""
LEAST_CAUSAL = 0.5
"""Least `causal_share` of a pair. Of the embedded speech in the simulated rooms, pairs have 0.85 and more, clips of two
utterances a quarter on average."""
_LEAD_S = 0.005
_REGULARISATION = 1e-3


@dataclass(frozen=True, slots=True)
class PairDiagnosis:
    """What was looked at, and what is wrong. `decoded` pairs had their sound checked."""

    folder: Path
    fingerprint: str
    shards: int
    bytes: int
    pairs: int
    decoded: int
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def examine_pairs(folder: Path, *, sample: int = SAMPLE, progress: Progress | None = None) -> PairDiagnosis:
    """Check `folder` against its manifest and itself. `sample` is the number of pairs per split whose sound is decoded
    (0: none), drawn by a fixed key.

    Raises `DataError` if there is no manifest to check against, `UsageError` for a negative sample.
    """
    if sample < 0:
        raise UsageError(f"the sample is {sample}.", hint="Give a number of pairs per split, or 0 for none.")
    manifest = read_pair_manifest(folder)
    findings, sound = check_shards(folder, manifest, progress)
    decoded = 0
    if len(sound) == len(manifest.shards) and manifest.complete:
        check = _Tables(folder, manifest)
        findings += check.all()
        if not check.findings:
            more, decoded = _listen(RirMegaData(folder), sample, progress)
            findings += more
    return PairDiagnosis(
        folder=folder,
        fingerprint=manifest.recipe_fingerprint,
        shards=len(manifest.shards),
        bytes=sum(shard.bytes for shard in manifest.shards),
        pairs=sum(split.pairs for split in manifest.pair_splits.values()),
        decoded=decoded,
        findings=tuple(findings),
    )


@dataclass
class _Tables:
    """Checks of the tables; all files are as the manifest says."""

    folder: Path
    manifest: PairManifest
    findings: list[Finding] = field(default_factory=list)

    def all(self) -> list[Finding]:
        """Everything that is wrong."""
        pairs = {split: self._read(FOLDER, split) for split in SPLITS}
        rooms = {split: self._read(ROOMS_FOLDER, split) for split in SPLITS}
        known = {split: table for split, table in pairs.items() if table is not None}
        for split, table in known.items():
            self._split(split, table)
            if (there := rooms[split]) is not None:
                self._rooms(split, table, there)
        if len(known) == len(SPLITS):
            self._apart(known)
            self._strata(known)
        return self.findings

    def _add(self, kind: str, path: str, message: str, id_: str = "") -> None:
        self.findings.append(Finding(kind, path, message, id_))

    def _read(self, folder: str, split: str) -> pa.Table | None:
        """A table without its sound, None if it has another form."""
        rooms = folder == ROOMS_FOLDER
        schema = (room_features() if rooms else pair_features()).arrow_schema
        columns = list(ROOM_COLUMNS) if rooms else [name for name in COLUMNS if name not in AUDIO]
        pieces = []
        shards = [s for s in self.manifest.shards if s.path.startswith(f"{folder}/{split}-")]
        if not shards:
            self._add("missing", f"{folder}/{split}", f"the manifest lists no file of {folder}/{split}")
            return None
        for shard in shards:
            try:
                with pq.ParquetFile(self.folder / shard.path) as file:
                    there = file.schema_arrow
                    if there.names != schema.names or there.types != schema.types:
                        differing = sorted(set(map(str, there)) ^ set(map(str, schema))) or ["their order"]
                        message = f"{shard.path} has other columns than squtr writes: {', '.join(differing)}"
                        self._add("columns", shard.path, message)
                        return None
                    if file.metadata.num_rows != shard.rows:
                        message = f"{shard.path} has {file.metadata.num_rows} rows, the manifest says {shard.rows}"
                        self._add("rows", shard.path, message)
                    pieces.append(file.read(columns=columns))
            except (OSError, pa.ArrowException) as error:
                self._add("unreadable", shard.path, f"{shard.path} cannot be read: {error}")
                return None
        table = pa.concat_tables(pieces)
        for name in columns:
            if nulls := table.column(name).null_count:
                self._add("null", f"{folder}/{split}", f"{folder}/{split}: {nulls} cells of {name} are empty")
        return table

    def _split(self, split: str, table: pa.Table) -> None:
        place, said = f"{FOLDER}/{split}", self.manifest.pair_splits.get(split)
        if said is None:
            self._add("value", place, f"the manifest does not know the split {split}")
            return
        counts = {
            "pairs": table.num_rows,
            "utterances": pc.count_distinct(table.column("utterance_id")).as_py(),
            "responses": pc.count_distinct(table.column("rir_id")).as_py(),
            "rooms": pc.count_distinct(table.column("room_id")).as_py(),
        }
        for name, count in counts.items():
            if count != getattr(said, name):
                self._add("value", place, f"{place} has {count} {name}, the manifest says {getattr(said, name)}")
        seen: set[str] = set()
        spoken: dict[str, tuple[object, ...]] = {}
        strata = Strata(tuple(self.manifest.edges["rt60_s"]), tuple(self.manifest.edges["drr_db"]), by_drr=False)
        by_drr = self.manifest.recipe.get("stratify") == "rt60+drr"
        for row in table.to_pylist():
            id_ = row["sample_id"]
            if id_ in seen:
                self._add("ids", place, f"{place}: the sample {id_!r} occurs twice", id_)
            seen.add(id_)
            same = tuple(row[name] for name in ("subset", "language", "speaker", "text", "duration_s", "clean_gain_db"))
            if spoken.setdefault(row["utterance_id"], same) != same:
                message = f"{place}: the utterance {row['utterance_id']!r} differs between its rooms, in {id_!r}"
                self._add("pairing", place, message, id_)
            for problem in _values(row, self.manifest):
                self._add("value", place, f"{place}: {problem} of {id_!r}", id_)
            wanted = _stratum(row, strata, by_drr=by_drr)
            if row["stratum"] != wanted:
                message = f"{place}: {id_!r} is in the stratum {row['stratum']}, its room belongs into {wanted}"
                self._add("value", place, message, id_)

    def _rooms(self, split: str, table: pa.Table, rooms: pa.Table) -> None:
        place = f"{ROOMS_FOLDER}/{split}"
        counts = table.column("rir_id").value_counts().to_pylist()
        uses = {entry["values"]: entry["counts"] for entry in counts}
        listed = dict(zip(rooms.column("rir_id").to_pylist(), rooms.column("pairs").to_pylist(), strict=True))
        for rir_id in sorted(uses.keys() | listed.keys()):
            if uses.get(rir_id, 0) != listed.get(rir_id, 0):
                message = (
                    f"{place} says that {listed.get(rir_id, 0)} pairs are in {rir_id!r}, and {uses.get(rir_id, 0)} are"
                )
                self._add("pairing", place, message, rir_id)
                return
        same = ["room_id", "rt60_s", "drr_db", "c50_db", "onset_samples", "stratum"]
        known = {row["rir_id"]: row for row in rooms.select(["rir_id", *same]).to_pylist()}
        early = bool(self.manifest.recipe.get("early_only"))
        for row in table.select(["sample_id", "rir_id", *same]).to_pylist():
            room = known[row["rir_id"]]
            # Of an early part, the direct path may lie elsewhere than in the whole response.
            differing = [n for n in same if not _equal(row[n], room[n]) and not (early and n == "onset_samples")]
            if differing:
                name, id_ = differing[0], row["sample_id"]
                message = f"{place}: {name} of {row['rir_id']!r} is {room[name]!r}, in the pair {id_!r} {row[name]!r}"
                self._add("pairing", place, message, id_)
                return

    def _apart(self, tables: dict[str, pa.Table]) -> None:
        for column, what in (("room_id", "room"), ("utterance_id", "utterance"), ("sample_id", "sample")):
            sets = [set(table.column(column).to_pylist()) for table in tables.values()]
            shared = sorted(sets[0] & sets[1])
            if shared:
                message = f"{len(shared)} {what}s are in both splits, first {shared[0]!r}"
                self._add("pairing", FOLDER, message, shared[0])

    def _strata(self, tables: dict[str, pa.Table]) -> None:
        for stratum in self.manifest.strata:
            for split, table in tables.items():
                count = pc.sum(pc.equal(table.column("stratum"), stratum.name)).as_py() or 0
                if count != getattr(stratum, split):
                    message = (
                        f"{FOLDER}/{split} has {count} pairs of {stratum.name}, the manifest says "
                        f"{getattr(stratum, split)}"
                    )
                    self._add("value", f"{FOLDER}/{split}", message)


def _equal(one: object, other: object) -> bool:
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return both_nan or one == other


def _stratum(row: dict[str, Any], strata: Strata, *, by_drr: bool) -> str:
    rt60, drr = bin_of(row["rt60_s"], strata.rt60_edges), bin_of(row["drr_db"], strata.drr_edges)
    name = f"rt60_{'unknown' if rt60 is None else rt60 + 1}"
    return f"{name}_drr_{'unknown' if drr is None else drr + 1}" if by_drr else name


def _values(row: dict[str, Any], manifest: PairManifest) -> Iterator[str]:
    """What is impossible in a row."""
    if not (math.isfinite(row["duration_s"]) and row["duration_s"] > 0.0):
        yield f"the duration_s {row['duration_s']!r}"
    elif not row["reverb_duration_s"] >= row["duration_s"]:
        yield f"the reverb_duration_s {row['reverb_duration_s']!r}, less than the clean clip's,"
    for name in ("gain_db", "clean_gain_db"):
        if not row[name] <= 0.0:
            yield f"the {name} {row[name]!r}"
    if row["onset_samples"] < 0:
        yield f"the onset_samples {row['onset_samples']!r}"
    level = manifest.recipe.get("snr_db")
    if (level is None) != (row["noise_id"] == "") or (level is not None and row["snr_db"] != level):
        yield f"the noise {row['noise_id']!r} at {row['snr_db']!r} dB"


def _listen(data: RirMegaData, sample: int, progress: Progress | None) -> tuple[list[Finding], int]:
    findings: list[Finding] = []
    decoded = 0
    for split in SPLITS:
        ids = data.sample_ids(split)
        chosen = sorted(range(len(ids)), key=lambda position: keyed_seed(0, "rir_mega doctor", ids[position]))[:sample]
        for number, position in enumerate(sorted(chosen)):
            pair = next(data.pairs(split, position, position + 1))
            findings += _heard(pair, f"{FOLDER}/{split}", noisy=data.recipe.get("snr_db") is not None)
            decoded += 1
            if progress:
                progress(f"listening to {split}", number + 1, len(chosen))
    return findings, decoded


def _heard(pair: PairRow, place: str, *, noisy: bool) -> Iterator[Finding]:
    clips: list[Samples] = []
    for arm, audio, duration_s in (
        ("clean", pair.clean_audio, pair.duration_s),
        ("reverberant", pair.reverb_audio, pair.reverb_duration_s),
    ):
        try:
            samples, rate = decode_audio(audio, f"the {arm} clip of {pair.sample_id!r}")
        except AudioError as error:
            yield Finding("audio", place, f"{place}: {error.message}".rstrip("."), pair.sample_id)
            return
        if rate != RATE or samples.size != round(duration_s * RATE):
            message = (
                f"{place}: the {arm} clip of {pair.sample_id!r} has {samples.size} samples at {rate} Hz, "
                f"{duration_s:.4f} s at {RATE} Hz were said"
            )
            yield Finding("audio", place, message, pair.sample_id)
            return
        if not samples.any():
            yield Finding("audio", place, f"{place}: the {arm} clip of {pair.sample_id!r} is silent", pair.sample_id)
            return
        clips.append(samples)
    if not noisy and (share := causal_share(clips[0], clips[1])) < LEAST_CAUSAL:
        message = (
            f"{place}: the arms of {pair.sample_id!r} do not belong together ({share:.0%} of what leads from one to "
            "the other comes after it)"
        )
        yield Finding("pairing", place, message, pair.sample_id)


def causal_share(clean: Samples, reverb: Samples, rate: int = RATE) -> float:
    """How much of the response that leads from (T,) `clean` to (T + n,) `reverb` lies at or after time 0, and within
    the length that was added and half a second more: nearly 1 for a pair, far less for clips of two utterances.

    The response is the quotient of both spectra, with little weight where the clean clip has no energy.
    """
    import numpy as np
    from scipy import fft

    size = fft.next_fast_len(clean.size + reverb.size, real=True)
    one, two = (fft.rfft(samples.astype(np.float64), size) for samples in (clean, reverb))
    power = np.square(np.abs(one))
    response = fft.irfft(two * np.conj(one) / (power + _REGULARISATION * float(power.max())), size)
    energy = np.square(response)
    lead = round(_LEAD_S * rate)
    reach = max(0, reverb.size - clean.size) + rate // 2
    return float((energy[:reach].sum() + energy[-lead:].sum()) / energy.sum())
