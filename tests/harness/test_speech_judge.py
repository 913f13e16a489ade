"""Judges over HTTP, against a server on loopback that answers as it is told."""

from __future__ import annotations

import base64
import io
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from squtr.errors import ModelError, UsageError
from squtr.harness.components import speech_judge as judge_module
from squtr.harness.components.speech_judge import ChatJudge, JudgeSpec, parse_judge
from squtr.loaders.quality.judges import Clip
from squtr.loaders.quality.verdicts import JudgeError, Verdict

from ..loaders.speech_for_tests import hum

KEY = "sk-very-secret-0123456789"
GOOD = {
    "analysis_trace": {"text_alignment": "Exact Match", "detected_artifacts": [], "prosody_assessment": "Natural"},
    "fatal_error_flag": False,
    "reasoning_summary": "Clear.",
    "final_quality_score": 4.5,
}


def chat(content: object) -> bytes:
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()


class Server:
    """Answers from a list of (status, body, headers); the last one for ever. Remembers every request."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes, dict[str, str]]] = [(200, chat(json.dumps(GOOD)), {})]
        self.delay_s = 0.0
        self.drop = 0
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                server.requests.append(
                    (self.path, {n.title(): v for n, v in self.headers.items()}, json.loads(body or b"{}"))
                )
                time.sleep(server.delay_s)
                if server.drop:
                    server.drop -= 1
                    self.connection.close()
                    return
                status, content, headers = server.answers[0] if len(server.answers) == 1 else server.answers.pop(0)
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:
                    pass  # the client gave up waiting

            do_GET = do_POST

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("TEST_JUDGE_KEY", KEY)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    running = Server()
    yield running
    running.close()


def clip(text: str = "When?", sha256: str = "abc") -> Clip:
    return Clip(hum(text), sha256, text, text, "en")


def judge_at(server: Server, **options: Any) -> ChatJudge:
    return ChatJudge(JudgeSpec("judge-1", server.url, "TEST_JUDGE_KEY"), **{"attempts": 1} | options)


def test_a_verdict_and_what_was_asked(server: Server) -> None:
    spoken = Clip(hum("it costs 5"), "abc", "it costs 5", "it costs five", "en")
    opinion = judge_at(server).judge(spoken)
    assert isinstance(opinion, Verdict)
    assert opinion.final_quality_score == 4.5
    ((path, headers, body),) = server.requests
    assert path == "/v1/chat/completions"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert (body["model"], body["temperature"]) == ("judge-1", 0)
    text, audio = body["messages"][1]["content"]
    assert text == {"type": "text", "text": "Language: en\nText: it costs 5\nSaid as: it costs five"}
    assert audio["type"] == "input_audio"
    assert audio["input_audio"]["format"] == "wav"
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(audio["input_audio"]["data"])), dtype="float32")
    assert rate == 24_000
    assert np.abs(samples - spoken.samples).max() <= 1 / 32768


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (chat("It sounds great, 5 out of 5!"), "the reply is not the JSON"),
        (chat(json.dumps({**GOOD, "final_quality_score": 6})), "final_quality_score"),
        (chat(None), "without a text"),
        (b'{"choices": []}', "without a text"),
        (b"<html>busy</html>", "an HTML page instead of JSON"),
        (b"\xff\xfe", "instead of JSON"),
    ],
)
def test_a_reply_that_is_not_the_json_is_an_error(server: Server, tmp_path: Path, body: bytes, said: str) -> None:
    server.answers = [(200, body, {})]
    judge = judge_at(server, cache=tmp_path)
    opinion = judge.judge(clip())
    assert isinstance(opinion, JudgeError)
    assert said in opinion.reason
    # Not repeated within a run, and not kept: the next run asks again.
    assert len(server.requests) == 1
    assert not list(tmp_path.rglob("*.json"))


def test_a_busy_server_is_asked_again(server: Server) -> None:
    server.answers = [(429, b"slow down", {"Retry-After": "0"}), server.answers[0]]
    assert isinstance(judge_at(server, attempts=2).judge(clip()), Verdict)
    assert len(server.requests) == 2


def test_a_server_that_stays_broken_is_given_up(server: Server) -> None:
    server.answers = [(500, f"internal: key {KEY} is fine".encode(), {})]
    opinion = judge_at(server).judge(clip())
    assert isinstance(opinion, JudgeError)
    assert "status 500: internal: key [key] is fine" in opinion.reason


def test_a_server_that_is_gone_stops_the_run(server: Server) -> None:
    server.answers = [(500, b"", {})]
    judge = judge_at(server)
    for i in range(4):
        assert isinstance(judge.judge(clip(sha256=str(i))), JudgeError)
    with pytest.raises(ModelError, match="5 clips in a row had no answer"):
        judge.judge(clip(sha256="last"))


def test_a_silent_server_is_given_up(server: Server) -> None:
    server.delay_s = 1.0
    opinion = judge_at(server, timeout_s=0.1).judge(clip())
    assert isinstance(opinion, JudgeError)
    assert "longer than 0.1 s" in opinion.reason


def test_a_clip_that_is_refused_is_not_asked_again(server: Server) -> None:
    server.answers = [(400, b"audio too short", {})]
    opinion = judge_at(server, attempts=3).judge(clip())
    assert isinstance(opinion, JudgeError)
    assert "status 400: audio too short" in opinion.reason
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refused_key_or_model_stops_the_run(server: Server, status: int) -> None:
    said = "no such model" if status == 404 else f"Incorrect API key provided: {KEY[:12]}"
    server.answers = [(status, said.encode(), {})]
    with pytest.raises(ModelError, match=f"status {status}") as caught:
        judge_at(server).judge(clip())
    assert status == 404 or "TEST_JUDGE_KEY" in str(caught.value)
    assert KEY[:8] not in str(caught.value)
    assert len(server.requests) == 1


def test_the_key_does_not_follow_a_redirect(server: Server) -> None:
    other = Server()
    try:
        server.answers = [(302, b"", {"Location": f"{other.url}/chat/completions"})]
        with pytest.raises(ModelError, match="redirects elsewhere"):
            judge_at(server).judge(clip())
        assert not other.requests
    finally:
        other.close()


def test_verdicts_are_kept_by_clip_text_model_and_prompt(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = judge_at(server, cache=tmp_path).judge(clip())
    assert judge_at(server, cache=tmp_path).judge(clip()) == first
    assert len(server.requests) == 1
    judge_at(server, cache=tmp_path).judge(clip(sha256="other sound"))
    judge_at(server, cache=tmp_path).judge(clip(text="Where?"))
    ChatJudge(JudgeSpec("judge-2", server.url, "TEST_JUDGE_KEY"), cache=tmp_path).judge(clip())
    monkeypatch.setattr(judge_module, "PROMPT_VERSION", "next")
    judge_at(server, cache=tmp_path).judge(clip())
    assert len(server.requests) == 5
    kept = list(tmp_path.rglob("*.json"))
    assert len(kept) == 5
    assert not any(KEY in path.read_text(encoding="utf-8") for path in kept)
    # A torn file is asked for again.
    for path in kept:
        path.write_text("{", encoding="utf-8")
    assert judge_at(server, cache=tmp_path).judge(clip()) == first
    assert len(server.requests) == 6


def test_an_api_without_a_key_gets_none(server: Server) -> None:
    ChatJudge(parse_judge(f"local,{server.url},-")).judge(clip())
    assert "Authorization" not in server.requests[0][1]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "the judge is written"),
        ("a,b,c,d", "the judge is written"),
        ("a,", "the judge is written"),
        ("a,ftp://x/v1", "URL"),
        ("a,https://user:pass@x/v1", "holds more than scheme"),
        ("a,file:///etc/passwd", "URL"),
        ("a,https://example.org/v1,NO_SUCH_VARIABLE", "NO_SUCH_VARIABLE is not set"),
    ],
)
def test_judges_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch, written: str, said: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    with pytest.raises(UsageError, match=said) as caught:
        ChatJudge(parse_judge(written))
    assert KEY not in str(caught.value)


def test_the_key_is_not_shown() -> None:
    spec = JudgeSpec("m", "http://127.0.0.1:1/v1", "")
    assert KEY not in repr(ChatJudge(spec))
    assert isinstance(ChatJudge(spec, attempts=1).judge(clip()), JudgeError)
