"""Any sentence-transformers model as an encoder: prompts, lengths, batches, specs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.errors import IntegrityError, ModelError, SqutrError, UsageError
from squtr.harness.components.encoders import sentence_transformers as encoders
from squtr.harness.components.encoders.prompts import PUBLISHED, published_prompts
from squtr.harness.components.encoders.sentence_transformers import SentenceTransformerEncoder
from squtr.harness.components.retrievers.dense import DenseRetriever
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
    batches = list(encoder._batches(texts, "document"))
    assert sorted(i for batch in batches for i in batch.rows) == list(range(24))
    for batch in batches:
        assert batch.width == max(len(texts[i]) + 2 for i in batch.rows)
        assert len(batch.rows) == 1 or batch.tokens <= 40
    assert max(len(batch.rows) for batch in batches) > 3


def test_windows_hold_all_texts_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text * n for n in (1, 2, 3) for text in TEXTS]
    whole = SentenceTransformerEncoder(folder, device="cpu").encode(texts, role="query")
    monkeypatch.setattr(encoders, "_WINDOW_TEXTS", 4)
    encoder = SentenceTransformerEncoder(folder, device="cpu", token_budget=10**6)
    (batch,) = encoder._batches(texts, "query")
    assert sorted(batch.rows) == list(range(len(texts))), "a window's end cuts no batch"
    assert list(encoder._batches([], "query")) == []
    assert np.allclose(SentenceTransformerEncoder(folder, device="cpu").encode(texts, role="query"), whole, atol=1e-5)


class Small:
    """A device that has memory for so many padded tokens, around an encoder's real model."""

    def __init__(self, encoder: SentenceTransformerEncoder, tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[int] = []
        model = encoder.model
        forward = type(model).forward

        def limited(own: object, features: dict[str, Any], **options: object) -> object:
            size = features["input_ids"].numel()
            self.seen.append(size)
            if size > tokens:
                raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
            return forward(own, features, **options)

        monkeypatch.setattr(type(model), "forward", limited)


def test_batches_shrink_where_memory_runs_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a" * n for n in range(1, 25)] * 2 + ["b" * n for n in range(1, 25)]
    whole = SentenceTransformerEncoder(folder, device="cpu").encode(texts, role="document")
    encoder = SentenceTransformerEncoder(folder, device="cpu", token_budget=400)
    small = Small(encoder, 100, monkeypatch)
    found = encoder.encode(texts, role="document")
    assert np.allclose(found, whole, atol=1e-5)
    failed = [size for size in small.seen if size > 100]
    assert 1 <= len(failed) <= 3, "not tried again and again"
    assert small.seen.count(max(small.seen)) == 1
    assert encoder.encode(texts, role="document").tobytes() == found.tobytes(), "the same again: a call starts afresh"


def test_a_text_that_does_not_fit_alone_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = SentenceTransformerEncoder(folder, device="cpu")
    Small(encoder, 10, monkeypatch)
    with pytest.raises(ModelError, match=r"no memory for one item of 22 tokens \('a{20}'\)"):
        encoder.encode(["a" * 20, "b", "c"], role="document")


def test_what_is_prepared_ahead_by_a_thread_is_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    texts = [text * n for n in (1, 2, 3) for text in TEXTS]
    plain = SentenceTransformerEncoder(folder, device="cpu", token_budget=20).encode(texts, role="query")
    encoder = SentenceTransformerEncoder(folder, device="cpu", token_budget=20)
    model = encoder.model
    monkeypatch.setattr(encoder, "model", Elsewhere(model, torch.device("meta")))
    batches = list(encoder._prepared(list(dict.fromkeys(texts)), "query"))
    monkeypatch.setattr(encoder, "model", model)
    assert len(batches) > 3
    vectors = np.empty_like(plain[: len(dict.fromkeys(texts))])
    for batch in batches:
        encoder._fill(vectors, list(dict.fromkeys(texts)), batch, "query", None)
    assert vectors.tobytes() == encoder.encode(list(dict.fromkeys(texts)), role="query").tobytes()


class Elsewhere:
    """A model that says it is on another device."""

    def __init__(self, model: Any, device: Any) -> None:
        self._model, self.device = model, device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def __getitem__(self, place: int) -> Any:
        return self._model[place]


def test_mixed_precision_is_near_and_another_system(folder: Path) -> None:
    full = SentenceTransformerEncoder(folder, device="cpu")
    mixed = SentenceTransformerEncoder(folder, device="cpu", mixed_precision="bf16")
    a, b = full.encode(TEXTS, role="query"), mixed.encode(TEXTS, role="query")
    assert 0.95 < np.sum(a * b, axis=1).min() < 1 - 1e-7
    assert np.allclose(np.linalg.norm(b, axis=1), 1, atol=1e-6)
    assert full.spec.fingerprint != mixed.spec.fingerprint
    assert "mixed_precision" not in full.spec.settings


def test_a_device_map_places_the_model_and_changes_no_vector(folder: Path) -> None:
    plain = SentenceTransformerEncoder(folder, device="cpu")
    mapped = SentenceTransformerEncoder(folder, device_map={"": "cpu"})
    assert mapped.spec == plain.spec
    assert mapped.encode(TEXTS, role="query").tobytes() == plain.encode(TEXTS, role="query").tobytes()


def test_a_model_with_two_routes_sends_queries_and_documents_apart(folder: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router

    query, document = (SentenceTransformer(str(folder), device="cpu") for _ in range(2))
    with __import__("torch").no_grad():
        document[0].auto_model.embeddings.word_embeddings.weight.mul_(-1.0).add_(0.5)
    router = Router.for_query_document([query[0], query[1]], [document[0], document[1]])
    model = SentenceTransformer(modules=[router], device="cpu")
    model.save(str(tmp_path / "routed"))
    encoder = SentenceTransformerEncoder(tmp_path / "routed", device="cpu")
    for role, theirs in (("query", model.encode_query), ("document", model.encode_document)):
        ours = encoder.encode(TEXTS, role=role)  # type: ignore[arg-type]
        assert np.allclose(ours, theirs(TEXTS, normalize_embeddings=True), atol=1e-5)
    assert not np.allclose(encoder.encode(TEXTS, role="query"), encoder.encode(TEXTS, role="document"), atol=1e-2)


def test_adapters_of_a_known_model_are_asked_for_and_in_the_spec(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder, tmp_path / "jina-embeddings-v3")
    encoder = SentenceTransformerEncoder(tmp_path / "jina-embeddings-v3", device="cpu")
    assert encoder.spec.settings["query_task"] == "retrieval.query"
    assert encoder.spec.settings["document_task"] == "retrieval.passage"
    assert encoder._route("query") == {"task": "retrieval.query"}
    assert encoder._route("document") == {"task": "retrieval.passage"}
    assert SentenceTransformerEncoder(folder, device="cpu")._route("query") == {}


@pytest.mark.parametrize("pooling", ["cls", "mean", "lasttoken"])
def test_pooling_is_the_models_own(tmp_path: Path, pooling: str) -> None:
    from sentence_transformers import SentenceTransformer

    path = save_random_model(tmp_path / pooling)
    config = {"embedding_dimension": 16, "pooling_mode": pooling, "include_prompt": True}
    (path / "1_Pooling" / "config.json").write_text(json.dumps(config))
    ours = SentenceTransformerEncoder(path, device="cpu").encode(TEXTS, role="document")
    model = SentenceTransformer(str(path), device="cpu")
    assert model[1].pooling_mode == pooling
    assert np.allclose(ours, model.encode(TEXTS, normalize_embeddings=True), atol=1e-5)


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
    assert "model" not in vars(encoder)
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
    "options",
    [
        {"dtype": "int8"},
        {"token_budget": 0},
        {"max_tokens": 0},
        {"model": ""},
        {"model": "not a name"},
        {"mixed_precision": "float32"},
        {"mixed_precision": "bf16", "dtype": "float16"},
        {"device": "cpu", "device_map": "auto"},
    ],
)
def test_wrong_options_are_refused(folder: Path, options: dict[str, object]) -> None:
    with pytest.raises(SqutrError):
        _ = SentenceTransformerEncoder(**{"model": folder, **options}).spec  # type: ignore[arg-type]


WEB = "Instruct: Given a web search query, retrieve relevant passages that answer the query"


@pytest.mark.parametrize(
    ("name", "query", "document"),
    [
        *(
            (f"BAAI/bge-{size}-en-v1.5", "Represent this sentence for searching relevant passages: ", "")
            for size in ("small", "base", "large")
        ),
        *(
            (f"BAAI/bge-{size}-zh-v1.5", "为这个句子生成表示以用于检索相关文章：", "")
            for size in ("small", "base", "large")
        ),
        ("BAAI/bge-m3", "", ""),
        ("intfloat/multilingual-e5-large", "query: ", "passage: "),
        ("intfloat/e5-base-v2", "query: ", "passage: "),
        ("intfloat/multilingual-e5-large-instruct", f"{WEB}\nQuery: ", ""),
        ("google/embeddinggemma-300m", "task: search result | query: ", "title: none | text: "),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
        ("NovaSearch/stella_en_1.5B_v5", f"{WEB}.\nQuery: ", ""),
        *((f"Qwen/Qwen3-Embedding-{size}", f"{WEB}\nQuery:", "") for size in ("0.6B", "4B", "8B")),
        ("Alibaba-NLP/gte-multilingual-base", "", ""),
        ("Alibaba-NLP/gte-Qwen2-7B-instruct", f"{WEB}\nQuery: ", ""),
        ("jinaai/jina-embeddings-v2-base-es", "", ""),
        (
            "jinaai/jina-embeddings-v3",
            "Represent the query for retrieving evidence documents: ",
            "Represent the document for retrieval: ",
        ),
    ],
)
def test_published_prompts_are_those_of_the_model_cards(name: str, query: str, document: str) -> None:
    published = published_prompts(name)
    assert published is not None
    assert (published.query, published.document) == (query, document)


def test_names_in_the_published_table_are_as_they_are_looked_up() -> None:
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
