"""A server with OpenAI's protocol: what is tried again, what stops, and silence about its key."""

from __future__ import annotations

import logging
import pickle
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest

from squtr.errors import ModelError, UsageError
from squtr.harness.components.model_server import ModelServer as Server
from squtr.harness.components.model_server import checked_url
from squtr.harness.components.server_answers import ContentRefusedError, NoAnswerError

from .server_for_tests import HTML_PAGE, Fault, ModelServer, model_server

KEY = "sk-secret-0123456789"
BODY = {"model": "tiny", "input": ["a"], "encoding_format": "float"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("squtr.harness.components.model_server.FIRST_WAIT_S", 0.01)
    with model_server() as running:
        yield running


def client_of(server: ModelServer, **options: Any) -> Server:
    return Server(server.url, **{"timeout_s": 20.0, "attempts": 4, **options})


def test_a_fault_that_passes_is_survived_and_a_retry_after_is_honored(server: ModelServer) -> None:
    server.fault = Fault(status=500, times=3)
    assert client_of(server).post("embeddings", BODY)["model"] == "tiny"
    assert len(server.calls) == 4
    for status, by_date in ((429, False), (503, True)):
        # A date has whole seconds: one 2 s ahead is at least 1 s ahead.
        date = format_datetime(datetime.fromtimestamp(time.time() + 2, UTC), usegmt=True)
        server.fault = Fault(status=status, headers={"Retry-After": date if by_date else "1"}, times=1)
        started = time.monotonic()
        assert client_of(server).post("embeddings", BODY)["model"] == "tiny"
        assert time.monotonic() - started >= (0.5 if by_date else 1.0)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(status=502, body=b"bad gateway"), "status 502: bad gateway"),
        (Fault(status=429, body=b'{"error": {"message": "slow down"}}'), "status 429: slow down"),
        (Fault(status=200, body=b'{"data": [1, 2, 3, 4]}', truncate=True), "no connection"),
        (Fault(hang_up=True), "no connection"),
        (Fault(slow_s=0.6), "longer than 0.2 s"),
        # No pause is long, but the answer would take 2 s.
        (Fault(status=200, body=b" " * 20, drip_s=0.1), "longer than 0.2 s"),
    ],
)
def test_a_lasting_fault_is_tried_again_and_then_named(server: ModelServer, fault: Fault, said: str) -> None:
    server.fault = fault
    with pytest.raises(NoAnswerError, match=f"{server.url}/embeddings gave no usable answer in 2 attempts: .*{said}"):
        client_of(server, timeout_s=0.2, attempts=2).post("embeddings", BODY)
    assert server.paths() == ["/v1/embeddings"] * 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (HTML_PAGE, "status 200 and an HTML page instead of JSON"),
        (b"{'text': 1}", "status 200 and something else instead of JSON"),
        (b"", "status 200 and nothing instead of JSON"),
    ],
)
def test_garbage_is_no_answer(server: ModelServer, body: bytes, said: str) -> None:
    server.fault = Fault(status=200, body=body)
    with pytest.raises(NoAnswerError, match=f"{server.url}/embeddings answered with {said}"):
        client_of(server).post("embeddings", BODY)


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("squtr.harness.components.model_server.FIRST_WAIT_S", 0.01)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(ModelError, match=r"there is no server at .*no connection.*Nothing answers there"):
        Server(f"http://127.0.0.1:{port}/v1", attempts=3).model_revision("tiny")


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_refused_content_is_not_asked_for_again(server: ModelServer, status: int) -> None:
    server.fault = Fault(status=status, body=b'{"detail": [{"loc": ["body", "file"], "msg": "no sound"}]}')
    with pytest.raises(ContentRefusedError, match=f"status {status}: .*no sound"):
        client_of(server).post("embeddings", BODY)
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("status", "said"), [(401, "OPENAI_API_KEY is not set"), (404, "Check the model's name"), (307, "redirects")]
)
def test_what_can_never_succeed_stops_at_once(server: ModelServer, status: int, said: str) -> None:
    server.fault = Fault(status=status, headers={"Location": f"{server.url}/models"} if status == 307 else {})
    with pytest.raises(ModelError, match=said) as caught:
        client_of(server).post("embeddings", BODY)
    assert not isinstance(caught.value, NoAnswerError | ContentRefusedError)
    assert len(server.calls) == 1


def test_the_key_is_sent_and_shown_nowhere(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    caplog.set_level(logging.DEBUG)
    server.key = KEY
    client = client_of(server, attempts=2)
    assert client.post("embeddings", BODY)
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
            client.post("embeddings", BODY)
        shown += [str(caught.value), repr(caught.value), repr(caught.value.__cause__), caplog.text]
    assert not [text for text in shown if KEY in text]
    assert "[key]" in " ".join(shown)


def test_a_wrong_key_names_its_variable(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.key = KEY
    monkeypatch.setenv("SPEECH_KEY", "another")
    with pytest.raises(ModelError, match=r"status 401. Check the key in SPEECH_KEY") as caught:
        client_of(server, key_variable="SPEECH_KEY").model_revision("tiny")
    assert "another" not in str(caught.value)
    with pytest.raises(ModelError, match="No key was sent: give key_variable"):
        client_of(server, key_variable="").model_revision("tiny")
    monkeypatch.setenv("SPEECH_KEY", "two\nlines")
    with pytest.raises(UsageError, match="SPEECH_KEY holds characters"):
        client_of(server, key_variable="SPEECH_KEY").model_revision("tiny")


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
    assert Server(url, key_variable=variable)._key()[0] == (KEY if sent else "")
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    with pytest.raises(UsageError, match=r"in the clear to http://example\.org/v1\. Use https"):
        Server("http://example.org/v1", key_variable="VLLM_API_KEY").model_revision("tiny")


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "http://host:port/v1"])
def test_a_url_that_is_none(url: str) -> None:
    with pytest.raises(UsageError, match=r"the server's URL.* is none"):
        Server(url)


@pytest.mark.parametrize("url", ["https://me:hush@host/v1", "https://host/v1?key=hush", "ftp://me:hush@host/v1"])
def test_a_url_with_a_secret_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_url(url)
    assert "hush" not in str(caught.value)


def test_values_that_make_no_sense() -> None:
    for wrong in ({"attempts": 0}, {"timeout_s": 0.0}, {"timeout_s": float("nan")}):
        with pytest.raises(UsageError, match="cannot be given"):
            Server(**wrong)
    with pytest.raises(UsageError, match="concurrency"):
        Server(concurrency=0)


def test_requests_run_at_once_but_no_more_than_asked(server: ModelServer) -> None:
    server.fault = Fault(slow_s=0.05)
    client = client_of(server, concurrency=3)
    answers = client.each(range(9), lambda i: (i, client.post("embeddings", BODY | {"input": [str(i)]})))
    assert [i for i, _ in answers] == list(range(9))
    assert server.most == 3


def test_after_an_exception_nothing_more_is_asked(server: ModelServer) -> None:
    server.fault = Fault(status=404)
    client = client_of(server, concurrency=2)
    with pytest.raises(ModelError, match="does not exist"):
        client.each(range(100), lambda i: client.post("embeddings", BODY))
    assert len(server.calls) < 10
    server.fault = None
    assert len(client.each(range(3), lambda i: client.post("embeddings", BODY))) == 3


def test_errors_survive_a_process_pool() -> None:
    error = pickle.loads(pickle.dumps(NoAnswerError("no answer.", hint="Wait.")))
    assert isinstance(error, NoAnswerError)
    assert str(error) == "no answer. Wait."


@pytest.mark.parametrize(
    ("row", "revision"),
    [
        ({"root": "org/tiny-v2", "created": 1_700_000_000}, "root:org/tiny-v2 created:1700000000"),
        ({"root": "tiny", "created": time.time() - 10}, ""),
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


def test_a_long_retry_after_is_capped_and_told(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("squtr.harness.components.model_server.LONGEST_WAIT_S", 0.2)
    monkeypatch.setattr("squtr.harness.components.model_server.TOLD_FROM_S", 0.1)
    body = b'{"error": {"message": "quota"}}'
    server.fault = Fault(status=429, body=body, headers={"Retry-After": "86400"}, times=2)
    started = time.monotonic()
    assert client_of(server).post("embeddings", BODY)["model"] == "tiny"
    assert 0.4 <= time.monotonic() - started < 5
    shown = capsys.readouterr().err
    assert f"waiting 0 s for {server.url} (status 429: quota; it asked for 86400 s)" in shown
    server.fault = Fault(status=429, body=body, headers={"Retry-After": "86400"})
    with pytest.raises(NoAnswerError, match=r"4 attempts: status 429: quota\. The server limits requests"):
        client_of(server).post("embeddings", BODY)


def test_a_short_wait_is_not_told(server: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.fault = Fault(status=503, times=2)
    assert client_of(server).post("embeddings", BODY)["model"] == "tiny"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b'{"error": {"message": "no such voice"}}', NoAnswerError, "status 200 and an error: no such voice"),
        (b'{"choices": [{"error": {"message": "cut off", "code": 502}}]}', NoAnswerError, "status 502: cut off"),
        (b'{"error": {"message": "too long", "code": 400}}', ContentRefusedError, "status 400: too long"),
        (b'{"error": {"message": "bad key", "code": 401}}', ModelError, "refused access with status 401"),
    ],
)
def test_an_error_with_status_200_is_the_servers(
    server: ModelServer, body: bytes, kind: type[ModelError], said: str
) -> None:
    server.fault = Fault(status=200, body=body)
    with pytest.raises(kind, match=said):
        client_of(server, attempts=2).chat({"model": "tiny", "messages": []})


def test_a_reply_about_an_error_is_a_reply(server: ModelServer) -> None:
    server.reply = '{"error": {"message": "says the user"}}'
    assert client_of(server).chat({"model": "tiny", "messages": []}).text == server.reply


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("http://squtr-no-such-host.invalid/v1", "name of the host is not known"),
        ("https://{address}/v1", "No secure connection: check https or http"),
    ],
)
def test_the_hint_fits_the_fault(server: ModelServer, url: str, hint: str) -> None:
    address = "{}:{}".format(*server.server_address[:2])
    with pytest.raises(ModelError, match=hint):
        Server(url.format(address=address), attempts=3).model_revision("tiny")


def test_a_timeout_names_its_option(server: ModelServer) -> None:
    server.fault = Fault(slow_s=0.4)
    with pytest.raises(NoAnswerError, match="Give a larger timeout_s"):
        client_of(server, timeout_s=0.1, attempts=1).post("embeddings", BODY)


def test_a_server_that_was_never_there_stops_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = Server(f"http://127.0.0.1:{port}/v1", attempts=5)
    started = time.monotonic()
    with pytest.raises(ModelError, match="there is no server at"):
        client.each_or_error(range(6), lambda i: client.post("embeddings", BODY), what="clip", check="")
    assert time.monotonic() - started < 5


def test_an_outage_leaves_no_count_behind(server: ModelServer) -> None:
    client = client_of(server, attempts=1, concurrency=4)

    def ask(number: int) -> list[object]:
        return list(
            client.each_or_error(range(number), lambda i: client.post("embeddings", BODY), what="clip", check="")
        )

    for _ in range(3):
        server.fault = Fault(status=500)
        with pytest.raises(ModelError, match="5 clips in a row had no answer"):
            ask(20)
        assert all(isinstance(one, NoAnswerError) and "status 500" in one.message for one in ask(4))
        server.fault = None
        assert len(ask(1)) == 1
