"""A small set of questions with audio, and answerers whose behavior is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import soundfile
from numpy.typing import NDArray

from squtr.harness.protocols import AnswerRequest, ComponentSpec, Reply, Transcript

QUESTIONS: list[dict[str, Any]] = [
    {"id": "q1", "audios": ["a1"], "options": ["Uno", "Dos", "Tres"], "answer": "Dos"},
    {"id": "q2", "audios": ["a1"], "options": ["Rojo", "Verde"], "answer": "Rojo", "question_audio": "p2"},
    {"id": "q3", "audios": ["a1", "a2"], "options": ["Sí", "No", "A veces", "Nunca"], "answer": "Nunca"},
    {"id": "q4", "audios": ["gone"], "options": ["Sol", "Luna"], "answer": "Luna"},
    {"id": "q5", "audios": ["a2"], "options": ["Pan", "Vino"], "answer": "Vino", "open_ended": True},
    {"id": "i1", "audios": ["a2"], "kind": "aif", "verifiers": [{"id": "uppercase"}]},
    {"id": "i2", "audios": ["a1"], "kind": "aif", "verifiers": [{"id": "no_commas"}], "question_audio": "p2"},
]


def write_questions(folder: Path) -> Path:
    """A folder of questions whose clips differ in level; the clip `gone` is not there."""
    audio = folder / "audio"
    audio.mkdir(parents=True)
    for i, name in enumerate(("a1", "a2", "p2")):
        tone = 0.1 * (i + 1) * np.sin(np.arange(4000 * (i + 1)) / 7)
        soundfile.write(audio / f"{name}.flac", tone.astype(np.float32), 16_000)
    rows = []
    for i, given in enumerate(QUESTIONS):
        row = {
            "kind": "mcqa",
            "question": f"¿Pregunta {i}?",
            "perception": ["lexical" if i % 2 else "prosody"],
            "reasoning": ["intent"],
            **given,
        }
        if "question_audio" in row:
            row["question_voice"] = "test"
        rows.append(json.dumps(row, ensure_ascii=False))
    (folder / "questions.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


class Knows:
    """Answers right (the right option is known to it) if there is audio, else always A. It counts its work."""

    sample_rate = 16_000
    asked: ClassVar[list[AnswerRequest]] = []
    calls_left: ClassVar[int] = 10**9

    def __init__(self, *, name: str = "knows", errors: bool = False) -> None:
        self.errors = errors
        self.spec = ComponentSpec("answerer", "class", name, revision="1", settings={"errors": errors})

    def supports(self, language: str) -> bool:
        return language == "es"

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        if not Knows.calls_left:
            raise KeyboardInterrupt
        Knows.calls_left -= 1
        Knows.asked += requests
        return [self._one(request) for request in requests]

    def _one(self, request: AnswerRequest) -> Reply:
        if self.errors and len(request.audios) == 2 and not request.spoken_question:
            return Reply("", error="too much audio")
        if not request.options:
            return Reply("BIEN HECHO" if request.audios else "no, sin audio", seconds=0.25)
        right = {str(row["answer"]) for row in QUESTIONS if row.get("answer")}
        place = next(i for i, option in enumerate(request.options) if option in right)
        return Reply("ABCD"[place] if request.audios else "A", seconds=0.25)


class Broken(Knows):
    """Fails as a whole."""

    def __init__(self) -> None:
        super().__init__(name="broken")

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        raise ValueError("no answers today")


class Marks:
    """A judge: a mark that follows from its name, now and then no JSON."""

    uses_audio = False
    sample_rate = 16_000

    def __init__(self, *, reply: str = '{"puntuacion": 4, "motivo": "Bien."}', name: str = "marks") -> None:
        self.reply = reply
        self.spec = ComponentSpec("answerer", "class", name, revision="1", settings={"reply": reply})

    def supports(self, language: str) -> bool:
        return True

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        return [Reply(self.reply) for _ in requests]


class Types:
    """A transcriber: its texts follow from the lengths of clips; it counts clips, and fails at `fails` samples."""

    sample_rate = 16_000
    clips: ClassVar[int] = 0

    def __init__(self, *, fails: int = 0) -> None:
        self.fails = fails
        self.spec = ComponentSpec("transcriber", "class", "types", revision="1", settings={"fails": fails})

    def supports(self, language: str) -> bool:
        return language == "es"

    def transcribe(self, clips: Sequence[NDArray[np.float32]], *, language: str) -> list[Transcript]:
        Types.clips += len(clips)
        return [
            Transcript("", error="no words")
            if clip.size == self.fails
            else Transcript(f"texto de {clip.size}", seconds=0.5)
            for clip in clips
        ]


class Reads:
    """An LLM: chooses A, or the option whose letter its setting says; it counts its requests."""

    uses_audio = False
    sample_rate = 16_000
    asked: ClassVar[list[AnswerRequest]] = []

    def __init__(self, *, letter: str = "A") -> None:
        self.letter = letter
        self.spec = ComponentSpec("answerer", "class", f"reads {letter}", revision="1", settings={"letter": letter})

    def supports(self, language: str) -> bool:
        return True

    def answer(self, requests: Sequence[AnswerRequest]) -> list[Reply]:
        Reads.asked += requests
        return [Reply(self.letter, seconds=0.125) for _ in requests]


def reset() -> None:
    """Forget what was counted."""
    Knows.asked.clear()
    Reads.asked.clear()
    Types.clips = 0
    Knows.calls_left = 10**9
