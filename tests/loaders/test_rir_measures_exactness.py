"""Room measures against decays whose values are known exactly, and against another library's rooms."""

import math

import numpy as np
import pytest

from squtr.loaders.records import Samples
from squtr.loaders.rir_measures import decay_curve, measure_rir

RATE = 16_000


def ideal_decay(
    rt60_s: float, *, direct: float = 1.0, floor_db: float | None = None, seed: int = 0, length: float = 1.2
) -> Samples:
    """Random signs under an exponential: its energy decays exactly by 60 dB in `rt60_s`. `direct` is the first sample;
    the floor is white noise at `floor_db` against the decay's start, and goes on for 0.3 s."""
    rng = np.random.default_rng(seed)
    samples = int(length * rt60_s * RATE)
    out = rng.choice([-1.0, 1.0], samples) * 10.0 ** (-3.0 * np.arange(samples) / RATE / rt60_s)
    out[0] = direct
    if floor_db is not None:
        out = np.concatenate([out, np.zeros(int(0.3 * RATE))])
        out[1:] += 10.0 ** (floor_db / 20.0) * rng.standard_normal(out.size - 1)
    return np.concatenate([np.zeros(123), out]).astype(np.float32)


@pytest.mark.parametrize("rt60_s", [0.2, 0.35, 0.6, 1.0, 1.8, 3.0])
@pytest.mark.parametrize("direct", [1.0, 10.0, 30.0])
@pytest.mark.parametrize("floor_db", [None, -60.0, -55.0, -50.0, -45.0, -40.0])
def test_rt60_is_within_2_percent(rt60_s, direct, floor_db):
    for seed in range(3):
        measures = measure_rir(ideal_decay(rt60_s, direct=direct, floor_db=floor_db, seed=seed), "r", RATE)
        assert measures.rt60_s == pytest.approx(rt60_s, rel=0.02), measures
        # Against the start of the decay; a strong direct path does not lengthen what can be followed.
        assert measures.rt60_method == ("T30" if floor_db is None or floor_db <= -50.0 else measures.rt60_method)
        assert measures.onset_samples == 123


@pytest.mark.parametrize("rt60_s", [0.35, 0.6, 1.0, 1.8])
@pytest.mark.parametrize("floor_db", [None, -60.0, -45.0])
def test_edt_drr_and_clarity_of_an_ideal_decay(rt60_s, floor_db):
    measures = measure_rir(ideal_decay(rt60_s, floor_db=floor_db), "r", RATE)
    assert measures.edt_s == pytest.approx(rt60_s, rel=0.02)
    # Energy falls as exp(-kt): early over late is exp(kt) - 1.
    k = 6.0 * math.log(10.0) / rt60_s
    for value, seconds in ((measures.c50_db, 0.05), (measures.c80_db, 0.08), (measures.drr_db, 41 / RATE)):
        assert value == pytest.approx(10.0 * math.log10(math.exp(k * seconds) - 1.0), abs=0.05)


def test_a_strong_direct_path_changes_no_decay_time():
    weak, strong = (measure_rir(ideal_decay(0.8, direct=direct), "r", RATE) for direct in (1.0, 30.0))
    # The slope of the line: with its intercept, the direct path would shorten both times.
    assert strong.rt60_s == pytest.approx(weak.rt60_s, rel=0.01)
    assert strong.edt_s == pytest.approx(weak.edt_s, rel=0.01)
    assert strong.drr_db > weak.drr_db + 5.0
    assert strong.c50_db > weak.c50_db + 3.0


@pytest.mark.parametrize("floor_db", [-60.0, -50.0, -40.0])
def test_the_floor_is_cut_at_the_knee(floor_db):
    """What comes after the decay sank into noise counts for nothing, however long it goes on."""
    response = ideal_decay(0.5, floor_db=floor_db, seed=4)
    rng = np.random.default_rng(9)
    longer = np.concatenate([response, 10.0 ** (floor_db / 20.0) * rng.standard_normal(RATE)]).astype(np.float32)
    short, long = measure_rir(response, "r", RATE), measure_rir(longer, "r", RATE)
    assert long.rt60_s == pytest.approx(short.rt60_s, rel=0.01)
    assert long.c50_db == pytest.approx(short.c50_db, abs=0.05)
    assert decay_curve(longer, "r", RATE).size < decay_curve(response, "r", RATE).size + 5


@pytest.mark.parametrize(("length", "floor_db"), [(0.2, None), (0.4, None), (1.2, -25.0), (1.2, -15.0)])
def test_a_decay_that_is_too_short_has_a_reason(length, floor_db):
    measures = measure_rir(ideal_decay(0.8, length=length, floor_db=floor_db), "r", RATE)
    assert math.isnan(measures.rt60_s)
    assert measures.rt60_method == ""
    assert measures.reasons["rt60_s"]


def test_the_decay_curve_is_what_the_line_was_fitted_to():
    curve = decay_curve(ideal_decay(0.6), "r", RATE, step_s=0.02)
    assert curve[0] == 0.0
    assert np.all(np.diff(curve) < 0.0)
    assert np.diff(curve)[:15] == pytest.approx(-60.0 / 0.6 * 0.02, abs=0.05)


def simulated(rt60_s: float, size: tuple[float, float, float]) -> Samples:
    """The response of a room that pyroomacoustics designed, by Sabine's formula, and simulated by its image method."""
    pra = pytest.importorskip("pyroomacoustics")
    absorption, order = pra.inverse_sabine(rt60_s, size)
    room = pra.ShoeBox(size, fs=RATE, materials=pra.Material(absorption), max_order=order, air_absorption=False)
    room.add_source(np.array(size) * [0.3, 0.35, 0.45])
    room.add_microphone(np.array(size) * [0.66, 0.58, 0.41])
    room.compute_rir()
    response: Samples = room.rir[0][0].astype(np.float32)
    return response


@pytest.mark.parametrize("rt60_s", [0.4, 0.6, 0.8])
@pytest.mark.parametrize("size", [(4.0, 4.0, 4.0), (5.0, 4.5, 4.0), (4.2, 3.9, 3.6), (3.5, 3.3, 3.0)])
def test_simulated_rooms_have_the_reverberation_time_they_were_designed_for(rt60_s, size):
    """Where Sabine's formula holds: no side much longer than another, and walls that absorb little."""
    assert measure_rir(simulated(rt60_s, size), "r", RATE).rt60_s == pytest.approx(rt60_s, rel=0.1)


@pytest.mark.parametrize("rt60_s", [0.25, 0.6])
@pytest.mark.parametrize("size", [(4.5, 3.8, 2.6), (6.0, 5.0, 3.0), (6.0, 5.5, 5.0)])
def test_both_libraries_measure_the_same_in_the_same_response(rt60_s, size):
    pra = pytest.importorskip("pyroomacoustics")
    response = simulated(rt60_s, size)
    theirs = pra.experimental.measure_rt60(response, fs=RATE, decay_db=30)
    assert measure_rir(response, "r", RATE).rt60_s == pytest.approx(theirs, rel=0.01)
