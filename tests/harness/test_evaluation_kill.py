"""Evaluations in processes of their own: shared by several, killed at any point, and continued."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from squtr.loaders.build import build
from squtr.loaders.recipe import open_recipe

MODEL = '''
"""A transcriber that says words made from the sound, slowly."""
import hashlib, os, time
from squtr.harness.protocols import ComponentSpec, Transcript

WORDS = "the of in and river city energy water music king".split()


class Slow:
    sample_rate = 16000
    spec = ComponentSpec("transcriber", "class", "slow", revision="1")

    def __init__(self, *, delay_s: float = 0.003) -> None:
        self.delay_s = delay_s

    def supports(self, language):
        return True

    def transcribe(self, clips, *, language):
        found = []
        for clip in clips:
            time.sleep(self.delay_s)
            key = hashlib.sha256(clip.tobytes()).hexdigest()
            with open("heard.log", "a") as log:
                log.write(key + "\\\\n")
            if os.environ.get("DIE_ON_RANK") == os.environ.get("RANK", "0"):
                os.kill(os.getpid(), 9)
            if os.environ.get("RAISE"):
                raise ValueError("not today")
            found.append(Transcript(" ".join(WORDS[int(c, 16) % 10] for c in key[:4]), seconds=self.delay_s))
        return found
'''.replace("\\\\n", "\\n")
SYSTEM = "class:slow_model:Slow + bm25"
KILLS = 20


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data set of 5 shards per cell of 12, and a user's model."""
    folder = tmp_path_factory.mktemp("kill")
    opened = open_recipe("mini", conditions=["clean", "low_noise", "high_noise"], languages=["en", "es"])
    build(opened, folder / "data")
    (folder / "slow_model.py").write_text(MODEL)
    return folder


def command(name: str, *options: str) -> list[str]:
    asked = [
        "evaluate",
        SYSTEM,
        "--data",
        "data",
        "--out",
        f"{name}-run",
        "--cache",
        f"{name}-cache",
        "--no-self-check",
    ]
    return [sys.executable, "-m", "squtr", *asked, "--resamples", "50", "--samples", "0", *options]


def run(place: Path, name: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(name, *options),
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
        timeout=300,
    )


def contents(place: Path, name: str) -> Mapping[str, object]:
    """What a run wrote: the records' bytes, and the results without what their machine took."""
    found: dict[str, object] = {}
    for path in sorted((place / f"{name}-run" / "results").rglob("*")):
        if path.suffix == ".json":
            found[path.name] = {k: v for k, v in json.loads(path.read_text()).items() if k != "timing"}
        elif path.name.endswith(".items.parquet"):
            found[path.name] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def whole(place: Path) -> Mapping[str, object]:
    """What one process writes that nobody disturbs."""
    done = run(place, "whole")
    assert done.returncode == 0, done.stderr
    found = contents(place, "whole")
    assert len(found) == 2 * 8
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", ["2", "3"])
def test_processes_of_their_own_give_the_same_bytes(place: Path, whole: Mapping[str, object], number: str) -> None:
    (place / "heard.log").unlink(missing_ok=True)
    done = run(place, f"shared{number}", "--num-processes", number)
    assert done.returncode == 0, done.stderr
    assert contents(place, f"shared{number}") == whole
    heard = (place / "heard.log").read_text().split()
    assert len(heard) == len(set(heard)) == 6 * 68
    assert done.stderr == ""
    assert [p.name for p in (place / f"shared{number}-cache").glob("*.sqlite*")] == ["evaluations.sqlite"]


@pytest.mark.slow
def test_accelerate_launch_starts_it_too(place: Path, whole: Mapping[str, object]) -> None:
    # What a user of several machines writes; torchrun is what accelerate starts.
    launcher = [sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch", "--multi_gpu"]
    options = ["--num_processes", "2", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    done = subprocess.run(
        [*launcher, *options, "--main_process_port", "0", "-m", "squtr.harness", *command("launched")[3:]],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "ACCELERATE_USE_CPU": "true"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert contents(place, "launched") == whole


def heard_lines(place: Path) -> int:
    log = place / "heard.log"
    return log.read_bytes().count(b"\n") if log.exists() else 0


def killed_once(place: Path, chance: random.Random, *, lines: int) -> bool:
    """Start the evaluation and kill it once it has heard so many more clips (0: after some time); whether it lived."""
    goal = heard_lines(place) + lines
    with subprocess.Popen(
        command("killed"), cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        if lines:
            while process.poll() is None and heard_lines(place) < goal:
                time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.2) if lines else chance.uniform(0.5, 3))
        alive = process.poll() is None
        process.send_signal(signal.SIGKILL)
        return alive


@pytest.mark.slow
def test_killed_at_random_points_it_ends_with_the_same_bytes(place: Path, whole: Mapping[str, object]) -> None:
    (place / "heard.log").unlink(missing_ok=True)
    chance = random.Random(20)
    killed = sum(killed_once(place, chance, lines=chance.randint(1, 40)) for _ in range(KILLS - 5))
    # By now the clips are heard: these end in searching, scoring or writing, or before anything began.
    killed += sum(killed_once(place, chance, lines=0) for _ in range(5))
    done = run(place, "killed")
    assert done.returncode == 0, done.stderr
    assert contents(place, "killed") == whole
    assert killed >= KILLS - 5
    heard = (place / "heard.log").read_text().split()
    assert len(set(heard)) == 6 * 68
    # A kill costs at most the shard that was being heard.
    assert len(heard) - len(set(heard)) <= killed * 64


@pytest.mark.slow
def test_a_worker_that_dies_stops_the_run_with_a_sentence_and_it_continues(
    place: Path, whole: Mapping[str, object]
) -> None:
    done = run(place, "died", "--num-processes", "2", DIE_ON_RANK="1")
    assert done.returncode == 1
    assert "process 1 of 2 was ended by SIGKILL" in done.stderr
    assert "continue" in done.stderr
    assert "Traceback" not in done.stderr
    assert run(place, "died").returncode == 0
    assert contents(place, "died") == whole


@pytest.mark.slow
def test_what_fails_in_every_process_is_said_once(place: Path) -> None:
    done = run(place, "raised", "--num-processes", "2", "--configs", "en_clean", RAISE="1")
    assert done.returncode == 1
    assert done.stderr.count("not today") == 1
    assert "Traceback" not in done.stderr
