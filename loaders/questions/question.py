"""One question about audio as a value, and the checks that every question passes wherever it comes from."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import DataError, nearest
from ..records import NAN
from .labels import PERCEPTION, REASONING

Kind = Literal["mcqa", "aif"]
KINDS: tuple[Kind, ...] = ("mcqa", "aif")

SEXES = ("female", "male")
INTELLIGIBILITY = ("low", "medium-low", "medium", "high-medium", "high")
"""From the least to the most intelligible; "" where it was not judged."""
MOST_OPTIONS = 10
_BAD_IN_ID = frozenset('/\\:*?"<>|\0\n\r\t')


@dataclass(frozen=True, slots=True)
class Question:
    """One item. What does not apply is NaN for numbers, "" for strings, () for lists.

    `audios` are the ids of the one clip, or of the two that are compared, in their order;
    `source_urls` and `audio_durations_s` belong to them one by one ("" and NaN where not known). `duration_s` is that
    of all audio the question is about. `options` and `answer` (the text of one option) are those of multiple choice.
    `verifiers` are those of an instruction: objects `{"id": …, arguments …}`, which the harness interprets.
    `question_audio` is the id of the question spoken aloud; the written question stays beside it. `aetiology` is "" for
    ordinary speech, else why it is not ("als", "stroke", …); `intelligibility` and `sex` are of its speaker.
    `duration_bin` is what the publisher calls its length, whose edges are not published.
    """

    id: str
    kind: Kind
    audios: tuple[str, ...]
    question: str
    options: tuple[str, ...] = ()
    answer: str = ""
    verifiers: tuple[Mapping[str, Any], ...] = ()
    perception: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    question_audio: str = ""
    question_voice: str = ""
    aetiology: str = ""
    intelligibility: str = ""
    sex: str = ""
    duration_s: float = NAN
    duration_bin: str = ""
    source_urls: tuple[str, ...] = ()
    audio_durations_s: tuple[float, ...] = ()
    open_ended: bool = False

    @property
    def comparative(self) -> bool:
        return len(self.audios) == 2

    @property
    def spoken(self) -> bool:
        return bool(self.question_audio)

    @property
    def non_normative(self) -> bool:
        return bool(self.aetiology)

    @property
    def answer_index(self) -> int:
        """The position of the answer among the options, from 0; −1 where there are none."""
        return self.options.index(self.answer) if self.options else -1

    @property
    def all_audios(self) -> tuple[str, ...]:
        """The ids of all its clips: those it is about, then the spoken question."""
        return (*self.audios, self.question_audio) if self.question_audio else self.audios


CONFIGS: tuple[str, ...] = ("mcqa", "aif", "comparative", "spoken", "non_normative", "all")
"""The parts of the benchmark that can be loaded; they overlap."""


def in_config(question: Question, config: str) -> bool:
    """Whether a question belongs to a config of `CONFIGS`.

    >>> in_config(Question("q1", "mcqa", ("a", "b"), "¿Cuál?", ("Uno", "Otro"), "Uno"), "comparative")
    True
    """
    if config == "all":
        return True
    return question.kind == config if config in KINDS else bool(getattr(question, config))


def same_text(text: str) -> str:
    """What two options are compared by: NFC, without case, and with single blanks.

    >>> same_text("El  Martes ") == same_text("el martes")
    True
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def check_question(question: Question) -> Question:
    """`question` unchanged, if it can be answered and scored. Raises `DataError` naming item and field."""
    item = f"item {question.id!r}"
    _check_id(question.id, "item id", "the set")
    if question.kind not in KINDS:
        raise DataError(f"{item}: kind is {question.kind!r}.", hint=f"Known: {', '.join(KINDS)}.")
    if not question.question.strip():
        raise DataError(f"{item}: question is empty.", hint="Write the question, also where it is spoken.")
    if not 1 <= len(question.audios) <= 2 or len(set(question.audios)) != len(question.audios):
        raise DataError(f"{item}: audios is {list(question.audios)!r}.", hint="Name one clip, or two different ones.")
    for audio in question.all_audios:
        _check_id(audio, "audio id", item)
    if question.kind == "mcqa":
        _check_options(question, item)
    elif not question.verifiers:
        raise DataError(f"{item}: verifiers is empty.", hint="An instruction needs one, as {'id': …}.")
    elif question.options or question.answer:
        raise DataError(f"{item}: an instruction (aif) has options or an answer.", hint="Its verifiers decide.")
    for verifier in question.verifiers:
        if not isinstance(verifier.get("id"), str) or not verifier["id"]:
            raise DataError(f"{item}: verifiers holds {dict(verifier)!r} without an id.", hint="Write {'id': …}.")
    _check_labels(question.perception, PERCEPTION, "perception", item)
    _check_labels(question.reasoning, REASONING, "reasoning", item)
    for field, value, known in (
        ("sex", question.sex, SEXES),
        ("intelligibility", question.intelligibility, INTELLIGIBILITY),
    ):
        if value and value not in known:
            raise DataError(f"{item}: {field} is {value!r}.", hint=f"Known: {', '.join(known)}; empty if not known.")
    for field, values in (("source_urls", question.source_urls), ("audio_durations_s", question.audio_durations_s)):
        if values and len(values) != len(question.audios):
            raise DataError(
                f"{item}: {field} has {len(values)} values for {len(question.audios)} audios.",
                hint="Give one for each, in the order of audios.",
            )
    for seconds in (question.duration_s, *question.audio_durations_s):
        if not math.isnan(seconds) and not 0 < seconds < math.inf:
            raise DataError(f"{item}: a duration is {seconds:g} s.", hint="Give seconds, or leave it out.")
    return question


def _check_id(value: str, what: str, place: str) -> None:
    if not value or value != value.strip() or len(value) > 200 or value.startswith(".") or set(value) & _BAD_IN_ID:
        raise DataError(
            f"{place}: the {what} {value!r} cannot be used.",
            hint="Ids name files: no slash, colon, quote, line end, blank at an end or dot at the start.",
        )


def _check_options(question: Question, item: str) -> None:
    options = question.options
    if not 2 <= len(options) <= MOST_OPTIONS:
        raise DataError(f"{item}: options has {len(options)} members.", hint=f"Give 2 to {MOST_OPTIONS}.")
    seen: dict[str, str] = {}
    for option in options:
        if not option.strip():
            raise DataError(f"{item}: options holds an empty one.", hint="Write its text, or remove it.")
        if same_text(option) in seen:
            raise DataError(
                f"{item}: the options {seen[same_text(option)]!r} and {option!r} are the same.", hint="Change one."
            )
        seen[same_text(option)] = option
    if question.answer not in options:
        raise DataError(
            f"{item}: answer is {question.answer!r}, which is not among the options {list(options)!r}.",
            hint="Write the text of the right option.",
        )
    if question.verifiers:
        raise DataError(f"{item}: a multiple-choice item has verifiers.", hint="Make its kind aif, or remove them.")


def _check_labels(labels: Iterable[str], known: Mapping[str, str], field: str, item: str) -> None:
    listed = list(labels)
    for label in listed:
        if label not in known:
            guess = nearest(label, known)
            raise DataError(
                f"{item}: {field} has the unknown label {label!r}.",
                hint=f"{f'Did you mean {guess!r}? ' if guess else ''}Known: {', '.join(known)}.",
            )
    if len(set(listed)) != len(listed):
        raise DataError(f"{item}: {field} names a label twice.", hint="Name each once.")
