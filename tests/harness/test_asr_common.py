"""Loops, unusable clips and batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import UnknownNameError, UsageError
from squtr.harness.components.batches import BatchSize, require_positive
from squtr.harness.components.transcribers.common import (
    Decoded,
    clip_fault,
    joined_windows,
    require_language,
    require_n_best,
    transcribe_batches,
    transcribe_by_kind,
)
from squtr.harness.metrics.flags import repeats_itself
from squtr.harness.protocols import Transcript

WORDS = ["the", "bank", "raised", "rates", "again"]


@pytest.mark.parametrize(
    "text",
    [
        "no no no no",
        "No, no. NO! no",
        "so I went to the the the the shop",
        "thank you for watching thank you for watching thank you for watching thank you for watching",
        "谢谢大家谢谢大家谢谢大家谢谢大家",
        "它它它它是什么",
        "ありがとうありがとうありがとうありがとう",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ],
)
def test_repetition_is_a_loop(text: str) -> None:
    assert repeats_itself(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "no no no",
        "it is very very very important",
        "10000",
        "call 5 5 5 5 then 15 15 15 15",
        "一万元等于10000元",
        "哈哈哈，真好笑",
        "What is the difference between a Roth IRA and a traditional IRA, and which one should I open first?",
        "-- -- -- -- -- --",
        "yes, yes, but no, no, and yes, yes",
    ],
)
def test_ordinary_text_is_no_loop(text: str) -> None:
    assert not repeats_itself(text)


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), st.lists(st.sampled_from(WORDS), max_size=6))
def test_four_in_a_row_is_a_loop_wherever_it_stands(phrase: list[str], before: list[str]) -> None:
    assert repeats_itself(" ".join([*before, *(phrase * 4), "end"]))


@given(st.permutations(WORDS * 3))
def test_without_four_in_a_row_short_text_is_no_loop(words: list[str]) -> None:
    # Every word stands three times, so nothing can stand four times in a row.
    assert not repeats_itself(" ".join(words))


@pytest.mark.parametrize(
    ("clip", "fault"),
    [
        (np.zeros(0, np.float32), "no samples"),
        (np.zeros((2, 9), np.float32), r"shape \(2, 9\)"),
        (np.array([0.1, np.nan, 0.2], np.float32), "at sample 1"),
        (np.array([0.1, 0.2, -np.inf], np.float32), "at sample 2"),
        (np.array([12000.0, -300.0], np.float32), "12000.*not scaled"),
    ],
)
def test_unusable_clips_are_named(clip: np.ndarray, fault: str) -> None:
    import re

    assert re.search(fault, clip_fault(clip))


def test_silence_can_be_heard() -> None:
    assert clip_fault(np.zeros(16, np.float32)) == ""


def _count(sizes: list[int]):  # type: ignore[no-untyped-def]
    def decode(clips: list[np.ndarray]) -> list[Decoded]:
        sizes.append(len(clips))
        return [Decoded(f" {clip.size} ", clip.size > 5) for clip in clips]

    return decode


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 5))
def test_every_clip_gets_its_own_transcript_in_order(lengths: list[int], size: int) -> None:
    sizes: list[int] = []
    clips = [np.full(n, 0.1, np.float32) for n in lengths]
    found = transcribe_batches(clips, size=size, decode=_count(sizes), engine="e")
    assert [t.text for t in found] == [str(n) if n else "" for n in lengths]
    assert [bool(t.error) for t in found] == [n == 0 for n in lengths]
    assert [t.truncated for t in found] == [n > 5 for n in lengths]
    assert all(n <= size for n in sizes)
    assert sum(sizes) == sum(n > 0 for n in lengths)


def test_a_failing_clip_does_not_take_its_batch_with_it() -> None:
    def decode(clips: list[np.ndarray]) -> list[Decoded]:
        if any(clip.size == 3 for clip in clips):
            raise RuntimeError("out of memory")
        return [Decoded("ok") for _ in clips]

    found = transcribe_batches([np.full(n, 0.1, np.float32) for n in (1, 3, 2)], size=3, decode=decode, engine="Eng")
    assert [(t.text, t.error) for t in found] == [("ok", ""), ("", "Eng failed: out of memory"), ("ok", "")]


def test_a_loop_is_flagged_and_kept() -> None:
    (found,) = transcribe_batches(
        [np.full(1, 0.1, np.float32)], size=1, decode=lambda _: [Decoded(" no no no no ", True)], engine="e"
    )
    assert (found.text, found.loop, found.truncated, found.error) == ("no no no no", True, True, "")


def test_languages_are_reduced_to_their_primary_code() -> None:
    assert require_language("zh-TW", ("en", "zh"), "m") == "zh"
    with pytest.raises(UnknownNameError, match="language of m"):
        require_language("xx", ("en", "zh"), "m")


def test_numbers_below_one_are_refused() -> None:
    with pytest.raises(UsageError, match="batch_size must be at least 1, not 0"):
        require_positive(batch_size=0)


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 20), st.integers(1, 20))
def test_what_does_not_fit_is_halved_and_every_clip_is_followed_once(lengths: list[int], first: int, room: int) -> None:
    tried: list[int] = []

    def decode(clips: list[np.ndarray]) -> list[Decoded]:
        tried.append(len(clips))
        if len(clips) > room:
            raise MemoryError
        return [Decoded(str(clip.size)) for clip in clips]

    size = BatchSize(first)
    found = transcribe_batches([np.full(n, 0.1, np.float32) for n in lengths], size=size, decode=decode, engine="e")
    assert [(t.text, t.error) for t in found] == [(str(n), "") for n in lengths]
    assert sum(n for n in tried if n <= room) == len(lengths)
    assert size.now <= first
    # Nothing larger than what failed is tried again.
    assert all(later < earlier for i, earlier in enumerate(tried) if earlier > room for later in tried[i + 1 :])


def test_a_clip_that_does_not_fit_alone_has_an_error() -> None:
    def decode(clips: list[np.ndarray]) -> list[Decoded]:
        if any(clip.size > 5 for clip in clips):
            raise RuntimeError("CUDA out of memory")
        return [Decoded("ok") for _ in clips]

    clips = [np.full(n, 0.1, np.float32) for n in (1, 9, 2)]
    size = BatchSize(2)
    found = transcribe_batches(clips, size=size, decode=decode, engine="Eng")
    assert [(t.text, t.error) for t in found] == [("ok", ""), ("", "Eng failed: CUDA out of memory"), ("ok", "")]
    assert size.now == 1


def test_too_few_results_are_no_transcripts_of_other_clips() -> None:
    clips = [np.full(n, 0.1, np.float32) for n in (1, 2, 3)]
    found = transcribe_batches(
        clips, size=3, decode=lambda batch: [Decoded("ok") for clip in batch if clip.size != 2], engine="Eng"
    )
    assert [(t.text, t.error) for t in found] == [("ok", ""), ("", "Eng gave 0 results for 1 clips"), ("ok", "")]


def test_kinds_of_clips_are_heard_apart_and_come_back_in_order() -> None:
    calls: list[tuple[int, list[int]]] = []

    def hear(kind: int, clips: list[np.ndarray]) -> list[Transcript]:
        calls.append((kind, [clip.size for clip in clips]))
        return [Transcript(str(clip.size)) for clip in clips]

    clips = [np.zeros(n, np.float32) for n in (1, 4, 3, 2)]
    assert [t.text for t in transcribe_by_kind(clips, lambda clip: clip.size % 2, hear)] == ["1", "4", "3", "2"]
    assert calls == [(1, [1, 3]), (0, [4, 2])]
    assert transcribe_by_kind([], lambda clip: 0, hear) == []


def test_windows_are_weighed_by_their_tokens() -> None:
    (hypothesis,) = joined_windows("a b c", [(-1.0, 1), (-4.0, 2)])
    assert (hypothesis.text, hypothesis.score) == ("a b c", -3.0)
    assert joined_windows("", [])[0].score == 0.0


def test_hypotheses_need_a_beam() -> None:
    require_n_best(5, 5)
    with pytest.raises(UsageError, match="beam_size of at least 6, not 5"):
        require_n_best(6, 5)


def test_the_confidence_is_that_of_the_engine() -> None:
    clip = np.full(3, 0.1, np.float32)
    (found,) = transcribe_batches([clip], size=1, decode=lambda _: [Decoded("a", confidence=0.5)], engine="e")
    assert found.confidence == 0.5
