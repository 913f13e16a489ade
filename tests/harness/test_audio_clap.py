"""CLAP as an encoder of spoken queries: windows, no chance, padding, specs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import ModelError, UsageError
from squtr.harness.components.encoders.clap import ClapEncoder
from squtr.harness.protocols import AudioTextEncoder

from .audio_models_for_tests import RATE, save_clap, save_qwen2_audio, sound

pytest.importorskip("transformers")
SECONDS = (0.3, 1.0, 0.7, 2.5, 0.05)
TEXTS = ["abc", "q", "a longer text than the others", "zebra"]


@pytest.fixture(scope="module", params=[False, True], ids=["rand_trunc", "fusion"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clap(tmp_path_factory.mktemp("models") / "clap", fusion=request.param)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clap(tmp_path_factory.mktemp("models") / "clap")


def encoder_of(folder: Path, **options: Any) -> ClapEncoder:
    return ClapEncoder(folder, device="cpu", **options)


def test_vectors_are_the_models_projections(plain: Path) -> None:
    import torch
    from transformers import ClapModel, ClapProcessor

    encoder: AudioTextEncoder = encoder_of(plain)
    model, processor = ClapModel.from_pretrained(plain).eval(), ClapProcessor.from_pretrained(plain)
    clip = sound(0.6, 3)
    with torch.inference_mode():
        features = processor(audio=[clip], sampling_rate=RATE, return_tensors="pt")
        heard = model.get_audio_features(**features).pooler_output[0].numpy()
        read = model.get_text_features(**processor(text=["abc"], return_tensors="pt")).pooler_output[0].numpy()
    assert encoder.sample_rate == RATE
    np.testing.assert_allclose(encoder.encode_audio([clip], language="en")[0], heard / np.linalg.norm(heard), atol=1e-5)
    np.testing.assert_allclose(encoder.encode(["abc"], role="query")[0], read / np.linalg.norm(read), atol=1e-5)


def test_a_vector_alone_and_in_a_batch_differ_by_rounding_only(folder: Path) -> None:
    clips = [sound(seconds, seed) for seed, seconds in enumerate(SECONDS)]
    encoder = encoder_of(folder)
    together = encoder.encode_audio(clips, language="en")
    alone = np.concatenate([encoder_of(folder, batch_size=1).encode_audio([clip], language="en") for clip in clips])
    np.testing.assert_allclose(together, alone, atol=1e-4)
    assert np.abs(together[0] - together[1]).max() > 0.01
    texts = encoder.encode(TEXTS, role="document")
    one_by_one = np.concatenate([encoder.encode([text], role="document") for text in TEXTS])
    np.testing.assert_allclose(texts, one_by_one, atol=1e-4)


def test_nothing_is_left_to_chance(folder: Path) -> None:
    clips = [sound(seconds, seed) for seed, seconds in enumerate(SECONDS)]
    encoder = encoder_of(folder)
    vectors = []
    for seed in range(3):
        np.random.seed(seed)
        vectors.append(encoder.encode_audio(clips, language="en"))
    assert vectors[0].tobytes() == vectors[1].tobytes() == vectors[2].tobytes()


def test_of_a_long_clip_the_beginning_or_the_mean_of_windows(folder: Path) -> None:
    long = sound(2.5, 7)
    windows = [long[:RATE], long[RATE * 3 // 4 : RATE * 7 // 4], long[-RATE:]]
    encoder = encoder_of(folder)
    parts = encoder.encode_audio(windows, language="en")
    np.testing.assert_allclose(encoder.encode_audio([long], language="en")[0], parts[0], atol=1e-5)
    mean = parts.astype(np.float64).mean(axis=0)
    averaging = encoder_of(folder, long_clips="mean")
    vectors = averaging.encode_audio([sound(0.4, 1), long, windows[0]], language="en")
    np.testing.assert_allclose(vectors[1], mean / np.linalg.norm(mean), atol=1e-5)
    np.testing.assert_allclose(vectors[2], parts[0], atol=1e-5)
    shorter = encoder_of(folder, max_seconds=0.5)
    np.testing.assert_allclose(
        shorter.encode_audio([long], language="en"), encoder.encode_audio([long[: RATE // 2]], language="en"), atol=1e-5
    )
    assert shorter.spec.settings["window_s"] == 0.5


def test_long_texts_are_cut_and_prefixes_stand_before_texts(plain: Path) -> None:
    encoder = encoder_of(plain)
    assert encoder.spec.settings["max_tokens"] == 32
    assert np.isfinite(encoder.encode(["word " * 100], role="document")).all()
    short = encoder_of(plain, max_tokens=5)
    a, b = short.encode(["abc", "abcdefg"], role="document")
    np.testing.assert_allclose(a, b, atol=1e-5)
    prefixed = encoder_of(plain, query_prefix="ask ", document_prefix="tell ")
    expected = encoder.encode(["ask abc", "tell abc"], role="document")
    np.testing.assert_allclose(prefixed.encode(["abc"], role="query")[0], expected[0], atol=1e-5)
    np.testing.assert_allclose(prefixed.encode(["abc"], role="document")[0], expected[1], atol=1e-5)


def test_the_spec_says_what_decides_and_loads_no_weights(plain: Path, tmp_path: Path) -> None:
    encoder = encoder_of(plain)
    spec = encoder.spec
    assert "_model" not in vars(encoder)
    assert (spec.kind, spec.backend, spec.name) == ("audio_text_encoder", "clap", "clap")
    assert spec.settings["long_clips"] == "truncate"
    assert spec.revision.startswith("sha256:")
    moved = tmp_path / "clap"
    shutil.copytree(plain, moved)
    assert ClapEncoder(str(moved), batch_size=3).spec == spec
    assert str(plain.parent) not in json.dumps(spec.as_dict())
    for options in ({"long_clips": "mean"}, {"dtype": "bfloat16"}, {"mixed_precision": "bf16"}, {"max_tokens": 3}):
        assert encoder_of(plain, **options).spec.fingerprint != spec.fingerprint


@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"mixed_precision": "bf16"}])
def test_shorter_numbers_give_unit_vectors_near_the_full_ones(plain: Path, options: dict[str, Any]) -> None:
    full, short = encoder_of(plain), encoder_of(plain, **options)
    clip = sound(0.8, 2)
    for a, b in (
        (full.encode_audio([clip], language="en"), short.encode_audio([clip], language="en")),
        (full.encode(["abc"], role="query"), short.encode(["abc"], role="query")),
    ):
        assert np.allclose(np.linalg.norm(b, axis=1), 1, atol=1e-6)
        assert float(a[0] @ b[0]) > 0.95
    assert not np.array_equal(a, b)


def test_languages_are_those_of_the_table() -> None:
    assert ClapEncoder("laion/larger_clap_general").supports("en-GB")
    assert not ClapEncoder("laion/larger_clap_general").supports("zh")
    assert ClapEncoder("someone/clap").supports("zh")


def test_loading_shows_nothing(plain: Path, capfd: pytest.CaptureFixture[str]) -> None:
    encoder_of(plain).encode_audio([sound(0.2, 0)], language="en")
    assert capfd.readouterr().err == ""


def test_folders_that_are_no_dual_encoder_are_named(plain: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    with pytest.raises(ModelError, match="nowhere"):
        _ = ClapEncoder(tmp_path / "nowhere").spec
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "config.json").write_text("{]")
    with pytest.raises(ModelError, match=r"junk is no model.*config\.json"):
        _ = ClapEncoder(tmp_path / "junk").spec
    (tmp_path / "junk" / "config.json").write_text('{"model_type": "newest", "auto_map": {"AutoModel": "m.M"}}')
    with pytest.raises(ModelError, match=r"junk cannot be loaded.*trust_remote_code=True"):
        _ = ClapEncoder(tmp_path / "junk").sample_rate
    shutil.copytree(plain, tmp_path / "half")
    weights = load_file(tmp_path / "half" / "model.safetensors")
    del weights["audio_projection.linear1.weight"]
    save_file(weights, tmp_path / "half" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match=r"half lacks 1 weight of ClapModel.*audio_projection\.linear1\.weight"):
        encoder_of(tmp_path / "half").encode(["a"], role="query")
    with pytest.raises(ModelError, match=r"chatty \(Qwen2AudioModel\) is no dual encoder.*get_audio_features"):
        encoder_of(save_qwen2_audio(tmp_path / "chatty")).encode(["a"], role="query")


def test_a_weight_that_is_no_number_names_the_text_and_fails_the_clip(plain: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    shutil.copytree(plain, tmp_path / "nan")
    weights = load_file(tmp_path / "nan" / "model.safetensors")
    weights["text_model.embeddings.word_embeddings.weight"][4] = np.nan  # the letter a
    save_file(weights, tmp_path / "nan" / "model.safetensors", metadata={"format": "pt"})
    encoder = encoder_of(tmp_path / "nan")
    assert np.isfinite(encoder.encode(["q", "xyz"], role="query")).all()
    with pytest.raises(ModelError, match="'abc'"):
        encoder.encode(["xyz", "abc"], role="query")
    loud = sound(0.5, 1) * 1e30
    assert np.isnan(encoder.encode_audio([loud, sound(0.5, 1)], language="en")).all(axis=1).tolist() == [True, False]


@pytest.mark.parametrize(
    "options", [{"long_clips": "random"}, {"max_seconds": 0}, {"max_tokens": -1}, {"dtype": "int8"}, {"batch_size": 0}]
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ClapEncoder("laion/clap-htsat-unfused", **options)
