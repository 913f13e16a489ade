"""One HTML page, in Spanish and without network, on which people answer a set's questions and correct its key.

It saves its notes as a download, which `read_review` reads. A reply counts only if it came before the key was shown.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ...errors import DataError
from ..pages import MAX_AUDIO_BYTES, TEMPLATES, asset, audio_url, json_data, read_saved, render, write_page
from .data import QuestionData
from .labels import PERCEPTION, REASONING
from .question import Question, check_question

SCHEMA = "squtr-questions-review/1"
_PAGE = TEMPLATES / "questions_review"


@dataclass(frozen=True, slots=True)
class QuestionPage:
    path: Path
    items: int
    left_out: int
    missing: int


def write_review(
    data: QuestionData, out: Path, *, config: str = "all", limit: int = 0, max_bytes: int = MAX_AUDIO_BYTES
) -> QuestionPage:
    """Write the page of a config's questions whose audio is there, in order; `limit` is the most of them (0: all)."""
    able = [question for question in data.questions(config) if data.has(question)]
    missing = len(data.questions(config)) - len(able)
    cards: list[dict[str, Any]] = []
    size = 0
    for question in able[: limit or None]:
        spoken = question.spoken and data.status(question.question_audio) == "ok"
        wanted = question.all_audios if spoken else question.audios
        clips = [audio.read_bytes() if isinstance(audio, Path) else audio for audio in map(data.audio, wanted)]
        size += sum(map(len, clips))
        if size > max_bytes:
            break
        cards.append(_card(question, clips))
    left_out = len(able) - len(cards)
    page = render(
        _PAGE,
        "page.html",
        lang="es",
        title=f"Preguntas de {data.name}",
        style=asset(TEMPLATES / "common", "review.css") + asset(_PAGE, "style.css"),
        script=asset(_PAGE, "script.js"),
        cards=cards,
        left_out=left_out,
        missing=missing,
        data=json_data({"schema": SCHEMA, "set": data.manifest_sha256}),
    )
    return QuestionPage(write_page(out, page), len(cards), left_out, missing)


def _card(question: Question, clips: Sequence[bytes]) -> dict[str, Any]:
    captions = ["Primera grabación", "Segunda grabación"] if question.comparative else ["Audio"]
    captions.append("Pregunta hablada")
    labels = [PERCEPTION[label] for label in question.perception] + [REASONING[label] for label in question.reasoning]
    return {
        "question": question,
        "clips": list(zip(captions, map(audio_url, clips), strict=False)),
        "checks": json.dumps([dict(verifier) for verifier in question.verifiers], ensure_ascii=False),
        "labels": ", ".join(labels),
    }


class Note(BaseModel):
    """What a person noted on one question. `answer` is the option that should be the key, "" if it is right."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    reply: str = ""
    revealed: bool = False
    mark: Literal["accept", "reject", ""] = ""
    answer: str = ""
    comment: str = ""


class Review(BaseModel):
    """The file that the page saves; `set` is the `manifest_sha256` of the set that the page was made from."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["squtr-questions-review/1"] = Field(alias="schema")
    set: str
    items: list[Note]


def read_review(path: Path, data: QuestionData) -> Review:
    """The notes in a file that the page saved. Raises `DataError` for another file, another set, an unknown item."""
    review = read_saved(path, Review)
    if review.set != data.manifest_sha256:
        raise DataError(
            f"{path} is about another set than {data.folder}.", hint="Give the set that the page was made from."
        )
    known = {question.id for question in data.questions()}
    for note in review.items:
        if note.id not in known:
            raise DataError(f"{path}: there is no item {note.id!r}.", hint="Give the set that the page was made from.")
    return review


def human_replies(review: Review) -> list[dict[str, str]]:
    """The replies as rows `{"id", "reply"}`, which `squtr score mcqa` and `squtr score aif` read."""
    return [{"id": note.id, "reply": note.reply} for note in review.items if note.reply.strip()]


def corrected_questions(questions: Sequence[Question], review: Review) -> list[Question]:
    """The questions with corrected keys, without discarded ones. Raises `DataError` for a key not among options."""
    notes = {note.id: note for note in review.items}
    kept = []
    for question in questions:
        note = notes.get(question.id)
        if note is not None and note.mark == "reject":
            continue
        mended = replace(question, answer=note.answer) if note is not None and note.answer else question
        kept.append(check_question(mended))
    return kept
