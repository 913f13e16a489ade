"""What a person who waits sees: at once, of every batch, on a terminal and off it."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from squtr.harness.components.batches import BatchSize, in_batches, in_token_batches
from squtr.harness.components.model_server import ModelServer
from squtr.harness.progress import Bars, Counting, current_tick, showing_batches, within_call

SLOW_WORK = """
import time
from squtr.harness.components.batches import BatchSize, in_batches
from squtr.harness.progress import Bars

def work(batch):
    time.sleep(1.2 * len(batch))
    return batch

with Bars() as show:
    from squtr.harness.progress import counting
    advance = counting(show, "transcribing with slow", 4)
    with advance.within(4):
        in_batches(range(4), size=BatchSize(2), work=work, engine="slow", what="clips")
    advance(4)
"""


@contextmanager
def terminal(code: str) -> Iterator[tuple[int, float]]:
    """A program whose stderr is a terminal: what to read from, and when it began to work."""
    ours, theirs = pty.openpty()
    started = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", code], stderr=theirs, stdin=subprocess.DEVNULL)
    os.close(theirs)
    try:
        yield ours, started
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(descriptor: int, wanted: str, *, within_s: float) -> str:
    shown, end = "", time.monotonic() + within_s
    while wanted not in shown and time.monotonic() < end:
        if select.select([descriptor], [], [], 0.1)[0]:
            try:
                shown += os.read(descriptor, 4096).decode("utf-8", "replace")
            except OSError:  # the other end is closed
                break
    return shown


def test_a_terminal_shows_the_stage_before_the_first_batch_and_then_every_batch() -> None:
    with terminal(SLOW_WORK) as (shown, _):
        first = read_until(shown, "first batch", within_s=20)
        assert "transcribing with slow" in first and "0/4" in first and "2/4" not in first
        rest = read_until(shown, "4/4", within_s=20)
    assert "2/4" in rest and "4/4" in rest


def test_off_a_terminal_there_is_a_line_at_times(capsys: pytest.CaptureFixture[str]) -> None:
    with Bars(first_line_s=0.05, line_every_s=0.1) as show:
        show("transcribing", 0, 100)
        time.sleep(0.3)
        show("transcribing", 40, 100, audio_s=80.0)
        time.sleep(0.2)
        show("transcribing", 100, 100, audio_s=200.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("transcribing: 0/100, loading, first batch, for ")
    assert any(line.startswith("transcribing: 40/100, ") and " left, RTFx " in line for line in lines)
    assert lines[-1].startswith("transcribing: 100/100, ") and "took" in lines[-1]
    assert len(lines) <= 7


def test_a_short_stage_off_a_terminal_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Bars(first_line_s=0.2) as show:
        show("quick", 0, 3)
        show("quick", 3, 3)
        time.sleep(0.3)
    assert capsys.readouterr().err == ""


def test_batches_tell_how_far_a_call_is() -> None:
    seen: list[int] = []
    with within_call(5, seen.append):
        in_batches(range(5), size=BatchSize(2), work=lambda batch: batch, engine="e", what="clips")
    assert seen == [2, 4, 5]
    seen.clear()
    # Forty pairs of four queries: the share of pairs is the share of queries.
    with within_call(4, seen.append):
        in_token_batches(range(40), [1] * 40, 10, lambda batch: batch, who="e")
    assert seen == [1, 2, 3, 4]


def test_a_batch_that_shrinks_is_told_once() -> None:
    seen: list[int] = []

    def work(batch: list[int]) -> list[int]:
        if len(batch) > 1:
            raise MemoryError
        return batch

    with within_call(3, seen.append):
        in_batches(range(3), size=BatchSize(4), work=work, engine="e", what="clips")
    assert seen == [1, 2, 3]


def test_requests_of_a_server_tell_from_their_threads() -> None:
    seen: list[int] = []
    with within_call(8, seen.append):
        ModelServer("http://localhost:1/v1", concurrency=4).each(range(8), lambda item: item)
    assert seen == sorted(seen) and seen[-1] == 8
    current_tick()(1, 0)
    assert seen[-1] == 8, "after the call nobody listens"


def test_threads_that_tick_at_once_lose_nothing() -> None:
    seen: list[int] = []
    with within_call(400, seen.append):
        tick = current_tick()
        threads = [threading.Thread(target=lambda: [tick(1, 0) for _ in range(100)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen == list(range(1, 401))


def test_the_last_item_is_told_by_who_knows_that_it_is_kept() -> None:
    told: list[tuple[str, int, int, float]] = []

    def show(stage: str, done: int, total: int, *, audio_s: float = 0.0) -> None:
        told.append((stage, done, total, audio_s))

    with showing_batches(show, "s", 4, 8, 4, audio_s=(10.0, 8.0)):
        for _ in range(4):
            current_tick()(1, 0)
    assert told == [("s", 5, 8, 12.0), ("s", 6, 8, 14.0), ("s", 7, 8, 16.0)]
    advance = Counting(show, "t", 4)
    with advance.within(2, processes=2):
        current_tick()(1, 0)
    advance(4)
    assert [one[1] for one in told if one[0] == "t"] == [0, 2, 4]


def test_a_bar_ends_though_the_work_failed(tmp_path: Path) -> None:
    before = threading.active_count()
    with pytest.raises(ValueError, match="no"), Bars() as show:
        show("s", 0, 3)
        raise ValueError("no")
    assert threading.active_count() == before
