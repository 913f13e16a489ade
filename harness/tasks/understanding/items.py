"""The records of the task: one row per prompt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import pyarrow as pa

from ....errors import DataError
from ....loaders.questions.question import Question
from ....loaders.text import has_replacement
from ...protocols import Reply
from ...results.envelope import REPLY_FLAGS, item_schema
from .answers.accuracy import McqaItem, mark
from .answers.following import AifItem, follow
from .answers.items import Reply as ScoredReply
from .answers.labels import ItemLabels
from .answers.option_text import LETTERS
from .answers.verifiers.registry import Verifier, load_verifier
from .prompting import Order, Prompt

Replies = Mapping[tuple[str, Order | None], Reply]
"""By `Prompt.key`."""

_TEXT, _TEXTS = pa.string(), pa.list_(pa.string())
SCHEMA = item_schema(
    ("kind", _TEXT),
    ("spoken", pa.bool_()),
    # The options as they were shown, as letters of the item's own ones ("CAB"); "" for the own order.
    ("order", _TEXT),
    ("question", _TEXT),
    ("options", _TEXTS),
    # The letter of the right option among the item's own; "" for an instruction.
    ("answer", _TEXT),
    # What a cascade's transcriber gave for each clip; [] without one.
    ("transcripts", _TEXTS),
    ("reply", _TEXT),
    # The letter of the item's own option that was chosen, null for none; how it was found in the reply.
    ("parsed", _TEXT),
    ("status", _TEXT),
    ("how", _TEXT),
    # 1 or 0; NaN where the audio is missing.
    ("correct", pa.float64()),
    ("verifiers", _TEXTS),
    ("followed", pa.list_(pa.bool_())),
    ("followed_loose", pa.list_(pa.bool_())),
    # "ok", or why the audio is missing.
    ("audio_status", _TEXT),
    ("audios", _TEXTS),
    ("audios_sha256", _TEXTS),
    ("duration_s", pa.float64()),
    ("perception", _TEXTS),
    ("reasoning", _TEXTS),
    ("aetiology", _TEXT),
    ("intelligibility", _TEXT),
    ("sex", _TEXT),
)


def labels_of(question: Question) -> ItemLabels:
    return ItemLabels(
        **{field.name: getattr(question, field.name) for field in fields(ItemLabels) if field.name != "more"}
    )


def verifiers_of(question: Question) -> tuple[Verifier, ...]:
    """What the reply to an instruction must follow. Raises `DataError` naming the item for one that cannot be used."""
    found = []
    for given in question.verifiers:
        arguments = {key: value for key, value in given.items() if key != "id"}
        try:
            found.append(load_verifier(str(given["id"]), arguments))
        except (DataError, ValueError) as error:
            message = error.message if isinstance(error, DataError) else str(error)
            raise DataError(f"item {question.id!r}: {message}", hint="Fix the item's verifiers.") from error
    return tuple(found)


def mcqa_item(prompt: Prompt, missing: Mapping[str, str]) -> McqaItem:
    question = prompt.question
    return McqaItem(
        prompt.id,
        question.options,
        question.answer_index,
        labels_of(question),
        prompt.id in missing,
        question.id if prompt.spoken else "",
    )


def aif_item(prompt: Prompt, missing: Mapping[str, str]) -> AifItem:
    return AifItem(prompt.id, verifiers_of(prompt.question), labels_of(prompt.question), prompt.id in missing)


def scored_reply(prompt: Prompt, missing: Mapping[str, str], replies: Replies) -> ScoredReply:
    """A reply as it is scored: one that failed, or that is not there, has no text."""
    if prompt.id in missing:
        return ScoredReply(prompt.id, None, prompt.order, missing_audio=True)
    reply = replies.get(prompt.key)
    return ScoredReply(prompt.id, None if reply is None or reply.error else reply.text, prompt.order)


def is_right(prompt: Prompt, replies: Replies) -> float:
    """1 or 0: whether a reply chose the right option, or followed all that it must."""
    replied = scored_reply(prompt, {}, replies)
    if prompt.question.kind == "aif":
        return float(all(follow(verifiers_of(prompt.question), replied.text)[0]))
    return float(mark(mcqa_item(prompt, {}), replied).right)


def item_rows(
    prompts: Sequence[Prompt],
    missing: Mapping[str, str],
    replies: Replies,
    *,
    digests: Mapping[str, str],
    transcripts: Mapping[str, str],
    subset: str,
) -> list[dict[str, Any]]:
    """The rows of `SCHEMA`.

    `missing` maps the ids of items without audio to why, `digests` and `transcripts` are by the id of an audio.
    """
    rows = []
    for prompt in prompts:
        gone = missing.get(prompt.id, "")
        reply = Reply("") if gone else replies.get(prompt.key) or Reply("", error="no reply")
        texts = [transcripts[audio] for audio in prompt.audios if audio in transcripts]
        shas = [digests.get(audio, "") for audio in prompt.audios]
        row = _row(prompt, gone, reply, shas, texts) | _marks(prompt, gone, replies)
        rows.append(row | {"subset": subset})
    return rows


def _row(prompt: Prompt, gone: str, reply: Reply, shas: list[str], transcripts: list[str]) -> dict[str, Any]:
    question = prompt.question
    flags = {
        "truncated": reply.truncated,
        "audio_truncated": reply.audio_truncated,
        "empty": not gone and not reply.error and not reply.text.strip(),
        "invalid_text": has_replacement(reply.text)
        and not any(map(has_replacement, (question.question, *question.options))),
    }
    return {
        "id": question.id,
        "cluster": question.id,
        "language": prompt.language,
        "condition": "clean",
        "audio_sha256": shas[0] if shas else "",
        "error": reply.error,
        "flags": [name for name in REPLY_FLAGS if flags[name]],
        "kind": question.kind,
        "spoken": prompt.spoken,
        "order": prompt.letters,
        "question": question.question,
        "options": list(question.options),
        "answer": "",
        "transcripts": transcripts,
        "reply": reply.text,
        "parsed": None,
        "status": "missing_audio" if gone else "",
        "how": "",
        "correct": math.nan,
        "verifiers": [],
        "followed": [],
        "followed_loose": [],
        "audio_status": gone or "ok",
        "audios": list(prompt.audios),
        "audios_sha256": shas,
        "duration_s": question.duration_s,
        "perception": list(question.perception),
        "reasoning": list(question.reasoning),
        "aetiology": question.aetiology,
        "intelligibility": question.intelligibility,
        "sex": question.sex,
    }


def _marks(prompt: Prompt, gone: str, replies: Replies) -> dict[str, Any]:
    """What the reply chose, or which instructions it followed."""
    replied = scored_reply(prompt, {}, replies)
    if prompt.question.kind == "mcqa":
        answer = LETTERS[prompt.question.answer_index]
        if gone:
            return {"answer": answer}
        marked = mark(mcqa_item(prompt, {}), replied)
        return {
            "answer": answer,
            "parsed": None if marked.chosen is None else LETTERS[marked.chosen],
            "status": "missing_reply" if marked.parsed is None else marked.parsed.status,
            "how": "" if marked.parsed is None else marked.parsed.how,
            "correct": float(marked.right),
        }
    verifiers = verifiers_of(prompt.question)
    names = [verifier.id for verifier in verifiers]
    if gone:
        return {"verifiers": names}
    strict, loose = follow(verifiers, replied.text)
    status = "followed" if all(strict) else "not_followed"
    return {
        "verifiers": names,
        "followed": strict,
        "followed_loose": loose,
        "status": "missing_reply" if replied.text is None else status,
        "correct": float(all(strict)),
    }
