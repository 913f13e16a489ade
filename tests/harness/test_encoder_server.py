"""Embeddings from a server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import ModelError, UsageError
from squtr.harness.components import load_retriever
from squtr.harness.components.encoders.server import ServerEncoder, _tokens
from squtr.harness.components.retrievers.dense import ServerDenseRetriever
from squtr.harness.components.server_answers import NoAnswerError
from squtr.loaders.records import Document

from .server_for_tests import Fault, ModelServer, embedding, model_server

KEY = "sk-secret-0123456789"
TEXTS = ["a", "what is a bond", "什么是债券", "", "a", "longer " * 20]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("squtr.harness.components.model_server.FIRST_WAIT_S", 0.01)
    with model_server() as running:
        yield running


def encoder(server: ModelServer, model: str = "tiny", **options: Any) -> ServerEncoder:
    return ServerEncoder(model, **{"url": server.url, "timeout_s": 5.0, "attempts": 2, "concurrency": 2, **options})


def expected(texts: list[str], width: int = 8) -> np.ndarray:
    rows = np.array([embedding(text, width) for text in texts])
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("encoding_format", ["float", "base64"])
@pytest.mark.parametrize("batch_size", [1, 2, 32])
def test_rows_belong_to_their_texts(server: ModelServer, encoding_format: str, batch_size: int) -> None:
    found = encoder(server, encoding_format=encoding_format, batch_size=batch_size).encode(TEXTS, role="document")
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected([text or " " for text in TEXTS]))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-6)
    inputs = [call.fields["input"] for call in server.calls[1:]]  # the first asked for the width
    assert sorted(text for batch in inputs for text in batch) == sorted({text or " " for text in TEXTS})
    assert max(len(batch) for batch in inputs) <= batch_size


def test_no_texts_have_a_width_too(server: ModelServer) -> None:
    assert encoder(server).encode([], role="query").shape == (0, 8)
    assert encoder(server, dimensions=5).encode([], role="query").shape == (0, 5)
    assert len(server.calls) == 1


def test_published_prompts_and_given_ones(server: ModelServer) -> None:
    known = encoder(server, "intfloat/multilingual-e5-small", dimensions=8)
    np.testing.assert_array_equal(known.encode(["a"], role="query"), expected(["query: a"]))
    np.testing.assert_array_equal(known.encode(["", "a"], role="document"), expected(["passage: ", "passage: a"]))
    given_one = encoder(server, "intfloat/multilingual-e5-small", query_prompt="", document_prompt="d: ")
    np.testing.assert_array_equal(given_one.encode(["a"], role="query"), expected(["a"]))
    np.testing.assert_array_equal(given_one.encode(["a"], role="document"), expected(["d: a"]))
    assert encoder(server, "org/bge-base-zh-v1.5").supports("zh")
    assert not encoder(server, "org/bge-base-zh-v1.5").supports("en")
    assert encoder(server).supports("sw")


def test_dimensions_and_further_fields_are_asked_for(server: ModelServer) -> None:
    found = encoder(server, dimensions=3, extra={"truncate_prompt_tokens": 512}).encode(["a", "b"], role="query")
    np.testing.assert_array_equal(found, expected(["a", "b"], 3))
    (call,) = server.calls
    assert call.fields["dimensions"] == 3
    assert call.fields["truncate_prompt_tokens"] == 512
    server.change = lambda rows: [row | {"embedding": row["embedding"] + [1.0]} for row in rows]
    with pytest.raises(ModelError, match=r"width 4 instead of 3.*'a'"):
        encoder(server, dimensions=3).encode(["a"], role="query")


def test_batches_keep_the_token_budget(server: ModelServer) -> None:
    texts = [f"{i:02d}" + "x" * 98 for i in range(10)]  # 26 tokens each
    encoder(server, token_budget=60, dimensions=8).encode([*texts, "y" * 4000], role="query")
    assert sorted(len(call.fields["input"]) for call in server.calls) == [1, 2, 2, 2, 2, 2]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_tokens_are_estimated_between_a_quarter_and_all_characters(text: str) -> None:
    assert len(text) // 4 <= _tokens(text, len(text)) <= len(text) + 1


def test_a_refused_batch_is_halved_down_to_the_text(server: ModelServer) -> None:
    server.refuse_longer = 100
    good = [f"text {i}" for i in range(7)]
    with pytest.raises(ModelError, match=r"too long or empty.*140 characters: 'longer longer.*truncate_prompt_tokens"):
        encoder(server).encode([*good, "longer " * 20], role="document")
    server.fault = Fault(status=413, times=2)
    np.testing.assert_array_equal(encoder(server, dimensions=8).encode(good, role="document"), expected(good))


def _first(**changes: Any) -> Callable[[list[dict[str, Any]]], list[dict[str, Any]]]:
    """Changes what belongs to the text with index 1."""
    return lambda rows: [row | (changes if row["index"] == 1 else {}) for row in rows]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows[1:], "gave 2 vectors for 3 texts"),
        (lambda rows: [*rows, rows[0]], "gave 4 vectors for 3 texts"),
        (lambda rows: [row | {"index": 0} for row in rows], "numbers its 3 vectors wrongly"),
        (lambda rows: [row | {"index": row["index"] + 1} for row in rows], "numbers its 3 vectors wrongly"),
        (lambda rows: [row | {"index": str(row["index"])} for row in rows], "numbers its 3 vectors wrongly"),
        (_first(embedding=[float("nan")] * 8), "a vector of length nan, for the text 'second'"),
        (_first(embedding=[float("inf")] + [0.0] * 7), "a vector of length inf, for the text 'second'"),
        (_first(embedding=[0.0] * 8), "a vector of length 0.0, for the text 'second'"),
        (_first(embedding=[1.0] * 7), "width 7 instead of 8, for the text 'second'|width 8 instead of 7"),
        (_first(embedding=[1.0] * 7 + [None]), "a vector of length nan, for the text 'second'"),
        (_first(embedding=[[1.0] * 8]), "no vector, for the text 'second'"),
        (_first(embedding=[]), "no vector, for the text 'second'"),
        (_first(embedding=None), "no vector, for the text 'second'"),
        (_first(embedding="not base64!"), "no vector, for the text 'second'"),
        (_first(embedding={"values": [1]}), "no vector, for the text 'second'"),
        (lambda rows: [1, 2, 3], "without embeddings"),
        (lambda rows: None, "without embeddings"),
    ],
)
def test_unusable_vectors_are_refused_by_their_text(server: ModelServer, change: Any, said: str) -> None:
    server.change = change
    backend = encoder(server, dimensions=8)
    with pytest.raises(ModelError, match=said):
        backend.encode(["first one", "second", "third"], role="document")


def test_another_width_in_a_later_batch_is_refused(server: ModelServer) -> None:
    backend = encoder(server)
    backend.encode(["a"], role="query")
    server.width = 9
    with pytest.raises(ModelError, match="width 9 instead of 8, for the text 'b'"):
        backend.encode(["b"], role="query")


def test_vectors_without_an_index_keep_their_order(server: ModelServer) -> None:
    def without(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{"embedding": row["embedding"]} for row in reversed(rows)]

    server.change = without
    np.testing.assert_array_equal(encoder(server).encode(["a", "b"], role="query"), expected(["a", "b"]))


def test_a_transient_fault_is_survived_and_a_lasting_one_is_named(server: ModelServer) -> None:
    for fault in (Fault(status=429, headers={"Retry-After": "1"}), Fault(status=500), Fault(hang_up=True)):
        fault.times = 1
        server.fault = fault
        np.testing.assert_array_equal(encoder(server).encode(["a"], role="query"), expected(["a"]))
    server.fault = Fault(status=200, body=b"{", times=-1)
    with pytest.raises(NoAnswerError, match="something else instead of JSON"):
        encoder(server).encode(["a"], role="query")


def test_the_spec_says_what_decides_and_no_key(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    server.key = KEY
    backend = encoder(server, dimensions=8, batch_size=3, encoding_format="base64")
    backend.encode(["a"], role="query")
    spec = backend.spec
    assert (spec.kind, spec.backend, spec.model, spec.revision) == (
        "encoder",
        "server",
        "tiny",
        "root:org/tiny-v2 created:1700000000",
    )
    assert spec == encoder(server, dimensions=8).spec
    assert spec.settings["url"] == server.url
    assert spec.settings["dimensions"] == 8
    assert "url" not in encoder(server, revision="v2").spec.settings
    assert KEY not in repr(backend) + str(vars(backend)) + json.dumps(spec.as_dict())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dimensions": 0}, "dimensions must be at least 1"),
        ({"batch_size": 0}, "batch_size"),
        ({"token_budget": 0}, "token_budget"),
        ({"encoding_format": "int8"}, "encoding_format 'int8'"),
        ({"extra": {"input": "x"}}, "extra holds input"),
        ({"attempts": 0}, "0 attempts"),
    ],
)
def test_wrong_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ServerEncoder("tiny", **options)
    with pytest.raises(UsageError, match="no model is named"):
        ServerEncoder("")


def test_dense_retrieval_with_a_server(server: ModelServer) -> None:
    documents = [Document(f"d{i}", "", text) for i, text in enumerate(["bonds", "stocks", "", "gold"])]
    retriever = load_retriever("dense-server:tiny", url=server.url, query_prompt="", concurrency=2)
    assert isinstance(retriever, ServerDenseRetriever)
    retriever.index(documents, language="en")
    hits = retriever.search(["gold", "", "bonds"], k=2)
    assert [ranking[0].document_id if ranking else "" for ranking in hits] == ["d3", "", "d0"]
    assert hits[0][0].score == pytest.approx(1.0, abs=1e-6)
    spec = retriever.spec
    assert (spec.kind, spec.backend, spec.name) == ("retriever", "dense-server", "tiny")
    assert spec.settings["encoder_backend"] == "server"
