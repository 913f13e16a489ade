"""One self-contained HTML page on which people answer a set's questions by ear, check its key and correct it.

It needs no network. A file page cannot write to disk, so it saves its notes as a download, which `read_review` reads:
the replies are scored by the same code as a system's, the corrections give a new table. A reply counts only if it was
given before the key was shown. The page is in Spanish, as its listeners are.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ...errors import DataError
from ..shards import replace_file
from .data import EscuchaData
from .labels import PERCEPTION, REASONING
from .questions import Question, check_question
from .windows import Sound

SCHEMA = "squtr-escucha-review/1"
MAX_BYTES = 150_000_000
"""Sound on one page, as stored: browsers grow slow above."""
_ASSETS = Path(__file__).resolve().parent / "assets"
_COMMON_STYLE = Path(__file__).resolve().parent.parent / "quality" / "assets" / "review.css"
_KINDS = {b"fLaC": "audio/flac", b"RIFF": "audio/wav", b"OggS": "audio/ogg"}


@dataclass(frozen=True, slots=True)
class QuestionPage:
    """What was written: the path, the questions on it, those left out for size, and those without sound."""

    path: Path
    items: int
    left_out: int
    missing: int


def write_review(
    data: EscuchaData, out: Path, *, config: str = "all", limit: int = 0, max_bytes: int = MAX_BYTES
) -> QuestionPage:
    """Write the page of a config's questions whose sound is there, in order; `limit` is the most of them (0: all)."""
    able = [question for question in data.questions(config) if data.has(question)]
    missing = len(data.questions(config)) - len(able)
    cards: list[str] = []
    size = 0
    for question in able[: limit or None]:
        sounds = [(audio, _content(data.audio(audio))) for audio in question.audios]
        if question.spoken and data.status(question.question_audio) == "ok":
            sounds.append((question.question_audio, _content(data.audio(question.question_audio))))
        size += sum(len(content) for _, content in sounds)
        if size > max_bytes:
            break
        cards.append(_card(question, sounds))
    replace_file(out, _page(data, cards, len(able) - len(cards), missing).encode("utf-8"))
    return QuestionPage(out, len(cards), len(able) - len(cards), missing)


def _content(sound: Sound) -> bytes:
    return sound.read_bytes() if isinstance(sound, Path) else sound


def _page(data: EscuchaData, cards: Sequence[str], left_out: int, missing: int) -> str:
    style = _COMMON_STYLE.read_text(encoding="utf-8") + (_ASSETS / "review.css").read_text(encoding="utf-8")
    script = (_ASSETS / "review.js").read_text(encoding="utf-8")
    # Texts are untrusted. Were one ever to escape its quoting, the browser still runs and loads nothing but this.
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; media-src data:"
    head = json.dumps({"schema": SCHEMA, "set": data.manifest_sha256}).replace("<", "\\u003c")
    title = f"Preguntas de {_escape(data.name)}"
    notes = [f"{left_out:,} preguntas más no caben en esta página."] if left_out else []
    notes += [f"{missing:,} preguntas no tienen su audio."] if missing else []
    return (
        '<!DOCTYPE html>\n<html lang="es">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        '<div id="bar"><span id="count" role="status"></span><label>Ver <select id="filter">'
        '<option value="all">todas</option><option value="open">sin contestar</option>'
        '<option value="reject">con reparos</option></select></label>'
        '<button type="button" id="save">Guardar</button></div>\n'
        f"<main>\n<h1>{title}</h1>\n{''.join(f'<p>{note}</p>' for note in notes)}"
        "<p>Escucha y contesta; la clave solo se ve si la pides, y desde entonces la respuesta ya no cambia. Al final, "
        "guarda y ejecuta <code>squtr review escucha CARPETA --notes escucha-review.json</code>.</p>\n"
        '<p id="unkept" hidden>Este navegador no conserva nada: guarda antes de cerrar la página.</p>\n'
        f"{''.join(cards)}</main>\n"
        f'<script type="application/json" id="data">{head}</script>\n<script>{script}</script>\n</body>\n</html>\n'
    )


def _card(question: Question, sounds: Sequence[tuple[str, bytes]]) -> str:
    captions = ["Audio"] if not question.comparative else ["Primera grabación", "Segunda grabación"]
    captions += ["Pregunta hablada"]
    players = "".join(
        f"<figure><figcaption>{caption}</figcaption>"
        f'<audio controls preload="none" aria-label="{caption} de {_escape(question.id)}" '
        f'src="data:{_KINDS.get(content[:4], "audio/mpeg")};base64,'
        f'{base64.b64encode(content).decode("ascii")}"></audio>'
        "</figure>"
        for caption, (_, content) in zip(captions, sounds, strict=False)
    )
    name = _escape(question.id)
    if question.kind == "mcqa":
        choices = "".join(
            f'<label><input type="radio" name="r-{name}" value="{_escape(option)}">{letter}) {_escape(option)}</label>'
            for letter, option in zip("ABCDEFGHIJ", question.options, strict=False)
        )
        reply = f'<fieldset><legend class="soft">Respuesta</legend>{choices}</fieldset>'
        right = f"<p>Clave: {_escape(question.answer)}</p>"
        options = "".join(f'<option value="{_escape(o)}">{_escape(o)}</option>' for o in question.options)
        mend = f'<label>Debería ser <select aria-label="Clave correcta de {name}">'
        mend += f'<option value="">la misma</option>{options}</select></label>'
    else:
        reply = f'<textarea aria-label="Respuesta a {name}"></textarea>'
        checks = json.dumps([dict(verifier) for verifier in question.verifiers], ensure_ascii=False)
        right, mend = f"<p>Se comprueba: <code>{_escape(checks)}</code></p>", ""
    labels = ", ".join(
        [PERCEPTION[label] for label in question.perception] + [REASONING[r] for r in question.reasoning]
    )
    return (
        f'<article tabindex="0" aria-label="{name}" data-id="{name}">\n'
        f'<p class="text">{_escape(question.question)}</p>\n<p class="soft">{name}</p>\n{players}{reply}\n'
        f'<div class="key" hidden>{right}<p class="soft">{_escape(labels)}</p>{mend}</div>\n'
        '<div class="controls"><button type="button" value="reveal">Ver la clave</button>'
        '<button type="button" value="accept" aria-pressed="false">Correcta</button>'
        '<button type="button" value="reject" aria-pressed="false">Descartar</button>'
        f'<input type="text" aria-label="Comentario sobre {name}" placeholder="Comentario"></div>\n</article>\n'
    )


def _escape(value: Any) -> str:
    clean = "".join(c if c >= " " or c in "\t\n" else "\ufffd" for c in str(value))
    return html.escape(clean, quote=True)


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode('utf-8')).digest()).decode('ascii')}'"


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
    """The file that the page saves; `set` is the `manifest_sha256` of the set that was heard."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    schema_: Literal["squtr-escucha-review/1"] = Field(alias="schema")
    set: str
    items: list[Note]


def read_review(path: Path, data: EscuchaData) -> Review:
    """The notes in a file that the page saved. Raises `DataError` for another file, another set, an unknown item."""
    try:
        review = Review.model_validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist.", hint="Save the notes from the page first.") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"{path} is no file of notes ({place}: {first['msg']}).", hint="Give the file that the page saved."
        ) from error
    if review.set != data.manifest_sha256:
        raise DataError(f"{path} is about another set than {data.folder}.", hint="Give the set that was heard.")
    known = {question.id for question in data.questions()}
    for note in review.items:
        if note.id not in known:
            raise DataError(f"{path}: there is no item {note.id!r}.", hint="Give the set that was heard.")
    return review


def human_replies(review: Review) -> list[dict[str, str]]:
    """The replies as rows `{"id", "reply"}`, which `squtr score mcqa` and `squtr score aif` read."""
    return [{"id": note.id, "reply": note.reply} for note in review.items if note.reply.strip()]


def corrected(questions: Sequence[Question], review: Review) -> list[Question]:
    """The questions with their keys corrected and those marked to be discarded left out.

    Raises `DataError` naming the item whose new key is none of its options.
    """
    notes = {note.id: note for note in review.items}
    kept = []
    for question in questions:
        note = notes.get(question.id)
        if note is not None and note.mark == "reject":
            continue
        mended = replace(question, answer=note.answer) if note is not None and note.answer else question
        kept.append(check_question(mended))
    return kept
