"""One system in a process of its own: time and memory, and errors that come back as sentences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from squtr.errors import ModelError
from squtr.harness.systems import Overrides, System, load_systems
from squtr.harness.tasks.recognition.measuring import measure, own_peak_memory_mb

MODEL = """
import os, time
from squtr.harness.protocols import ComponentSpec, Transcript


class Waiter:
    sample_rate = 16000

    def __init__(self, *, wait_s: float = 0.02, hold_mb: int = 0, end: str = "") -> None:
        self.wait_s, self.hold_mb, self.end = wait_s, hold_mb, end
        self.spec = ComponentSpec("transcriber", "class", "waiter", settings={"hold_mb": hold_mb, "device": "cpu"})
        self.held = None
        self.calls = 0

    def supports(self, language):
        return True

    def transcribe(self, clips, *, language):
        if self.end == "raise":
            raise ValueError("not today")
        if self.end == "die":
            os._exit(3)
        self.held = self.held or bytearray(b"x") * (self.hold_mb * 1000000)
        self.calls += 1
        if self.end == "fail" or (self.end == "fail once" and self.calls == 3):
            return [Transcript("", error="too loud") for clip in clips]
        time.sleep(self.wait_s)
        return [Transcript("a") for clip in clips]
"""
CLIPS = tuple((np.zeros(1600, dtype=np.float32), 16_000) for _ in range(4))


@pytest.fixture
def waiter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "waiting_model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    return "class:waiting_model:Waiter"


def made(written: str, **options: object) -> System:
    return load_systems([written], options=Overrides(options=options))[0]


def test_time_and_memory_are_its_own(waiter: str) -> None:
    latency, small = measure(made(waiter), "en", CLIPS)
    _, large = measure(made(waiter, hold_mb=300), "en", CLIPS)
    assert latency is not None
    assert small is not None
    assert large is not None
    assert latency.n == 4
    assert 0.02 <= latency.p50_s < 1
    assert latency.p50_s <= latency.p90_s <= latency.p95_s <= latency.p99_s
    assert small.device == "cpu"
    assert 250 < large.peak_memory_mb - small.peak_memory_mb < 350
    # This process holds more than the other one did: what it has is not counted.
    ballast = bytearray(b"x") * 500_000_000
    _, again = measure(made(waiter), "en", CLIPS)
    assert again is not None
    assert len(ballast) == 500_000_000
    assert again.peak_memory_mb < small.peak_memory_mb + 100


def test_an_error_comes_back_as_a_sentence(waiter: str) -> None:
    with pytest.raises(
        ModelError,
        match=r"Waiter.transcribe \(waiter\) on 1 clips in 'en' failed: ValueError: not today \(waiting_model.py, line",
    ):
        measure(made(waiter, end="raise"), "en", CLIPS)
    with pytest.raises(ModelError, match=r"measuring waiter ended without an answer \(exit status 3\)"):
        measure(made(waiter, end="die"), "en", CLIPS)


def test_what_fails_at_once_is_not_fast(waiter: str) -> None:
    with pytest.raises(
        ModelError, match="4 of 4 items that were to be timed failed for waiter, the first because: too loud"
    ):
        measure(made(waiter, end="fail"), "en", CLIPS, 0.5)
    latency, _ = measure(made(waiter, end="fail once"), "en", CLIPS, 0.5)
    assert latency is not None
    assert latency.n == 3
    with pytest.raises(ModelError, match="1 of 4 items that were to be timed failed"):
        measure(made(waiter, end="fail once"), "en", CLIPS, 0.05)


def test_nothing_to_measure(waiter: str, tmp_path: Path) -> None:
    assert measure(made(waiter), "en", ()) == (None, None)
    (tmp_path / "mine.jsonl").write_text('{"id": "a", "text": "b", "condition": "clean"}\n')
    assert measure(made(f"transcripts:{tmp_path / 'mine.jsonl'}"), "en", CLIPS) == (None, None)


def test_own_peak_memory(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("Name:\tpython\nVmHWM:\t  2000 kB\nVmRSS:\t 1000 kB\n")
    assert own_peak_memory_mb(tmp_path / "status") == 2.0
    assert own_peak_memory_mb(tmp_path / "none") > 10
