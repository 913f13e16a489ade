"""Marks: what people decided on a review page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ..pages import read_saved
from ..synthesis.speech_folder import SpeechRow, write_text

MARKS = "review.json"
SCHEMA = "squtr-review/1"


class Mark(BaseModel):
    """One person's mark on one clip. `mark` is "" for a comment alone; `sha256` is that of the clip that it is for."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    id: str = Field(alias="_id")
    subset: str
    sha256: str
    mark: Literal["accept", "reject", ""]
    comment: str = ""


class _File(BaseModel):
    schema_: Literal["squtr-review/1"] = Field(alias="schema")
    marks: list[Mark]


def read_marks_file(path: Path) -> list[Mark]:
    """The marks in a file that the review page saved. Raises `DataError` for anything else."""
    return read_saved(path, _File).marks


def read_marks(root: Path) -> dict[tuple[str, str], Mark]:
    """The marks that were applied to the folder, by subset and id."""
    path = root / MARKS
    return {(mark.subset, mark.id): mark for mark in read_marks_file(path)} if path.is_file() else {}


def add_marks(
    root: Path, marks: Iterable[Mark], rows: Mapping[tuple[str, str], SpeechRow]
) -> tuple[list[Mark], list[Mark]]:
    """Keep `marks`, each in place of an earlier one, but for stale ones (query or clip is gone): (kept, stale)."""
    kept, stale = [], []
    together = read_marks(root)
    for mark in marks:
        row = rows.get((mark.subset, mark.id))
        if row is None or row.sha256 != mark.sha256 or not row.sha256:
            stale.append(mark)
            continue
        kept.append(mark)
        together[mark.subset, mark.id] = mark
    content = {"schema": SCHEMA, "marks": [mark.model_dump(by_alias=True) for mark in together.values()]}
    write_text(root / MARKS, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return kept, stale
