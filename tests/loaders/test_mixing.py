import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squtr.errors import AudioError, UnknownNameError, UsageError
from squtr.loaders.mixing import (
    PEAK_LIMIT,
    active_span,
    check_level,
    level_noise,
    level_recording,
    level_speech,
    limit_peak,
    mean_square,
    mix,
    noise_segment,
    remove_dc,
)
from squtr.loaders.records import SAMPLE_RATE, Samples


def signal(seed: int, samples: int, level: float = 0.1) -> Samples:
    return (np.random.default_rng(seed).standard_normal(samples) * level).astype(np.float32)


def padded_speech(seed: int = 0) -> Samples:
    """One second of sound with a second of silence at each end."""
    silence = np.zeros(SAMPLE_RATE, dtype=np.float32)
    return np.concatenate([silence, signal(seed, SAMPLE_RATE), silence])


def mixed(speech, noise, snr_db, **options):
    return mix(speech, level_noise(noise, speech), snr_db, **options)


def snr_of(mixture: Samples, gain_db: float, speech: Samples) -> float:
    """The level found by taking the known speech away from the mixture, in float64."""
    clean = speech.astype(np.float64) * 10.0 ** (gain_db / 20.0)
    return 20.0 * math.log10(math.sqrt(mean_square(clean)) / math.sqrt(mean_square(mixture.astype(np.float64) - clean)))


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    samples=st.integers(200, 30_000),
    snr_db=st.floats(-20.0, 60.0),
    speech_level=st.floats(0.02, 1.5),
    noise_level=st.floats(1e-4, 3.0),
    noise_length=st.integers(50, 60_000),
    offset=st.floats(0.0, 1.0, exclude_max=True),
)
def test_the_measured_snr_is_the_asked_one(seed, samples, snr_db, speech_level, noise_level, noise_length, offset):
    speech = level_speech(signal(seed, samples, speech_level))
    noise = signal(seed + 1, noise_length, noise_level)
    segment = noise_segment(noise, int(offset * noise_length), samples)
    made = mixed(speech, segment, snr_db)
    assert abs(snr_of(made.samples, made.gain_db, speech.samples) - snr_db) < 0.01
    assert abs(made.snr_db - snr_db) < 0.001
    assert np.abs(made.samples).max() <= PEAK_LIMIT + 1e-6


@pytest.mark.parametrize("snr_db", [-20.0, 0.0, 20.0])
def test_active_level_ignores_the_silence_at_both_ends(snr_db):
    speech = level_speech(padded_speech())
    assert (speech.start, speech.stop) == (SAMPLE_RATE, 2 * SAMPLE_RATE)
    noise = signal(1, 3 * SAMPLE_RATE, 0.05)
    whole, active = mixed(speech, noise, snr_db), mixed(speech, noise, snr_db, level="active")
    part = slice(speech.start, speech.stop)
    gain = 10.0 ** (active.gain_db / 20.0)
    heard = active.samples[part] - gain * speech.samples[part]
    assert 20 * math.log10(
        gain * math.sqrt(mean_square(speech.samples[part])) / math.sqrt(mean_square(heard))
    ) == pytest.approx(snr_db, abs=0.01)
    assert active.snr_active_db == pytest.approx(snr_db, abs=1e-4)
    # Two thirds of silence: the whole clip is 10·log10(3) dB weaker than its active part.
    assert whole.snr_active_db - whole.snr_db == pytest.approx(10 * math.log10(3), abs=0.1)
    assert active.samples.size == whole.samples.size == 3 * SAMPLE_RATE


def test_noise_is_measured_where_it_is_used_not_where_it_comes_from():
    # A recording that is 60 dB louder elsewhere.
    noise = np.concatenate([signal(0, 24_000, 0.001), signal(1, 24_000, 1.0)])
    speech = level_speech(signal(2, 24_000))
    made = mixed(speech, noise_segment(noise, 0, 24_000), 10.0)
    assert snr_of(made.samples, made.gain_db, speech.samples) == pytest.approx(10.0, abs=0.01)


def test_a_noise_that_is_too_short_wraps_round():
    noise = np.arange(1, 8, dtype=np.float32)
    assert noise_segment(noise, 5, 10).tolist() == [6, 7, 1, 2, 3, 4, 5, 6, 7, 1]
    assert noise_segment(noise, 2, 3).tolist() == [3, 4, 5]
    with pytest.raises(UsageError):
        noise_segment(noise, 7, 1)


def test_one_gain_for_speech_and_noise_keeps_the_peak():
    speech = level_speech(signal(0, 24_000, 0.5))
    made = mixed(speech, signal(1, 24_000), -20.0)
    assert made.gain_db < 0.0
    assert np.abs(made.samples).max() == pytest.approx(0.9, abs=1e-6)
    quiet = mixed(level_speech(signal(0, 24_000, 0.05)), signal(1, 24_000), 20.0)
    assert quiet.gain_db == 0.0


def test_speech_beyond_full_scale_is_brought_down():
    limited, gain_db = limit_peak(np.array([0.0, 3.0, -2.0], dtype=np.float32))
    assert np.abs(limited).max() <= np.float32(0.9)
    assert gain_db == pytest.approx(20 * math.log10(0.3))
    untouched = np.array([0.5, -0.9], dtype=np.float32)
    assert limit_peak(untouched)[0] is untouched


def test_an_offset_counts_neither_as_speech_nor_as_noise():
    speech = signal(0, 48_000)
    shifted = level_speech(remove_dc(speech + np.float32(0.3)))
    assert shifted.power == pytest.approx(level_speech(speech).power, rel=1e-4)
    assert abs(float(remove_dc(speech + np.float32(0.3)).mean())) < 1e-6
    centered = speech - speech.mean()
    assert remove_dc(centered) is centered
    for recording in (speech + np.float32(0.3), centered):
        measured, expected = level_recording(recording), level_speech(remove_dc(recording))
        assert np.array_equal(measured.samples, expected.samples)
        assert (measured.power, measured.active_power) == (expected.power, expected.active_power)
        assert (measured.start, measured.stop) == (expected.start, expected.stop)


@pytest.mark.parametrize(
    ("noise", "speech"),
    [
        (np.zeros(24_000, dtype=np.float32), signal(0, 24_000)),
        (np.full(24_000, np.nan, dtype=np.float32), signal(0, 24_000)),
    ],
)
def test_silent_or_broken_noise_is_refused_by_name(noise, speech):
    with pytest.raises(AudioError, match="cafe_07"):
        mixed(level_speech(speech), noise, 0.0, noise_name="cafe_07")


def test_noise_that_is_silent_under_the_active_part_is_refused():
    noise = signal(0, 3 * SAMPLE_RATE)
    noise[SAMPLE_RATE : 2 * SAMPLE_RATE] = 0.0
    speech = level_speech(padded_speech())
    with pytest.raises(AudioError, match="silent"):
        mixed(speech, noise, 0.0, level="active")
    mixed(speech, noise, 0.0)


def test_noise_below_the_rounding_of_16_bits_is_refused():
    speech = level_speech(signal(0, 24_000, 0.01))
    with pytest.raises(AudioError, match="the noise would lie below"):
        mixed(speech, signal(1, 24_000), 80.0)
    with pytest.raises(AudioError, match="the speech would lie below"):
        mixed(speech, signal(1, 24_000), -90.0)


def test_noise_that_rounding_would_remove_altogether_is_refused():
    # A square wave of 0.4 steps on speech that lies on the 16-bit grid: above the RMS of rounding, yet every sample
    # rounds back to the speech.
    speech = level_speech(np.round(signal(0, 24_000) * 32768).astype(np.float32) / np.float32(32768))
    square = np.where(np.arange(24_000) % 100 < 50, 1.0, -1.0).astype(np.float32)
    snr_db = 20 * math.log10(math.sqrt(speech.power) / (0.4 / 32768))
    with pytest.raises(AudioError, match="16 bits"):
        mixed(speech, square, snr_db)
    mixed(speech, square, snr_db - 6.0)


def test_wrong_calls():
    speech = level_speech(signal(0, 100))
    with pytest.raises(UsageError, match="shape"):
        mixed(speech, signal(1, 99), 0.0)
    with pytest.raises(UsageError):
        mixed(speech, signal(1, 100), float("nan"))
    with pytest.raises(UnknownNameError, match="active"):
        check_level("activ")


def test_span_of_short_constant_and_silent_signals():
    assert active_span(np.square(np.zeros(0, dtype=np.float32), dtype=np.float64)) == (0, 0)
    assert active_span(np.square(np.zeros(1000, dtype=np.float32), dtype=np.float64)) == (0, 1000)
    assert active_span(np.square(np.ones(1000, dtype=np.float32), dtype=np.float64)) == (0, 1000)
    assert active_span(np.square(signal(0, 100), dtype=np.float64)) == (0, 100)


def test_span_keeps_soft_sounds_and_drops_a_noise_floor():
    floor = signal(0, 5 * SAMPLE_RATE, 1e-4)
    floor[SAMPLE_RATE : 2 * SAMPLE_RATE] += signal(1, SAMPLE_RATE, 0.1)
    floor[3 * SAMPLE_RATE : 4 * SAMPLE_RATE] += signal(2, SAMPLE_RATE, 0.1 * 10 ** (-30 / 20))
    start, stop = active_span(np.square(floor, dtype=np.float64))
    assert start == SAMPLE_RATE
    assert abs(stop - 4 * SAMPLE_RATE) <= 480
