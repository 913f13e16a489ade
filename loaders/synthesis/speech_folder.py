"""A folder of synthesized queries: clips, a journal of what was spoken, and the index that sources read.

speech.jsonl     the index: what is good, in the order of the queries; read with `?speech=DIR` (see `sources`)
rejected.jsonl   the rest, each row with its reasons
clips/<subset>/  24 kHz mono FLAC files
journal.jsonl    one `SpeechRow` per finished query, appended as it is done; a stopped run continues from it
synthesis.json   the settings that decide the speech
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...errors import DataError, RecipeMismatchError, StorageError
from ..jsonl import read_object
from ..records import Query
from ..shards import replace_file
from ..sources.clips import clip_path

INDEX, REJECTED, JOURNAL, SETTINGS = "speech.jsonl", "rejected.jsonl", "journal.jsonl", "synthesis.json"

JOINT = " & "
"""Between the names of several transcribers of one row."""


class SpeechRow(BaseModel):
    """One query. `tts_error_rate` is None if not measured, `failure` why there is no clip, `sha256` of the samples.

    `rates` are those of all takes, `rates_by_transcriber` those of the chosen take, of which the highest is
    `tts_error_rate`; `numbers_missed` are numbers of the text that a transcript lacks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    id: str = Field(alias="_id")
    subset: str
    language: str
    text: str
    spoken_text: str
    file: str = ""
    voice: str = ""
    speaker: str = ""
    license: str = ""
    duration_s: float = 0.0
    tts_error_rate: float | None = None
    transcript: str = ""
    transcript_error: str = ""
    transcriber: str = ""
    candidates: int = 0
    rates: list[float | None] = []
    rates_by_transcriber: list[float | None] = []
    numbers_missed: list[str] = []
    seed: int = 0
    sha256: str = ""
    failure: str = ""

    @property
    def key(self) -> tuple[str, str]:
        return self.subset, self.id

    def line(self, **more: Any) -> str:
        return json.dumps({**self.model_dump(by_alias=True), **more}, ensure_ascii=False, allow_nan=False) + "\n"


def number_or_none(value: float) -> float | None:
    """A rate as JSON: None for NaN, else rounded to 6 digits.

    >>> number_or_none(1 / 3), number_or_none(float("nan"))
    (0.333333, None)
    """
    return None if math.isnan(value) else round(value, 6)


def is_speech_folder(folder: Path) -> bool:
    return (folder / JOURNAL).is_file()


class SpeechFolder:
    def __init__(self, root: Path) -> None:
        self.root = root
        self._rows: dict[tuple[str, str], SpeechRow] | None = None

    def settle(self, settings: Mapping[str, Any], voices: Mapping[str, list[str]]) -> None:
        """Store the settings, or raise `RecipeMismatchError` naming the first that differs; `voices` by language."""
        path = self.root / SETTINGS
        wanted = json.loads(json.dumps({"settings": dict(settings), "voices": dict(voices)}))
        if path.is_file():
            stored = read_object(path)
            for group in ("settings", "voices"):
                for key, value in wanted[group].items():
                    before = stored.get(group, {}).get(key, value if group == "voices" else None)
                    if before != value:
                        raise RecipeMismatchError(
                            f"{self.root} was spoken with {key} = {_short(before)}, now it is {_short(value)}.",
                            hint="Choose another --out, or the same settings.",
                        )
            wanted["voices"] = {**stored.get("voices", {}), **wanted["voices"]}
        write_text(path, json.dumps(wanted, ensure_ascii=False, indent=2, sort_keys=True) + "\n")

    def rows(self) -> dict[tuple[str, str], SpeechRow]:
        """The last row of every query, by subset and id, without a torn last line. Raises `DataError`."""
        if self._rows is None:
            path = self.root / JOURNAL
            if not path.is_file():
                raise DataError(f"{self.root} holds no synthesized speech ({JOURNAL}).", hint="Run squtr synthesize.")
            self._rows = {}
            lines = path.read_bytes().split(b"\n")
            for number, line in enumerate(lines, start=1):
                if not line.strip():
                    continue
                try:
                    row = SpeechRow.model_validate_json(line)
                except ValidationError as error:
                    if number == len(lines):
                        break  # the run was stopped while it wrote this line
                    raise DataError(
                        f"{path}, line {number}: {error.errors()[0]['msg']}.",
                        hint="Remove the line; it is spoken again.",
                    ) from error
                self._rows[row.key] = row
        return self._rows

    def is_current(self, query: Query, spoken_text: str) -> bool:
        """Whether the journal has this very text, and its clip (or its failure) is there.

        A clip that could not be transcribed is not: that may have been the fault of the transcriber.
        """
        row = self._known().get((query.subset, query.id))
        if row is None or (row.text, row.spoken_text, row.language) != (query.text, spoken_text, query.language):
            return False
        if row.transcript_error:
            return False
        return bool(row.failure) or (self.root / row.file).is_file()

    def store_clip(self, row: SpeechRow, audio: bytes) -> SpeechRow:
        file = f"clips/{_file_name(row.subset)}/{_file_name(row.id)}.flac"
        write_bytes(self.root / file, audio)
        return row.model_copy(update={"file": file})

    def append(self, rows: Iterable[SpeechRow]) -> None:
        known = self._known()
        path = self.root / JOURNAL
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+b") as journal:
                end = journal.seek(0, 2)
                if end:
                    journal.seek(end - 1)
                    if journal.read(1) != b"\n":
                        _drop_torn_line(path, journal)
                for row in rows:
                    journal.write(row.line().encode("utf-8"))
                    known[row.key] = row
                journal.flush()
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error}.", hint="Make room there.") from error

    def clip(self, row: SpeechRow) -> Path:
        return clip_path(self.root, row.file, f"the clip {row.file} of query {row.id!r}")

    def _known(self) -> dict[tuple[str, str], SpeechRow]:
        if self._rows is None and not (self.root / JOURNAL).is_file():
            self._rows = {}
        return self.rows()


def _drop_torn_line(path: Path, journal: Any) -> None:
    content = path.read_bytes()
    journal.truncate(content.rfind(b"\n") + 1)


def _file_name(text: str) -> str:
    """`text` as a file name that every system allows and that differs for different texts, capitals included."""
    if re.fullmatch(r"[a-z0-9_-]{1,100}", text):
        return text
    kept = "".join(c for c in text.lower() if c.isascii() and (c.isalnum() or c in "-_"))[:40]
    return f"{kept}~{hashlib.sha256(text.encode('utf-8')).hexdigest()[:16]}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}…"


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    try:
        replace_file(path, content)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error}.", hint="Check space and permissions.") from error
