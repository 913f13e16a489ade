"""Faults on purpose, in every protocol: told in a sentence that names the item, never a score, never kept.

Each case evaluates with the fault, and again without it on the same cache and folder: the first fails, or counts what
failed on the console; the second equals an evaluation that never had the fault.
"""

from __future__ import annotations

import errno
import json
import math
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.harness.cli import main
from squtr.harness.protocols import Hit, Transcript
from squtr.harness.results import files
from squtr.harness.results.envelope import read_runs

from .evaluation_for_tests import built
from .faulty_for_tests import SENTENCES, Fault, Faults
from .questions_for_tests import write_questions
from .server_for_tests import HTML_PAGE, ModelServer, model_server
from .server_for_tests import Fault as ServerFault

HERE = "class:tests.harness.faulty_for_tests"
QUERIES = 7
HALF = "smile \ud83d"
"""A lone surrogate."""


@pytest.fixture(autouse=True)
def no_fault() -> Iterator[None]:
    Faults.now.clear()
    yield
    Faults.now.clear()


@dataclass(frozen=True)
class Console:
    status: int
    out: str
    err: str


@dataclass
class Bench:
    """Where one system is evaluated again and again."""

    data: Path
    folder: Path
    system: str
    capsys: pytest.CaptureFixture[str]

    def evaluate(self, name: str, *options: str) -> Console:
        self.capsys.readouterr()
        folders = ["--out", str(self.folder / f"{name}-run"), "--cache", str(self.folder / name)]
        # One config is enough to go wrong.
        config = [] if (self.data / "questions.jsonl").exists() else ["--configs", "en_clean"]
        few = ["--resamples", "20", "--permutations", "20", "--samples", "0"]
        arguments = ["--data", str(self.data), *folders, *config, *few, "--no-self-check", *options]
        status = main(["evaluate", self.system, *arguments])
        said = self.capsys.readouterr()
        return Console(status, said.out, said.err)

    def right(self, known: dict[str, dict[str, Any]], *options: str) -> dict[str, Any]:
        """What the system gives that never had a fault: evaluated once for all cases."""
        if self.system not in known:
            assert self.evaluate("right", *options).status == 0
            known[self.system] = self.results("right")
        return known[self.system]

    def results(self, name: str) -> dict[str, Any]:
        """All that an evaluation wrote, without what depends on the machine."""
        found: dict[str, Any] = {}
        for record in read_runs(self.folder / f"{name}-run"):
            told = record.result.model_dump(mode="json", exclude={"timing", "environment"})
            found["/".join(record.result.key)] = told, str(record.items.to_pylist())
        return found


def each(spoil: Callable[[Any], Any], place: int = 1) -> Fault:
    """Spoil one output of a call."""

    def fault(right: list[Any]) -> list[Any]:
        return [spoil(one) if i == place % len(right) else one for i, one in enumerate(right)]

    return fault


def raising(error: BaseException) -> Fault:
    def fault(_: Any) -> Any:
        raise error

    return fault


def row_of(values: Any) -> Fault:
    """Spoil one row of vectors."""

    def fault(right: np.ndarray) -> np.ndarray:
        wrong = right.copy()
        wrong[min(1, len(wrong) - 1)] = values
        return wrong

    return fault


def told(**change: Any) -> Fault:
    """Change one output's fields."""
    return each(lambda one: replace(one, **change))


COMMON: dict[str, Fault] = {
    "nothing at all": lambda _: None,
    "too few": lambda right: right[:-1],
    "too many": lambda right: [*right, right[-1]],
    "none of it": lambda _: [],
    "an error of its own": raising(ZeroDivisionError("division by zero")),
    "an error without words": raising(KeyError()),
    "a file that is not there": raising(FileNotFoundError(2, "No such file or directory", "weights.bin")),
}
OUTPUTS: dict[str, Fault] = {
    **COMMON,
    "a bare text": each(lambda one: one.text),
    "None": each(lambda _: None),
    "a text that is none": told(text=7),
    "seconds that are none": told(seconds=math.nan),
    "time that runs back": told(seconds=-1.0),
    "a reason that is none": told(error=404),
}
VECTORS: dict[str, Fault] = {
    **{name: fault for name, fault in COMMON.items() if name != "too many"},
    "too many": lambda right: np.concatenate([right, right[-1:]]),
    "one row flat": lambda right: right.reshape(-1),
    # Of queries, and not of the twelve documents.
    "another width": lambda right: np.pad(right, ((0, 0), (0, int(len(right) != 12)))),
    "infinity": row_of(np.inf),
    "no unit length": row_of(3.0),
    "nothing but zeros": row_of(0.0),
    "texts": lambda right: [["a", "b"] for _ in right],
}
RANKINGS: dict[str, Fault] = {
    **COMMON,
    "a document twice": each(lambda hits: [Hit("d1", 2.0), Hit("d1", 1.0)]),
    "an unknown document": each(lambda hits: [Hit("nowhere", 2.0)]),
    "not sorted": each(lambda hits: [Hit("d1", 1.0), Hit("d0", 2.0)]),
    "NaN": each(lambda hits: [Hit("d1", math.nan)]),
    "infinity": each(lambda hits: [Hit("d1", math.inf)]),
    "a score that is none": each(lambda hits: [Hit("d1", "high")]),  # type: ignore[arg-type]
    "an id that is a number": each(lambda hits: [Hit(3, 1.0)]),  # type: ignore[arg-type]
    "half a character as id": each(lambda hits: [Hit("d\ud83d", 1.0)]),
    "ids alone": each(lambda hits: ["d1", "d0"]),
    "pairs": each(lambda hits: [("d1", 1.0)]),
    "None": each(lambda hits: None),
}
CASCADE = f"{HERE}:Transcribes + {HERE}:Searches"
SYSTEMS: dict[str, str] = {
    "transcribe": CASCADE,
    "search": CASCADE,
    "index": CASCADE,
    "enhance": f"{HERE}:Enhances | {CASCADE}",
    "rewrite": f"{HERE}:Transcribes + {HERE}:Rewrites + {HERE}:Searches",
    "encode": f"{HERE}:Transcribes + {HERE}:dense",
    "encode_audio": f"{HERE}:EncodesAudio",
    "answer": f"{HERE}:Answers",
    "transcripts": f"{HERE}:Given + {HERE}:Searches",
    "hits": f"{HERE}:Given + {HERE}:Ranked",
}
FAULTS: dict[str, dict[str, Fault]] = {
    "transcribe": {
        **OUTPUTS,
        "too sure": told(confidence=1.5),
        "a text and an error": told(error="too loud", text="and yet words"),
        "an error": told(error="too loud", text=""),
        "an n best that is no number": told(hypotheses=(None,)),
    },
    "transcripts": OUTPUTS,
    "rewrite": {**OUTPUTS, "no words": told(text=" ")},
    "answer": OUTPUTS,
    "search": RANKINGS,
    "hits": RANKINGS,
    "index": {name: fault for name, fault in COMMON.items() if "error" in name or "file" in name},
    "enhance": {
        **COMMON,
        "shorter": each(lambda clip: clip[:-1]),
        "integers": each(lambda clip: (clip * 32767).astype(np.int16)),
        "NaN": each(lambda clip: np.full_like(clip, np.nan)),
        "two channels": each(lambda clip: np.stack([clip, clip])),
        "a list": each(lambda clip: clip.tolist()),
    },
    "encode": VECTORS | {"NaN": row_of(np.nan)},
    "encode_audio": VECTORS | {"NaN": row_of(np.nan)},
}
COUNTED = {("transcribe", "an error"), ("encode_audio", "NaN"), ("enhance", "NaN"), ("rewrite", "no words")}
"""What a component may say of an item: it is counted as failed, and fails its config as one of few."""


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults")
    built(folder, "clean", queries=QUERIES, documents=12)
    return folder / "data"


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_questions(tmp_path_factory.mktemp("faulty-questions") / "set")


@pytest.fixture(scope="module")
def right() -> dict[str, dict[str, Any]]:
    """What systems give that never had a fault."""
    return {}


@pytest.mark.parametrize(
    ("method", "fault"), [(method, fault) for method, faults in FAULTS.items() for fault in faults]
)
def test_a_fault_is_told_and_leaves_nothing(
    method: str,
    fault: str,
    speech: Path,
    questions: Path,
    right: dict[str, dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = questions if method == "answer" else speech
    bench = Bench(data, tmp_path, SYSTEMS[method], capsys)
    expected = bench.right(right)

    Faults.now[method] = FAULTS[method][fault]
    wrong = bench.evaluate("wrong")
    assert wrong.status == 1, wrong
    assert "Traceback" not in wrong.err, wrong.err
    if (method, fault) not in COUNTED:
        assert SENTENCES[method] in wrong.err, wrong.err
    else:
        # One of seven is too many; as one of few it is a number in a column of its own.
        assert " items of " in wrong.err, wrong.err
        few = bench.evaluate("wrong", "--max-failed", "1")
        assert few.status == 0, few.err
        assert "failed" in few.out, few.out

    Faults.now.clear()
    mended = bench.evaluate("wrong")
    assert mended.status == 0, mended.err
    assert bench.results("wrong") == expected


@pytest.mark.parametrize("method", ["transcribe", "transcripts", "rewrite", "answer"])
def test_half_a_character_is_replaced_counted_and_kept_as_text(
    method: str, speech: Path, questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(questions if method == "answer" else speech, tmp_path, SYSTEMS[method], capsys)
    Faults.now[method] = told(text=HALF)
    first = bench.evaluate("half")
    assert (first.status, "Traceback" in first.err) == (0, False), first.err
    found = bench.results("half")
    assert any(told["failures"]["invalid_text"] for told, _ in found.values()), found
    assert any("smile \ufffd" in items for _, items in found.values())
    json.dumps(found).encode("utf-8")
    # Kept as what it became: the next run reads the same.
    calls = Faults.calls
    again = Bench(bench.data, tmp_path, bench.system, capsys)
    again.folder = tmp_path
    assert again.evaluate("half").status == 0
    assert again.results("half") == found
    if method in ("transcribe", "rewrite", "answer"):
        assert Faults.calls == calls


def test_an_error_of_a_user_shows_where(speech: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(speech, tmp_path, CASCADE, capsys)
    Faults.now["transcribe"] = raising(ZeroDivisionError("division by zero"))
    said = bench.evaluate("where")
    assert "ZeroDivisionError: division by zero" in said.err
    assert "test_faults.py, line " in said.err
    assert "--debug" in said.err
    shown = bench.evaluate("where", "--debug")
    assert shown.status == 1
    assert "Traceback (most recent call last)" in shown.err


def test_a_run_that_is_interrupted_continues(speech: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench = Bench(speech, tmp_path, CASCADE, capsys)
    assert bench.evaluate("right").status == 0
    Faults.now["search"] = raising(KeyboardInterrupt())
    stopped = bench.evaluate("stopped")
    assert (stopped.status, stopped.err.splitlines()[-1][:18]) == (130, "squtr: interrupted")
    Faults.now.clear()
    assert bench.evaluate("stopped").status == 0
    assert bench.results("stopped") == bench.results("right")


def test_the_last_items_that_all_fail_are_a_component_that_stopped(
    speech: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twelve of fourteen fail after the second: each config has more than its share, or all of its last."""
    bench = Bench(speech, tmp_path, CASCADE, capsys)
    Faults.now["transcribe"] = lambda right: [
        one if i < QUERIES - 5 else Transcript("", error="the server is gone") for i, one in enumerate(right)
    ]
    said = bench.evaluate("tail", "--max-failed", "0.9")
    assert said.status == 1
    assert "transcribes failed on all of the last 10 items, the last because: the server is gone." in said.err or (
        "transcribes failed on all of the last 5 items, the last because: the server is gone." in said.err
    ), said.err
    assert bench.evaluate("tail", "--max-failed", "1").status == 0


URL = "--option url={url} attempts=1 revision=r1 concurrency=1"
BEHIND_A_SERVER: dict[str, tuple[str, str]] = {
    "transcriber": (f"server:tiny + {HERE}:Searches", "audio/transcriptions"),
    "encoder": (f"{HERE}:Transcribes + dense-server:tiny", "embeddings"),
    "rewriter": (f"{HERE}:Transcribes + rewrite-server:tiny + {HERE}:Searches", "chat/completions"),
    "answerer": ("chat-server:tiny", "chat/completions"),
}
MESSAGE = b'{"error": {"message": "the model is being unloaded", "type": "server_error"}}'
SERVER_FAULTS: dict[str, tuple[ServerFault, str]] = {
    "always 500": (ServerFault(500, MESSAGE), "the model is being unloaded"),
    "gone after two": (ServerFault(500, MESSAGE, after=2), "the model is being unloaded"),
    "a page": (ServerFault(200, HTML_PAGE), "HTML page"),
    "an error with status 200": (ServerFault(200, MESSAGE), "the model is being unloaded"),
    "nothing": (ServerFault(200, b""), "nothing instead of JSON"),
    "garbage": (ServerFault(200, b"\xff\xfe{"), "instead of JSON"),
    "a list": (ServerFault(200, b"[]"), "status 200"),
    "half an answer": (ServerFault(200, b'{"text": "river', truncate=True), "connection"),
    "a hang-up": (ServerFault(hang_up=True), "connection"),
    "no such model": (ServerFault(404, b'{"error": {"message": "no model tiny"}}'), "no model tiny"),
    "a wrong key": (ServerFault(401, b"{}"), "status 401"),
    "too large": (ServerFault(413, b'{"detail": "over the limit"}'), "over the limit"),
    "too many": (ServerFault(429, MESSAGE, {"Retry-After": "86400"}), "status 429"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        running.reply = "A"
        yield running


@pytest.mark.parametrize("role", BEHIND_A_SERVER)
@pytest.mark.parametrize("fault", SERVER_FAULTS)
def test_a_server_with_a_fault_is_told_and_leaves_nothing(
    role: str,
    fault: str,
    server: ModelServer,
    speech: Path,
    questions: Path,
    right: dict[str, dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    system, path = BEHIND_A_SERVER[role]
    bench = Bench(questions if role == "answerer" else speech, tmp_path, system, capsys)
    options = URL.format(url=server.url).split()
    server.fault = None
    expected = bench.right(right, *options)

    wrong, message = SERVER_FAULTS[fault]
    server.fault = replace(wrong, path=path)
    said = bench.evaluate("wrong", *options)
    assert said.status == 1, said
    assert "Traceback" not in said.err, said.err
    assert message in said.err, said.err
    assert server.url in said.err, said.err

    server.fault = None
    mended = bench.evaluate("wrong", *options)
    assert mended.status == 0, mended.err
    assert bench.results("wrong") == expected


@pytest.mark.parametrize("role", ["transcriber", "rewriter", "answerer"])
def test_half_a_character_from_a_server(
    role: str, server: ModelServer, speech: Path, questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An emoji that a cap on tokens cut in two."""
    system, path = BEHIND_A_SERVER[role]
    bench = Bench(questions if role == "answerer" else speech, tmp_path, system, capsys)
    options = URL.format(url=server.url).split()
    text = b'"river \\ud83d"'
    body = b'{"text": ' + text + b', "choices": [{"message": {"content": ' + text + b'}, "finish_reason": "stop"}]}'
    server.fault = ServerFault(200, body, path=path)
    first = bench.evaluate("half", *options)
    assert (first.status, "Traceback" in first.err) == (0, False), first.err
    found = bench.results("half")
    assert any(told["failures"]["invalid_text"] for told, _ in found.values())
    assert any("river \ufffd" in items for _, items in found.values())
    server.fault = ServerFault(500, MESSAGE)
    assert bench.evaluate("half", *options).status == 0
    assert bench.results("half") == found
    server.fault = None


def damaged(path: Path) -> Callable[[], None]:
    """Damage a file, and give what mends it: it is removed."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if len(content) > 8192 else b"no store")
    return path.unlink


def overwritten(path: Path) -> Callable[[], None]:
    path.write_bytes(b"this is no store at all, and never was one" * 100)
    return path.unlink


def in_the_way(path: Path) -> Callable[[], None]:
    path.write_bytes(b"a file where a folder should be")
    return path.unlink


@pytest.mark.parametrize("fault", ["overwritten", "damaged", "results in the way", "cache in the way"])
def test_what_lies_on_the_disk_is_named_and_a_mended_run_is_right(
    fault: str, speech: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(speech, tmp_path, CASCADE, capsys)
    assert bench.evaluate("right").status == 0
    if fault.endswith("in the way"):
        path = tmp_path / ("wrong-run" if "results" in fault else "wrong")
        mend = in_the_way(path)
    else:
        Faults.now["search"] = raising(RuntimeError("not today"))
        assert bench.evaluate("wrong").status == 1
        Faults.now.clear()
        path = next((tmp_path / "wrong").rglob("*.sqlite*"))
        mend = {"overwritten": overwritten, "damaged": damaged}[fault](path)
    said = bench.evaluate("wrong")
    assert said.status == 1
    assert "Traceback" not in said.err
    assert "unexpected" not in said.err, said.err
    assert str(path.name) in said.err, said.err
    mend()
    assert bench.evaluate("wrong").status == 0
    assert bench.results("wrong") == bench.results("right")


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "Free space"), (errno.EROFS, "read-only"), (errno.EDQUOT, "quota")]
)
def test_a_disk_that_refuses_results(
    number: int,
    words: str,
    speech: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench(speech, tmp_path, CASCADE, capsys)
    assert bench.evaluate("right").status == 0

    def refused(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(files.tempfile, "NamedTemporaryFile", refused)
        said = bench.evaluate("wrong")
    assert said.status == 1
    assert words in said.err, said.err
    assert "Traceback" not in said.err
    assert bench.evaluate("wrong").status == 0
    assert bench.results("wrong") == bench.results("right")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_told_to_end(
    number: signal.Signals, speech: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(speech, tmp_path, CASCADE, capsys)
    assert bench.evaluate("right").status == 0

    def end(right: Any) -> Any:
        os.kill(os.getpid(), number)
        return right

    Faults.now["search"] = end
    # The workers of a test run have handlers of their own.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        said = bench.evaluate("ended")
    finally:
        signal.signal(number, before)
    assert (said.status, said.err.splitlines()[-1]) == (
        128 + number,
        f"squtr: stopped by {number.name}. What was finished is kept: run the same command again to continue.",
    )
    Faults.now.clear()
    assert bench.evaluate("ended").status == 0
    assert bench.results("ended") == bench.results("right")
