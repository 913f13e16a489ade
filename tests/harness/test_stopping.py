"""Commands that are told to end do so, with every process that they started; what was finished is kept."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from squtr.harness.stopping import end_with_parent, signal_of, stopped_by_signals
from squtr.loaders.build import build
from squtr.loaders.recipe import open_recipe

MODEL = '''
"""A transcriber that takes a minute per clip, and says who it is."""
import os, time
from squtr.harness.protocols import ComponentSpec, Transcript


class Slow:
    sample_rate = 16000
    spec = ComponentSpec("transcriber", "class", "slow", revision="1")

    def supports(self, language):
        return True

    def transcribe(self, clips, *, language):
        with open("pids.log", "a") as log:
            log.write(f"{os.getpid()}\\n")
        time.sleep(60)
        return [Transcript("a") for _ in clips]
'''
WITHIN_S = 12.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopping")
    build(open_recipe("mini", conditions=["clean", "low_noise"], languages=["en"]), folder / "data")
    (folder / "slow_model.py").write_text(MODEL)
    return folder


@pytest.fixture
def started(place: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], list[int]]]]:
    """Starts an evaluation, and waits until so many processes of it are at work: it and their ids."""
    log = place / "pids.log"
    log.unlink(missing_ok=True)
    running: list[subprocess.Popen[str]] = []
    pids: list[int] = []

    def start(number: int) -> tuple[subprocess.Popen[str], list[int]]:
        options = ["--out", "run", "--cache", "cache", "--no-self-check", "--num-processes", str(number)]
        command = [sys.executable, "-m", "squtr", "evaluate", "class:slow_model:Slow + bm25", "--data", "data"]
        process = subprocess.Popen(
            [*command, *options], cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        running.append(process)
        end = time.monotonic() + 90
        while time.monotonic() < end and process.poll() is None:
            pids[:] = [int(line) for line in (log.read_text().split() if log.exists() else [])]
            if len(set(pids)) >= number:
                return process, pids
            time.sleep(0.1)
        raise RuntimeError("the evaluation did not begin")

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()
    for pid in pids:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_end(pids: list[int]) -> bool:
    end = time.monotonic() + WITHIN_S
    while time.monotonic() < end:
        if not any(map(is_alive, pids)):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_one_process_ends_as_after_ctrl_c(
    started: Callable[..., tuple[subprocess.Popen[str], list[int]]], name: str
) -> None:
    number = signal.Signals[name]
    process, _ = started(1)
    process.send_signal(number)
    _, shown = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 128 + number
    assert f"stopped by {name}. What was finished is kept: run the same command again" in shown
    assert "Traceback" not in shown


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_all_processes_end_with_the_one_that_started_them(
    started: Callable[..., tuple[subprocess.Popen[str], list[int]]], name: str
) -> None:
    number = signal.Signals[name]
    process, pids = started(2)
    process.send_signal(number)
    assert all_end(pids), "a process goes on"
    process.wait(WITHIN_S)
    if name == "SIGKILL":
        return
    _, shown = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 128 + number
    assert shown.count(f"stopped by {name}. What was finished is kept") == 1
    assert "Traceback" not in shown


@pytest.mark.slow
def test_a_process_of_many_that_is_stopped_alone_is_named(
    started: Callable[..., tuple[subprocess.Popen[str], list[int]]],
) -> None:
    process, pids = started(2)
    os.kill(pids[-1], signal.SIGTERM)
    _, shown = process.communicate(timeout=2 * WITHIN_S)
    assert process.returncode == 1
    assert "of 2 was ended by SIGTERM" in shown and "continue" in shown


IN_REQUEST = """
import sys, threading, time
from squtr.harness.components.model_server import ModelServer
from squtr.harness import cli

class Module:
    EXAMPLE = ""
    @staticmethod
    def configure(parser): pass
    @staticmethod
    def run(arguments):
        print("asking", flush=True)
        ModelServer(sys.argv[1], timeout_s=60).each([1], lambda i: time.sleep(60))

sys.modules["squtr.harness.cli.demo"] = Module
raise SystemExit(cli.main(["demo"]))
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_request_without_an_answer_holds_nobody_up(name: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", IN_REQUEST, "http://localhost:1/v1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "asking\n"
    time.sleep(1)
    process.send_signal(signal.Signals[name])
    _, shown = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 128 + signal.Signals[name] and "What was finished is kept" in shown


def _waits(seconds: float) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None and parent.pid is not None
    end_with_parent(parent.pid)
    time.sleep(seconds)


CHILD = """
import multiprocessing, os, time
from tests.harness.test_stopping import _waits

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=_waits, args=(60,), daemon=True)
    child.start()
    print(child.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_a_child_that_measures_ends_with_a_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(CHILD)
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py")],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    time.sleep(3)
    assert is_alive(child)
    process.kill()
    process.communicate()
    assert all_end([child])


def test_handlers_are_put_back_and_an_ignored_signal_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with pytest.raises(KeyboardInterrupt) as caught, stopped_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)
        assert signal_of(caught.value) is signal.SIGTERM
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal_of(KeyboardInterrupt()) is signal.SIGINT
