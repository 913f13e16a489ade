"""Small sets of questions for tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from squtr.loaders.questions.question import Question
from squtr.loaders.questions.windows import RATE

CHOICE = Question(
    "m1", "mcqa", ("clip-1",), "¿Qué pide?", ("Té", "Café", "Agua"), "Café", (), ("lexical",), ("factual",)
)
PAIR = Question(
    "m2", "mcqa", ("clip-1", "clip-2"), "¿Cuál es más larga?", ("La primera", "La segunda"), "La segunda", (),
    ("prosody", "speaker"), ("comparison",),
)  # fmt: skip
SPOKEN = replace(CHOICE, id="m3", question_audio="pregunta-m3", question_voice="espeak/es+f1")
SLOW = replace(CHOICE, id="m4", audios=("clip-3",), aetiology="als", intelligibility="low", sex="male")
TASK = Question(
    "a1", "aif", ("clip-2",), "Resúmelo en una frase.", (), "",
    ({"id": "sentences", "count": 1, "relation": "exactly"},), ("lexical",), ("abstraction",),
)  # fmt: skip
ALL = (CHOICE, PAIR, SPOKEN, SLOW, TASK)
SECONDS = {"clip-1": 1.0, "clip-2": 1.5, "clip-3": 0.5, "pregunta-m3": 0.8}

PUBLISHED: dict[str, Any] = {
    "id": "esc_0001",
    "type": "MCQA",
    "audio_path": "audio/esc_0001.wav",
    "url": "https://example.org/watch?v=1",
    "question": "¿Quién habla más?",
    "choices": ["La mujer", "El hombre", "Los dos", "Nadie"],
    "answer": "El hombre",
    "perception": ["Hablante", "Speech activity"],
    "reasoning": ["Quantitative"],
    "duration": 86.2,
    "etiology": "ELA",
    "intelligibility": "medium-low",
    "gender": "M",
    "open_ended": False,
    "is_comparative": False,
}
"""A row as the published table may write it."""


def tone(seconds: float, hz: float = 220.0) -> np.ndarray:
    return (0.3 * np.sin(2 * np.pi * hz * np.arange(round(seconds * RATE)) / RATE)).astype(np.float32)


def write_sounds(folder: Path, seconds: Mapping[str, float] = SECONDS, ending: str = "flac") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number, (id_, length) in enumerate(seconds.items()):
        soundfile.write(folder / f"{id_}.{ending}", tone(length, 200.0 + 40 * number), RATE)
    return folder


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_set(folder: Path, questions: Iterable[Question] = ALL) -> Path:
    """A folder with a table and all sound."""
    from squtr.loaders.questions.fields import row_of

    write_rows(folder / "questions.jsonl", map(row_of, questions))
    write_sounds(folder / "audio")
    return folder
