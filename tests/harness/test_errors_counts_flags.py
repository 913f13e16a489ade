"""Flags of transcripts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squtr.harness.metrics.error_counts import default_unit, tokens
from squtr.harness.metrics.flags import UtteranceFlags, flag_utterance, is_loop, longest_repetition, repeats_itself
from squtr.harness.text.normalizers import load_normalizer


@given(st.lists(st.sampled_from("abc"), max_size=14))
def test_longest_repetition_agrees_with_brute_force(tokens: list[str]) -> None:
    best = 0
    for start in range(len(tokens)):
        for period in range(1, len(tokens)):
            copies = 1
            while tokens[start : start + period] == tokens[start + copies * period : start + (copies + 1) * period]:
                copies += 1
                if start + copies * period > len(tokens):
                    break
            if copies > 1 and start + copies * period <= len(tokens):
                best = max(best, copies * period)
    assert longest_repetition(tokens)[1] == best


def test_loops() -> None:
    assert is_loop(str.split("i am going to the the shop of the shop of the shop of the shop of the"), ["i"])
    assert is_loop(list("谢谢观看" * 4), list("今天天气"))
    assert not is_loop(list("哈哈哈"))
    assert not is_loop(str.split("to be or not to be that is the question"))
    # What was said may repeat.
    said = ("row " * 10).split()
    assert not is_loop(said, said)
    assert is_loop(said * 3, said)
    assert not is_loop([])


def test_flags() -> None:
    assert flag_utterance(["a"], []).empty
    assert not flag_utterance([], []).empty
    assert flag_utterance([], ["x"]).hallucination
    assert not flag_utterance(["a"], ["x"]).hallucination
    assert flag_utterance(["a"], ["b"], truncated=True, loop=True) == UtteranceFlags(loop=True, truncated=True)
    assert flag_utterance(["a"], ["b"], invalid_text=True) == UtteranceFlags(invalid_text=True)


def flags_of(reference: str, transcript: str, language: str) -> UtteranceFlags:
    normalizer, unit = load_normalizer("default", language), default_unit(language)
    spoken, found = (tokens(normalizer(text), unit, language) for text in (reference, transcript))
    return flag_utterance(spoken, found, loop=repeats_itself(transcript))


SAID_TWICE = (
    "Please take the second train from platform seven, because the first one does not stop at the old harbor, and the "
    "next one that does will leave an hour after noon, when the last ferry to the islands has gone already. "
) * 2
SONGS = [
    ("no no no no", "en"),
    ("No, no, no, no! No, no, no, no, no, no!", "en"),
    ("Row, row, row your boat, row, row, row your boat, row, row, row your boat, row, row, row your boat.", "en"),
    ("dial 5 5 5 5 5 5 5 5 5 5 now", "en"),
    ("ay ay ay ay canta y no llores, ay ay ay ay canta y no llores", "es"),
    ("对不起对不起对不起对不起", "zh"),
    ("新年好呀新年好呀新年好呀新年好呀，祝福大家新年好", "zh"),
    (SAID_TWICE, "en"),
]


@pytest.mark.parametrize(("said", "language"), SONGS)
def test_what_was_said_so_often_is_no_loop(said: str, language: str) -> None:
    assert flags_of(said, said, language) == UtteranceFlags()
    # The same words once are not said so often: the transcript alone looks like a loop, but for numbers.
    assert repeats_itself(said) != said.startswith("dial")


def test_a_repetition_with_a_word_misheard_is_no_loop_either() -> None:
    misheard = SAID_TWICE.replace("harbor", "harper", 1)
    assert repeats_itself(misheard)
    assert not flags_of(SAID_TWICE, misheard, "en").loop
    assert not flags_of("no no no no thank you", "no no no no thanks", "en").loop
    assert not flags_of("对不起对不起对不起对不起", "对不起对不起对不起对不", "zh").loop


@pytest.mark.parametrize(
    ("said", "transcript", "language"),
    [
        ("what time is it", "no no no no", "en"),
        ("thank you thank you", "thank you " * 6, "en"),
        ("对不起对不起", "对不起" * 6, "zh"),
        (SAID_TWICE, SAID_TWICE * 2, "en"),
        (SAID_TWICE, "a" * 60, "en"),
        (SAID_TWICE[: len(SAID_TWICE) // 2], SAID_TWICE, "en"),
    ],
)
def test_what_repeats_more_than_was_said_is_a_loop(said: str, transcript: str, language: str) -> None:
    assert flags_of(said, transcript, language).loop


WORDS = (
    "no",
    "so",
    "la",
    "对不起",
    "你好",
    "ay",
    "5",
    "55",
    "2026",
    ",",
    "!",
    "thank you",
    "¿qué?",
    "\ufffd",
    "a" * 30,
)


@given(st.lists(st.sampled_from(WORDS), max_size=30), st.integers(1, 5), st.sampled_from(("en", "es", "zh")))
@settings(deadline=None)
def test_a_right_transcript_has_no_flag(words: list[str], times: int, language: str) -> None:
    text = " ".join(words * times)
    assert flags_of(text, text, language) == UtteranceFlags()


@pytest.mark.parametrize(
    ("said", "transcript", "language"),
    [
        ("Which savings account makes me wait fifty days?", "I'm going to the next station.", "en"),
        ("Why are cars no longer allowed to cross the bridge?", "Thanks for watching!", "en"),
        ("¿Qué banco ofrece el mejor interés este año?", "Subtítulos realizados por la comunidad de Amara.org", "es"),
        ("广州市房地产中介协会分析", "请不吝点赞订阅转发打赏支持明镜", "zh"),
        ("", "you", "en"),
    ],
)
def test_fluent_sentences_that_nobody_said_are_hallucinated(said: str, transcript: str, language: str) -> None:
    assert flags_of(said, transcript, language).hallucination


@pytest.mark.parametrize(
    ("said", "transcript", "language"),
    [
        # Misheard, word by word.
        ("Why are cars no longer allowed to cross Wrensby?", "Wire carson longer aloud to cross Renspe", "en"),
        ("recognize speech", "wreck a nice beach", "en"),
        # Cut short, or with words after it that nobody said.
        ("the forms of printed letters should be beautiful and their arrangement reasonable", "the forms of", "en"),
        ("turn the light off", "turn the light off thanks for watching and see you in the next video", "en"),
        # Too short to tell.
        ("turn the light off", "you", "en"),
        ("左小蕾进一步表示就是要把约束机制对称化", "左小雷进一步表示就是要把约数机制对趁画", "zh"),
        ("turn the light off", "", "en"),
    ],
)  # fmt: skip
def test_what_is_misheard_cut_or_too_short_is_not(said: str, transcript: str, language: str) -> None:
    assert not flags_of(said, transcript, language).hallucination
