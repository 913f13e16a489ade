"""Any sentence-transformers model as an encoder: prompts, lengths, batches, specs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from squtr.errors import IntegrityError, ModelError, SqutrError, UsageError
from squtr.harness.backends.dense import DenseRetriever
from squtr.harness.backends.encoder_prompts import PUBLISHED, published_prompts
from squtr.harness.backends.encoders import SentenceTransformerEncoder
from squtr.harness.protocols import TextEncoder
from squtr.loaders.records import Document

from .encoders_for_tests import save_random_model

pytest.importorskip("sentence_transformers")
TEXTS = ["abc", "a much longer text than the others", "zebra", "q", "你好 世界"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def prompted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_random_model(tmp_path_factory.mktemp("models") / "own", prompts={"query": "q: ", "passage": "p: "})


def test_vectors_are_those_of_the_model_with_the_prompt_before_the_text(folder: Path) -> None:
    from sentence_transformers import SentenceTransformer

    encoder: TextEncoder = SentenceTransformerEncoder(folder, query_prompt="ask: ", document_prompt="", device="cpu")
    model = SentenceTransformer(str(folder), device="cpu")
    for role, prompt in (("query", "ask: "), ("document", "")):
        ours = encoder.encode(TEXTS, role=role)  # type: ignore[arg-type]
        theirs = np.stack([model.encode([prompt + text], normalize_embeddings=True)[0] for text in TEXTS])
        assert ours.dtype == np.float32
        assert ours.shape == (len(TEXTS), 16)
        assert np.allclose(ours, theirs, atol=1e-5)
        assert np.allclose(np.linalg.norm(ours, axis=1), 1, atol=1e-6)


def test_batches_change_vectors_by_rounding_only_and_keep_the_order(folder: Path) -> None:
    texts = [text * n for n in (1, 2, 3) for text in TEXTS]
    one_by_one = SentenceTransformerEncoder(folder, token_budget=1, device="cpu").encode(texts, role="query")
    together = SentenceTransformerEncoder(folder, token_budget=10**6, device="cpu").encode(texts, role="query")
    assert np.allclose(one_by_one, together, atol=1e-5)


def test_batches_hold_at_most_the_budget_of_padded_tokens(folder: Path) -> None:
    encoder = SentenceTransformerEncoder(folder, token_budget=40, device="cpu")
    texts = ["a" * n for n in range(1, 25)]
    batches = list(encoder._batches(texts, ""))
    assert sorted(i for batch in batches for i in batch) == list(range(24))
    for batch in batches:
        longest = max(len(texts[i]) + 2 for i in batch)
        assert len(batch) == 1 or len(batch) * longest <= 40
    assert max(len(batch) for batch in batches) > 3


def test_equal_texts_get_equal_vectors_and_no_texts_no_rows(folder: Path) -> None:
    encoder = SentenceTransformerEncoder(folder, device="cpu")
    vectors = encoder.encode(["abc", "zebra", "abc"], role="document")
    assert vectors[0].tobytes() == vectors[2].tobytes() != vectors[1].tobytes()
    assert encoder.encode([], role="query").shape == (0, 16)


def test_longer_texts_are_cut_at_the_models_limit_or_ours(folder: Path) -> None:
    encoder = SentenceTransformerEncoder(folder, device="cpu")
    assert np.isfinite(encoder.encode(["abc " * 500], role="document")).all()
    short = SentenceTransformerEncoder(folder, max_tokens=5, device="cpu")
    a, b = short.encode(["abc", "abcdefg"], role="document")
    # Products of other shapes may differ in the last bits.
    np.testing.assert_allclose(a, b, atol=1e-5)
    assert short.spec.fingerprint != encoder.spec.fingerprint


def test_prompts_come_from_the_call_then_the_published_table_then_the_model(folder: Path, prompted: Path) -> None:
    def prompts(encoder: SentenceTransformerEncoder) -> tuple[object, object]:
        return encoder.spec.settings["query_prompt"], encoder.spec.settings["document_prompt"]

    assert prompts(SentenceTransformerEncoder(folder)) == ("", "")
    assert prompts(SentenceTransformerEncoder(prompted)) == ("q: ", "p: ")
    assert prompts(SentenceTransformerEncoder(prompted, query_prompt="", document_prompt="x")) == ("", "x")
    known = prompted.parent / "multilingual-e5-large"
    shutil.copytree(prompted, known)
    assert prompts(SentenceTransformerEncoder(known)) == ("query: ", "passage: ")


def test_a_prompt_changes_the_vectors_and_the_fingerprint(folder: Path) -> None:
    plain, asked = (SentenceTransformerEncoder(folder, query_prompt=prompt, device="cpu") for prompt in ("", "ask: "))
    assert not np.allclose(plain.encode(TEXTS, role="query"), asked.encode(TEXTS, role="query"), atol=1e-3)
    assert np.allclose(plain.encode(TEXTS, role="document"), asked.encode(TEXTS, role="document"))
    assert plain.spec.fingerprint != asked.spec.fingerprint


def test_the_spec_needs_no_weights_in_memory_and_no_place_on_disk(folder: Path, tmp_path: Path) -> None:
    encoder = SentenceTransformerEncoder(folder)
    spec = encoder.spec
    assert "_model" not in vars(encoder)
    assert spec.name == spec.model == "tiny"
    assert spec.revision.startswith("sha256:")
    moved = tmp_path / "tiny"
    shutil.copytree(folder, moved)
    assert SentenceTransformerEncoder(str(moved)).spec == spec
    assert str(folder.parent) not in json.dumps(spec.as_dict())
    assert SentenceTransformerEncoder(folder, dtype="bfloat16").spec.fingerprint != spec.fingerprint
    assert SentenceTransformerEncoder(folder, device="cpu", token_budget=9).spec == spec


def test_half_precision_gives_unit_vectors_near_the_full_ones(folder: Path) -> None:
    full = SentenceTransformerEncoder(folder, device="cpu").encode(TEXTS, role="query")
    half = SentenceTransformerEncoder(folder, device="cpu", dtype="bfloat16").encode(TEXTS, role="query")
    assert np.allclose(np.linalg.norm(half, axis=1), 1, atol=1e-6)
    assert np.sum(full * half, axis=1).min() > 0.95


def test_loading_shows_nothing_and_restores_the_libraries_setting(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from transformers.utils import logging

    SentenceTransformerEncoder(folder, device="cpu").encode(["abc"], role="query")
    assert logging.is_progress_bar_enabled()
    assert capfd.readouterr().err == ""


def test_folders_that_are_no_model_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="nowhere"):
        _ = SentenceTransformerEncoder(tmp_path / "nowhere").spec
    (tmp_path / "junk").mkdir()
    (tmp_path / "junk" / "modules.json").write_text("{]")
    with pytest.raises(ModelError, match="junk"):
        SentenceTransformerEncoder(tmp_path / "junk", device="cpu").encode(["a"], role="query")
    (tmp_path / "file.bin").write_bytes(b"x")
    with pytest.raises(ModelError, match=r"file\.bin"):
        SentenceTransformerEncoder(tmp_path / "file.bin", device="cpu").encode(["a"], role="query")
    shutil.copytree(folder, tmp_path / "broken")
    (tmp_path / "broken" / "config_sentence_transformers.json").write_text("{]")
    with pytest.raises(IntegrityError, match="config_sentence_transformers"):
        _ = SentenceTransformerEncoder(tmp_path / "broken").spec
    shutil.copytree(folder, tmp_path / "cut")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(ModelError, match="cut"):
        SentenceTransformerEncoder(tmp_path / "cut", device="cpu").encode(["a"], role="query")


def test_a_model_that_gives_nan_is_named_with_the_text(folder: Path, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    shutil.copytree(folder, tmp_path / "nan")
    weights = load_file(tmp_path / "nan" / "model.safetensors")
    weights["embeddings.word_embeddings.weight"][4] = np.nan
    save_file(weights, tmp_path / "nan" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="'abc'"):
        SentenceTransformerEncoder(tmp_path / "nan", device="cpu").encode(["abc", "xyz"], role="query")


@pytest.mark.parametrize(
    "options", [{"dtype": "int8"}, {"token_budget": 0}, {"max_tokens": 0}, {"model": ""}, {"model": "not a name"}]
)
def test_wrong_options_are_refused(folder: Path, options: dict[str, object]) -> None:
    with pytest.raises(SqutrError):
        _ = SentenceTransformerEncoder(**{"model": folder, **options}).spec  # type: ignore[arg-type]


def test_the_published_table_names_the_benchmarks_encoders() -> None:
    for name in (
        "BAAI/bge-small-en-v1.5",
        "BAAI/bge-large-zh-v1.5",
        "BAAI/bge-m3",
        "intfloat/multilingual-e5-large",
        "google/embeddinggemma-300m",
        "sentence-transformers/all-MiniLM-L6-v2",
        "Qwen/Qwen3-Embedding-0.6B",
        "Qwen/Qwen3-Embedding-8B",
    ):
        assert published_prompts(name) is not None, name
    assert all(name == name.lower() and "/" not in name for name in PUBLISHED)


def test_dense_retrieval_with_a_model_by_path(folder: Path) -> None:
    retriever = DenseRetriever(model=str(folder), device="cpu", query_prompt="")
    retriever.index([Document("a", "", "abc"), Document("b", "", "zebra crossing")], language="en")
    (hits,) = retriever.search(["zebra crossing"], k=2)
    assert hits[0].document_id == "b"
    assert hits[0].score == pytest.approx(1.0, abs=1e-6)
    assert retriever.supports("en")
    with pytest.raises(UsageError):
        DenseRetriever(model=str(folder), device="cpu").search(["x"], k=1)
