"""`squtr mix`, `reverb` and `room`: one file at a time, with the arithmetic of a build."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from squtr.harness.cli import main
from squtr.loaders.audio import resample
from squtr.loaders.banks import load_noise_bank, load_rir_bank
from squtr.loaders.conditions import parse_condition
from squtr.loaders.conditions.step import StepContext
from squtr.loaders.records import CleanSpeech, Query
from squtr.loaders.render import render
from squtr.loaders.rir_measures import measure_rir

RATE = 24_000
Signal = NDArray[np.float64]


def speech(seconds: float = 2.0, rate: int = RATE, level: float = 0.2) -> Signal:
    """Bursts with pauses between them, and half a second of silence at each end."""
    time = np.arange(round(seconds * rate)) / rate
    bursts = np.random.default_rng(1).standard_normal(time.size) * (np.sin(2 * np.pi * 3 * time) > -0.3)
    bursts[: rate // 2] = bursts[-rate // 2 :] = 0.0
    return bursts * level


def noise(seconds: float = 5.0, rate: int = RATE, seed: int = 2) -> Signal:
    return np.random.default_rng(seed).standard_normal(round(seconds * rate)) * 0.1


def decay(rt60_s: float = 0.4, rate: int = RATE, delay: int = 60) -> Signal:
    count = round(1.2 * rt60_s * rate)
    tail = np.random.default_rng(3).standard_normal(count) * 10.0 ** (-3.0 * np.arange(count) / rate / rt60_s)
    tail[0] = 8.0
    return np.concatenate([np.zeros(delay), tail]) * 0.05


def write(path: Path, samples: Signal, rate: int = RATE, subtype: str = "FLOAT") -> str:
    soundfile.write(path, samples, rate, subtype=subtype)
    return str(path)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    return {
        "speech": write(tmp_path / "speech.wav", speech()),
        "noise": write(tmp_path / "noise.wav", noise()),
        "rir": write(tmp_path / "rir.wav", decay()),
        "out": str(tmp_path / "out.wav"),
        "dir": str(tmp_path),
    }


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    status = main([*arguments, "--json"])
    captured = capsys.readouterr()
    assert status == 0, captured.err
    said: dict[str, Any] = json.loads(captured.out)
    return said


def refuse(capsys: pytest.CaptureFixture[str], status: int, *arguments: str) -> str:
    assert main(list(arguments)) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("squtr: ")
    assert captured.err.count("\n") == 1
    return captured.err


def level_db(signal: Signal, other: Signal) -> float:
    return 10.0 * math.log10(float(np.square(signal).mean() / np.square(other).mean()))


@pytest.mark.parametrize("snr_db", [-10.0, 0.0, 20.0])
@pytest.mark.parametrize("level", ["whole", "active"])
def test_mix_reaches_the_level_in_the_file(
    files: dict[str, str], capsys: pytest.CaptureFixture[str], snr_db: float, level: str
) -> None:
    said = ask(
        capsys, "mix", files["speech"], files["noise"], "--snr", str(snr_db), "--level", level, "--out", files["out"]
    )
    mixed, rate = soundfile.read(files["out"])
    clean = soundfile.read(files["speech"])[0] * 10 ** (said["gain_db"] / 20)
    assert (rate, mixed.size, said["out"]["samples"]) == (RATE, clean.size, clean.size)
    assert soundfile.info(files["out"]).subtype == "PCM_16"
    assert np.abs(mixed).max() <= 0.9 + 1 / 32768
    start, stop = round(said["active_start_s"] * RATE), round(said["active_stop_s"] * RATE)
    assert level_db(clean, mixed - clean) == pytest.approx(said["snr_db"], abs=0.01)
    assert level_db(clean[start:stop], (mixed - clean)[start:stop]) == pytest.approx(said["snr_active_db"], abs=0.01)
    assert said["snr_db" if level == "whole" else "snr_active_db"] == pytest.approx(snr_db, abs=0.001)
    # The noise that it names, from where it says.
    at = round(said["noise_offset_s"] * RATE)
    used = soundfile.read(files["noise"])[0][at : at + clean.size]
    assert np.abs(mixed - clean - said["noise_gain"] * 10 ** (said["gain_db"] / 20) * used).max() < 1e-3
    assert said["asked_snr_db"] == snr_db
    assert not said["noise_wraps"]


def test_a_file_is_mixed_as_a_build_mixes_it(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bank").mkdir()
    (tmp_path / "bank" / "noise.wav").write_bytes(Path(files["noise"]).read_bytes())
    (tmp_path / "rooms").mkdir()
    (tmp_path / "rooms" / "rir.wav").write_bytes(Path(files["rir"]).read_bytes())
    context = StepContext(load_noise_bank(tmp_path / "bank"), load_rir_bank(tmp_path / "rooms"), seed=3)
    clip = CleanSpeech(soundfile.read(files["speech"], dtype="float32")[0])
    row = render(Query("q", "s", "en", ""), clip, parse_condition("snr_5"), context)
    said = ask(
        capsys,
        *("mix", files["speech"], files["noise"], "--snr", "5", "--offset", repr(row.noise_offset_s)),
        *("--out", files["out"]),
    )
    built = soundfile.read(io.BytesIO(row.audio), dtype="int16")[0]
    assert np.array_equal(soundfile.read(files["out"], dtype="int16")[0], built)
    assert (said["gain_db"], said["snr_active_db"], said["seed"]) == (row.gain_db, row.snr_active_db, None)
    row = render(Query("q", "s", "en", ""), clip, parse_condition("reverb"), context)
    wet = str(tmp_path / "wet.flac")
    said = ask(capsys, "reverb", files["speech"], files["rir"], "--out", wet)
    assert Path(wet).read_bytes() == row.audio
    assert (said["rt60_s"], said["drr_db"], said["c50_db"]) == (row.rt60_s, row.drr_db, row.c50_db)
    assert (said["onset_samples"], said["gain_db"]) == (row.onset_samples, row.gain_db)


def test_the_seed_decides_and_names_do_not(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "another name.wav"
    other.write_bytes(Path(files["speech"]).read_bytes())
    outs = []
    for number, (source, seed) in enumerate([(files["speech"], 4), (str(other), 4), (files["speech"], 5)]):
        out = tmp_path / f"{number}.wav"
        ask(capsys, "mix", source, files["noise"], "--snr", "0", "--seed", str(seed), "--out", str(out))
        outs.append(out.read_bytes())
    assert outs[0] == outs[1] != outs[2]


def test_a_short_noise_wraps(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = write(tmp_path / "short.wav", noise(0.7))
    said = ask(capsys, "mix", files["speech"], short, "--snr", "3", "--out", files["out"])
    assert said["noise_wraps"]
    assert said["snr_db"] == pytest.approx(3.0, abs=0.001)


@pytest.mark.parametrize(("option", "expected"), [("16000", 16_000), ("keep", 8_000), ("24000", 24_000)])
def test_the_rate(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, expected: int
) -> None:
    slow = write(tmp_path / "slow.wav", speech(rate=8_000), 8_000)
    fast = write(tmp_path / "fast.wav", noise(rate=44_100), 44_100)
    said = ask(capsys, "mix", slow, fast, "--snr", "0", "--rate", option, "--out", files["out"])
    assert soundfile.info(files["out"]).samplerate == said["out"]["rate"] == expected
    assert said["out"]["samples"] == 2 * expected
    assert (said["speech"]["rate"], said["noise"]["rate"]) == (8_000, 44_100)
    said = ask(capsys, "reverb", slow, files["rir"], "--rate", option, "--out", files["out"])
    assert said["out"]["rate"] == expected
    # Onset and times are those of the resampled response.
    assert said["onset_samples"] == pytest.approx(60 * expected / RATE, abs=8)
    assert said["rt60_s"] == pytest.approx(0.4, rel=0.1)


@pytest.mark.parametrize("tail", [True, False])
def test_reverb_is_aligned_with_and_without_its_tail(
    files: dict[str, str], capsys: pytest.CaptureFixture[str], tail: bool
) -> None:
    said = ask(
        capsys, "reverb", files["speech"], files["rir"], "--keep-tail" if tail else "--no-tail", "--out", files["out"]
    )
    wet, dry = soundfile.read(files["out"])[0], soundfile.read(files["speech"])[0]
    full = np.convolve(dry, soundfile.read(files["rir"])[0])
    length = dry.size + (decay().size - 61 if tail else 0)
    assert (wet.size, said["keep_tail"], said["onset_samples"]) == (length, tail, 60)
    expected = full[60 : 60 + length]
    scale = float(wet @ expected / (expected @ expected))
    assert np.abs(wet - scale * expected).max() < 2 / 32768
    assert np.abs(wet).max() <= 0.9 + 1 / 32768


def test_room(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = ask(capsys, "rir", files["rir"])
    measures = measure_rir(soundfile.read(files["rir"], dtype="float32")[0], "x")
    for name in ("rt60_s", "edt_s", "drr_db", "c50_db", "c80_db", "onset_samples", "rt60_method"):
        assert said[name] == getattr(measures, name)
    assert said["reasons"] == {}
    assert main(["rir", files["rir"]]) == 0
    shown = capsys.readouterr().out
    assert f"{measures.rt60_s:.2f} s" in shown
    assert "sample 60" in shown
    # A pulse has no reverberation: null and a reason, never a number.
    pulse = np.zeros(2400)
    pulse[100] = 0.5
    said = ask(capsys, "rir", write(tmp_path / "pulse.wav", pulse))
    assert said["rt60_s"] is None
    assert said["reasons"]["rt60_s"]
    assert main(["rir", str(tmp_path / "pulse.wav")]) == 0
    assert "not measurable: " in capsys.readouterr().out


def test_room_at_another_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "r.wav", decay(0.5, 48_000), 48_000)
    kept, stored = ask(capsys, "rir", path, "--rate", "keep"), ask(capsys, "rir", path)
    assert (kept["measured_at_rate"], stored["measured_at_rate"]) == (48_000, 24_000)
    assert kept["onset_samples"] == 60
    assert stored["onset_samples"] == pytest.approx(30, abs=8)
    resampled = resample(soundfile.read(path, dtype="float32")[0], 48_000)
    assert stored["rt60_s"] == measure_rir(resampled, "r").rt60_s


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (np.zeros(24_000), "is silent"),
        (np.full(24_000, 0.3), "is a constant 0.3"),
        (np.r_[noise(1.0), np.nan], "NaN or infinity at sample 24000"),
        (np.r_[np.inf, noise(1.0)], "NaN or infinity at sample 0"),
        (np.zeros(0), "has no samples"),
        (np.stack([noise(1.0), -noise(1.0)], axis=1), "has 2 channels"),
    ],
)
@pytest.mark.parametrize("place", ["speech", "noise", "rir"])
def test_what_cannot_be_used_is_refused_by_name(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], samples: Signal, said: str, place: str
) -> None:
    bad = write(tmp_path / "bad.wav", samples)
    commands = {
        "speech": [("mix", bad, files["noise"], "--snr", "0"), ("reverb", bad, files["rir"])],
        "noise": [("mix", files["speech"], bad, "--snr", "0")],
        "rir": [("reverb", files["speech"], bad)],
    }
    for command in commands[place]:
        error = refuse(capsys, 1, *command, "--out", files["out"])
        assert said in error
        assert "bad.wav" in error
    if place == "rir":
        assert said in refuse(capsys, 1, "rir", bad)
    assert not Path(files["out"]).exists()


def test_a_channel_is_chosen(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cancels = write(tmp_path / "two.wav", np.stack([noise(), -noise()], axis=1))
    outs = [str(tmp_path / name) for name in ("one.wav", "two-0.wav")]
    ask(capsys, "mix", files["speech"], files["noise"], "--snr", "0", "--out", outs[0])
    ask(capsys, "mix", files["speech"], cancels, "--snr", "0", "--channel", "0", "--out", outs[1])
    assert Path(outs[0]).read_bytes() == Path(outs[1]).read_bytes()
    assert "none numbered 2" in refuse(
        capsys, 1, "mix", files["speech"], cancels, "--snr", "0", "--channel", "2", "--out", files["out"]
    )


def test_nothing_ever_clips(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loud = write(tmp_path / "loud.wav", speech(level=3.0))
    for arguments in (("mix", loud, files["noise"], "--snr", "-20"), ("reverb", loud, files["rir"])):
        said = ask(capsys, *arguments, "--out", files["out"])
        assert np.abs(soundfile.read(files["out"])[0]).max() == pytest.approx(0.9, abs=1e-4)
        assert said["gain_db"] < 0


def test_wrong_calls(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mix = ("mix", files["speech"], files["noise"], "--snr", "0")
    assert ".wav or .flac" in refuse(capsys, 2, *mix, "--out", str(tmp_path / "out.mp3"))
    assert "one of the inputs" in refuse(capsys, 2, *mix, "--out", files["speech"])
    assert "whole" in refuse(capsys, 2, *mix, "--out", files["out"], "--level", "hole")
    assert "'fast'" in refuse(capsys, 2, *mix, "--out", files["out"], "--rate", "fast")
    assert "out of range" in refuse(capsys, 2, *mix, "--out", files["out"], "--rate", "10")
    assert "lies outside" in refuse(capsys, 2, *mix, "--out", files["out"], "--offset", "9")
    assert "out of range" in refuse(capsys, 2, *mix[:-1], "1000", "--out", files["out"])
    assert "missing.wav does not exist" in refuse(capsys, 1, "rir", str(tmp_path / "missing.wav"))
    (tmp_path / "text.wav").write_text("no sound")
    assert "text.wav cannot be read" in refuse(capsys, 1, "rir", str(tmp_path / "text.wav"))
    # Where the noise would be lost in rounding, nothing is called noisy.
    quiet = write(tmp_path / "quiet.wav", speech(level=0.001))
    assert "16 bits" in refuse(capsys, 1, "mix", quiet, files["noise"], "--snr", "80", "--out", files["out"])
    assert not Path(files["out"]).exists()
    assert list(Path(files["dir"]).glob(".*")) == []


def test_people_can_read_it(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mix", files["speech"], files["noise"], "--snr", "0", "--out", files["out"]]) == 0
    assert "SNR 0.00 dB over the whole clip" in capsys.readouterr().out
    assert main(["reverb", files["speech"], files["rir"], "--out", files["out"]]) == 0
    assert "RT60 0.4" in capsys.readouterr().out
