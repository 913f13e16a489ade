"""Both engines on one small random Whisper: they must hear the same, alone and in batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from squtr.errors import ModelError, UnknownNameError, UsageError
from squtr.harness.components import load_transcriber
from squtr.harness.components.transcribers.faster_whisper import FasterWhisperTranscriber
from squtr.harness.components.transcribers.presets import preset
from squtr.harness.components.transcribers.transformers import TransformersTranscriber

from .whisper_for_tests import save_tiny_ctranslate2, save_tiny_whisper, speechlike

CAP = 24
FAST = preset("fast", "faster-whisper")
CLIPS = [speechlike(seconds, seed) for seed, seconds in enumerate((1.0, 2.5, 0.3, 4.0, 29.9))]


@pytest.fixture(scope="module")
def torch_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_whisper(tmp_path_factory.mktemp("whisper") / "tiny")


@pytest.fixture(scope="module")
def ct2_model(torch_model: Path) -> Path:
    return save_tiny_ctranslate2(torch_model, torch_model.parent / "tiny-ct2")


@pytest.fixture(scope="module")
def with_torch(torch_model: Path) -> TransformersTranscriber:
    return TransformersTranscriber(torch_model, device="cpu", threads=1, max_new_tokens=CAP, batch_size=3, beam_size=1)


@pytest.fixture(scope="module")
def with_ct2(ct2_model: Path) -> FasterWhisperTranscriber:
    return FasterWhisperTranscriber(
        ct2_model, device="cpu", threads=1, max_tokens=CAP, batch_size=3, **{**FAST, "compute_type": "float32"}
    )


def texts(transcriber: TransformersTranscriber | FasterWhisperTranscriber, clips: list, language: str) -> list[str]:
    found = transcriber.transcribe(clips, language=language)
    assert [t.error for t in found] == [""] * len(clips)
    return [t.text for t in found]


def test_the_engines_agree(
    with_torch: TransformersTranscriber, with_ct2: FasterWhisperTranscriber, monkeypatch: pytest.MonkeyPatch
) -> None:
    # They pad differently (transformers the clip, CTranslate2 its spectrum), so both get one spectrum. And
    # faster-whisper has a list of its own of tokens that are not written.
    from faster_whisper.transcribe import get_suppressed_tokens

    never = list(get_suppressed_tokens(with_ct2._tokenizer("en"), (-1,)))
    monkeypatch.setattr(with_torch._model.generation_config, "suppress_tokens", never)
    extractor = with_torch._processor.feature_extractor
    monkeypatch.setattr(with_ct2, "_features", lambda clip: extractor(clip, sampling_rate=16_000)["input_features"][0])
    for language in ("zh", "en"):
        heard = with_torch.transcribe(CLIPS, language=language)
        same = with_ct2.transcribe(CLIPS, language=language)
        assert [t.text for t in heard] == [t.text for t in same]
        assert len({t.text for t in heard}) > 1
        assert [t.confidence for t in heard] == pytest.approx([t.confidence for t in same], rel=1e-3)


def test_the_language_is_forced(with_torch: TransformersTranscriber, with_ct2: FasterWhisperTranscriber) -> None:
    assert texts(with_torch, CLIPS, "zh") != texts(with_torch, CLIPS, "en")
    assert texts(with_ct2, CLIPS, "zh") != texts(with_ct2, CLIPS, "es")


@pytest.mark.parametrize("compute_type", ["float32", "int8"])
def test_batches_change_nothing_with_ctranslate2(ct2_model: Path, compute_type: str) -> None:
    heard = [
        texts(
            FasterWhisperTranscriber(
                ct2_model,
                device="cpu",
                threads=threads,
                max_tokens=CAP,
                batch_size=size,
                **{**FAST, "compute_type": compute_type},
            ),
            CLIPS,
            "zh",
        )
        for size, threads in ((1, 1), (2, 1), (5, 1), (5, 2))
    ]
    assert heard[1:] == heard[:1] * 3


def test_batches_change_nothing_with_transformers(torch_model: Path, with_torch: TransformersTranscriber) -> None:
    alone = TransformersTranscriber(torch_model, device="cpu", threads=1, max_new_tokens=CAP, batch_size=1, beam_size=1)
    assert texts(alone, CLIPS, "zh") == texts(with_torch, CLIPS, "zh")
    assert texts(alone, CLIPS[::-1], "zh") == texts(with_torch, CLIPS, "zh")[::-1]


def test_the_cap_is_exact_and_flagged(with_torch: TransformersTranscriber, with_ct2: FasterWhisperTranscriber) -> None:
    # A random model hardly ever ends by itself; each of its tokens is one printable character.
    for transcriber in (with_torch, with_ct2):
        cut = [t for t in transcriber.transcribe(CLIPS, language="zh") if t.truncated]
        assert cut
        assert {len(t.text) for t in cut} == {CAP}


def test_a_long_clip_is_followed_in_windows(
    with_torch: TransformersTranscriber, with_ct2: FasterWhisperTranscriber
) -> None:
    for transcriber in (with_torch, with_ct2):
        longer, short, long = transcriber.transcribe(
            [speechlike(95.0, 1), CLIPS[0], speechlike(35.0, 1)], language="en"
        )
        assert len(longer.text) > len(long.text) > 0
        assert short.text == texts(transcriber, CLIPS[:1], "en")[0]


def test_unusable_clips_have_an_error_and_no_words(
    with_torch: TransformersTranscriber, with_ct2: FasterWhisperTranscriber
) -> None:
    bad = [np.zeros(0, np.float32), np.full(800, np.nan, np.float32), np.zeros((2, 800), np.float32)]
    endless = np.full(16_000 * 31, np.inf, np.float32)
    for transcriber in (with_torch, with_ct2):
        found = transcriber.transcribe([bad[0], CLIPS[0], *bad[1:], endless], language="en")
        assert [bool(t.error) for t in found] == [True, False, True, True, True]
        assert [t.text for t in found if t.error] == [""] * 4
        assert found[1].text == texts(transcriber, CLIPS[:1], "en")[0]


def test_silence_and_a_single_sample_are_heard(
    with_torch: TransformersTranscriber, with_ct2: FasterWhisperTranscriber
) -> None:
    for transcriber in (with_torch, with_ct2):
        found = transcriber.transcribe([np.zeros(16_000, np.float32), np.array([0.1], np.float32)], language="en")
        assert [t.error for t in found] == ["", ""]


def test_no_clips_give_no_transcripts(with_torch: TransformersTranscriber, with_ct2: FasterWhisperTranscriber) -> None:
    assert with_torch.transcribe([], language="en") == with_ct2.transcribe([], language="en") == []


def test_the_languages_are_those_of_the_vocabulary(
    with_torch: TransformersTranscriber, with_ct2: FasterWhisperTranscriber
) -> None:
    for transcriber in (with_torch, with_ct2):
        assert [transcriber.supports(code) for code in ("en-GB", "zh_TW", "fr")] == [True, True, False]
        with pytest.raises(UnknownNameError, match="'fr'"):
            transcriber.transcribe(CLIPS[:1], language="fr")


def test_the_spec_says_what_decides(torch_model: Path, ct2_model: Path) -> None:
    base = FasterWhisperTranscriber(ct2_model, device="cpu")
    assert base.sample_rate == base.spec.settings["sample_rate"] == 16_000
    assert base.spec.revision.startswith("sha256:")
    assert str(ct2_model) not in str(base.spec.as_dict())
    same = FasterWhisperTranscriber(ct2_model, device="cpu", batch_size=2, threads=1)
    assert same.spec.fingerprint == base.spec.fingerprint
    for other in ({"compute_type": "float32"}, {"beam_size": 4}, {"max_tokens": 50}, FAST):
        assert FasterWhisperTranscriber(ct2_model, device="cpu", **other).spec.fingerprint != base.spec.fingerprint
    torch = TransformersTranscriber(torch_model, device="cpu")
    assert torch.sample_rate == 16_000
    assert torch.spec.name == "tiny"
    assert TransformersTranscriber(torch_model, device="cpu", dtype="bfloat16").spec != torch.spec


def test_the_wrong_format_is_named(torch_model: Path, ct2_model: Path) -> None:
    with pytest.raises(ModelError, match=r"lacks model\.bin.*'transformers'"):
        _ = load_transcriber(f"faster-whisper:{torch_model}").spec
    with pytest.raises(ModelError, match=r"preprocessor_config\.json.*'faster-whisper'"):
        _ = load_transcriber(f"transformers:{ct2_model}").spec


def test_broken_weights_are_an_error(ct2_model: Path, tmp_path: Path) -> None:
    for file in ct2_model.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "model.bin").write_bytes((ct2_model / "model.bin").read_bytes()[:1000])
    broken = FasterWhisperTranscriber(tmp_path, device="cpu")
    with pytest.raises(ModelError, match="cannot be loaded"):
        broken.transcribe(CLIPS[:1], language="en")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match="vocabulary"):
        FasterWhisperTranscriber(tmp_path, device="cpu").supports("en")


def test_english_only_models_know_english(tmp_path: Path) -> None:
    model = TransformersTranscriber(save_tiny_whisper(tmp_path, multilingual=False), device="cpu", max_new_tokens=8)
    assert [model.supports(code) for code in ("en", "zh")] == [True, False]
    (found,) = model.transcribe(CLIPS[:1], language="en")
    assert found.error == ""


@pytest.mark.parametrize(
    "options", [{"batch_size": 0}, {"beam_size": 0}, {"max_tokens": 225}, {"threads": -1}, {"device": "tpu"}]
)
def test_wrong_options_of_faster_whisper(options: dict) -> None:
    with pytest.raises(UsageError):
        FasterWhisperTranscriber("whisper-base", **options)


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"max_new_tokens": 0}, {"threads": -1}, {"dtype": "int4"}])
def test_wrong_options_of_transformers(options: dict) -> None:
    with pytest.raises(UsageError):
        TransformersTranscriber("whisper-small", **options)
