"""The spoken subset (arXiv 2607.17812): questions drawn inversely to how frequent their labels are, and spoken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import DataError, UsageError
from ..audio import encode_flac, resample
from ..keyed import keyed_seed
from ..records import SAMPLE_RATE, Query
from ..shards import replace_file
from ..synthesis import Synthesizer, choose_voice, speak_query
from .manifest import QUESTIONS
from .question import Question
from .windows import RATE

PURPOSE = "spoken questions"
_SCALE = 2**128


def can_be_spoken(question: Question) -> bool:
    """Whether a question may join the spoken subset: multiple choice about one clip, so that the second is free."""
    return question.kind == "mcqa" and not question.comparative


def label_weights(questions: Sequence[Question]) -> dict[str, float]:
    """Item id to its weight: the mean over its labels of 1 / (how many items have the label); 0 without labels.

    >>> one = Question("q1", "mcqa", ("a",), "¿Qué?", ("Sí", "No"), "No", (), ("lexical",), ("logic",))
    >>> label_weights([one, replace(one, id="q2", reasoning=("intent",))])
    {'q1': 0.75, 'q2': 0.75}
    """
    counts = Counter(label for question in questions for label in (*question.perception, *question.reasoning))
    weights = {}
    for question in questions:
        labels = (*question.perception, *question.reasoning)
        weights[question.id] = sum(1 / counts[label] for label in labels) / len(labels) if labels else 0.0
    return weights


def choose_spoken(questions: Sequence[Question], count: int, seed: int = 0) -> list[str]:
    """The ids of `count` questions to speak, in the order of the set.

    Drawn without replacement with the weights of `label_weights` over those that can be spoken, keyed by seed and item
    id: each item's place in the draw is u^(1/w) with its own uniform u (Efraimidis and Spirakis, Information Processing
    Letters 97, 2006), so the order of the set changes nothing. Questions that are spoken already are not drawn. Raises
    `UsageError` if there are fewer.
    """
    able = [question for question in questions if can_be_spoken(question) and not question.spoken]
    if not 0 <= count <= len(able):
        raise UsageError(
            f"{count} questions are to be spoken, of {len(able)} that can be.",
            hint="Only multiple-choice questions about one clip can.",
        )
    weights = label_weights(able)
    # log(u)/w orders as u^(1/w) does, and keeps apart what is tiny.
    order = sorted(able, key=lambda question: (-_draw(question.id, seed, weights[question.id]), question.id))
    chosen = {question.id for question in order[:count]}
    return [question.id for question in able if question.id in chosen]


def _draw(id_: str, seed: int, weight: float) -> float:
    from math import inf, log

    share = (keyed_seed(seed, PURPOSE, id_) + 1) / _SCALE
    return log(share) / weight if weight > 0 else -inf


def speak_questions(
    questions: Sequence[Question],
    chosen: Sequence[str],
    synthesizer: Synthesizer,
    folder: Path,
    *,
    language: str,
    voices: Sequence[str] | None = None,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> list[Question]:
    """All questions, those in `chosen` spoken into `folder` as `pregunta-<id>.flac` (16 kHz mono).

    Each voice is drawn by the keyed rule from `voices` (default: all that the engine has for the language). A file that
    is there already is kept. Raises `SynthesisError` naming the item.
    """
    wanted = set(chosen)
    unknown = wanted - {question.id for question in questions}
    if unknown:
        raise DataError(f"there is no item {sorted(unknown)[0]!r} to speak.", hint="Name items of the set.")
    known = sorted(set(synthesizer.voices(language) if voices is None else voices))
    out: list[Question] = []
    for question in questions:
        if question.id not in wanted:
            out.append(question)
            continue
        audio = f"pregunta-{question.id}"
        query = Query(question.id, QUESTIONS, language, question.question)
        voice = choose_voice(query, known, seed)
        path = folder / f"{audio}.flac"
        if not path.is_file():
            speech = speak_query(synthesizer, query, voices=[voice], seed=seed)
            samples = resample(speech.samples, SAMPLE_RATE, RATE)
            replace_file(path, encode_flac(samples, audio, RATE))
        speaker = f"{synthesizer.spec.engine}/{voice}"
        out.append(replace(question, question_audio=audio, question_voice=speaker))
        if progress is not None:
            progress(1)
    return out
