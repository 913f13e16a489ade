"""Recognition on the command line: evaluate in several processes, kill, continue, compare, report, own recordings."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from squtr.harness.cli import main
from squtr.harness.results.envelope import read_runs

from ..loaders.rirs_for_tests import make_speech
from .recognition_runs_for_tests import build_data, by_config

MODEL = '''
"""A transcriber that draws words from the audio, slowly, and logs every clip in a file."""
import hashlib, time
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
            with open("transcribed.log", "a") as log:
                log.write(key + chr(10))
            found.append(Transcript(" ".join(WORDS[int(c, 16) % 11] for c in key[:3]), seconds=0.01))
        return found
'''
SLOW = "class:slow_transcriber:Slow"
UTTERANCES, PAIRS = 48, 96
LOG = "transcribed.log"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with utterances in two rooms each, and a user's model."""
    folder = tmp_path_factory.mktemp("recognition_cli")
    build_data(folder, count=60, rirs=10)
    (folder / "slow_transcriber.py").write_text(MODEL)
    return folder


def command(name: str, *options: str) -> list[str]:
    given = ["evaluate", SLOW, "--data", "data", "--out", f"{name}-run", "--cache", f"{name}-cache", "--no-self-check"]
    given += ["--resamples", "50", "--permutations", "100", "--samples", "1", "--normalizer", "default"]
    return [sys.executable, "-m", "squtr", *given, *options]


def run(place: Path, name: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(name, *options), cwd=place, capture_output=True, text=True, check=False, timeout=300)


def contents(folder: Path) -> Mapping[str, object]:
    """The files of a run: the records' bytes, and the results without what depends on the clock."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*.*")):
        key = path.relative_to(folder).as_posix()
        if path.parts[-3] == "results" and path.suffix == ".json":
            content = json.loads(path.read_text())
            del content["timing"], content["details"]["front_end_cost"]
            found[key] = content
        elif not path.name.endswith(".seconds.parquet") and ("results" in path.parts or "samples" in path.parts):
            found[key] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def whole(place: Path) -> Mapping[str, object]:
    """What one process writes that nobody disturbs."""
    (place / LOG).unlink(missing_ok=True)
    done = run(place, "whole", "--front-end", "spectral-gate")
    assert done.returncode == 0, done.stderr
    assert "slow" in done.stdout
    assert "squtr report whole-run" in done.stdout
    found = contents(place / "whole-run")
    systems = ("slow", "spectral-gate-slow")
    kinds = ("json", "items.parquet")
    names = {f"results/{s}/en_{c}.{kind}" for s in systems for c in ("clean", "reverb") for kind in kinds}
    assert names <= set(found)
    clips = (place / LOG).read_text().split()
    # With a front end and without.
    assert len(clips) == len(set(clips)) == 2 * (UTTERANCES + PAIRS)
    return found


@pytest.mark.slow
def test_several_processes_give_the_same_bytes(place: Path, whole: Mapping[str, object]) -> None:
    (place / LOG).unlink(missing_ok=True)
    done = run(place, "shared", "--front-end", "spectral-gate", "--num-processes", "2")
    assert done.returncode == 0, done.stderr
    assert contents(place / "shared-run") == whole
    clips = (place / LOG).read_text().split()
    assert len(clips) == len(set(clips)) == 2 * (UTTERANCES + PAIRS)


@pytest.mark.slow
def test_killed_at_several_points_it_ends_with_the_same_bytes(place: Path, whole: Mapping[str, object]) -> None:
    log = place / LOG
    log.unlink(missing_ok=True)

    def lines() -> int:
        return log.read_bytes().count(b"\n") if log.exists() else 0

    killed = 0
    for more in (5, 70, 40):
        goal = lines() + more
        with subprocess.Popen(
            command("killed", "--front-end", "spectral-gate"),
            cwd=place,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            while process.poll() is None and lines() < goal:
                time.sleep(0.01)
            killed += process.poll() is None
            process.send_signal(signal.SIGKILL)
    assert killed == 3
    done = run(place, "killed", "--front-end", "spectral-gate")
    assert done.returncode == 0, done.stderr
    assert contents(place / "killed-run") == whole
    clips = log.read_text().split()
    # What was transcribed since the last batch that was stored is lost, no more.
    assert len(clips) - len(set(clips)) <= killed * 64


def test_two_systems_are_compared_by_utterance(
    place: Path, whole: Mapping[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    results = place / "whole-run" / "results"
    sides = [str(results / "spectral-gate-slow"), str(results / "slow")]
    assert main(["compare", *sides, "--metrics", "delta_wer", "wer", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["comparisons"]
    found = {(row["config"], row["metric"]): row for row in rows}
    record = by_config(read_runs(place / "whole-run"), "spectral gate | slow")["en_reverb"]
    loss = record.result.losses["no-front-end"]["wer"].absolute
    row = found["en_reverb", "wer"]
    assert row["difference"] == pytest.approx(loss.value)
    assert row["n"] == PAIRS
    change = found["en_reverb", "delta_wer"]
    assert change["difference"] == pytest.approx(record.result.details["loss_change"]["wer"]["absolute"]["value"])
    # Drawn by utterance, as the results themselves are.
    assert main(["compare", *sides, "--metrics", "wer", "--resamples", "50", "--json"]) == 0
    again = {row["config"]: row for row in json.loads(capsys.readouterr().out)["comparisons"]}["en_reverb"]["interval"]
    assert again["low"] == pytest.approx(loss.low)
    assert main(["compare", str(place / "whole-run"), sides[0]]) == 2
    assert "holds 2 systems" in capsys.readouterr().err


def test_the_report_of_a_run(place: Path, whole: Mapping[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(place / "whole-run"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert "spectral gate | slow" in Path(facts["report"]).read_text(encoding="utf-8")
    assert {one["system"] for one in facts["robustness"]} == {"slow", "spectral gate | slow"}


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["whisper-bass", "--data", "data"], 2, "Did you mean 'whisper-base'"),
        ([SLOW, "--data", "nowhere"], 1, "nowhere does not exist"),
        ([SLOW, "--data", "data", "--split", "tset"], 2, "Did you mean 'test'"),
        ([SLOW, "--data", "data", "--configs", "en_reverv"], 2, "Did you mean 'en_reverb'"),
        ([SLOW, "--data", "data", "--option", "beam"], 2, "NAME=VALUE"),
        ([SLOW, "--data", "data", "--option", "beam=5"], 2, "Did you mean 'beam_size'"),
        (["whisper-base", "--data", "data", "--preset", "rir"], 2, "unknown preset"),
        ([SLOW, "--data", "data", "--normalizer", "wisper"], 2, "whisper"),
        ([SLOW, "--data", "data", "--depth", "10"], 2, "--depth does not apply"),
        (["whisper-base + bm25", "--data", "data"], 2, "takes the transcriber alone"),
    ],
)
def test_usage(
    place: Path,
    arguments: list[str],
    status: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    assert main(["evaluate", *arguments, "--out", str(tmp_path)]) == status
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1


def test_json_and_options(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(place)
    given = command("json", "--json", "--limit", "6", "--option", "beam_size=4", "--no-cache")[3:]
    given[given.index("json-run")] = str(tmp_path / "run")
    cached = given.index("--cache")
    del given[cached : cached + 2]
    assert main(given) == 0
    results = json.loads(capsys.readouterr().out)
    assert {result["data"]["config"] for result in results} == {"en_clean", "en_reverb"}
    assert all(one["system"]["components"]["transcriber"]["settings"]["beam_size"] == 4 for one in results)
    assert all(one["data"]["partial"] for one in results)
    assert (tmp_path / "run" / "partial-first-6" / "results" / "slow" / "en_reverb.json").is_file()


@pytest.mark.slow
def test_the_commands_that_a_build_prints(tmp_path: Path) -> None:
    """A user's own recordings: what is printed is executed as it is, only the transcriber is a smaller one."""
    make_speech(tmp_path / "speech", 6)
    (tmp_path / "slow_transcriber.py").write_text(MODEL)

    def squtr(*arguments: str) -> str:
        line = [sys.executable, "-m", "squtr", *arguments]
        done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    conditions = ["clean", "snr_0", "reverb"]
    lines = squtr("build", "--source", "recorded:speech", "--conditions", *conditions, "--out", "own").splitlines()
    printed = {head: tail for head, _, tail in (line.partition(": ") for line in lines)}
    load = f"import datasets; print({printed['Load']}.num_rows)"
    loaded = subprocess.run([sys.executable, "-c", load], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["6"]
    program, *arguments = shlex.split(printed["Evaluate"])
    assert (program, arguments[:2]) == ("squtr", ["evaluate", "whisper-base"])
    arguments[1] = SLOW
    told = squtr(*arguments, "--no-self-check")
    runs = by_config(read_runs(tmp_path / arguments[arguments.index("--out") + 1]), "slow")
    assert set(runs) == {"en_clean", "en_snr_0", "en_reverb"}
    assert {run.result.task for run in runs.values()} == {"recognition"}
    assert set(runs["en_reverb"].result.losses) == {"clean"}
    report = next(line for line in told.splitlines() if "squtr report" in line)
    squtr(*shlex.split(report.partition("squtr ")[2]))
    assert list(tmp_path.rglob("report.html"))
    assert "own" in squtr("doctor", "own")
