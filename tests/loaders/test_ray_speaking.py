"""Synthesizers as actors on a local Ray with two workers: the same bytes, resumed, errors as they were raised."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from squtr.errors import UnknownNameError, UsageError
from squtr.loaders.ray_map import RayMap
from squtr.loaders.synthesis.ray_speaking import load_speech_engine
from squtr.loaders.synthesis.speech_folder import SpeechFolder
from squtr.loaders.synthesis.synthesizing import synthesize

from .ray_for_tests import TEXTS, HummingSynthesizer, speaking

pytest.importorskip("ray")

ROOT = Path(__file__).parents[2]


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.slow
def test_two_actors_give_the_same_bytes(tmp_path: Path) -> None:
    local = synthesize(TEXTS, SpeechFolder(tmp_path / "local"), speaking(HummingSynthesizer()))
    assert len({row.tts_error_rate for row in local}) > 2
    synthesize(TEXTS[:6], SpeechFolder(tmp_path / "begun"), speaking(HummingSynthesizer()))
    notes = tmp_path / "notes"
    # In a process of its own: Ray's threads and signal handlers would stay with the other tests.
    done = subprocess.run(
        [sys.executable, "-m", "tests.loaders.ray_for_tests", tmp_path / "whole", tmp_path / "begun", notes],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    expected = files(tmp_path / "local")
    assert len(expected) == len(TEXTS) - 1 + 2
    assert files(tmp_path / "whole") == expected
    assert files(tmp_path / "begun") == expected
    assert f"told {len(TEXTS)} driver spoke False" in done.stdout
    # Once per actor, though there are five batches.
    assert 1 <= len(notes.read_text().split()) <= 2
    assert "came back: the weights of 'hum' are missing. Fetch them." in done.stdout
    assert "refused: the Ray cluster has 0 GPUs, an actor asks for 1." in done.stdout


def test_an_address_where_nothing_listens_is_refused_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"no Ray cluster answers at '{address}'"):
            list(RayMap(address)(list, (), [1]))
    with pytest.raises(UsageError, match="Ray does not start at 'nonsense'"):
        list(RayMap("nonsense")(list, (), [1]))


def test_wrong_choices_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'ray'"):
        load_speech_engine("rey")
    with pytest.raises(UsageError, match="only Ray has actors"):
        load_speech_engine("here", actors=2)
    with pytest.raises(UsageError, match="-1 actors"):
        load_speech_engine("ray", actors=-1)
    with pytest.raises(UsageError, match=r"cannot have 1\.5 GPUs"):
        load_speech_engine("ray", gpus_per_actor=1.5)
    with pytest.raises(UsageError, match="nan GPUs"):
        load_speech_engine("ray", gpus_per_actor=float("nan"))
