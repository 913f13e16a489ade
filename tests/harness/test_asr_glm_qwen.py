"""GLM-ASR and Qwen3-ASR with tiny random models, and the package qwen-asr by its shape."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from squtr.errors import MissingExtraError, ModelError, UnknownNameError, UsageError
from squtr.harness.components import load_transcriber
from squtr.harness.components.transcribers.chat_requests import Written
from squtr.harness.components.transcribers.qwen import LANGUAGES

from .funasr_for_tests import install_fake_distribution
from .speech_models_for_tests import save_tiny_glm, save_tiny_qwen
from .whisper_for_tests import speechlike

CLIPS = [speechlike(0.6 + 0.3 * i, i) for i in range(4)]
FAST: dict[str, Any] = {"device": "cpu", "dtype": "float32", "max_new_tokens": 16, "threads": 1}


@pytest.fixture(scope="module")
def glm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_glm(tmp_path_factory.mktemp("models") / "tiny-glm")


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_qwen(tmp_path_factory.mktemp("models") / "tiny-qwen")


def reference(folder: Path, kind: str, *clips: np.ndarray, **request: Any) -> list[str]:
    """What the model cards' own lines write."""
    import torch
    import transformers

    processor = transformers.AutoProcessor.from_pretrained(folder)
    model = getattr(transformers, kind).from_pretrained(folder)
    inputs = processor.apply_transcription_request(list(clips), **request)
    with torch.inference_mode():
        output = model.generate(**inputs, do_sample=False, max_new_tokens=16)
    texts = processor.batch_decode(output[:, inputs.input_ids.shape[1] :], skip_special_tokens=True)
    return [text.strip() for text in texts]


def test_glm_writes_what_transformers_writes_in_batches_too(glm: Path) -> None:
    backend = load_transcriber(f"glm-asr:{glm}", batch_size=3, **FAST)
    found = backend.transcribe(CLIPS, language="zh")
    assert [t.error for t in found] == [""] * 4
    texts = [t.text for t in found]
    assert len(set(texts)) == 4
    kind = "GlmAsrForConditionalGeneration"
    assert texts == [text for clip in CLIPS for text in reference(glm, kind, clip)]
    asked = load_transcriber(f"glm-asr:{glm}", prompt="Write it down", **FAST).transcribe(CLIPS[:1], language="zh")
    assert [asked[0].text] == reference(glm, kind, CLIPS[0], prompt="Write it down") != texts[:1]
    assert backend.transcribe([], language="zh") == []


@pytest.mark.parametrize(("cap", "cut"), [(200, False), (3, True)])
def test_the_confidence_is_that_of_the_librarys_own_scores(glm: Path, cap: int, cut: bool) -> None:
    import torch
    import transformers

    processor = transformers.AutoProcessor.from_pretrained(glm)
    model = transformers.GlmAsrForConditionalGeneration.from_pretrained(glm)
    options = FAST | {"max_new_tokens": cap}
    found = load_transcriber(f"glm-asr:{glm}", batch_size=4, **options).transcribe(CLIPS, language="en")
    assert cut in {t.truncated for t in found}
    for clip, transcript in zip(CLIPS, found, strict=True):
        inputs = processor.apply_transcription_request([clip])
        with torch.inference_mode():
            output = model.generate(
                **inputs, do_sample=False, max_new_tokens=cap, return_dict_in_generate=True, output_scores=True
            )
        scores = model.compute_transition_scores(output.sequences, output.scores, normalize_logits=True)
        assert transcript.confidence == pytest.approx(float(scores.mean().exp()), rel=1e-3)


def test_glm_tells_what_the_cap_cut(glm: Path) -> None:
    backend = load_transcriber(f"glm-asr:{glm}", **(FAST | {"max_new_tokens": 200}))
    ended = [t for t in backend.transcribe(CLIPS, language="en") if not t.truncated]
    assert ended
    for transcript in ended:
        n = len(transcript.text)  # one token per character
        for cap, cut in ((n, True), (n + 1, False)):
            again = load_transcriber(f"glm-asr:{glm}", **(FAST | {"max_new_tokens": cap}))
            texts = {t.text: t.truncated for t in again.transcribe(CLIPS, language="en")}
            assert texts[transcript.text] is cut
    long = np.tile(CLIPS[0], 110)  # the tiny model hears 60 s
    assert long.size > 60 * 16_000
    (found,) = backend.transcribe([long], language="en")
    assert found.truncated


def test_one_clip_that_cannot_be_heard_fails_alone(glm: Path, qwen: Path) -> None:
    broken = CLIPS[1].copy()
    broken[3] = np.inf
    other = CLIPS[0][::-1].copy()  # as long: no padding
    for name in (f"glm-asr:{glm}", f"qwen-asr:{qwen}"):
        backend = load_transcriber(name, batch_size=4, **FAST)
        alone = backend.transcribe(CLIPS[:1], language="en")[0].text
        found = backend.transcribe([CLIPS[0], broken, np.zeros(0, np.float32), other], language="en")
        assert [bool(t.error) for t in found] == [False, True, True, False]
        assert found[0].text == alone


def test_a_clip_without_a_token_of_sound_fails_alone(glm: Path) -> None:
    backend = load_transcriber(f"glm-asr:{glm}", batch_size=4, **FAST)
    found = backend.transcribe([CLIPS[0][:200], CLIPS[1]], language="en")
    assert (found[0].text, found[0].error) == ("", "GLM-ASR failed: the clip is too short for one token of audio")
    assert found[1].text == backend.transcribe(CLIPS[1:2], language="en")[0].text


def test_glm_spec_and_languages(glm: Path) -> None:
    backend = load_transcriber(f"glm-asr:{glm}", device="cpu")
    spec = backend.spec
    assert (spec.kind, spec.backend, spec.name) == ("transcriber", "glm-asr", "tiny-glm")
    assert spec.revision.startswith("sha256:")
    assert spec.settings["dtype"] == "bfloat16"
    assert spec.settings["max_new_tokens"] == 500
    assert spec.settings["prompt"] == "Please transcribe this audio into text"
    assert backend.sample_rate == 16_000
    assert [backend.supports(code) for code in ("zh-CN", "en", "yue", "es")] == [True, True, True, False]
    assert load_transcriber(f"glm-asr:{glm}", languages=["es"]).supports("es")
    with pytest.raises(UnknownNameError, match="'es'"):
        backend.transcribe(CLIPS[:1], language="es")
    assert load_transcriber(f"glm-asr:{glm}", device="cpu", batch_size=1).spec == spec


def test_bfloat16_runs(glm: Path, qwen: Path) -> None:
    for name in (f"glm-asr:{glm}", f"qwen-asr:{qwen}"):
        found = load_transcriber(name, device="cpu", max_new_tokens=4).transcribe(CLIPS[:2], language="en")
        assert [t.error for t in found] == ["", ""]


@pytest.mark.parametrize("language", ["zh", "en", "es"])
def test_qwen_is_forced_to_the_language(qwen: Path, language: str) -> None:
    backend = load_transcriber(f"qwen-asr:{qwen}", batch_size=3, **FAST)
    texts = [t.text for t in backend.transcribe(CLIPS, language=language)]
    kind = "Qwen3ASRForConditionalGeneration"
    name = LANGUAGES[language]
    assert texts == reference(qwen, kind, *CLIPS[:3], language=name) + reference(qwen, kind, CLIPS[3], language=name)


def test_qwen_languages_differ_and_so_does_a_context(qwen: Path) -> None:
    backend = load_transcriber(f"qwen-asr:{qwen}", **FAST)
    in_english = [t.text for t in backend.transcribe(CLIPS, language="en")]
    assert [t.text for t in backend.transcribe(CLIPS, language="zh-TW")] != in_english
    told = load_transcriber(f"qwen-asr:{qwen}", context="prices of bonds", **FAST)
    assert [t.text for t in told.transcribe(CLIPS, language="en")] != in_english
    assert told.spec.fingerprint != backend.spec.fingerprint
    assert len(LANGUAGES) == 30
    assert not backend.supports("sw")
    with pytest.raises(UnknownNameError, match="'sw'"):
        backend.transcribe(CLIPS, language="sw")


def test_qwen_tells_of_a_loop_that_it_collapses(qwen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = load_transcriber(f"qwen-asr:{qwen}", batch_size=2, **FAST)
    spelled = {CLIPS[0].size: "a" * 40, CLIPS[1].size: "fine", CLIPS[2].size: "a"}
    ids = {
        letter: backend._native.processor.tokenizer.convert_tokens_to_ids(letter)  # type: ignore[attr-defined]
        for letter in "afine"
    }

    def write(clips: list[np.ndarray], **request: Any) -> list[Written]:
        return [Written([ids[letter] for letter in spelled[clip.size]], False, 0.5) for clip in clips]

    monkeypatch.setattr(backend._native, "write", write)  # type: ignore[attr-defined]
    found = backend.transcribe(CLIPS[:3], language="en")
    assert [(t.text, t.loop) for t in found] == [("a", True), ("fine", False), ("a", False)]


def test_qwen_spec(qwen: Path) -> None:
    spec = load_transcriber(f"qwen-asr:{qwen}", device="cpu").spec
    assert (spec.backend, spec.name) == ("qwen-asr", "tiny-qwen")
    assert spec.settings["engine"] == "transformers"
    assert spec.settings["dtype"] == "bfloat16"
    assert spec.settings["max_new_tokens"] == 256


@dataclass
class FakeTranscription:
    language: str
    text: str
    time_stamps: Any = None


class FakeQwen3ASRModel:
    """`qwen_asr.Qwen3ASRModel` 0.0.6 as far as it is used."""

    loaded: ClassVar[list[dict[str, Any]]] = []
    asked: ClassVar[list[dict[str, Any]]] = []

    def __init__(self) -> None:
        config = SimpleNamespace(do_sample=True, num_beams=3)
        config.update = lambda **changes: vars(config).update(changes)
        self.model = SimpleNamespace(thinker=SimpleNamespace(generation_config=config))

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str,
        forced_aligner: str | None = None,
        forced_aligner_kwargs: dict[str, Any] | None = None,
        max_inference_batch_size: int = 32,
        max_new_tokens: int | None = 512,
        **kwargs: Any,
    ) -> FakeQwen3ASRModel:
        cls.loaded.append(
            {"model": pretrained_model_name_or_path, "batch": max_inference_batch_size, "new": max_new_tokens, **kwargs}
        )
        return cls()

    def transcribe(
        self, audio: Any, context: str | list[str] = "", language: Any = None, return_time_stamps: bool = False
    ) -> list[FakeTranscription]:
        config = self.model.thinker.generation_config
        assert (config.do_sample, config.num_beams) == (False, 1)
        if any(len(wave) == len(CLIPS[3]) for wave, _ in audio):
            raise ValueError("Unsupported")
        self.asked.append({"audio": audio, "context": context, "language": language})
        return [
            FakeTranscription(name, f" {name} {len(wave)}") for (wave, _), name in zip(audio, language, strict=True)
        ]


@pytest.fixture
def original(tmp_path: Path) -> Path:
    folder = tmp_path / "Qwen3-ASR-tiny"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3_asr", "thinker_config": {}}))
    return folder


def test_the_first_form_of_the_weights_is_read_by_the_package(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    install_fake_distribution(monkeypatch, tmp_path / "site", "qwen-asr", "0.0.6")
    module: Any = ModuleType("qwen_asr")
    module.Qwen3ASRModel = type("Fresh", (FakeQwen3ASRModel,), {"loaded": [], "asked": []})
    monkeypatch.setitem(sys.modules, "qwen_asr", module)
    backend = load_transcriber(f"qwen-asr:{original}", device="cpu", batch_size=2, context="bonds")
    settings = backend.spec.settings
    assert (settings["engine"], settings["qwen_asr"]) == ("qwen-asr", "0.0")
    assert "transformers" not in settings
    found = backend.transcribe(CLIPS, language="zh")
    assert [t.text for t in found] == [*(f"Chinese {len(clip)}" for clip in CLIPS[:3]), ""]
    assert found[3].error == "Qwen3-ASR failed: Unsupported"
    assert module.Qwen3ASRModel.loaded == [
        {"model": str(original), "batch": -1, "new": 256, "dtype": torch.bfloat16, "device_map": "cpu"}
    ]
    asked = module.Qwen3ASRModel.asked[0]
    assert (asked["context"], asked["language"]) == ("bonds", ["Chinese", "Chinese"])
    wave, rate = asked["audio"][0]
    assert rate == 16_000
    np.testing.assert_array_equal(wave, CLIPS[0])


def test_without_the_package_both_ways_out_are_named(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "qwen_asr", None)
    backend = load_transcriber(f"qwen-asr:{original}", device="cpu")
    for act in (lambda: backend.spec, lambda: backend.transcribe(CLIPS[:1], language="zh")):
        with pytest.raises(MissingExtraError, match=r"squtr\[qwen-asr\].*own, or give .*-hf"):
            act()


def test_what_cannot_be_loaded_is_named(tmp_path: Path, glm: Path, qwen: Path) -> None:
    with pytest.raises(UsageError, match="unknown engine 'vllm'"):
        load_transcriber(f"qwen-asr:{qwen}", engine="vllm")
    empty = tmp_path / "empty"
    empty.mkdir()
    (empty / "weights.bin").write_bytes(b"x")
    with pytest.raises(ModelError, match=r"config\.json"):
        _ = load_transcriber(f"qwen-asr:{empty}").spec
    with pytest.raises(ModelError, match=r"lacks config\.json"):
        _ = load_transcriber(f"glm-asr:{empty}").spec
    with pytest.raises(ModelError, match="is a Qwen3ASRProcessor, not a GlmAsrProcessor"):
        load_transcriber(f"glm-asr:{qwen}", device="cpu").transcribe(CLIPS[:1], language="en")
