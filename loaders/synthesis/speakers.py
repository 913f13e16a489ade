"""The speakers whose voices an engine clones: a table with a reference clip for each.

A folder with `speakers.jsonl`, `speakers.csv` or `speakers.tsv`:

    {"id": "zh-f-001", "language": "zh", "gender": "female", "age_band": "20-29", "accent": "Beijing",
     "license": "CC0-1.0", "clip": "zh/f001.wav", "transcript": "希望你以后能够做得比我还好。"}

`clip` is relative to the table. `transcript` is what the clip says; without it an engine clones the voice alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...errors import DataError, UsageError, unknown_name
from ..jsonl import text_field
from ..sources.clips import clip_path, optional_text
from ..sources.recorded import delimited_table
from ..sources.tables import jsonl_table

TABLES = ("speakers.jsonl", "speakers.csv", "speakers.tsv")
GENDERS = ("female", "male", "other", "")


@dataclass(frozen=True, slots=True)
class Speaker:
    """One speaker. `age_band` and `accent` are free text, "" where unknown; `clip` is "" without a reference clip."""

    id: str
    language: str
    gender: str = ""
    age_band: str = ""
    accent: str = ""
    license: str = ""
    clip: str = ""
    transcript: str = ""


class SpeakerTable:
    def __init__(self, path: str | Path) -> None:
        self.path = _find_table(Path(path).expanduser())

    @property
    def folder(self) -> Path:
        return self.path.parent

    @cached_property
    def speakers(self) -> tuple[Speaker, ...]:
        """Raises `DataError` for a missing id or language, an id twice, an unknown gender, or an empty table."""
        table = jsonl_table(self.path) if self.path.suffix.lower() == ".jsonl" else delimited_table(self.path)
        found: dict[str, Speaker] = {}
        for number, row in table.rows():
            place = table.place(number)
            speaker = _speaker(row, place)
            if speaker.id in found:
                raise DataError(f"{place}: the speaker {speaker.id!r} occurs twice.", hint="Ids must be unique.")
            found[speaker.id] = speaker
        if not found:
            raise DataError(f"{self.path} names no speakers.", hint="Add at least one.")
        return tuple(found.values())

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(sorted({speaker.language for speaker in self.speakers}))

    def of_language(self, language: str) -> tuple[Speaker, ...]:
        found = tuple(speaker for speaker in self.speakers if speaker.language == language)
        if not found:
            raise UsageError(
                f"{self.path} has no speaker of {language!r}.", hint=f"It has speakers of {', '.join(self.languages)}."
            )
        return found

    def find(self, id_: str, language: str) -> Speaker:
        """The speaker `id_` of `language`. Raises `UnknownNameError` that suggests the nearest."""
        speakers = self.of_language(language)
        for speaker in speakers:
            if speaker.id == id_:
                return speaker
        raise unknown_name(f"speaker of {language!r}", id_, [speaker.id for speaker in speakers])

    def clip(self, speaker: Speaker) -> Path:
        """Raises `DataError` if the speaker has none, `AudioError` if it is missing or lies outside."""
        if not speaker.clip:
            raise DataError(f"{self.path}: the speaker {speaker.id!r} has no clip.", hint="Name one in the table.")
        return clip_path(self.folder, speaker.clip, f"the reference clip {speaker.clip} of {speaker.id!r}")

    @cached_property
    def version(self) -> str:
        """The first 12 hex digits of the sha256 over the table and the bytes of its clips."""
        digest = hashlib.sha256(self.path.read_bytes())
        for speaker in self.speakers:
            if speaker.clip:
                digest.update(hashlib.sha256(self.clip(speaker).read_bytes()).digest())
        return digest.hexdigest()[:12]

    @property
    def license(self) -> str:
        """The licenses of the reference clips, joined by "AND"; "unknown" for those without one."""
        named = {speaker.license or "unknown" for speaker in self.speakers if speaker.clip}
        return " AND ".join(sorted(named)) or "unknown"


def _find_table(path: Path) -> Path:
    if path.is_file():
        return path
    found = [path / name for name in TABLES if (path / name).is_file()]
    if not found:
        raise UsageError(
            f"{path} has no table of speakers.",
            hint=f"Write {TABLES[0]} there: one line with id, language, clip and transcript per speaker.",
        )
    if len(found) > 1:
        raise UsageError(f"{path} has several tables of speakers.", hint=f"Name one: {found[0]}.")
    return found[0]


def _speaker(row: Mapping[str, Any], place: str) -> Speaker:
    values = {
        key: optional_text(row, key, place) for key in ("gender", "age_band", "accent", "license", "clip", "transcript")
    }
    if values["gender"] not in GENDERS:
        raise DataError(
            f"{place}: the gender is {values['gender']!r}.", hint=f"Write {', '.join(GENDERS[:-1])}, or leave it out."
        )
    id_, language = text_field(row, "id", place), text_field(row, "language", place)
    if not id_ or not language:
        raise DataError(f"{place}: id or language is empty.", hint="Give both.")
    return Speaker(id_, language, **values)
