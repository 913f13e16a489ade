"""Questions with their audio as Arrow tables: the same columns for a built folder and for the bare name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...errors import DataError
from .question import Question
from .statuses import Status
from .windows import AudioFile

if TYPE_CHECKING:
    import datasets

AUDIO = ("audio", "audio_2", "question_audio")
"""Columns with audio: what the question is about, what it is compared with, the question itself."""
GROUP_BYTES = 64 * 2**20
"""The most audio of a row group, and of what is held at once, but for one row that is larger by itself."""
GROUP_ROWS = 32

_TEXTS = (
    "id", "kind", "question", "answer", "verifiers", "aetiology", "intelligibility", "sex", "duration_bin",
    "question_voice", "question_audio_id", "audio_status",
)  # fmt: skip
_LISTS = ("options", "perception", "reasoning", "audio_ids", "source_urls")
_FLAGS = ("comparative", "spoken", "non_normative", "open_ended")
COLUMNS = (
    "id", "position", "kind", "question", "options", "answer", "answer_index", "verifiers", "perception", "reasoning",
    "comparative", "spoken", "non_normative", "aetiology", "intelligibility", "sex", "duration_s", "duration_bin",
    "source_urls", "audio_durations_s", "open_ended", "question_voice", "audio_ids", "question_audio_id",
    "audio_status", *AUDIO,
)  # fmt: skip
PLAIN = tuple(name for name in COLUMNS if name not in AUDIO)
_FIELDS = {field.name for field in fields(Question)}
_FIELD_OF = {"audio_ids": "audios", "question_audio_id": "question_audio"}

Row = tuple[dict[str, Any], int]
"""A row, and the bytes of its audio."""


def question_features() -> datasets.Features:
    """The features of questions. Audio is not decoded; `verifiers` is a JSON list, because their arguments differ."""
    import datasets

    from ..undecoded import UndecodedAudio

    columns: dict[str, Any] = {}
    for name in COLUMNS:
        if name in AUDIO:
            columns[name] = UndecodedAudio()
        elif name in _TEXTS:
            columns[name] = datasets.Value("string")
        elif name in _LISTS:
            columns[name] = datasets.List(datasets.Value("string"))
        elif name in _FLAGS:
            columns[name] = datasets.Value("bool")
        elif name == "audio_durations_s":
            columns[name] = datasets.List(datasets.Value("float64"))
        else:
            columns[name] = datasets.Value("float64" if name == "duration_s" else "int64")
    return datasets.Features(columns)


@dataclass(frozen=True, slots=True)
class AudioBytes:
    """A clip's file as it is stored: its bytes, and a name with the right ending. Empty where there is none."""

    content: bytes = b""
    name: str = ""

    def cell(self) -> dict[str, Any]:
        return {"bytes": self.content, "path": self.name}


def audio_bytes(audio: AudioFile, id_: str, ending: str = ".flac") -> AudioBytes:
    if isinstance(audio, Path):
        return AudioBytes(audio.read_bytes(), f"{id_}{audio.suffix.lower()}")
    return AudioBytes(audio, f"{id_}{ending}")


def plain_row(question: Question, position: int, status: Status) -> dict[str, Any]:
    """The columns of a question without audio; `status` is "ok" or that of its first missing clip."""
    verifiers = json.dumps([dict(v) for v in question.verifiers], ensure_ascii=False, sort_keys=True)
    own = {"position": position, "verifiers": verifiers, "audio_status": status}
    row = {name: getattr(question, _FIELD_OF.get(name, name)) for name in PLAIN if name not in own}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in row.items()} | own


def question_of_row(row: Mapping[str, Any], place: str) -> Question:
    """The question that a row holds. Raises `DataError` naming `place` for a row that is none."""
    try:
        stored = {field: row[column] for column in PLAIN if (field := _FIELD_OF.get(column, column)) in _FIELDS}
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
        return Question(**(values | {"verifiers": tuple(json.loads(row["verifiers"]))}))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{place} holds no question: {error}.", hint="Build the folder again.") from error


def full_row(question: Question, position: int, status: Status, audio: Callable[[str], AudioFile | None]) -> Row:
    """A row with the bytes of its audio; `audio` gives a clip by id, None where it is not there.

    Where one of two clips is missing, the other is left out too: the question cannot be answered.
    """
    wanted = question.all_audios if status == "ok" else (question.question_audio,)
    found = ((id_, audio(id_)) for id_ in wanted if id_)
    clips = {id_: audio_bytes(clip, id_) for id_, clip in found if clip is not None}
    row = plain_row(question, position, status) | cells_of(question, clips)
    return row, sum(len(clip.content) for clip in clips.values())


def cells_of(question: Question, clips: Mapping[str, AudioBytes]) -> dict[str, Any]:
    """The audio columns of a question; what is not in `clips` is empty."""
    empty = AudioBytes()
    second = question.audios[1] if question.comparative else ""
    wanted = (question.audios[0], second, question.question_audio)
    return {name: clips.get(id_, empty).cell() for name, id_ in zip(AUDIO, wanted, strict=True)}


def row_groups(rows: Iterable[Row], schema: pa.Schema) -> Iterator[pa.Table]:
    """Rows as tables of at most `GROUP_ROWS` rows and `GROUP_BYTES` of audio."""
    group: list[dict[str, Any]] = []
    size = 0
    for row, weight in rows:
        if group and (len(group) == GROUP_ROWS or size + weight > GROUP_BYTES):
            yield pa.Table.from_pylist(group, schema=schema)
            group, size = [], 0
        group.append(row)
        size += weight
    if group:
        yield pa.Table.from_pylist(group, schema=schema)
