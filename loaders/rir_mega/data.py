"""The benchmark's data as the harness reads it: pairs of clean and reverberant clips by sample id.

    data = RirMegaData(Path("rooms-en"))
    data.edges                      # {"rt60_s": [...], "drr_db": [...]}, fixed: bin i is above edge i-1, at most edge i
    for pair in data.pairs("test"): # PairRow: clean_audio, reverb_audio (FLAC), text, language, rt60_s, stratum, …

`pairs(split, start, stop)` reads a range of positions and nothing else; `arm(split, "clean", …)` gives one arm in the
form that the recognition stages take. The rows of one utterance lie side by side and share their clean clip.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ...errors import DataError, unknown_name
from ..manifest import MANIFEST_NAME, Shard
from ..data import rows_between
from ..records import NAN, SpokenQuery
from .manifest import FOLDER, ROOMS_FOLDER, PairManifest, Stratum, read_pair_manifest
from .plan import SPLITS
from .rows import AUDIO, COLUMNS, PairRow, row_of
from .strata import bin_of

Arm = Literal["clean", "reverb"]
ARMS: tuple[Arm, ...] = ("clean", "reverb")
Pair = PairRow
"""What `pairs` yields."""


class PairData(Protocol):
    """Pairs of clean and reverberant clips, wherever they come from."""

    @property
    def recipe(self) -> Mapping[str, Any]:
        """What decides the data, as JSON object."""
        ...

    @property
    def revision(self) -> str:
        """The fingerprint of the recipe."""
        ...

    @property
    def manifest_sha256(self) -> str:
        """The sha256 of `manifest.json`, "" for data that was not built."""
        ...

    @property
    def splits(self) -> Mapping[str, int]:
        """Split to its number of pairs."""
        ...

    @property
    def edges(self) -> Mapping[str, Sequence[float]]:
        """Edges of the bins to report by (see `strata.bin_of`). The keys are the columns that hold the values: `rt60_s`
        and `drr_db`, or `source_rt60_s` and `source_drr_db` where nothing could be measured."""
        ...

    @property
    def strata(self) -> Sequence[Stratum]:
        """The groups of rooms that pairs were drawn from."""
        ...

    def pairs(self, split: str, start: int = 0, stop: int | None = None) -> Iterator[Pair]:
        """The pairs at positions `start` to `stop` (not included) of a split."""
        ...

    def arm(self, split: str, arm: Arm, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """One arm of the pairs at positions `start` to `stop`."""
        ...


class RirMegaData:
    """A folder that `squtr build rir_mega` wrote. Raises `DataError` if it is missing, unfinished or damaged."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise DataError(f"{folder} does not exist.", hint="Run `squtr build rir_mega` first, or check the path.")
        self.folder = folder
        self.manifest: PairManifest = read_pair_manifest(folder)
        if not self.manifest.complete:
            raise DataError(f"the build in {folder} is not finished.", hint="Run the same `squtr build` again.")
        self.recipe: Mapping[str, Any] = self.manifest.recipe
        self.revision: str = self.manifest.recipe_fingerprint
        self.edges: Mapping[str, Sequence[float]] = self.manifest.edges
        self.strata: Sequence[Stratum] = self.manifest.strata
        self.splits: Mapping[str, int] = {name: self.manifest.pair_splits[name].pairs for name in SPLITS}
        self.languages: Sequence[str] = tuple(dict.fromkeys(self.manifest.subsets.values()))

    @cached_property
    def manifest_sha256(self) -> str:
        """The sha256 of `manifest.json`."""
        return hashlib.sha256((self.folder / MANIFEST_NAME).read_bytes()).hexdigest()

    def pairs(self, split: str, start: int = 0, stop: int | None = None) -> Iterator[Pair]:
        """The pairs at positions `start` to `stop` (not included) of a split, in order; others are not read.

        A row group (about 32 pairs) is held at a time. Raises `UnknownNameError` for another split, `DataError` for a
        file that is missing or was changed.
        """
        for batch in self._batches(FOLDER, split, list(COLUMNS), start, stop):
            for row in batch.to_pylist():
                yield row_of(row)

    def arm(self, split: str, arm: Arm, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        """One arm of the pairs at positions `start` to `stop`, as `SpokenQuery`: `id` is the sample id, `condition` the
        arm, and of the clean arm the room's values are not applicable. The other arm's sound is not read."""
        if arm not in ARMS:
            raise unknown_name("arm", arm, ARMS)
        other = AUDIO[1] if arm == "clean" else AUDIO[0]
        columns = [name for name in COLUMNS if name != other]
        for batch in self._batches(FOLDER, split, columns, start, stop):
            for row in batch.to_pylist():
                yield spoken_arm(row_of(row | {other: {"bytes": b""}}), arm)

    def sample_ids(self, split: str) -> list[str]:
        """The sample ids of a split, in the order of `pairs`."""
        ids: list[str] = []
        for batch in self._batches(FOLDER, split, ["sample_id"], 0, None):
            ids += batch.column(0).to_pylist()
        return ids

    def table(self, split: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of a split without sound, all rows."""
        for name in columns:
            if name not in COLUMNS or name in AUDIO:
                raise unknown_name("column without sound:", name, [c for c in COLUMNS if c not in AUDIO])
        return pa.Table.from_batches(list(self._batches(FOLDER, split, list(columns), 0, None)))

    def rooms(self, split: str) -> list[dict[str, Any]]:
        """The rooms of a split as dictionaries (see `ROOM_COLUMNS`); `decay_db` is the decay every 10 ms."""
        return [row for batch in self._batches(ROOMS_FOLDER, split, None, 0, None) for row in batch.to_pylist()]

    def bin_of(self, column: str, value: float) -> int | None:
        """The number (from 0) of the bin in which a value of `rt60_s` or `drr_db` lies; None if it is not known."""
        if column not in self.edges:
            raise unknown_name("column with bins:", column, self.edges)
        return bin_of(value, self.edges[column])

    def _shards(self, folder: str, split: str) -> list[Shard]:
        if split not in SPLITS:
            raise unknown_name("split", split, SPLITS)
        return [shard for shard in self.manifest.shards if shard.path.startswith(f"{folder}/{split}-")]

    def _batches(
        self, folder: str, split: str, columns: list[str] | None, start: int, stop: int | None
    ) -> Iterator[pa.RecordBatch]:
        at = 0  # the position of the shard's first row
        for shard in self._shards(folder, split):
            first, at = at, at + shard.rows
            if at <= start or (stop is not None and first >= stop):
                continue
            path = self.folder / shard.path
            try:
                with pq.ParquetFile(path) as file:
                    if file.metadata.num_rows != shard.rows:
                        raise DataError(
                            f"{path} has {file.metadata.num_rows} rows, the manifest says {shard.rows}.",
                            hint="Build the folder again.",
                        )
                    yield from rows_between(file, start - first, (at if stop is None else stop) - first, columns)
            except (OSError, pa.ArrowException) as error:
                raise DataError(f"{path} cannot be read: {error}.", hint="Build the folder again.") from error


def spoken_arm(pair: Pair, arm: Arm) -> SpokenQuery:
    """One arm of a pair in the form that the recognition stages take."""
    clean = arm == "clean"
    return SpokenQuery(
        id=pair.sample_id,
        subset=pair.subset,
        language=pair.language,
        text=pair.text,
        audio=pair.clean_audio if clean else pair.reverb_audio,
        duration_s=pair.duration_s if clean else pair.reverb_duration_s,
        condition=arm,
        snr_db=NAN if clean else pair.snr_db,
        noise_id="" if clean else pair.noise_id,
        noise_family="" if clean else pair.noise_family,
        noise_offset_s=NAN if clean else pair.noise_offset_s,
        rir_id="" if clean else pair.rir_id,
        rt60_s=NAN if clean else pair.rt60_s,
        drr_db=NAN if clean else pair.drr_db,
        c50_db=NAN if clean else pair.c50_db,
        onset_samples=0 if clean else pair.onset_samples,
        gain_db=pair.clean_gain_db if clean else pair.gain_db,
        speaker=pair.speaker,
    )
