"""Tables of clips that others published: what `save_to_disk` wrote, parquet, Arrow, or a metadata file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import DataError
from ..text import parse_json, tell_replaced

if TYPE_CHECKING:
    import datasets

SPLIT_NAMES = {"validation": "validation", "val": "validation", "valid": "validation", "dev": "validation",
               "test": "test"}  # fmt: skip
TABLES = ("metadata.jsonl", "metadata.csv", "metadata.json")


class PublishedTable:
    """Rows by position: of a `datasets.Dataset`, or of a list."""

    def __init__(self, rows: datasets.Dataset | list[dict[str, Any]]) -> None:
        self._rows = rows
        self._light = rows

    def hide(self, columns: Iterable[str]) -> None:
        """Leave columns out of `light`: looking at all rows then reads no audio."""
        if not isinstance(self._rows, list):
            self._light = self._rows.remove_columns(list(columns))

    @property
    def columns(self) -> list[str]:
        if isinstance(self._rows, list):
            # Optional fields may be absent from any row.
            return list(dict.fromkeys(name for row in self._rows for name in row))
        return list(self._rows.column_names)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, position: int) -> dict[str, Any]:
        row: dict[str, Any] = self._rows[position]
        return row

    def light(self, position: int) -> dict[str, Any]:
        """A row without what is hidden."""
        row: dict[str, Any] = self._light[position]
        return row


def open_tables(folder: Path) -> dict[str, PublishedTable]:
    """The tables by split: of `save_to_disk`, else parquet or Arrow, else a metadata file. Raises `DataError`."""
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        loaded = _from_disk(folder) or _from_files(folder)
    except (DatasetsError, OSError, ValueError) as error:
        raise DataError(f"{folder} cannot be loaded: {error}".rstrip(".") + ".", hint="Download it again.") from error
    tables = {}
    for split, rows in loaded.items():
        columns = [key for key, feature in rows.features.items() if isinstance(feature, datasets.Audio)]
        undecoded = rows
        for column in columns:
            undecoded = undecoded.cast_column(column, datasets.Audio(decode=False))
        tables[split] = PublishedTable(undecoded)
    return tables or _from_metadata(folder)


def _from_disk(folder: Path) -> dict[str, datasets.Dataset]:
    import datasets

    whole = sorted(folder.rglob("dataset_dict.json"), key=lambda path: (len(path.parts), path))
    if whole:
        return dict(datasets.DatasetDict.load_from_disk(str(whole[0].parent)))
    states = sorted(folder.rglob("state.json"))
    return {path.parent.name: datasets.Dataset.load_from_disk(str(path.parent)) for path in states}


def _from_files(folder: Path) -> dict[str, datasets.Dataset]:
    """Parquet or Arrow files, named one by one: the folder also holds reports that are no clips."""
    import datasets

    for kind in ("parquet", "arrow"):
        by_split: dict[str, list[str]] = {}
        for path in sorted(folder.rglob(f"*.{kind}")):
            words = re.split(r"[^a-z]+", path.relative_to(folder).as_posix().lower())
            split = next((SPLIT_NAMES[word] for word in words if word in SPLIT_NAMES), "test")
            by_split.setdefault(split, []).append(str(path))
        if by_split:
            loaded: Any = datasets.load_dataset(kind, data_files=by_split)
            return dict(loaded)
    return {}


def _from_metadata(folder: Path) -> dict[str, PublishedTable]:
    for name in TABLES:
        path = folder / name
        if not path.is_file():
            continue
        replaced: list[str] = []
        try:
            text = path.read_text(encoding="utf-8-sig")
            if name.endswith(".csv"):
                rows: Any = list(csv.DictReader(io.StringIO(text)))
            elif name.endswith(".jsonl"):
                # U+2028 and its like belong to a text.
                rows = [parse_json(line, name, replaced) for line in text.split("\n") if line.strip()]
            else:
                rows = parse_json(text, name, replaced)
        except DataError:
            raise
        except (OSError, ValueError, csv.Error) as error:
            raise DataError(f"{path} cannot be read: {error}.", hint="Download it again.") from error
        tell_replaced(replaced, str(path))
        if isinstance(rows, dict):
            lists = {key: value for key, value in rows.items() if isinstance(value, list)}
            by_split = {key: value for key, value in lists.items() if key.lower() in SPLIT_NAMES}
            lists = by_split or lists
        else:
            lists = {"test": rows}
        lists = {key: value for key, value in lists.items() if value and all(isinstance(row, dict) for row in value)}
        if lists:
            return {key: PublishedTable(value) for key, value in lists.items()}
    raise DataError(
        f"{folder} holds no table of clips.", hint=f"It needs parquet or Arrow files, or one of: {', '.join(TABLES)}."
    )
