"""RIR-Mega (M. Goswami, arXiv 2510.18917): impulse responses of simulated rooms, with metadata.

Its own reverberation times and ratios are kept apart from ours: its publications define them in several ways
(`own_values`). What a data set stores is measured by `rir_measures`.
"""

from __future__ import annotations

import ast
import csv
import filecmp
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import DataError, unknown_name
from ..banks.catalog import CATALOG, not_fetched
from ..banks.folder import FolderRirs
from ..banks.walk import walk_audio
from ..records import NAN

OWN_VALUES = {
    "rt60_s": ("rt60", "rt60_s", "rt60_t30", "rt60_t30_s", "t60"),
    "drr_db": ("drr_db", "drr"),
    "c50_db": ("c50_db", "c50"),
    "c80_db": ("c80_db", "c80"),
    "edt_s": ("edt", "edt_s"),
}
"""Our name of a value to its names in the metadata, in capitals or not: `metadata.csv` (version 1) and
`metadata_v2.parquet` spell them differently."""
ID_KEYS = ("id", "rir_id", "audio_id", "wav", "file_name", "file", "path")
"""Columns that may name a response, directly or by its file."""
ROOM_KEYS = ("seed_room", "room_id", "room_seed")
"""Columns that tell which room a response was simulated in."""
V2_NAME = "metadata_v2.parquet"
_NOT_FINITE = re.compile(r"(?<![\w.])-?(?:nan|inf(?:inity)?)(?![\w.])", re.IGNORECASE)
_NUMPY_NUMBER = re.compile(r"\bnp\.float\d+\(([^()]*)\)")


class RirMegaRirs(FolderRirs):
    """The bank `rir_mega`: ids as published, such as `rir_000123`.

    `split` (train, val, test) takes only the responses that the metadata put there; "" takes all that are in the
    folder. A response that lies in several folders is taken once. Where `metadata_v2.parquet` and `metadata.csv` both
    say something about it, the former holds.
    """

    def __init__(self, folder: Path, channel: int | None = None, split: str = "") -> None:
        super().__init__(folder, channel, CATALOG["rir_mega"].license)
        self._split = split
        self._rows: dict[str, dict[str, object]] | None = None

    @property
    def name(self) -> str:
        return f"rir_mega?split={self._split}" if self._split else "rir_mega"

    def own_values(self, rir_id: str) -> Mapping[str, float]:
        """`rt60_s`, `drr_db`, `c50_db`, `c80_db`, `edt_s`, NaN where the metadata say nothing. Raises `DataError`."""
        if rir_id not in self.files():
            raise unknown_name("impulse response", rir_id, self.files())
        row = self._metadata().get(rir_id, {})
        values = dict(row)
        if row.get("metrics"):
            # What has a column of its own comes from version 2 and goes first.
            held = {key.lower(): value for key, value in _literal(str(row["metrics"]), rir_id).items()}
            values = held | {key: value for key, value in values.items() if not _is_empty(value)}
        found = {}
        for ours, theirs in OWN_VALUES.items():
            numbers = (_number(values.get(name), rir_id, name) for name in theirs)
            found[ours] = next((number for number in numbers if not math.isnan(number)), NAN)
        return found

    def room_of(self, rir_id: str) -> str:
        """The room in which a response was simulated: its seed in the metadata, else the response's own id."""
        if rir_id not in self.files():
            raise unknown_name("impulse response", rir_id, self.files())
        row = self._metadata().get(rir_id, {})
        named = (str(row[key]) for key in ROOM_KEYS if not _is_empty(row.get(key)))
        room = next(named, "")
        return f"rir_mega_room_{room}" if room else rir_id

    def _find(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for path in walk_audio(self._folder):
            if not path.stem.startswith("rir_"):
                continue
            first = found.setdefault(path.stem, path)
            if first is not path and not filecmp.cmp(first, path, shallow=False):
                raise DataError(f"{first} and {path} share an id but differ.", hint="Remove one, or fetch again.")
        if not found:
            raise not_fetched(CATALOG["rir_mega"], self._folder, "")
        if self._split:
            rows = self._metadata()
            splits = {str(row.get("split") or "") for row in rows.values()}
            if self._split not in splits:
                raise unknown_name("split of rir_mega:", self._split, splits - {""})
            found = {k: path for k, path in found.items() if rows.get(k, {}).get("split") == self._split}
            if not found:
                raise not_fetched(CATALOG["rir_mega"], self._folder, f"has no response of the split {self._split!r}")
        return dict(sorted(found.items()))

    def _metadata(self) -> dict[str, dict[str, object]]:
        """Response to its row, column names in small letters."""
        if self._rows is None:
            rows: dict[str, dict[str, object]] = {}
            for path in sorted(self._folder.rglob(V2_NAME)):
                _add_rows(rows, _parquet_rows(path))
            for path in sorted(self._folder.rglob("metadata.csv")):
                _add_rows(rows, _csv_rows(path))
            self._rows = rows
        return self._rows


def _is_empty(value: object) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _add_rows(rows: dict[str, dict[str, object]], more: Iterable[Mapping[Any, object]]) -> None:
    for row in more:
        small = {str(key).strip().lower(): value for key, value in row.items() if key is not None}
        named = (str(small[key]).strip() for key in ID_KEYS if not _is_empty(small.get(key)))
        rir_id = Path(next(named, "").replace("\\", "/")).name
        rir_id = rir_id.rpartition(".")[0] if rir_id.lower().endswith((".wav", ".flac")) else rir_id
        held = rows.setdefault(rir_id, {})
        for key, value in small.items():
            if _is_empty(held.get(key)):
                held[key] = value


def _csv_rows(path: Path) -> Iterator[Mapping[str, object]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            yield from csv.DictReader(lines)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}.", hint="Fetch it again.") from error


def _parquet_rows(path: Path) -> Iterator[Mapping[str, object]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield from batch.to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read: {error}.", hint="Fetch it again.") from error


def _literal(text: str, rir_id: str) -> Mapping[str, object]:
    try:
        value = ast.literal_eval(_NOT_FINITE.sub("None", _NUMPY_NUMBER.sub(r"\1", text)))
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise DataError(f"the metrics of {rir_id!r} cannot be read: {text[:80]!r}.", hint="Fetch it again.") from error
    if not isinstance(value, dict):
        raise DataError(f"the metrics of {rir_id!r} are {text[:80]!r} and no dictionary.", hint="Fetch it again.")
    return value


def _number(value: object, rir_id: str, key: str) -> float:
    if value is None or value == "":
        return NAN
    try:
        return float(str(value))
    except ValueError as error:
        raise DataError(f"the value {key!r} of {rir_id!r} is {value!r}.", hint="Fetch the bank again.") from error
