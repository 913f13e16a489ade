"""rir_mega on the command line: evaluate in any number of processes, kill, continue, compare."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from squtr.harness.cli import demo_rir_mega, main
from squtr.harness.rir_mega.results import read_records

from .rir_mega_runs_for_tests import build_data

MODEL = '''
"""A transcriber that says words made from the sound, slowly, and counts in a file."""
import hashlib, os, time
from squtr.harness.protocols import ComponentSpec, Transcript

WORDS = "one two three four five six or so small large steps".split()


class Slow:
    sample_rate = 16000

    def __init__(self, *, beam_size: int = 1) -> None:
        self.spec = ComponentSpec("transcriber", "class", "slow", revision="1", settings={"beam_size": beam_size})

    def supports(self, language):
        return True

    def transcribe(self, clips, *, language):
        found = []
        for clip in clips:
            time.sleep(0.01)
            key = hashlib.sha256(clip.tobytes()).hexdigest()
            with open("heard.log", "a") as log:
                log.write(key + chr(10))
            found.append(Transcript(" ".join(WORDS[int(c, 16) % 11] for c in key[:3]), seconds=0.01))
        return found
'''
SLOW = "class:slow_ear:Slow"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pairs of more than one shard per arm, and a user's model."""
    folder = tmp_path_factory.mktemp("rir_mega_cli")
    build_data(folder, count=90, rooms=10)
    (folder / "slow_ear.py").write_text(MODEL)
    return folder


def command(name: str, *options: str) -> list[str]:
    asked = ["evaluate", "rir_mega", SLOW, "--data", "data", "--out", f"{name}-run", "--cache", f"{name}-cache"]
    asked += ["--resamples", "50", "--permutations", "100", "--samples", "1", "--normalizer", "default"]
    return [sys.executable, "-m", "squtr", *asked, *options]


def run(place: Path, name: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(name, *options), cwd=place, capture_output=True, text=True, check=False, timeout=300)


def contents(place: Path, name: str) -> Mapping[str, object]:
    """What a run wrote: the records' bytes, and the results without what their machine took."""
    found: dict[str, object] = {}
    for path in sorted((place / f"{name}-run").rglob("*.*")):
        key = path.relative_to(place / f"{name}-run").as_posix()
        if path.name == "en_test.json":
            content = json.loads(path.read_text())
            found[key] = {k: v for k, v in content.items() if k not in ("timing", "arm_timing", "effect")}
        elif not path.name.endswith(".seconds.parquet"):
            found[key] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def whole(place: Path) -> Mapping[str, object]:
    """What one process writes that nobody disturbs."""
    (place / "heard.log").unlink(missing_ok=True)
    done = run(place, "whole", "--front-end", "spectral-gate")
    assert done.returncode == 0, done.stderr
    assert "slow" in done.stdout
    assert "Report: squtr report whole-run" in done.stdout
    found = contents(place, "whole")
    assert {"results/slow/en_test.json", "results/spectral-gate-slow/en_test.json"} <= set(found)
    heard = (place / "heard.log").read_text().split()
    # 72 utterances in two rooms each, with a front end and without.
    assert len(heard) == len(set(heard)) == 2 * (72 + 144)
    return found


@pytest.mark.slow
def test_processes_of_their_own_give_the_same_bytes(place: Path, whole: Mapping[str, object]) -> None:
    (place / "heard.log").unlink(missing_ok=True)
    done = run(place, "shared", "--front-end", "spectral-gate", "--num-processes", "2")
    assert done.returncode == 0, done.stderr
    assert contents(place, "shared") == whole
    heard = (place / "heard.log").read_text().split()
    assert len(heard) == len(set(heard)) == 2 * (72 + 144)


@pytest.mark.slow
def test_killed_at_several_points_it_ends_with_the_same_bytes(place: Path, whole: Mapping[str, object]) -> None:
    log = place / "heard.log"
    log.unlink(missing_ok=True)
    killed = 0
    for lines in (5, 70, 40, 100):
        goal = (log.read_bytes().count(b"\n") if log.exists() else 0) + lines
        with subprocess.Popen(
            command("killed", "--front-end", "spectral-gate"),
            cwd=place,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            while process.poll() is None and (log.read_bytes().count(b"\n") if log.exists() else 0) < goal:
                time.sleep(0.01)
            killed += process.poll() is None
            process.send_signal(signal.SIGKILL)
    assert killed == 4
    done = run(place, "killed", "--front-end", "spectral-gate")
    assert done.returncode == 0, done.stderr
    assert contents(place, "killed") == whole
    heard = log.read_text().split()
    assert len(heard) - len(set(heard)) <= killed * 64


@pytest.mark.slow
def test_two_recognizers_are_compared_by_utterance(
    place: Path, whole: Mapping[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    results = place / "whole-run" / "results"
    sides = [str(results / "spectral-gate-slow"), str(results / "slow" / "en_test.pairs.parquet")]
    assert main(["compare", *sides, "--metrics", "delta_wer", "reverb_wer", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    by_metric = {row["metric"]: row for row in told["comparisons"]}
    assert set(by_metric) == {"delta_wer", "reverb_wer"}
    records = {r.result.system.name: r.result for r in read_records(place / "whole-run")}
    effect = records["spectral gate | slow"].effect
    assert effect is not None
    assert by_metric["delta_wer"]["difference"] == pytest.approx(effect.delta["wer"].absolute.value)
    assert by_metric["reverb_wer"]["difference"] == pytest.approx(effect.reverb["wer"].absolute.value)
    assert by_metric["delta_wer"]["n"] == 144
    # Drawn by utterance: as the results themselves are.
    assert main(["compare", *sides, "--metrics", "reverb_wer", "--resamples", "50", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["comparisons"][0]["interval"]
    assert again["low"] == pytest.approx(effect.reverb["wer"].absolute.low)
    assert main(["compare", str(place / "whole-run"), sides[0]]) == 2
    assert "several recognizers" in capsys.readouterr().err


def test_usage(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(place)
    out = ["--out", str(tmp_path)]
    for arguments, status, said in (
        (["whisper-bass", "--data", "data", *out], 2, "Did you mean 'whisper-base'"),
        ([SLOW, "--data", "nowhere", *out], 1, "does not exist"),
        ([SLOW, "--data", "data", "--split", "tset", *out], 2, "Did you mean 'test'"),
        ([SLOW, "--data", "data", "--option", "beam", *out], 2, "NAME=VALUE"),
        ([SLOW, "--data", "data", "--option", "beam=5", *out], 2, "Did you mean 'beam_size'"),
        (["whisper-base", "--data", "data", "--preset", "rir", *out], 2, "unknown preset"),
        ([SLOW, "--data", "data", "--normalizer", "wisper", *out], 2, "whisper"),
    ):
        assert main(["evaluate", "rir_mega", *arguments]) == status, arguments
        error = capsys.readouterr().err
        assert said in error
        assert len(error.splitlines()) == 1
    with pytest.raises(SystemExit) as left:
        main(["evaluate", "rir_mega", "--help"])
    assert left.value.code == 0
    assert "squtr evaluate rir_mega whisper-tiny.en" in capsys.readouterr().out


def test_json_and_options(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(place)
    asked = [*command("json", "--json", "--limit", "6", "--option", "beam_size=4", "--no-cache")[3:]]
    asked[asked.index("json-run")] = str(tmp_path / "run")
    assert main(asked) == 0
    (result,) = json.loads(capsys.readouterr().out)
    assert result["system"]["transcriber"]["settings"]["beam_size"] == 4
    assert result["data"]["partial"] is True
    assert (tmp_path / "run" / "partial-first-6" / "results" / "slow" / "en_test.json").is_file()
    assert os.environ["SQUTR_HOME"]


@pytest.mark.slow
def test_the_demo_goes_the_whole_way(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(demo_rir_mega, "TRANSCRIBERS", (SLOW, f"other={SLOW}"))
    asked = ["demo", "--benchmark", "rir_mega", "--out", str(tmp_path / "demo"), "--minutes", "0"]
    assert main(asked) == 0
    said = capsys.readouterr()
    assert "40 pairs of clean and reverberant clips" in said.err
    assert "English, test: WER of 32 pairs, 16 utterances" in said.out
    assert "other" in said.out
    folder = tmp_path / "demo" / "rir_mega"
    assert "Speech recognition" not in (folder / "report.html").read_text(encoding="utf-8").partition("<h1>")[0]
    assert len(read_records(folder)) == 2
    # Again, it keeps the number of pairs, and what was done.
    assert main(asked) == 0
    assert "Timing the recognizers" not in capsys.readouterr().err
