"""Recognition by a server."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

from squtr.errors import ModelError, UnknownNameError, UsageError
from squtr.harness.components import load_transcriber
from squtr.harness.components.model_server import OUTAGE_AFTER
from squtr.harness.components.server_answers import NoAnswerError
from squtr.harness.components.transcribers.server import ServerTranscriber

from .server_for_tests import HTML_PAGE, Fault, ModelServer, heard, model_server
from .whisper_for_tests import speechlike

KEY = "sk-secret-0123456789"
CLIPS = [speechlike(0.3 + 0.1 * i, i) for i in range(6)]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("squtr.harness.components.model_server.FIRST_WAIT_S", 0.01)
    with model_server() as running:
        yield running


def transcriber(
    server: ModelServer, *, attempts: int = 2, concurrency: int = 1, **options: object
) -> ServerTranscriber:
    options = {"url": server.url, "timeout_s": 5.0, "attempts": attempts, "concurrency": concurrency, **options}
    return ServerTranscriber("tiny", **options)


def test_clips_are_heard_in_order_at_16_khz_with_the_language(server: ModelServer) -> None:
    found = transcriber(server, concurrency=4).transcribe(CLIPS, language="zh-CN")
    assert [t.text for t in found] == [heard(clip, "zh") for clip in CLIPS]
    assert all(t.seconds > 0 and not t.error for t in found)
    by_size = {call.samples.size: call for call in server.calls}
    for clip in CLIPS:
        call = by_size[clip.size]
        assert np.abs(call.samples - clip).max() <= 0.5 / 32768
        assert call.fields == {"model": "tiny", "language": "zh", "response_format": "json", "temperature": "0.0"}
        assert call.key == ""
    assert transcriber(server).transcribe([], language="en") == []


@pytest.mark.parametrize("response_format", ["json", "text", "verbose_json"])
@pytest.mark.parametrize("audio_format", ["flac", "wav"])
def test_every_form_of_request(server: ModelServer, response_format: str, audio_format: str) -> None:
    options = {
        "response_format": response_format,
        "audio_format": audio_format,
        "prompt": "prices",
        "temperature": None,
    }
    extra = {"vad_filter": False, "seed": 7, "timestamp_granularities[]": ["word", "segment"]}
    (found,) = transcriber(server, extra=extra, **options).transcribe(CLIPS[:1], language="en")
    assert found.text == heard(CLIPS[0], "en")
    assert server.calls[0].fields == {
        "model": "tiny",
        "language": "en",
        "response_format": response_format,
        "prompt": "prices",
        "vad_filter": "false",
        "seed": "7",
        "timestamp_granularities[]": ["word", "segment"],
    }


def test_a_loud_clip_is_scaled_and_a_broken_one_is_not_sent(server: ModelServer) -> None:
    broken = CLIPS[1].copy()
    broken[5] = np.nan
    found = transcriber(server).transcribe([4 * CLIPS[0], broken, np.zeros(0, np.float32), CLIPS[2]], language="en")
    assert [bool(t.error) for t in found] == [False, True, True, False]
    sent = server.calls[0].samples
    assert len(server.calls) == 2
    assert np.abs(sent).max() == pytest.approx(32767 / 32768)
    assert np.abs(sent - 4 * CLIPS[0] * np.abs(sent).max() / np.abs(4 * CLIPS[0]).max()).max() <= 1 / 32768


def test_a_loop_is_flagged(server: ModelServer) -> None:
    server.fault = Fault(status=200, body=json.dumps({"text": "thank you. " * 5}).encode())
    (found,) = transcriber(server).transcribe(CLIPS[:1], language="en")
    assert found.loop


def test_a_refused_clip_is_a_failed_clip(server: ModelServer) -> None:
    backend = transcriber(server)
    backend.transcribe(CLIPS[:1], language="en")
    server.fault = Fault(status=422, body=b'{"detail": "too short"}', times=1)
    found = backend.transcribe(CLIPS, language="en")
    assert "status 422: too short" in found[0].error
    assert found[0].text == ""
    assert [t.text for t in found[1:]] == [heard(clip, "en") for clip in CLIPS[1:]]


def test_a_clip_without_an_answer_is_a_failed_clip(server: ModelServer) -> None:
    for fault in (Fault(status=500, times=4), Fault(hang_up=True, times=4)):
        server.fault = fault
        found = transcriber(server).transcribe(CLIPS, language="en")
        assert ["no usable answer in 2 attempts" in t.error for t in found] == [True, True, *[False] * 4]
    server.fault = Fault(status=200, body=HTML_PAGE, times=2)
    found = transcriber(server).transcribe(CLIPS, language="en")
    assert ["an HTML page instead of JSON" in t.error for t in found] == [True, True, *[False] * 4]


@pytest.mark.parametrize("body", [b'{"texts": "no"}', b"[]", b'{"text": null}', b'{"text": 7}', b'"text"'])
def test_an_answer_without_a_text_is_a_failed_clip(server: ModelServer, body: bytes) -> None:
    server.fault = Fault(status=200, body=body, times=1)
    found = transcriber(server).transcribe(CLIPS[:2], language="en")
    assert "status 200, but without a text" in found[0].error
    assert found[1].text == heard(CLIPS[1], "en")


@pytest.mark.parametrize("fault", [Fault(hang_up=True), Fault(status=503), Fault(status=200, body=HTML_PAGE)])
def test_a_server_that_is_gone_stops_the_run(server: ModelServer, fault: Fault) -> None:
    backend = transcriber(server, attempts=1)
    backend.transcribe(CLIPS[:1], language="en")
    server.fault = fault
    assert [bool(t.error) for t in backend.transcribe(CLIPS[:3], language="en")] == [True] * 3
    with pytest.raises(
        ModelError, match=f"{OUTAGE_AFTER} clips in a row had no answer .*run again: what was done is kept"
    ):
        backend.transcribe(CLIPS, language="en")
    assert len(server.calls) == 1 + OUTAGE_AFTER
    server.fault = None
    assert [t.error for t in backend.transcribe(CLIPS, language="en")] == [""] * 6


def test_failures_that_are_not_in_a_row_do_not_stop_the_run(server: ModelServer) -> None:
    backend = transcriber(server, attempts=1)
    for _ in range(2 * OUTAGE_AFTER):
        server.fault = Fault(status=500, times=1)
        assert [bool(t.error) for t in backend.transcribe(CLIPS[:2], language="en")] == [True, False]


def test_a_server_that_refuses_everything_stops_the_run(server: ModelServer) -> None:
    server.fault = Fault(status=400, body=b'{"error": {"message": "unknown response_format"}}')
    with pytest.raises(ModelError, match=r"refuses every clip.*unknown response_format"):
        transcriber(server).transcribe(CLIPS, language="en")
    assert len(server.calls) == OUTAGE_AFTER


def test_an_unknown_model_and_a_wrong_key_stop_at_once(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.fault = Fault(status=404, body=b'{"message": "the model `tiny` does not exist"}')
    with pytest.raises(ModelError, match="the model `tiny` does not exist"):
        transcriber(server).transcribe(CLIPS, language="en")
    server.fault, server.key = None, KEY
    with pytest.raises(ModelError, match="OPENAI_API_KEY is not set"):
        transcriber(server).transcribe(CLIPS, language="en")
    assert len(server.calls) == 2
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    backend = transcriber(server)
    found = backend.transcribe(CLIPS, language="en")
    assert [t.error for t in found] == [""] * 6
    shown = [repr(backend), str(vars(backend)), str(backend.spec), json.dumps(backend.spec.as_dict()), str(found)]
    assert not [text for text in shown if KEY in text]


def test_the_spec_says_what_decides(server: ModelServer) -> None:
    spec = transcriber(server, prompt="prices", extra={"seed": 7}).spec
    assert (spec.kind, spec.backend, spec.name, spec.model) == ("transcriber", "server", "tiny", "tiny")
    assert spec.revision == "root:org/tiny-v2 created:1700000000"
    assert spec.settings["url"] == server.url
    assert spec.settings["extra"] == {"seed": 7}
    assert spec.fingerprint != transcriber(server, extra={"seed": 7}).spec.fingerprint
    asked = len(server.calls)
    named = load_transcriber("server:org/tiny", url=server.url, revision="v2", concurrency=9).spec
    assert (named.name, named.model, named.revision) == ("tiny", "org/tiny", "v2")
    assert "url" not in named.settings
    assert named == load_transcriber("server:org/tiny", url="http://elsewhere/v1", revision="v2").spec
    assert len(server.calls) == asked


def test_a_spec_without_a_server_is_an_error(server: ModelServer) -> None:
    server.fault = Fault(status=503)
    with pytest.raises(NoAnswerError, match="models gave no usable answer"):
        _ = transcriber(server).spec


def test_languages(server: ModelServer) -> None:
    assert transcriber(server).supports("sw")
    backend = transcriber(server, languages=["en", "zh-TW"])
    assert (backend.supports("zh-CN"), backend.supports("es")) == (True, False)
    assert backend.sample_rate == 16_000
    with pytest.raises(UnknownNameError, match="'es'"):
        backend.transcribe(CLIPS[:1], language="es")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"response_format": "srt"}, "response_format 'srt'"),
        ({"audio_format": "mp3"}, "audio_format 'mp3'"),
        ({"extra": {"model": "x", "language": "y"}}, "extra holds language, model"),
        ({"attempts": 0}, "0 attempts"),
        ({"url": "nonsense"}, "URL 'nonsense' is none"),
        ({"beam": 5}, "'beam'.*key_variable"),
    ],
)
def test_wrong_options(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        load_transcriber("server:tiny", **options)
