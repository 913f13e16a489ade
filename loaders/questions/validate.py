"""Checking a set of one's own before it is built: every problem is found, not only the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ...errors import AudioError, DataError, SqutrError
from ..audio import SILENCE_PEAK
from .audio_folder import AudioFolder
from .fields import check_extra, question_of
from .question import Question
from .reading import read_rows
from .windows import AudioFile, windows

VerifierCheck = Callable[[Question], None]
"""Raises `SqutrError` if the verifiers of an instruction cannot be used. The harness has one."""
Progress = Callable[[int, int], None]
"""Called with how many clips were checked, and of how many."""
TOLERANCE = (1.0, 0.02)
"""How far a file's length may lie from the table's: in s, and as a share; the larger counts."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps an item out of a set: which item ("" for the set), the sentence, what to do."""

    item: str
    message: str
    hint: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.message} {self.hint}".strip()


@dataclass(frozen=True, slots=True)
class Validation:
    """The questions that passed, with the lengths of their audio; the clips' lengths in s; and all problems."""

    questions: tuple[Question, ...]
    durations: Mapping[str, float]
    problems: tuple[Problem, ...]


def validate(
    table: Path,
    clips: AudioFolder,
    *,
    extra: Mapping[str, str] | None = None,
    check_verifiers: VerifierCheck | None = None,
    allow_missing: bool = False,
    progress: Progress | None = None,
) -> Validation:
    """Check a table of questions and its audio.

    Of every item: fields, labels (one of each kind), different options that hold the answer, verifiers; of every clip:
    that it is there (but with `allow_missing`), decodes, is neither silent nor holds NaN, and is as long as stated.
    """
    check_extra(extra or {})
    problems: list[Problem] = []
    read: dict[str, Question] = {}
    places: dict[str, str] = {}
    for place, row in read_rows(table):
        try:
            question = question_of(row, place, extra=extra)
            if question.id in read:
                raise DataError(
                    f"{place}: the id {question.id!r} was used at {places[question.id]}.", hint="Rename one."
                )
            for field in ("perception", "reasoning"):
                if not getattr(question, field):
                    raise DataError(f"item {question.id!r}: {field} is empty.", hint="Give one label or several.")
            if check_verifiers is not None and question.kind == "aif":
                check_verifiers(question)
        except SqutrError as error:
            problems.append(Problem(_id_of(row), error.message, error.hint))
            continue
        read[question.id], places[question.id] = question, place
    durations = _check_clips(list(read.values()), clips, problems, allow_missing=allow_missing, progress=progress)
    kept = []
    for question in read.values():
        own = _with_lengths(question, durations, problems)
        needed = (question.question_audio,) if allow_missing and question.spoken else question.all_audios
        if own is not None and (all(audio in durations for audio in needed) or (allow_missing and not question.spoken)):
            kept.append(own)
    if not read and not problems:
        problems.append(Problem("", f"{table} holds no questions.", "Give a table with one row per question."))
    return Validation(tuple(kept), durations, tuple(problems))


def _id_of(row: Mapping[str, object]) -> str:
    return str(row.get("id") or "")


def _check_clips(
    questions: list[Question],
    clips: AudioFolder,
    problems: list[Problem],
    *,
    allow_missing: bool,
    progress: Progress | None,
) -> dict[str, float]:
    first: dict[str, str] = {}
    spoken = {question.question_audio for question in questions}
    for question in questions:
        for audio in question.all_audios:
            first.setdefault(audio, question.id)
    durations: dict[str, float] = {}
    for number, (audio, item) in enumerate(first.items(), start=1):
        try:
            if audio not in clips.files and allow_missing and audio not in spoken:
                continue
            durations[audio] = check_audio(clips.path(audio), f"the audio {audio!r}")
        except AudioError as error:
            problems.append(Problem(item, f"item {item!r}: {error.message}", error.hint))
        if progress is not None:
            progress(number, len(first))
    return durations


def check_audio(audio: AudioFile, name: str) -> float:
    """The length in s of a clip that decodes to its end; it is read in pieces. Raises `AudioError`."""
    frames, rate, peak = 0, 0, 0.0
    for window in windows(audio, 10.0, name=name):
        frames, rate = frames + window.samples.size, window.rate
        peak = max(peak, float(np.abs(window.samples).max()))
    if not frames:
        raise AudioError(f"{name} has no samples.", hint="Remove it or record it again.")
    if peak <= SILENCE_PEAK:
        raise AudioError(f"{name} is silent.", hint="Remove it or record it again.")
    return round(frames / rate, 3)


def same_length(found: float, expected: float) -> bool:
    """Whether a length in s is the expected one, within `TOLERANCE`; an unknown one (NaN) always is.

    >>> same_length(86.9, 86.2), same_length(90.0, 86.2), same_length(5060.0, 5100.0)
    (True, False, True)
    """
    return math.isnan(expected) or abs(found - expected) <= max(TOLERANCE[0], TOLERANCE[1] * expected)


def _with_lengths(question: Question, durations: Mapping[str, float], problems: list[Problem]) -> Question | None:
    """The question with the measured lengths; None, and a problem, where the table says others."""
    if any(audio not in durations for audio in question.audios):
        return question
    lengths = tuple(durations[audio] for audio in question.audios)
    stated = question.audio_durations_s or (() if question.comparative else (question.duration_s,))
    for audio, found, expected in zip(question.audios, lengths, stated, strict=False):
        if not same_length(found, expected):
            problems.append(
                Problem(
                    question.id,
                    f"item {question.id!r}: the audio {audio!r} lasts {found:g} s, the table says {expected:g} s.",
                    "Get the right file, or mend the table.",
                )
            )
            return None
    return replace(question, duration_s=round(math.fsum(lengths), 3), audio_durations_s=lengths)
