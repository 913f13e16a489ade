"""A few questions with their audio, for the report's players: the beginning of each clip, in `samples/`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ....errors import AudioError
from ....loaders.audio import encode_flac
from ....loaders.questions.data import QuestionData
from ....loaders.questions.question import Question
from ....loaders.questions.windows import RATE, excerpt
from ...results.files import write_atomically

FOLDER = "samples"
LONGEST_S = 30.0
"""How much of a clip is kept: a report is one file."""


def chosen(questions: Sequence[Question], most: int) -> list[Question]:
    """At most `most` questions: the first that brings a new label, until none does, then the first others."""
    distinct = list({question.id: question for question in questions}.values())
    seen: set[str] = set()
    first: list[Question] = []
    for question in distinct:
        labels = {*question.perception, *question.reasoning, question.kind, str(question.comparative)}
        if not labels <= seen:
            seen |= labels
            first.append(question)
    return [*first, *(question for question in distinct if question not in first)][:most]


def keep_samples(folder: Path, data: QuestionData, questions: Sequence[Question], most: int) -> list[Path]:
    """Write the beginning of the audio of `chosen` questions, but for unreadable ones. Raises `StorageError`."""
    kept: list[Path] = []
    for question in chosen([question for question in questions if data.has(question)], most):
        for audio in question.all_audios if data.has(question, spoken=question.spoken) else question.audios:
            path = folder / FOLDER / f"{audio}.flac"
            if path.exists():
                kept.append(path)
                continue
            try:
                clip = excerpt(data.audio(audio), 0.0, LONGEST_S, RATE, name=f"the audio {audio!r}")
                peak = float(np.abs(clip).max()) if clip.size else 0.0
                content = encode_flac(clip / max(1.0, peak * 1.0001), f"the audio {audio!r}", RATE)
            except AudioError:
                # It is counted where it failed; the report does without.
                continue
            write_atomically(path, content)
            kept.append(path)
    return kept
