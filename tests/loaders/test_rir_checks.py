"""What is an impulse response, and what is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, SqutrWarning
from squtr.harness.cli import main
from squtr.loaders.banks import load_noise_bank, load_rir_bank
from squtr.loaders.blocks import render_rows
from squtr.loaders.recipe import open_recipe
from squtr.loaders.records import Samples
from squtr.loaders.rir_checks import check_is_rir, cut_reason
from squtr.loaders.sources import load_source

from .rirs_for_tests import make_speech

RATE = 16_000
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def decay(rt60_s: float, length_s: float, *, drr_db: float | None = None, delay_s: float = 0.0) -> Samples:
    rng = np.random.default_rng(round(1000 * rt60_s + length_s))
    time = np.arange(int(length_s * RATE)) / RATE
    tail = rng.standard_normal(time.size) * 10.0 ** (-3.0 * time / rt60_s)
    if drr_db is not None:
        tail *= 10.0 ** (-drr_db / 20.0) / np.sqrt(np.square(tail).sum())
        tail[0] += 1.0
    return np.concatenate([np.zeros(int(delay_s * RATE)), tail]).astype(np.float32)


@pytest.mark.parametrize("rt60_s", [0.1, 0.4, 1.5, 4.0, 10.0])
@pytest.mark.parametrize("share", [1.0, 0.34, 0.17])
@pytest.mark.parametrize("drr_db", [None, -10.0, 0.0, 20.0])
@pytest.mark.parametrize("delay_s", [0.0, 0.3])
def test_what_decays_is_a_response(rt60_s: float, share: float, drr_db: float | None, delay_s: float) -> None:
    rir = decay(rt60_s, rt60_s * share, drr_db=drr_db, delay_s=delay_s)
    assert check_is_rir(rir, "it", RATE) is rir


def test_a_single_impulse_and_an_echo_are_responses() -> None:
    for places in ([100], [0], [100, 12_000]):
        rir = np.zeros(24_000, dtype=np.float32)
        rir[places] = 1.0
        rir[places[1:]] = 0.2
        assert check_is_rir(rir, "it", RATE) is rir


def test_every_simulated_room_is_one() -> None:
    bank = load_rir_bank("simulated")
    for rir_id in bank.rirs():
        assert not cut_reason(check_is_rir(bank.read(rir_id), rir_id, 24_000), 24_000)


def test_speech_and_noise_are_none() -> None:
    source, bank = load_source("mini"), load_noise_bank("synthetic")
    clips = [source.speech(query).samples for subset in source.subsets for query in source.queries(subset)[::9]]
    clips += [bank.read(info.id) for info in bank.noises()[::4]]
    clips += [np.sin(np.arange(24_000) / 7.0).astype(np.float32)]
    for clip in clips:
        with pytest.raises(AudioError, match="'it' is no impulse response"):
            check_is_rir(clip, "'it'", 24_000)


@pytest.mark.skipif(not SHARED.exists(), reason="real recordings are not here")
def test_on_real_recordings() -> None:
    for folder, fits in (("rir", True), ("noise", False), ("speech", False)):
        files = [path for path in sorted((SHARED / folder).rglob("*")) if path.suffix in {".wav", ".flac", ".ogg"}]
        assert files
        for path in files:
            samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
            try:
                check_is_rir(np.ascontiguousarray(samples[:, 0]), path.name, rate)
                assert fits, path
            except AudioError:
                assert not fits, path


def test_what_was_cut_is_said() -> None:
    whole = decay(0.5, 0.6, drr_db=0.0, delay_s=0.01)
    assert not cut_reason(whole, RATE)
    assert not cut_reason(decay(0.5, 0.6, drr_db=10.0), RATE)
    assert "ends less than 15 dB" in cut_reason(decay(3.0, 0.5, delay_s=0.01, drr_db=-10.0), RATE)
    window = np.hanning(41).astype(np.float32)
    begun = np.concatenate([window[12:], 0.05 * decay(0.4, 0.5)])
    assert cut_reason(begun, RATE) == "begins inside its direct sound"
    assert not cut_reason(np.concatenate([window, 0.05 * decay(0.4, 0.5)]), RATE)


@pytest.fixture
def rooms(tmp_path: Path) -> Path:
    folder = tmp_path / "rooms"
    folder.mkdir()
    noise = np.random.default_rng(0).standard_normal(3 * RATE) * 0.1
    for name, samples in (("hall", decay(0.5, 0.6)), ("street", noise), ("cafe", noise[::-1])):
        soundfile.write(folder / f"{name}.wav", samples * 0.5, RATE)
    return folder


def test_noise_among_rirs_is_refused_by_name_everywhere(
    rooms: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    speech = f"recorded:{make_speech(tmp_path / 'speech', 12)}?language=en"
    with pytest.raises(AudioError, match=r"(?s)2 faults.*'cafe' of rooms is no.*'street' of rooms is no"):
        open_recipe(speech, conditions=["reverb"], rirs=str(rooms), stratify="rt60")
    recipe = open_recipe(speech, conditions=["reverb"], rirs=str(rooms), sample_rate=RATE)
    subset = recipe.recipe.subsets[0][0]
    with pytest.raises(AudioError, match="is no impulse response"):
        list(render_rows(recipe, recipe.condition("reverb"), recipe.rows(subset, "reverb")))
    clip = str(next((tmp_path / "speech").glob("*.flac")))
    for command in (
        ["rir", str(rooms / "street.wav")],
        ["reverb", clip, str(rooms / "street.wav"), "--out", str(tmp_path / "wet.wav")],
    ):
        assert main(command) == 1
        assert "street.wav is no impulse response" in capsys.readouterr().err
    assert not (tmp_path / "wet.wav").exists()


def test_a_cut_response_is_warned_of_once(tmp_path: Path) -> None:
    folder = tmp_path / "rooms"
    folder.mkdir()
    for number in range(3):
        soundfile.write(folder / f"r{number}.wav", decay(3.0 + number / 5, 0.5, drr_db=-10.0, delay_s=0.01) * 0.3, RATE)
    recipe = open_recipe(
        f"recorded:{make_speech(tmp_path / 'speech', 8)}?language=en",
        conditions=["reverb"],
        rirs=str(folder),
        sample_rate=RATE,
    )
    subset = recipe.recipe.subsets[0][0]
    with pytest.warns(SqutrWarning, match="ends less than 15 dB") as told:
        list(render_rows(recipe, recipe.condition("reverb"), recipe.rows(subset, "reverb")))
    assert len(told) == 1
