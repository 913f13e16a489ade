"""What all encoders of sound and text share: batches, back-off, failed items, and retrieval in one space."""

from __future__ import annotations

import gc
import weakref
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import ModelError, UsageError
from squtr.harness.components.encoders.audio_common import BatchedEncoder, Batches, Role, unit_rows
from squtr.harness.components.encoders.audio_models import ARCHITECTURES, PUBLISHED, published_audio_model
from squtr.harness.protocols import AudioTextEncoder, ComponentSpec

pytest.importorskip("torch")
RATE = 8_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PITCHES = 300.0 + 100.0 * np.arange(len(LETTERS))


def spoken(text: str, noise: float = 0.0, seconds: float = 0.1) -> np.ndarray:
    """Every letter is a tone."""
    t = np.arange(round(seconds * RATE)) / RATE
    tones = [np.sin(2 * np.pi * PITCHES[LETTERS.index(letter)] * t) for letter in text if letter in LETTERS]
    clip = 0.3 * np.concatenate(tones)
    return (clip + noise * np.random.default_rng(0).standard_normal(clip.size)).astype(np.float32)


class TonesEncoder(BatchedEncoder):
    """A space of letters: how often each was written, or how strong its tone is. Fails where the tests want it to."""

    def __init__(self, *, batch_size: int | Literal["auto"] = "auto", room: int = 10**9, languages: str = "en") -> None:
        super().__init__("tones", batch_size=batch_size)
        self.room = room
        self.languages = languages.split()
        self.batches: list[int] = []
        self.poison: set[int] = set()
        self.always: Exception | None = None

    spec = ComponentSpec("audio_text_encoder", "test", "tones")
    sample_rate = RATE
    _device_type = "cpu"
    _model = None

    def supports(self, language: str) -> bool:
        return language in self.languages

    def _audio_rows(self, clips: list[np.ndarray]) -> np.ndarray:
        if self.always is not None:
            raise self.always
        width = max(clip.size for clip in clips)
        if len(clips) * width > self.room:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        self.batches.append(len(clips))
        if any(clip.size in self.poison for clip in clips):
            raise RuntimeError("a strange clip")
        power = [np.abs(np.fft.rfft(clip, 10 * RATE)) for clip in clips]
        return np.stack([spectrum[(PITCHES * 10).astype(int)] for spectrum in power])

    def _text_rows(self, texts: list[str], role: Role) -> np.ndarray:
        if "boom" in texts:
            raise ValueError("cannot read this")
        if len(texts) * max(map(len, texts)) > self.room:
            raise MemoryError
        self.batches.append(len(texts))
        return np.array([[text.count(letter) for letter in LETTERS] for text in texts], dtype=np.float64)

    def _text_costs(self, texts: list[str]) -> list[int]:
        return [len(text) for text in texts]


def test_what_was_said_finds_what_was_written_also_in_noise() -> None:
    encoder: AudioTextEncoder = TonesEncoder()
    documents = {"d1": "a cab backed", "d2": "pop quiz", "d3": "zebra crossing", "d4": "high fly"}
    matrix = encoder.encode(list(documents.values()), role="document").astype(np.float64)
    ids = list(documents)
    for noise in (0.0, 0.1):
        queries = encoder.encode_audio([spoken(text, noise) for text in documents.values()], language="en")
        found = [ids[int(np.argmax(matrix @ query))] for query in queries]
        assert found == ids
    typed = encoder.encode(["pop quiz"], role="query")
    assert encoder.encode_audio([spoken("pop quiz")], language="en")[0] @ typed[0] > 0.98


def test_rows_are_unit_float32_in_the_callers_order_and_none_for_nothing() -> None:
    encoder = TonesEncoder()
    clips = [spoken("abc"), spoken("zz"), spoken("hello")]
    vectors = encoder.encode_audio(clips, language="en")
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for clip, vector in zip(clips, vectors, strict=True):
        np.testing.assert_allclose(encoder.encode_audio([clip], language="en")[0], vector, atol=1e-6)
    assert encoder.encode_audio([], language="en").shape == (0, 26)
    assert encoder.encode([], role="query").shape == (0, 26)
    twice = encoder.encode(["ab", "cd", "ab"], role="query")
    assert twice[0].tobytes() == twice[2].tobytes()


def test_memory_that_runs_out_halves_the_batch_and_all_that_follow() -> None:
    clips = [spoken("abcd")] * 16 + [spoken("xy")]
    size = clips[0].size
    encoder = TonesEncoder(batch_size=16, room=3 * size)
    vectors = encoder.encode_audio(clips, language="en")
    assert encoder.batches == [2] * 8 + [1]
    assert np.isfinite(vectors).all()
    np.testing.assert_array_equal(vectors[:16], np.broadcast_to(vectors[0], (16, 26)))
    encoder.batches.clear()
    encoder.encode_audio(clips[:4], language="en")
    assert encoder.batches == [2, 2]


def test_an_item_that_fails_alone_takes_none_with_it() -> None:
    encoder = TonesEncoder(room=5 * RATE)
    strange, long = spoken("abcde"), spoken("abc", seconds=2.0)
    encoder.poison = {strange.size}
    clips = [spoken("ab"), strange, np.zeros(0, np.float32), long, np.full(9, np.nan, np.float32), spoken("q")]
    vectors = encoder.encode_audio(clips, language="en")
    assert np.isnan(vectors).all(axis=1).tolist() == [False, True, True, True, True, False]
    assert np.isfinite(vectors[[0, 5]]).all()


def test_silence_has_no_direction() -> None:
    vectors = TonesEncoder().encode_audio([np.zeros(800, np.float32), spoken("a")], language="en")
    assert np.isnan(vectors[0]).all()
    assert np.isfinite(vectors[1]).all()


def test_one_strange_clip_alone_is_a_failed_clip_but_a_broken_model_is_an_error() -> None:
    encoder = TonesEncoder()
    clip = spoken("abcde")
    encoder.poison = {clip.size}
    assert np.isnan(encoder.encode_audio([clip], language="en")).all()
    broken = TonesEncoder()
    broken.always = ValueError("expected 80 bands")
    with pytest.raises(ModelError, match=r"tones cannot encode audio.*a tone of 1 s \(ValueError: expected 80 bands\)"):
        broken.encode_audio([clip, spoken("a")], language="en")


def test_a_fault_of_the_program_is_not_a_failed_clip() -> None:
    broken = TonesEncoder()
    broken.always = TypeError("unexpected argument")
    with pytest.raises(TypeError, match="unexpected argument"):
        broken.encode_audio([spoken("a")], language="en")


def test_a_text_that_cannot_be_encoded_is_named() -> None:
    with pytest.raises(ModelError, match=r"failed on the text 'boom' \(ValueError: cannot read this\)"):
        TonesEncoder().encode(["fine", "boom", "good"], role="document")
    with pytest.raises(ModelError, match="without direction for the text '0123'"):
        TonesEncoder().encode(["fine", "0123"], role="document")
    with pytest.raises(ModelError, match=r"MemoryError.*smaller max_tokens"):
        TonesEncoder(room=10).encode(["ab", "a" * 11], role="document")


def test_a_language_it_was_not_made_for_is_refused() -> None:
    with pytest.raises(UsageError, match="not made for language 'zh'"):
        TonesEncoder().encode_audio([spoken("a")], language="zh")


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 80), st.none() | st.integers(1, 7), st.integers(0, 99))
def test_every_item_is_done_once_within_the_budget(costs: list[int], budget: int, size: int | None, limit: int) -> None:
    done: list[int] = []

    def encode(batch: list[int]) -> np.ndarray:
        padded = len(batch) * max(costs[i] for i in batch)
        if padded > limit:
            raise MemoryError
        assert len(batch) <= size if size is not None else len(batch) == 1 or padded <= budget
        done.extend(batch)
        return np.array([[float(i), 1.0] for i in batch])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("squtr.harness.components.encoders.audio_common.free_memory", lambda: None)  # it takes a while
        rows = Batches(size=size, budget=budget).run(costs, encode)
    assert len(rows) == len(costs)
    for i, (cost, row) in enumerate(zip(costs, rows, strict=True)):
        if cost > limit:
            assert isinstance(row, MemoryError)
        else:
            assert isinstance(row, np.ndarray)
            assert row[0] == i
    assert sorted(done) == [i for i, cost in enumerate(costs) if cost <= limit]


def test_a_failed_batch_is_let_go_before_the_next() -> None:
    alive: list[weakref.ref[Any]] = []

    class Tensor:
        pass

    def encode(batch: list[int]) -> np.ndarray:
        gc.disable()
        try:
            assert not [held for held in alive if held() is not None]
        finally:
            gc.enable()
        held = Tensor()
        alive.append(weakref.ref(held))
        if len(batch) > 1:
            raise MemoryError
        return np.ones((1, 2))

    assert len(Batches(size=4, budget=1).run([1, 1, 1, 1], encode)) == 4
    assert len(alive) == 6


def test_wrong_numbers_of_vectors_are_a_broken_model() -> None:
    with pytest.raises(ModelError, match=r"shape \(1, 2\) for 2 items"):
        Batches(size=2, budget=1).run([1, 1], lambda batch: np.ones((1, 2)))


@pytest.mark.parametrize("scale", [1e-40, 1.0, 6e4, 1e300])
def test_unit_rows_hold_for_numbers_of_any_size(scale: float) -> None:
    rows = unit_rows(np.array([[3.0, -4.0], [np.inf, 0.0], [0.0, 1.0]]) * scale)
    np.testing.assert_allclose(rows[[0, 2]], [[0.6, -0.8], [0.0, 1.0]], rtol=1e-6)
    assert np.isnan(rows[1]).all()


@pytest.mark.parametrize("size", [0, -1, "best"])
def test_a_batch_size_is_a_number_or_automatic(size: Any) -> None:
    with pytest.raises(UsageError, match="batch_size"):
        TonesEncoder(batch_size=size)


def test_the_published_facts_name_models_and_classes_that_exist() -> None:
    transformers = pytest.importorskip("transformers")
    assert all(name == name.lower() and "/" not in name for name in PUBLISHED)
    omni = published_audio_model("nvidia/omni-embed-nemotron-3b")
    assert omni is not None
    assert (omni.pooling, omni.audio_prefix, omni.audio_suffix, omni.document_prefix) == ("mean", "", "", "passage: ")
    for row in ARCHITECTURES.values():
        assert hasattr(transformers, row.model_class)
