"""Patience with a server, and silence about its key."""

from __future__ import annotations

import logging
import pickle
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest

from squtr.errors import ModelError, UsageError
from squtr.harness.components import server_client
from squtr.harness.components.server_client import (
    ContentRefusedError,
    NoAnswerError,
    Patience,
    ServerClient,
    checked_url,
)

from .server_for_tests import HTML_PAGE, Fault, ModelServer, model_server

KEY = "sk-secret-0123456789"
NOW = datetime(2026, 1, 2, tzinfo=UTC).timestamp()
BODY = {"model": "tiny", "input": ["a"], "encoding_format": "float"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with model_server() as running:
        yield running


def client_of(server: ModelServer, pauses: list[float] | None = None, **options: object) -> ServerClient:
    patience = Patience(timeout_s=float(options.pop("timeout_s", 20.0)), attempts=int(options.pop("attempts", 4)))
    return ServerClient(
        server.url, patience=patience, sleep=(pauses if pauses is not None else []).append, clock=lambda: NOW, **options
    )


def test_waits_are_doubled_and_a_retry_after_is_obeyed(server: ModelServer) -> None:
    pauses: list[float] = []
    server.fault = Fault(status=500, times=3)
    assert client_of(server, pauses).post_json("embeddings", BODY)["model"] == "tiny"
    assert pauses == [1.0, 2.0, 4.0]
    pauses.clear()
    server.fault = Fault(status=429, headers={"Retry-After": "7"}, times=2)
    client_of(server, pauses).post_json("embeddings", BODY)
    assert pauses == [7.0, 7.0]
    pauses.clear()
    later = format_datetime(datetime.fromtimestamp(NOW + 9, UTC), usegmt=True)
    server.fault = Fault(status=503, headers={"Retry-After": later}, times=1)
    client_of(server, pauses).post_json("embeddings", BODY)
    assert pauses == [9.0]
    pauses.clear()
    server.fault = Fault(status=503, headers={"Retry-After": "86400"}, times=1)
    client_of(server, pauses).post_json("embeddings", BODY)
    assert pauses == [60.0]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(status=502, body=b"bad gateway"), "status 502: bad gateway"),
        (Fault(status=200, body=HTML_PAGE), "status 200 with an HTML page instead of JSON"),
        (Fault(status=200, body=b"{'text': 1}"), "status 200 with something else instead of JSON"),
        (Fault(status=200, body=b""), "status 200 with nothing instead of JSON"),
        (Fault(status=200, body=b'{"data": [1, 2, 3, 4]}', truncate=True), "no connection"),
        (Fault(hang_up=True), "no connection"),
        (Fault(slow_s=0.6), "longer than 0.2 s"),
        (Fault(status=200, body=b'{"data": []}', drip_s=0.05), "too slowly|longer than"),
    ],
)
def test_a_useless_answer_is_asked_for_again_and_then_named(server: ModelServer, fault: Fault, said: str) -> None:
    server.fault = fault
    with pytest.raises(NoAnswerError, match=f"{server.url}/embeddings gave no usable answer in 2 attempts: .*{said}"):
        client_of(server, timeout_s=0.2, attempts=2).post_json("embeddings", BODY)
    assert server.paths() == ["/v1/embeddings"] * 2


def test_an_endless_answer_is_cut(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_client, "_REPLY_LIMIT", 1 << 20)
    server.fault = Fault(status=200, body=b'"' + b"a" * (2 << 20) + b'"')
    with pytest.raises(NoAnswerError, match="more than 1 MiB"):
        client_of(server, attempts=1).post_json("embeddings", BODY)


def test_a_server_that_is_not_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pauses: list[float] = []
    client = ServerClient(f"http://127.0.0.1:{port}/v1", patience=Patience(attempts=3), sleep=pauses.append)
    with pytest.raises(NoAnswerError, match=r"no connection.*Check that the server runs"):
        client.get_json("models")
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_refused_content_is_not_asked_for_again(server: ModelServer, status: int) -> None:
    server.fault = Fault(status=status, body=b'{"detail": [{"loc": ["body", "file"], "msg": "no sound"}]}')
    with pytest.raises(ContentRefusedError, match=f"status {status}: .*no sound"):
        client_of(server).post_json("embeddings", BODY)
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("status", "said"), [(401, "OPENAI_API_KEY is not set"), (404, "Check the model's name"), (307, "redirects")]
)
def test_what_can_never_succeed_stops_at_once(server: ModelServer, status: int, said: str) -> None:
    server.fault = Fault(status=status, headers={"Location": f"{server.url}/models"} if status == 307 else {})
    with pytest.raises(ModelError, match=said) as caught:
        client_of(server).post_json("embeddings", BODY)
    assert not isinstance(caught.value, NoAnswerError | ContentRefusedError)
    assert len(server.calls) == 1


def test_the_key_is_sent_and_shown_nowhere(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    server.key = KEY
    client = client_of(server, attempts=2)
    assert client.post_json("embeddings", BODY)
    assert server.calls[-1].key == KEY
    shown = [repr(client), str(vars(client)), caplog.text]
    for fault in (
        Fault(status=401, body=b"wrong key {key}"),
        Fault(status=500, body=b"crashed with key {key}"),
        Fault(status=400, body=b'{"error": {"message": "bad key {key}"}}'),
        Fault(status=418, body=b"teapot {key}"),
        Fault(hang_up=True),
    ):
        server.fault = fault
        with pytest.raises(ModelError) as caught:
            client.post_json("embeddings", BODY)
        shown += [str(caught.value), repr(caught.value), repr(caught.value.__cause__), caplog.text]
    assert not [text for text in shown if KEY in text]
    assert "[key]" in " ".join(shown)


def test_a_wrong_key_names_its_variable(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.key = KEY
    monkeypatch.setenv("SPEECH_KEY", "another")
    with pytest.raises(ModelError, match=r"status 401. Check the key in SPEECH_KEY") as caught:
        client_of(server, key_variable="SPEECH_KEY").get_json("models")
    assert "another" not in str(caught.value)
    with pytest.raises(ModelError, match="No key was sent: give key_variable"):
        client_of(server, key_variable="").get_json("models")
    monkeypatch.setenv("SPEECH_KEY", "two\nlines")
    with pytest.raises(UsageError, match="SPEECH_KEY holds characters"):
        client_of(server, key_variable="SPEECH_KEY").get_json("models")


@pytest.mark.parametrize(
    ("url", "variable", "sent"),
    [
        ("https://example.org/v1", "OPENAI_API_KEY", True),
        ("http://localhost:1/v1", "OPENAI_API_KEY", True),
        ("http://gpu-7:8000/v1", "OPENAI_API_KEY", False),
        ("http://gpu-7:8000/v1", "VLLM_API_KEY", True),
        ("http://10.0.0.7:8000/v1", "VLLM_API_KEY", True),
    ],
)
def test_a_key_is_not_sent_in_the_clear(monkeypatch: pytest.MonkeyPatch, url: str, variable: str, sent: bool) -> None:
    monkeypatch.setenv(variable, KEY)
    assert ServerClient(url, key_variable=variable)._key()[0] == (KEY if sent else "")
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    with pytest.raises(UsageError, match=r"in the clear to http://example\.org/v1\. Use https"):
        ServerClient("http://example.org/v1", key_variable="VLLM_API_KEY").get_json("models")


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://host:port/v1"])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match=r"the server's URL.* is none"):
        ServerClient(url)


@pytest.mark.parametrize("url", ["https://me:hush@host/v1", "https://host/v1?key=hush", "ftp://me:hush@host/v1"])
def test_a_url_with_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_url(url)
    assert "hush" not in str(caught.value)


def test_impatience_is_a_usage_error() -> None:
    for wrong in ({"attempts": 0}, {"timeout_s": 0.0}, {"timeout_s": float("nan")}, {"backoff_s": -1.0}):
        with pytest.raises(UsageError, match="cannot be given"):
            Patience(**wrong)
    with pytest.raises(UsageError, match="concurrency"):
        ServerClient(concurrency=0)


def test_requests_run_at_once_but_no_more_than_asked(server: ModelServer) -> None:
    server.fault = Fault(slow_s=0.05)
    client = client_of(server, concurrency=3)
    answers = client.each(range(9), lambda i: (i, client.post_json("embeddings", BODY | {"input": [str(i)]})))
    assert [i for i, _ in answers] == list(range(9))
    assert server.most == 3


def test_after_an_exception_nothing_more_is_asked(server: ModelServer) -> None:
    server.fault = Fault(status=404)
    client = client_of(server, concurrency=2)
    with pytest.raises(ModelError, match="does not exist"):
        client.each(range(100), lambda i: client.post_json("embeddings", BODY))
    assert len(server.calls) < 10
    server.fault = None
    assert len(client.each(range(3), lambda i: client.post_json("embeddings", BODY))) == 3


def test_waiting_ends_when_all_is_over(server: ModelServer) -> None:
    client = ServerClient(server.url, patience=Patience(backoff_s=30.0), concurrency=2)

    def ask(i: int) -> object:
        if i:
            time.sleep(0.2)
            raise KeyError(i)
        return client.post_json("embeddings", BODY)

    server.fault = Fault(status=500)
    started = time.monotonic()
    with pytest.raises(KeyError):
        client.each(range(2), ask)
    assert time.monotonic() - started < 10


def test_errors_survive_a_process_pool() -> None:
    error = pickle.loads(pickle.dumps(NoAnswerError("no answer.", hint="Wait.")))
    assert isinstance(error, NoAnswerError)
    assert str(error) == "no answer. Wait."


@pytest.mark.parametrize(
    ("row", "revision"),
    [
        ({"root": "org/tiny-v2", "created": 1_700_000_000}, "root:org/tiny-v2 created:1700000000"),
        ({"root": "tiny", "created": NOW - 10}, ""),
        ({"created": 1_700_000_000.0}, "created:1700000000"),
        ({"created": "yesterday", "root": None}, ""),
        (None, ""),
    ],
)
def test_the_revision_is_what_the_server_says(
    server: ModelServer, row: dict[str, object] | None, revision: str
) -> None:
    server.models = {"data": [{"id": "other", "root": "x"}, *([{"id": "tiny", **row}] if row else [])]}
    assert client_of(server).model_revision("tiny") == revision


def test_a_server_without_a_list_of_models_has_no_revision(server: ModelServer) -> None:
    server.models = None
    assert client_of(server).model_revision("tiny") == ""
    server.models = ["tiny"]
    assert client_of(server).model_revision("tiny") == ""
    server.fault = Fault(status=403)
    with pytest.raises(ModelError, match="403"):
        client_of(server).model_revision("tiny")
