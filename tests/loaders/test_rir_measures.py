import math
import os
from pathlib import Path

import numpy as np
import pytest

from squtr.errors import AudioError
from squtr.loaders.audio import decode_audio, resample
from squtr.loaders.records import SAMPLE_RATE, Samples
from squtr.loaders.rir_measures import measure_rir


def decay(seed: int, rt60_s: float, share: float = 1.0, floor_db: float | None = None, lead: int = 0) -> Samples:
    """Noise that decays by 60 dB in `rt60_s`, `share` of that long, over a noise floor that goes on for 0.3 s."""
    rng = np.random.default_rng(seed)
    length = int(share * rt60_s * SAMPLE_RATE)
    out = rng.standard_normal(length) * 10.0 ** (-3.0 * np.arange(length) / SAMPLE_RATE / rt60_s)
    if floor_db is not None:
        out = np.concatenate([out, np.zeros(int(0.3 * SAMPLE_RATE))])
        out += 10.0 ** (floor_db / 20.0) * rng.standard_normal(out.size)
    # The first sample is drawn like all others and may be small; the direct path is where the decay begins.
    out[0] = 1.0
    return np.concatenate([np.zeros(lead), out]).astype(np.float32)


@pytest.mark.parametrize("rt60_s", [0.25, 0.4, 0.8, 1.2, 2.5])
@pytest.mark.parametrize(("share", "floor_db"), [(1.0, None), (1.5, None), (1.2, -70.0), (1.0, -50.0), (1.0, -42.0)])
def test_the_reverberation_time_of_decaying_noise(rt60_s, share, floor_db):
    for seed in range(3):
        measures = measure_rir(decay(seed, rt60_s, share, floor_db), "r")
        assert measures.rt60_s == pytest.approx(rt60_s, rel=0.05)
        assert measures.edt_s == pytest.approx(rt60_s, rel=0.12)
        assert "rt60_s" not in measures.reasons


def test_the_range_decides_between_t30_and_t20():
    assert measure_rir(decay(0, 0.8, 1.2, -60.0), "r").rt60_method == "T30"
    assert measure_rir(decay(0, 0.8, 1.2, -42.0), "r").rt60_method == "T20"


def test_clarity_of_an_ideal_decay_follows_from_its_reverberation_time():
    # Energy falls as exp(-kt): early over late is exp(k·t) − 1.
    for rt60_s in (0.4, 1.0):
        k = 6.0 * math.log(10.0) / rt60_s
        found = np.array([[m.c50_db, m.c80_db] for m in (measure_rir(decay(s, rt60_s), "r") for s in range(5))])
        for column, seconds in ((0, 0.05), (1, 0.08)):
            expected = 10.0 * math.log10(math.exp(k * seconds) - 1.0)
            assert found[:, column].mean() == pytest.approx(expected, abs=0.4)


def test_direct_to_reverberant_ratio_of_a_known_response():
    response = decay(1, 0.5)
    late = float(np.square(response[61:].astype(np.float64)).sum())
    response[:61] = 0.0
    response[0] = math.sqrt(late * 10.0 ** (6.0 / 10.0))
    measures = measure_rir(response, "r")
    assert measures.drr_db == pytest.approx(6.0, abs=0.05)
    assert measures.rt60_s == pytest.approx(0.5, rel=0.08)


def test_leading_zeros_change_nothing_but_the_onset():
    plain, delayed = measure_rir(decay(2, 0.6), "r"), measure_rir(decay(2, 0.6, lead=3000), "r")
    assert delayed.onset_samples == plain.onset_samples + 3000
    assert delayed.rt60_s == plain.rt60_s
    assert delayed.c50_db == plain.c50_db


def test_the_scale_changes_nothing():
    response = decay(3, 0.6)
    loud, soft = measure_rir(response * np.float32(1000), "r"), measure_rir(response * np.float32(0.001), "r")
    assert loud.rt60_s == pytest.approx(soft.rt60_s, rel=1e-4)
    assert loud.drr_db == pytest.approx(soft.drr_db, abs=1e-3)


def test_a_pulse_has_no_reverberation():
    pulse = np.zeros(24_000, dtype=np.float32)
    pulse[700] = 1.0
    measures = measure_rir(pulse, "r")
    assert measures.onset_samples == 700
    for name in ("rt60_s", "edt_s", "drr_db", "c50_db", "c80_db"):
        assert math.isnan(getattr(measures, name))
        assert measures.reasons[name]
    assert measures.rt60_method == ""


def test_two_pulses_are_not_a_decay():
    pulses = np.zeros(24_000, dtype=np.float32)
    pulses[[0, 2400]] = 1.0, 0.01
    measures = measure_rir(pulses, "r")
    assert math.isnan(measures.rt60_s)
    assert measures.c50_db == pytest.approx(40.0, abs=0.01)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("padding", [0, 24_000])
def test_a_response_that_is_too_short_has_no_reverberation_time(share, padding):
    response = np.concatenate([decay(4, 1.0, share), np.zeros(padding, dtype=np.float32)])
    measures = measure_rir(response, "r")
    assert math.isnan(measures.rt60_s)
    assert "dB" in measures.reasons["rt60_s"]


@pytest.mark.parametrize("share", [0.3, 0.4])
def test_a_response_cut_off_above_its_noise_floor_is_noticed(share):
    measures = measure_rir(decay(5, 1.0, share, -70.0), "r")
    assert math.isnan(measures.rt60_s)
    assert "cut" in measures.reasons["rt60_s"]


def test_stationary_noise_has_no_reverberation_time():
    noise = np.random.default_rng(0).standard_normal(24_000).astype(np.float32)
    measures = measure_rir(noise, "r")
    assert math.isnan(measures.rt60_s)


@pytest.mark.parametrize("length", [2, 3, 10, 100, 1000])
def test_very_short_responses_give_reasons_not_numbers(length):
    response = np.linspace(1.0, 0.1, length).astype(np.float32)
    measures = measure_rir(response, "r")
    assert math.isnan(measures.rt60_s)
    assert measures.reasons["rt60_s"]


@pytest.mark.parametrize(
    "response", [np.zeros(100), np.zeros(0), np.array([0.0, np.nan]), np.full(10, 0.3), np.ones((9, 2))]
)
def test_an_unusable_response_is_refused_by_id(response):
    with pytest.raises(AudioError, match="hall_3"):
        measure_rir(response.astype(np.float32), "hall_3")


@pytest.mark.skipif("SQUTR_SHARED" not in os.environ, reason="needs the measured rooms")
def test_measured_rooms_agree_with_their_published_values():
    folder = Path(os.environ["SQUTR_SHARED"]) / "data" / "rir"
    rows = [line.split("|")[1:] for line in (folder / "SOURCES.md").read_text().splitlines() if ".wav|" in line]
    compared = 0
    for row in rows:
        path = folder / row[0]
        if not path.exists():
            continue
        samples, rate = decode_audio(path, row[0])
        measures = measure_rir(resample(samples, rate), row[0])
        assert measures.drr_db == pytest.approx(float(row[4]), abs=1.0)
        # Published from T20, ours from T30: decays are seldom perfectly straight.
        assert measures.rt60_s == pytest.approx(float(row[3]), rel=0.45)
        compared += 1
    assert compared
