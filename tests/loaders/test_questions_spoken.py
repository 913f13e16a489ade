"""Which questions are spoken: rare labels first, by key, whatever the order; and that speaking keeps all else."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from squtr.errors import DataError, UsageError
from squtr.loaders.questions.spoken import can_be_spoken, choose_spoken, label_weights, speak_questions
from squtr.loaders.questions.windows import RATE, facts
from squtr.loaders.records import SAMPLE_RATE, Samples
from squtr.loaders.synthesis import SynthesizerSpec

from .questions_for_tests import CHOICE, PAIR, SPOKEN, TASK


class Beeper:
    """Says every text as a tone as long as the text."""

    spec = SynthesizerSpec("beeper", "beep", "1")
    languages = ("es",)

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def voices(self, language: str) -> tuple[str, ...]:
        return ("high", "low")

    def synthesize(self, text: str, *, voice: str, language: str, seed: int = 0) -> Samples:
        self.said.append((text, voice))
        hz = {"high": 400, "low": 200}[voice]
        return np.sin(np.arange(len(text) * 1000) * hz * 2 * np.pi / SAMPLE_RATE).astype(np.float32)


def many(count: int) -> list:
    rare = [
        replace(CHOICE, id=f"rare-{n}", perception=("syntax",), reasoning=("discourse_coherence",)) for n in range(5)
    ]
    return [*(replace(CHOICE, id=f"usual-{n}") for n in range(count)), *rare]


def test_only_single_multiple_choice_questions_can_be_spoken() -> None:
    assert can_be_spoken(CHOICE) and not can_be_spoken(PAIR) and not can_be_spoken(TASK)
    assert choose_spoken([CHOICE, PAIR, TASK, SPOKEN], 1) == ["m1"]
    with pytest.raises(UsageError, match="of 1 that can be"):
        choose_spoken([CHOICE, PAIR, TASK, SPOKEN], 2)


def test_the_draw_does_not_depend_on_the_order() -> None:
    questions = many(95)
    shuffled = random.Random(0).sample(questions, len(questions))
    assert set(choose_spoken(questions, 20)) == set(choose_spoken(shuffled, 20))
    assert choose_spoken(questions, 20) != choose_spoken(questions, 20, seed=1)
    assert choose_spoken(questions, 0) == []
    # A larger draw holds the smaller one.
    assert set(choose_spoken(questions, 20)) < set(choose_spoken(questions, 30))


def test_rare_labels_are_drawn_more_often() -> None:
    questions = many(95)
    weights = label_weights(questions)
    assert weights["rare-0"] / weights["usual-0"] == pytest.approx(95 / 5)
    drawn = Counter(id_.split("-")[0] for seed in range(60) for id_ in choose_spoken(questions, 10, seed))
    # Drawn evenly it would be 5 %; by weight the two groups begin alike.
    assert drawn["rare"] / drawn.total() > 0.3


def test_speaking_keeps_the_question_and_resumes(tmp_path: Path) -> None:
    beeper = Beeper()
    questions = [replace(CHOICE, id=f"q{number}") for number in range(4)]
    done: list[int] = []
    spoken = speak_questions(questions, ["q1", "q3"], beeper, tmp_path, language="es", progress=done.append)
    assert [question.question_audio for question in spoken] == ["", "pregunta-q1", "", "pregunta-q3"]
    assert all(replace(q, question_audio="", question_voice="") == p for q, p in zip(spoken, questions, strict=True))
    assert len(beeper.said) == 2 == sum(done)
    found = facts(tmp_path / "pregunta-q1.flac")
    assert (found.rate, found.channels) == (RATE, 1)
    assert {question.question_voice for question in spoken} <= {"", "beeper/high", "beeper/low"}
    assert speak_questions(questions, ["q1", "q3"], beeper, tmp_path, language="es") == spoken
    assert len(beeper.said) == 2
    with pytest.raises(DataError, match="no item 'q9'"):
        speak_questions(questions, ["q9"], beeper, tmp_path, language="es")


def test_a_question_that_cannot_be_said_is_named(tmp_path: Path) -> None:
    from squtr.errors import SynthesisError

    with pytest.raises(SynthesisError, match="'m1'"):
        speak_questions([replace(CHOICE, question="¿…?")], ["m1"], Beeper(), tmp_path, language="es")
