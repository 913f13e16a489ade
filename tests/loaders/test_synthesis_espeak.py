"""espeak-ng, the real library."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from squtr.errors import SynthesisError, UnknownNameError, UsageError
from squtr.loaders.records import Query
from squtr.loaders.synthesis import load_synthesizer, speak_query
from squtr.loaders.synthesis.espeak import EspeakSynthesizer
from squtr.loaders.synthesis.espeak_library import espeak_phonemes

pytest.importorskip("espeakng_loader")
TEXTS = {"en": "When does the last bus leave?", "es": "¿Cuándo sale el último autobús?"}


@pytest.mark.parametrize("language", ["en", "es"])
def test_every_voice_speaks_and_sounds_different(language: str) -> None:
    engine = load_synthesizer("espeak")
    clips = {
        voice: engine.synthesize(TEXTS[language], voice=voice, language=language) for voice in engine.voices(language)
    }
    assert len(clips) >= 8
    for clip in clips.values():
        assert clip.dtype == np.float32
        assert clip.ndim == 1
        assert 1.0 < clip.size / 24_000 < 6.0
        assert 0.05 < np.abs(clip).max() <= 1.0
    assert len({clip.tobytes() for clip in clips.values()}) == len(clips)


def test_the_same_call_gives_the_same_samples_in_any_thread() -> None:
    engine = EspeakSynthesizer()
    jobs = [(TEXTS[language], voice, language) for language in ("en", "es") for voice in engine.voices(language)[:3]]

    def speak(job: tuple[str, str, str]) -> bytes:
        return engine.synthesize(job[0], voice=job[1], language=job[2], seed=5).tobytes()

    alone = [speak(job) for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(speak, jobs)) == alone
        assert list(pool.map(speak, reversed(jobs))) == alone[::-1]


def test_every_language_has_a_voice_that_speaks() -> None:
    engine = EspeakSynthesizer()
    for language in engine.languages:
        voice = engine.voices(language)[0]
        assert engine.synthesize("Radio 7, 22", voice=voice, language=language).size > 12_000, language


def test_rate_changes_length() -> None:
    slow, fast = (
        EspeakSynthesizer(words_per_minute=rate).synthesize(TEXTS["en"], voice="en-us+m1", language="en")
        for rate in (120, 240)
    )
    assert slow.size > 1.4 * fast.size


def test_chinese_names_the_engine_to_use() -> None:
    engine = load_synthesizer("espeak")
    for call in (lambda: engine.voices("zh"), lambda: engine.synthesize("你好", voice="x", language="zh")):
        with pytest.raises(UsageError, match=r"'espeak' does not speak 'zh'.*--engine kokoro"):
            call()
    with pytest.raises(UsageError, match="--engine kokoro"):
        speak_query(engine, Query("q", "s", "zh", "你好"))


def test_bad_voice_text_and_rate() -> None:
    engine = load_synthesizer("espeak")
    with pytest.raises(UnknownNameError, match=r"Did you mean 'en-us\+m1'"):
        engine.synthesize("a", voice="en-us-m1", language="en")
    with pytest.raises(SynthesisError, match=r"nothing to say"):
        engine.synthesize("🙂", voice="en-us+m1", language="en")
    with pytest.raises(UsageError, match=r"words_per_minute is 20"):
        load_synthesizer("espeak", words_per_minute=20)


def test_spec_and_pickle() -> None:
    engine = pickle.loads(pickle.dumps(EspeakSynthesizer(words_per_minute=140)))
    assert engine.spec.revision.startswith("1.")
    assert engine.spec.settings == {"words_per_minute": 140}


def test_phonemes() -> None:
    assert espeak_phonemes("the house", "en-us") == "ðə hˈa^ʊs"
    assert espeak_phonemes("niño", "es") == "nˈiɲo"
    assert espeak_phonemes("", "es") == ""
    with pytest.raises(UnknownNameError):
        espeak_phonemes("a", "no-such-voice")
