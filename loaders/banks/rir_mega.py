"""RIR-Mega (M. Goswami, arXiv 2510.18917): impulse responses of simulated rooms, with metadata.

Its own reverberation times and ratios are kept apart from ours: its publications define them in several ways
(`own_values`). What a data set stores is measured by `room_measures`.
"""

from __future__ import annotations

import ast
import csv
import filecmp
import re
from collections.abc import Mapping
from pathlib import Path

from ...errors import DataError, unknown_name
from ..records import NAN
from .catalogue import CATALOGUE, not_fetched
from .folder import FolderRooms, walk_sounds

OWN_VALUES = {"rt60_s": "rt60", "drr_db": "drr_db", "c50_db": "c50_db", "c80_db": "c80_db"}
"""Our name of a value to its name in the metadata."""
_NOT_FINITE = re.compile(r"(?<![\w.])-?(?:nan|inf(?:inity)?)(?![\w.])", re.IGNORECASE)
_NUMPY_NUMBER = re.compile(r"\bnp\.float\d+\(([^()]*)\)")


class RirMegaRooms(FolderRooms):
    """The bank `rir_mega`: ids as published, such as `rir_000123`.

    `split` (train, val, test) takes only the responses that the metadata put there; "" takes all that are in the
    folder. A response that lies in several folders is taken once.
    """

    def __init__(self, folder: Path, channel: int | None = None, split: str = "") -> None:
        super().__init__(folder, channel, CATALOGUE["rir_mega"].licence)
        self._split = split
        self._rows: dict[str, dict[str, str]] | None = None

    @property
    def name(self) -> str:
        """`rir_mega`, with its split if one was chosen."""
        return f"rir_mega?split={self._split}" if self._split else "rir_mega"

    def own_values(self, rir_id: str) -> Mapping[str, float]:
        """What the metadata say: `rt60_s`, `drr_db`, `c50_db`, `c80_db`, NaN where they say nothing.

        Raises `UnknownNameError`, and `DataError` for metadata that cannot be read.
        """
        if rir_id not in self.files():
            raise unknown_name("impulse response", rir_id, self.files())
        row = self._metadata().get(rir_id, {})
        values: Mapping[str, object] = row
        if row.get("metrics"):
            values = _literal(row["metrics"], rir_id)
        return {ours: _number(values.get(theirs), rir_id, theirs) for ours, theirs in OWN_VALUES.items()}

    def _find(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for path in walk_sounds(self._folder):
            if not path.stem.startswith("rir_"):
                continue
            first = found.setdefault(path.stem, path)
            if first is not path and not filecmp.cmp(first, path, shallow=False):
                raise DataError(f"{first} and {path} share an id but differ.", hint="Remove one, or fetch again.")
        if not found:
            raise not_fetched(CATALOGUE["rir_mega"], self._folder, "")
        if self._split:
            rows = self._metadata()
            splits = {row.get("split", "") for row in rows.values()}
            if self._split not in splits:
                raise unknown_name("split of rir_mega:", self._split, splits - {""})
            found = {k: path for k, path in found.items() if rows.get(k, {}).get("split") == self._split}
            if not found:
                raise not_fetched(CATALOGUE["rir_mega"], self._folder, f"has no response of the split {self._split!r}")
        return dict(sorted(found.items()))

    def _metadata(self) -> dict[str, dict[str, str]]:
        if self._rows is None:
            rows: dict[str, dict[str, str]] = {}
            for path in sorted(self._folder.rglob("metadata.csv")):
                try:
                    with path.open(encoding="utf-8-sig", newline="") as lines:
                        for row in csv.DictReader(lines):
                            rows.setdefault((row.get("id") or "").strip(), row)
                except (OSError, UnicodeDecodeError, csv.Error) as error:
                    raise DataError(f"{path} cannot be read: {error}.", hint="Fetch it again.") from error
            self._rows = rows
        return self._rows


def _literal(text: str, rir_id: str) -> Mapping[str, object]:
    """The dictionary that the metadata hold as Python text, in which NaN and infinity are no literals."""
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
