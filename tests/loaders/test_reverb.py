import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squtr.errors import AudioError, UsageError
from squtr.loaders.records import Samples
from squtr.loaders.reverb import find_onset, prepare_rir, reverberate


def speech(seed: int, samples: int) -> Samples:
    return (np.random.default_rng(seed).standard_normal(samples) * 0.1).astype(np.float32)


def room(seed: int, delay: int, length: int, scale: float = 1.0) -> Samples:
    """Leading zeros, a direct path, and a diffuse tail 12 dB below it that decays."""
    rng = np.random.default_rng(seed)
    tail = rng.standard_normal(length) * 0.08 * np.exp(-np.arange(length) / (0.2 * length))
    tail[0] = 1.0
    return (scale * np.concatenate([np.zeros(delay), tail])).astype(np.float32)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    samples=st.integers(2000, 60_000),
    delay=st.integers(0, 5000),
    length=st.integers(2, 20_000),
    scale=st.floats(1e-3, 1e3),
)
def test_reverberant_speech_stays_aligned_with_clean_speech(seed, samples, delay, length, scale):
    dry = speech(seed, samples)
    prepared = prepare_rir(room(seed, delay, length, scale), "r")
    wet = reverberate(dry, prepared)
    assert prepared.onset_samples == delay
    assert wet.size == samples + length - 1
    lags = np.correlate(wet[:2000], dry[50:1950], "valid")
    assert abs(int(np.argmax(lags)) - 50) <= 1


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**32), samples=st.integers(1, 90_000), length=st.integers(2, 30_000))
def test_it_is_the_full_linear_convolution(seed, samples, length):
    from scipy.signal import fftconvolve

    dry, response = speech(seed, samples), room(seed, 17, length)
    unit = response.astype(np.float64) / np.sqrt(np.square(response.astype(np.float64)).sum())
    expected = fftconvolve(dry.astype(np.float64), unit)
    prepared = prepare_rir(response, "r")
    wet = reverberate(dry, prepared)
    assert np.abs(wet - expected[17:]).max() < 1e-6
    assert np.array_equal(reverberate(dry, prepared, keep_tail=False), wet[:samples])


def test_unit_energy_whatever_the_scale():
    for scale in (1e-4, 1.0, 50.0):
        response = prepare_rir(room(0, 10, 4000, scale), "r").response
        assert np.square(response.astype(np.float64)).sum() == pytest.approx(1.0, abs=1e-6)


def test_a_flat_signal_keeps_its_level():
    dry = speech(0, 240_000)
    wet = reverberate(dry, prepare_rir(room(1, 10, 4000), "r"), keep_tail=False)
    assert 20 * np.log10(wet.std() / dry.std()) == pytest.approx(0.0, abs=0.2)


def test_the_direct_path_is_not_the_strongest_sample():
    response = np.zeros(2000, dtype=np.float32)
    response[[100, 105, 700]] = 0.05, 0.2, 1.0
    assert find_onset(response) == 105
    assert prepare_rir(response, "r").onset_samples == 105
    assert find_onset(-response) == 105
    assert find_onset(np.zeros(0)) == 0


def test_a_pulse_changes_nothing():
    response = np.zeros(500, dtype=np.float32)
    response[123] = -0.3
    dry = speech(3, 5000)
    assert np.abs(reverberate(dry, prepare_rir(response, "r"), keep_tail=False) + dry).max() < 1e-7


@pytest.mark.parametrize(
    "response",
    [
        np.zeros(0, dtype=np.float32),
        np.zeros(100, dtype=np.float32),
        np.full(100, 0.5, dtype=np.float32),
        np.array([0.0, np.nan, 1.0], dtype=np.float32),
        np.array([0.0, np.inf, 1.0], dtype=np.float32),
        np.ones((100, 2), dtype=np.float32),
    ],
)
def test_an_unusable_response_is_refused_by_id(response):
    with pytest.raises(AudioError, match="hall_3"):
        prepare_rir(response, "hall_3")


def test_empty_speech_is_refused():
    with pytest.raises(UsageError):
        reverberate(np.zeros(0, dtype=np.float32), prepare_rir(room(0, 0, 100), "r"))
