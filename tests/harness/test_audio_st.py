"""Models of sentence-transformers that take sound."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import ModelError, UsageError
from squtr.harness.components.encoders.audio_sentence_transformers import MultimodalEncoder
from squtr.harness.components.encoders.clap import ClapEncoder
from squtr.harness.protocols import AudioTextEncoder

from .audio_models_for_tests import RATE, save_clap, save_qwen2_audio, save_sentence_transformer, sound
from .encoders_for_tests import save_random_model

pytest.importorskip("sentence_transformers")
SECONDS = (0.5, 2.0, 1.2)
TEXTS = ["abc", "你好 世界", "a longer text than all the others, with words in it"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = tmp_path_factory.mktemp("models")
    return save_sentence_transformer(models / "plain", save_qwen2_audio(models / "base"))


@pytest.fixture(scope="module")
def prompted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    models = tmp_path_factory.mktemp("models")
    prompts = {"query": "Find what answers.", "document": "Read."}
    return save_sentence_transformer(models / "own", save_qwen2_audio(models / "base"), prompts=prompts)


def encoder_of(folder: Path, **options: Any) -> MultimodalEncoder:
    return MultimodalEncoder(folder, device="cpu", **options)


def test_vectors_are_those_of_the_library(prompted: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder: AudioTextEncoder = encoder_of(prompted)
    model = SentenceTransformer(str(prompted), device="cpu")
    clip = sound(0.9, 1)
    theirs = model.encode_query([{"array": clip, "sampling_rate": RATE}], normalize_embeddings=True)
    np.testing.assert_allclose(encoder.encode_audio([clip], language="en"), theirs, atol=1e-5)
    theirs = model.encode_query(["abc"], normalize_embeddings=True)
    np.testing.assert_allclose(encoder.encode(["abc"], role="query"), theirs, atol=1e-5)
    theirs = model.encode_document(["abc"], normalize_embeddings=True)
    np.testing.assert_allclose(encoder.encode(["abc"], role="document"), theirs, atol=1e-5)


def test_a_vector_alone_and_in_a_batch_differ_by_rounding_only(folder: Path) -> None:
    clips = [sound(seconds, seed) for seed, seconds in enumerate(SECONDS)]
    together, alone = encoder_of(folder, batch_size=8), encoder_of(folder, batch_size=1)
    heard = together.encode_audio(clips, language="en")
    np.testing.assert_allclose(heard, alone.encode_audio(clips, language="en"), atol=1e-4)
    assert np.abs(heard[0] - heard[1]).max() > 1e-3
    read = together.encode(TEXTS, role="document")
    np.testing.assert_allclose(read, alone.encode(TEXTS, role="document"), atol=1e-4)


def test_prompts_come_from_the_call_then_the_models_own(folder: Path, prompted: Path) -> None:
    def prompts(encoder: MultimodalEncoder) -> tuple[Any, ...]:
        settings = encoder.spec.settings
        return settings["audio_prompt"], settings["query_prompt"], settings["document_prompt"]

    assert prompts(encoder_of(folder)) == ("", "", "")
    assert prompts(encoder_of(prompted)) == ("Find what answers.", "Find what answers.", "Read.")
    given = encoder_of(prompted, query_prompt="q", document_prompt="", audio_prompt="Hear.")
    assert prompts(given) == ("Hear.", "q", "")
    clip = sound(0.5, 1)
    a, b = (encoder.encode_audio([clip], language="en") for encoder in (given, encoder_of(prompted)))
    assert np.abs(a - b).max() > 1e-3


def test_a_text_that_looks_like_a_file_is_still_a_text(folder: Path, tmp_path: Path) -> None:
    encoder = encoder_of(folder)
    file = tmp_path / "sound.wav"
    file.write_bytes(b"no sound")
    texts = [str(file), "https://example.org/picture.png", "data:image/png;base64,AAAA"]
    vectors = encoder.encode(texts, role="document")
    assert np.isfinite(vectors).all()
    assert np.abs(vectors[0] - encoder.encode([f"{file} "], role="document")[0]).max() > 1e-3


def test_texts_are_cut_and_sound_is_not(folder: Path) -> None:
    cut, whole = encoder_of(folder, max_tokens=80), encoder_of(folder)
    long = "a" * 200
    assert np.abs(cut.encode([long], role="document") - whole.encode([long], role="document")).max() > 1e-3
    clip = sound(3.5, 1)  # more than 80 tokens
    np.testing.assert_array_equal(cut.encode_audio([clip], language="en"), whole.encode_audio([clip], language="en"))


def test_only_the_beginning_of_a_long_clip_is_followed(folder: Path) -> None:
    long = sound(6.0, 5)
    encoder = encoder_of(folder)
    a, b = (encoder.encode_audio([clip], language="en") for clip in (long, long[: 4 * RATE]))
    np.testing.assert_allclose(a, b, atol=1e-5)
    short = encoder_of(folder, max_seconds=1.5)
    a, b = short.encode_audio([long], language="en"), encoder.encode_audio([long[: RATE * 3 // 2]], language="en")
    np.testing.assert_allclose(a, b, atol=1e-5)


def test_clap_as_it_is_and_never_by_chance(tmp_path: Path) -> None:
    clap = save_clap(tmp_path / "clap")
    encoder, own = encoder_of(clap), ClapEncoder(clap, device="cpu")
    clips = [sound(0.4, 1), sound(2.5, 2)]
    assert encoder.sample_rate == RATE
    np.testing.assert_allclose(
        encoder.encode_audio(clips, language="en"), own.encode_audio(clips, language="en"), atol=1e-5
    )
    np.testing.assert_allclose(encoder.encode(["abc"], role="query"), own.encode(["abc"], role="query"), atol=1e-5)
    with pytest.raises(ModelError, match="clap:<model>"):
        _ = encoder_of(save_clap(tmp_path / "fused", fusion=True)).sample_rate
    with pytest.raises(ModelError, match="no chat template"):
        encoder_of(clap, audio_prompt="Hear.").encode(["a"], role="query")


def test_the_spec_says_what_decides_and_loads_no_weights(folder: Path, tmp_path: Path) -> None:
    encoder = encoder_of(folder)
    spec = encoder.spec
    assert "_model" not in vars(encoder)
    assert encoder.sample_rate == RATE
    assert (spec.kind, spec.backend, spec.name) == ("audio_text_encoder", "sentence-transformers-audio", "plain")
    moved = tmp_path / "plain"
    shutil.copytree(folder, moved)
    assert MultimodalEncoder(str(moved), batch_size=3).spec == spec
    assert str(folder.parent) not in json.dumps(spec.as_dict())
    assert encoder_of(folder, dtype="bfloat16").spec.fingerprint != spec.fingerprint


def test_a_model_of_text_alone_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"bert takes text, but not audio.*dense:<model>"):
        _ = encoder_of(save_random_model(tmp_path / "bert")).sample_rate
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "modules.json").write_text("{]")
    with pytest.raises(ModelError, match=r"junk.modules\.json cannot be read"):
        encoder_of(tmp_path / "junk").encode(["a"], role="query")


def test_loading_and_encoding_show_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    encoder = encoder_of(folder)
    encoder.encode_audio([sound(0.2, 0)], language="en")
    encoder.encode(["abc"], role="query")
    assert capfd.readouterr().err == ""


def test_languages_are_those_of_the_tables() -> None:
    assert not MultimodalEncoder("laion/clap-htsat-unfused").supports("zh")
    assert not MultimodalEncoder("BAAI/bge-small-en-v1.5").supports("zh")
    assert MultimodalEncoder("someone/other").supports("zh")


@pytest.mark.parametrize("options", [{"max_seconds": 0.0}, {"max_tokens": 0}, {"dtype": "int8"}, {"batch_size": 0}])
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        MultimodalEncoder("someone/omni", **options)
