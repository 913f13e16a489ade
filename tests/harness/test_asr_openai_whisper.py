"""OpenAI's own package on a small random checkpoint."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from squtr.errors import MissingExtraError, ModelError, UnknownNameError, UsageError
from squtr.harness.components import load_transcriber
from squtr.harness.components.transcribers.openai_whisper import OpenAIWhisperTranscriber
from squtr.harness.components.transcribers.presets import preset
from squtr.harness.components.transcribers.whisper import TEMPERATURES

from .whisper_for_tests import speechlike

installed = pytest.mark.skipif(find_spec("whisper") is None, reason="openai-whisper is not installed")
CLIPS = [speechlike(seconds, seed) for seed, seconds in enumerate((1.0, 2.5, 0.3))]
MULTILINGUAL, ENGLISH, LARGE_V3 = 51865, 51864, 51866


def save_checkpoint(path: Path, vocabulary: int = MULTILINGUAL) -> Path:
    import torch
    from whisper.model import ModelDimensions, Whisper

    torch.manual_seed(3)
    sizes = ModelDimensions(
        n_mels=80,
        n_audio_ctx=1500,
        n_audio_state=16,
        n_audio_head=2,
        n_audio_layer=1,
        n_vocab=vocabulary,
        n_text_ctx=448,
        n_text_state=16,
        n_text_head=2,
        n_text_layer=1,
    )
    model = Whisper(sizes)
    with torch.no_grad():
        for weights in model.parameters():
            weights.normal_(0, 0.3)
    torch.save({"dims": asdict(sizes), "model_state_dict": model.state_dict()}, path)
    return path


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("openai") / "small-random.pt")


def openai(path: Path, **options: object) -> OpenAIWhisperTranscriber:
    return OpenAIWhisperTranscriber(path, **{"device": "cpu", "threads": 1, "max_tokens": 12, **options})  # type: ignore[arg-type]


def texts(transcriber: OpenAIWhisperTranscriber, clips: list[np.ndarray] = CLIPS, language: str = "en") -> list[str]:
    found = transcriber.transcribe(clips, language=language)
    assert [t.error for t in found] == [""] * len(clips)
    return [t.text for t in found]


@installed
def test_it_hears_what_the_package_hears(checkpoint: Path) -> None:
    import torch
    import whisper

    model = whisper.load_model(str(checkpoint), device="cpu")

    def by_package(clip: np.ndarray, **own: object) -> str:
        torch.manual_seed(0)
        text: str = whisper.transcribe(model, clip, language="en", fp16=False, sample_len=12, **own)["text"]
        return text.strip()

    # What a random model writes is improbable, so that each window is sampled in the end.
    clips = CLIPS[1:]
    defaults = [by_package(clip) for clip in clips]
    assert texts(openai(checkpoint), clips) == defaults
    command_line = [by_package(clip, beam_size=5, best_of=5, temperature=TEMPERATURES) for clip in clips]
    assert texts(openai(checkpoint, **preset("fallback", "openai-whisper")), clips) == command_line
    greedy = [by_package(clip, temperature=0.0) for clip in clips]
    assert len({*map(tuple, (defaults, command_line, greedy))}) == 3
    for options, own in (
        ({}, {}),
        ({"beam_size": 3}, {"beam_size": 3}),
        ({"beam_size": 2, "patience": 2.0}, {"beam_size": 2, "patience": 2.0}),
        ({"beam_size": 3, "length_penalty": 0.5}, {"beam_size": 3, "length_penalty": 0.5}),
        ({"timestamps": False}, {"without_timestamps": True}),
        (
            {"logprob_threshold": None, "no_speech_threshold": None},
            {"logprob_threshold": None, "no_speech_threshold": None},
        ),
    ):
        expected = [by_package(clip, temperature=0.0, **own) for clip in CLIPS]
        assert texts(openai(checkpoint, temperature=0.0, **options)) == expected


@installed
def test_the_published_preset_is_the_published_call(checkpoint: Path) -> None:
    import whisper

    model = whisper.load_model(str(checkpoint), device="cpu")
    clip = speechlike(33.0, 5)
    expected = whisper.transcribe(
        model, clip, language="en", beam_size=5, best_of=5, temperature=0.0, fp16=False, sample_len=12
    )
    ours = openai(checkpoint, **preset("whisper-rir-mega", "openai-whisper"))
    assert texts(ours, [clip]) == [expected["text"].strip()]
    assert texts(openai(checkpoint), [clip]) != [expected["text"].strip()]


@installed
def test_the_revision_is_the_sha256_of_the_checkpoint(checkpoint: Path) -> None:
    spec = openai(checkpoint).spec
    assert spec.revision == "sha256:" + hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    assert (spec.name, spec.model, spec.backend) == ("small-random.pt", "small-random.pt", "openai-whisper")
    assert str(checkpoint.parent) not in str(spec.as_dict())
    base = load_transcriber("openai-whisper:base", device="cpu").spec
    assert base == load_transcriber("openai-whisper:whisper-base", device="cpu").spec
    # As published with the checkpoint.
    assert base.revision == "sha256:ed3a0b6b1c0edf879ad9b11b1af5a0e6ab5db9205f891f668f8b0e6c6326e34e"
    assert (base.name, base.model) == ("whisper-base", "base.pt")
    assert load_transcriber("openai-whisper:large", device="cpu").spec.name == "whisper-large-v3"


@installed
def test_every_option_that_decides_is_in_the_spec(checkpoint: Path) -> None:
    base = openai(checkpoint).spec
    assert openai(checkpoint, threads=2).spec == base
    for options in (
        {"beam_size": 5},
        {"best_of": 5},
        {"temperature": 0.2},
        {"temperature": (0.0, 0.4)},
        {"beam_size": 5, "patience": 2.0},
        {"length_penalty": 1.0},
        {"max_tokens": 50},
        {"timestamps": False},
        {"condition_on_previous_text": False},
        {"compression_ratio_threshold": None},
        {"logprob_threshold": None},
        {"no_speech_threshold": 0.5},
    ):
        settings = openai(checkpoint, **options).spec.settings
        temperature = options.pop("temperature", TEMPERATURES)
        assert settings["temperature"] == list(temperature if isinstance(temperature, tuple) else (temperature,))
        assert settings.items() >= options.items()
        assert settings != base.settings


@installed
@pytest.mark.parametrize(
    ("vocabulary", "known"),
    [(MULTILINGUAL, (True, True, False)), (ENGLISH, (True, False, False)), (LARGE_V3, (True,) * 3)],
)
def test_the_languages_are_those_of_the_vocabulary(tmp_path: Path, vocabulary: int, known: tuple[bool, ...]) -> None:
    model = openai(save_checkpoint(tmp_path / "c.pt", vocabulary))
    assert tuple(model.supports(code) for code in ("en-GB", "zh_TW", "yue")) == known
    texts(model, CLIPS[:1])
    with pytest.raises(UnknownNameError, match="'xx'"):
        model.transcribe(CLIPS[:1], language="xx")


@installed
def test_named_models_tell_their_languages_without_a_download() -> None:
    known = {
        name: [openai(name).supports(code) for code in ("en", "zh", "yue")] for name in ("tiny.en", "base", "turbo")
    }  # type: ignore[arg-type]
    assert known == {"tiny.en": [True, False, False], "base": [True, True, False], "turbo": [True, True, True]}


@installed
def test_unusable_clips_have_an_error_and_no_words(checkpoint: Path) -> None:
    bad = [np.zeros(0, np.float32), np.full(800, np.nan, np.float32), np.zeros((2, 800), np.float32)]
    found = openai(checkpoint).transcribe([bad[0], CLIPS[0], *bad[1:]], language="en")
    assert [bool(t.error) for t in found] == [True, False, True, True]
    assert found[1].text == texts(openai(checkpoint), CLIPS[:1])[0]
    assert openai(checkpoint).transcribe([], language="en") == []
    frozen = CLIPS[0].copy()
    frozen.flags.writeable = False
    assert texts(openai(checkpoint), [frozen]) == [found[1].text]


@installed
def test_the_cap_is_flagged(checkpoint: Path) -> None:
    short, long = (openai(checkpoint, max_tokens=n, timestamps=False) for n in (4, 400))
    assert [t.truncated for t in short.transcribe(CLIPS[:1], language="en")] == [True]
    assert len(texts(long, CLIPS[:1])[0]) > len(texts(short, CLIPS[:1])[0])


@installed
def test_sampling_starts_from_the_same_seed_for_every_clip(checkpoint: Path) -> None:
    import torch

    sampled = openai(checkpoint, temperature=1.0, best_of=2)
    before = torch.random.get_rng_state()
    heard = texts(sampled)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert texts(sampled, CLIPS[::-1]) == heard[::-1]
    assert heard != texts(openai(checkpoint))


@installed
def test_what_is_no_checkpoint_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.pt").write_bytes(b"no checkpoint")
    with pytest.raises(ModelError, match=r"other\.pt is no checkpoint"):
        _ = openai(tmp_path / "other.pt").spec
    with pytest.raises(ModelError, match="there is no checkpoint"):
        _ = openai(tmp_path / "missing.pt").spec
    with pytest.raises(UnknownNameError, match="Did you mean 'base'"):
        _ = load_transcriber("openai-whisper:bases").spec


@installed
def test_float16_needs_a_gpu(checkpoint: Path) -> None:
    with pytest.raises(UsageError, match="float16 on a CPU"):
        _ = openai(checkpoint, dtype="float16").spec


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "whisper", None)
    with pytest.raises(MissingExtraError, match=r"squtr\[openai-whisper\]"):
        _ = OpenAIWhisperTranscriber("base", device="cpu").spec


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 0},
        {"best_of": 0},
        {"max_tokens": 0},
        {"temperature": 2.0},
        {"temperature": ()},
        {"patience": 2.0},
        {"patience": 0.0, "beam_size": 5},
        {"length_penalty": 2.0},
        {"dtype": "int8"},
        {"threads": -1},
    ],
)
def test_wrong_options(options: dict) -> None:
    with pytest.raises(UsageError):
        OpenAIWhisperTranscriber("base", **options)
