"""The protocol, the table of engines, voice choice and finishing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import AudioError, SynthesisError, UnknownNameError, UsageError
from squtr.loaders.records import SAMPLE_RATE, Query, Samples
from squtr.loaders.synthesis import (
    SYNTHESIZERS,
    Synthesizer,
    SynthesizerSpec,
    choose_voice,
    finish_speech,
    load_synthesizer,
    speak_query,
)
from squtr.loaders.synthesis.backends import check_language, quality_of
from squtr.loaders.synthesis.speaking import has_speech


class Beeper:
    """Speaks every text as a tone of 0.1 s; refuses "xyz"."""

    spec = SynthesizerSpec("beeper", "", "1")
    languages = ("en",)

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int]] = []

    def voices(self, language: str) -> tuple[str, ...]:
        return ("low", "high")

    def synthesize(self, text: str, *, voice: str, language: str, seed: int = 0) -> Samples:
        self.asked.append((text, voice, seed))
        if text == "xyz":
            raise SynthesisError("no way to say it.")
        tone = 0.1 * np.sin(2 * np.pi * 440 * np.arange(2400) / SAMPLE_RATE)
        return np.concatenate([np.zeros(24_000), tone, np.zeros(12_000)]).astype(np.float32)


def query(text: str, id_: str = "q1") -> Query:
    return Query(id_, "mini-en", "en", text)


def test_every_backend_can_be_built_and_names_its_languages() -> None:
    for name, backend in SYNTHESIZERS.items():
        engine: Synthesizer = load_synthesizer(name)
        assert engine.languages == backend.languages
        if name != "cosyvoice":  # whose voices are the user's
            assert all(len(set(engine.voices(language))) >= 1 for language in engine.languages)


def test_unknown_engine_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean 'kokoro'"):
        load_synthesizer("kokoru")


def test_unknown_option_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"'espeak' cannot be built.*loudness"):
        load_synthesizer("espeak", loudness=3)


def test_a_language_of_another_engine_names_that_engine() -> None:
    with pytest.raises(
        UsageError, match=r"'espeak' does not speak 'zh'.*--engine kokoro --language zh .*squtr\[kokoro\]"
    ):
        check_language("espeak", "zh")
    with pytest.raises(UsageError, match=r"'kokoro' does not speak 'de'.*--engine espeak.*or --engine cosyvoice"):
        check_language("kokoro", "de")
    with pytest.raises(UsageError, match=r"no synthesizer speaks 'xx'.*\?speech=FOLDER.*choose one of bg, .*zh"):
        check_language("espeak", "xx")


def test_the_quality_of_a_language_is_said() -> None:
    assert quality_of("kokoro", "en") == quality_of("cosyvoice", "fr") == ""
    assert "little speech" in quality_of("kokoro", "fr")
    assert "formant" in quality_of("espeak", "de")


@given(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=6, unique=True), st.text(), st.integers(0, 9))
def test_the_voice_depends_on_the_set_of_voices_and_the_key(voices: list[str], id_: str, seed: int) -> None:
    chosen = choose_voice(query("a", id_), voices, seed)
    assert chosen in voices
    assert chosen == choose_voice(query("other text", id_), [*reversed(voices), voices[0]], seed)


def test_all_voices_are_used() -> None:
    drawn = [choose_voice(query("a", f"q{i}"), ("a", "b", "c")) for i in range(300)]
    assert min(drawn.count(voice) for voice in "abc") > 60


def test_no_voice_is_an_error_that_names_the_query() -> None:
    with pytest.raises(UsageError, match=r"'q1' of 'mini-en'"):
        choose_voice(query("a"), [])


def test_speak_query_gives_finished_speech() -> None:
    engine = Beeper()
    speech = speak_query(engine, query("hello"), voices=["high"], seed=4)
    assert engine.asked == [("hello", "high", 4)]
    assert (speech.voice, speech.speaker) == ("high", "beeper/high")
    assert speech.samples.dtype == np.float32
    assert np.isnan(speech.tts_error_rate)


@pytest.mark.parametrize("text", ["", "  ", "🙂", "?!…", "👍🏽 —"])
def test_text_without_words_is_an_error_that_names_the_query(text: str) -> None:
    assert not has_speech(text)
    engine = Beeper()
    with pytest.raises(SynthesisError, match=r"query 'q1' of 'mini-en' has nothing to say.*remove"):
        speak_query(engine, query(text))
    assert engine.asked == []


def test_an_engine_s_refusal_names_the_query_and_the_voice() -> None:
    with pytest.raises(SynthesisError, match=r"query 'q1' of 'mini-en' cannot be spoken by 'low': no way to say it"):
        speak_query(Beeper(), query("xyz"), voices=["low"])


@given(st.integers(0, 30_000), st.integers(0, 30_000), st.integers(100, 5000), st.floats(0.001, 1.0))
def test_finish_trims_keeps_the_margin_and_scales(before: int, after: int, length: int, level: float) -> None:
    tone = level * np.sin(0.3 * np.arange(length) + 0.5)
    out = finish_speech(np.concatenate([np.zeros(before), tone, np.zeros(after)]).astype(np.float32), "x")
    assert np.abs(out).max() == pytest.approx(0.7, abs=1e-6)
    assert out.dtype == np.float32
    margin = round(0.15 * SAMPLE_RATE)
    # To a frame of 10 ms on each side, which may hold a quiet rest of the tone.
    assert abs(out.size - length - 2 * margin) <= 2 * 240
    assert out[0] == 0.0


def test_finish_keeps_inner_pauses() -> None:
    tone = np.sin(0.3 * np.arange(2400))
    gap = np.zeros(48_000)
    out = finish_speech(np.concatenate([tone, gap, tone]).astype(np.float32), "x")
    assert out.size >= 2 * 2400 + 48_000


def test_finish_refuses_silence_by_name() -> None:
    with pytest.raises(AudioError, match=r"clip 7 is silent"):
        finish_speech(np.zeros(1000, dtype=np.float32), "clip 7")
