"""Bars and the JSON log: what they show of a stage, and when."""

from __future__ import annotations

import errno
import io
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from squtr.errors import StorageError, UsageError
from squtr.harness.progress import Bars, JsonLog, counting, tee


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def time(self) -> datetime:
        return datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=self.now_s)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def log(path: Path, clock: Clock, every_s: float = 5.0) -> JsonLog:
    return JsonLog(path, every_s=every_s, clock=clock, now=clock.time)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_log_tells_a_stage_from_start_to_end(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "deep" / "log.jsonl"
    with log(path, clock) as told:
        told("transcribing", 0, 100)
        for done in (10, 20, 30):
            clock.now_s += 2
            told("transcribing", done, 100, audio_s=done * 4.0)
        clock.now_s += 4
        told("transcribing", 100, 100, audio_s=400.0)
    written = lines(path)
    assert [line["event"] for line in written] == ["stage_start", "progress", "stage_end"]
    start, progress, end = written
    assert start["items_per_s"] is None and start["rtfx"] is None and start["eta_s"] is None
    assert start["time"] == "2026-01-02T00:01:40.000Z"
    # Six seconds in: 30 items, 120 s of sound, 70 items left.
    assert progress == {
        "time": "2026-01-02T00:01:46.000Z",
        "event": "progress",
        "stage": "transcribing",
        "done": 30,
        "total": 100,
        "items_per_s": 5.0,
        "rtfx": 20.0,
        "eta_s": 14.0,
    }
    assert end["done"] == 100 and end["items_per_s"] == 10.0 and end["eta_s"] == 0.0 and end["seconds"] == 10.0


def test_rate_counts_only_what_was_done_since_the_stage_began(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "log"
    with log(path, clock, every_s=0.0) as told:
        told("t", 1000, 1100, audio_s=5000.0)
        clock.now_s += 10
        told("t", 1050, 1100, audio_s=5100.0)
    progress = next(line for line in lines(path) if line["done"] == 1050)
    assert progress["items_per_s"] == 5.0 and progress["rtfx"] == 10.0 and progress["eta_s"] == 10.0


def test_stages_may_interleave_and_an_unfinished_one_ends_when_the_log_closes(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "log"
    told = log(path, clock)
    told("a", 0, 2)
    told("b", 0, 2)
    told("a", 1, 2)
    told("b", 2, 2)
    told.close()
    told.close()
    assert [(line["event"], line["stage"], line["done"]) for line in lines(path)] == [
        ("stage_start", "a", 0),
        ("stage_start", "b", 0),
        ("stage_end", "b", 2),
        ("stage_end", "a", 1),
    ]
    with pytest.raises(UsageError, match="closed"):
        told.note("late")


def test_the_same_stage_again_is_another_stage(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with log(path, Clock()) as told:
        for done in (0, 2, 0, 1, 0, 2):
            told("searching", done, 2)
    assert [(line["event"], line["done"]) for line in lines(path)] == [
        ("stage_start", 0),
        ("stage_end", 2),
        ("stage_start", 0),
        ("stage_end", 1),
        ("stage_start", 0),
        ("stage_end", 2),
    ]


def test_notes_have_fields_and_no_nan(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with log(path, Clock()) as told:
        told.note("查询 failed", config="zh_clean", rate=float("nan"), n=3)
        with pytest.raises(UsageError, match="event"):
            told.note("x", event="stage_start")
    (line,) = lines(path)
    assert line["event"] == "note" and line["text"] == "查询 failed"
    assert line["config"] == "zh_clean" and line["rate"] is None and line["n"] == 3


def test_log_appends_and_never_joins_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text('{"event": "note"}\n{"event": "pro', encoding="utf-8")
    with log(path, Clock()) as told:
        told.note("again")
    first, torn, last = path.read_text(encoding="utf-8").splitlines()
    assert json.loads(first)["event"] == "note" and torn == '{"event": "pro'
    assert json.loads(last)["text"] == "again"


def test_lines_are_there_at_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    told = log(path, Clock())
    told("a", 0, 5)
    assert len(lines(path)) == 1
    told.close()


def test_full_disk_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = log(tmp_path / "log", Clock())

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(StorageError, match="No space left"):
            told("a", 0, 5)
        with pytest.raises(StorageError):
            told.close()
    told.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_device_without_room_is_a_storage_error() -> None:
    with pytest.raises(StorageError, match="/dev/full"), JsonLog(Path("/dev/full")) as told:
        told("a", 0, 5)


def test_a_folder_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=str(tmp_path)):
        JsonLog(tmp_path)


def test_bars_are_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Bars() as show:
        for done in range(4):
            show("building", done, 3, audio_s=done)
    assert capsys.readouterr() == ("", "")


def test_bars_show_rate_and_rtfx(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, terminal = Clock(), Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Bars(delay_s=0.0, clock=clock) as show:
        show("hearing", 0, 10)
        clock.now_s += 2
        show("hearing", 10, 10, audio_s=50.0)
        show("searching", 0, 4)
        show("searching", 4, 4)
    shown = terminal.getvalue()
    assert "hearing: 100%" in shown and "10/10" in shown and "RTFx 25" in shown
    assert "searching: 100%" in shown and "RTFx" not in shown[shown.index("searching") :]


def test_a_short_stage_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Bars() as show:
        show("quick", 0, 3)
        show("quick", 3, 3)
    assert "quick" not in terminal.getvalue()


def test_counting_and_tee_tell_all_listeners(tmp_path: Path) -> None:
    heard: list[tuple[str, int, int, float]] = []

    def listen(stage: str, done: int, total: int, *, audio_s: float = 0.0) -> None:
        heard.append((stage, done, total, audio_s))

    with log(tmp_path / "log", Clock()) as told:
        advance = counting(tee(listen, told), "clips", 5)
        advance(2)
        advance(3)
    assert heard == [("clips", 0, 5, 0.0), ("clips", 2, 5, 0.0), ("clips", 5, 5, 0.0)]
    assert [line["event"] for line in lines(tmp_path / "log")] == ["stage_start", "stage_end"]
