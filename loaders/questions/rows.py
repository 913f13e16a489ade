"""Questions with their audio as Arrow tables: the same columns for a built folder and for the bare name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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


def question_features() -> datasets.Features:
    """The features of questions. Audio is not decoded; `verifiers` is a JSON list, because their arguments differ."""
    import datasets

    columns: dict[str, Any] = {}
    for name in COLUMNS:
        if name in AUDIO:
            columns[name] = datasets.Audio(decode=False)
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
    return {
        "id": question.id,
        "position": position,
        "kind": question.kind,
        "question": question.question,
        "options": list(question.options),
        "answer": question.answer,
        "answer_index": question.answer_index,
        "verifiers": json.dumps([dict(v) for v in question.verifiers], ensure_ascii=False, sort_keys=True),
        "perception": list(question.perception),
        "reasoning": list(question.reasoning),
        "comparative": question.comparative,
        "spoken": question.spoken,
        "non_normative": question.non_normative,
        "aetiology": question.aetiology,
        "intelligibility": question.intelligibility,
        "sex": question.sex,
        "duration_s": question.duration_s,
        "duration_bin": question.duration_bin,
        "source_urls": list(question.source_urls),
        "audio_durations_s": list(question.audio_durations_s),
        "open_ended": question.open_ended,
        "question_voice": question.question_voice,
        "audio_ids": list(question.audios),
        "question_audio_id": question.question_audio,
        "audio_status": status,
    }


def question_of_row(row: Mapping[str, Any], place: str) -> Question:
    """The question that a row holds. Raises `DataError` naming `place` for a row that is none."""
    try:
        return Question(
            id=row["id"],
            kind=row["kind"],
            audios=tuple(row["audio_ids"]),
            question=row["question"],
            options=tuple(row["options"]),
            answer=row["answer"],
            verifiers=tuple(json.loads(row["verifiers"])),
            perception=tuple(row["perception"]),
            reasoning=tuple(row["reasoning"]),
            question_audio=row["question_audio_id"],
            question_voice=row["question_voice"],
            aetiology=row["aetiology"],
            intelligibility=row["intelligibility"],
            sex=row["sex"],
            duration_s=row["duration_s"],
            duration_bin=row["duration_bin"],
            source_urls=tuple(row["source_urls"]),
            audio_durations_s=tuple(row["audio_durations_s"]),
            open_ended=row["open_ended"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{place} holds no question: {error}.", hint="Build the folder again.") from error


def cells_of(question: Question, clips: Mapping[str, AudioBytes]) -> dict[str, Any]:
    """The audio columns of a question; what is not in `clips` is empty."""
    empty = AudioBytes()
    second = question.audios[1] if question.comparative else ""
    wanted = (question.audios[0], second, question.question_audio)
    return {name: clips.get(id_, empty).cell() for name, id_ in zip(AUDIO, wanted, strict=True)}


def row_groups(rows: Iterable[tuple[dict[str, Any], int]], schema: pa.Schema) -> Iterator[pa.Table]:
    """Rows (each with the bytes of its audio) as tables of at most `GROUP_ROWS` rows and `GROUP_BYTES` of audio."""
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


def weight_of(row: Mapping[str, Any], columns: Sequence[str] = AUDIO) -> int:
    return sum(len(row[name]["bytes"]) for name in columns)
