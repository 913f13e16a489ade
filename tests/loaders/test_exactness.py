"""What has to be exact, from sound files through banks to the stored bytes: one test for each kind of difficulty."""

import io
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from squtr.errors import AudioError
from squtr.loaders.audio import decode_audio, resample
from squtr.loaders.banks import load_noise_bank, load_rir_bank
from squtr.loaders.conditions import parse_condition
from squtr.loaders.conditions.step import StepContext
from squtr.loaders.mixing import active_span, noise_segment
from squtr.loaders.records import SAMPLE_RATE, CleanSpeech, Query
from squtr.loaders.render import render
from squtr.loaders.reverb import find_onset, prepare_rir, reverberate
from squtr.loaders.rir_measures import measure_rir

QUERY = Query("q1", "s", "en", "a question")
STEP = 1 / 32768


def signal(seed, samples, level=0.1):
    return (np.random.default_rng(seed).standard_normal(samples) * level).astype(np.float32)


def speech(seed=0, samples=SAMPLE_RATE, level=0.1):
    """Noise that comes and goes four times a second, never silent for long."""
    envelope = 0.2 + np.abs(np.sin(np.arange(samples) * (4 * np.pi / SAMPLE_RATE)))
    return (signal(seed, samples, level) * envelope).astype(np.float32)


def decay(rt60_s, seconds, seed=0, rate=SAMPLE_RATE):
    count = round(seconds * rate)
    response = np.random.default_rng(seed).standard_normal(count)
    response *= 10.0 ** (-3.0 * np.arange(count) / rate / rt60_s)
    response[0] = 5.0
    return (response / 5.0).astype(np.float32)


@pytest.fixture
def banks(tmp_path, monkeypatch):
    """Makes a bank of one file from samples."""
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    made = 0

    def make(load, samples, rate=SAMPLE_RATE, channel=None):
        nonlocal made
        made += 1
        folder = tmp_path / f"bank{made}"
        folder.mkdir()
        soundfile.write(folder / "x.wav", samples, rate, subtype="FLOAT")
        return load(folder, channel)

    return make


def decode(row):
    samples, rate = soundfile.read(io.BytesIO(row.audio), dtype="float64")
    assert rate == SAMPLE_RATE
    return samples


def level_db(numerator, denominator):
    return 10.0 * math.log10(float(np.square(numerator).mean()) / float(np.square(denominator).mean()))


def heard_level(clip, bank, condition, level="whole", query=QUERY):
    """The SNR in the stored file, by taking away the clean file of the same query; and the noise heard."""
    context = StepContext(bank, None, seed=1, level=level)
    clean = render(query, CleanSpeech(clip), parse_condition("clean"), context)
    noisy = render(query, CleanSpeech(clip), parse_condition(condition), context)
    part = slice(*active_span(np.square(clip, dtype=np.float64))) if level == "active" else slice(None)
    dry = decode(clean) * 10.0 ** ((noisy.gain_db - clean.gain_db) / 20.0)
    noise = decode(noisy) - dry
    return level_db(dry[part], noise[part]), noise, noisy


# Noise


@pytest.mark.parametrize("seconds", [0.05, 0.7, 1.0, 20.0])
def test_noise_is_cropped_or_looped_before_its_level_is_measured(banks, seconds):
    samples = signal(3, round(seconds * SAMPLE_RATE))
    # Its level rises by 40 dB over its length: what is used differs from the whole.
    samples *= (10.0 ** (2.0 * np.arange(samples.size) / samples.size - 2.0)).astype(np.float32)
    bank = banks(load_noise_bank, samples)
    for number in range(5):
        query = replace(QUERY, id=f"q{number}")
        snr_db, noise, row = heard_level(speech(), bank, "medium_noise", query=query)
        assert snr_db == pytest.approx(10.0, abs=0.01)
        used = noise_segment(bank.read("x"), round(row.noise_offset_s * SAMPLE_RATE), noise.size)
        assert np.corrcoef(noise, used)[0, 1] > 0.999


@pytest.mark.parametrize("level", ["whole", "active"])
def test_noise_that_is_silent_in_part(banks, level):
    samples = np.zeros(20 * SAMPLE_RATE, dtype=np.float32)
    samples[11 * SAMPLE_RATE : 12 * SAMPLE_RATE] = signal(4, SAMPLE_RATE)
    bank = banks(load_noise_bank, samples)
    for number in range(8):
        query = replace(QUERY, id=f"q{number}")
        snr_db, noise, _ = heard_level(speech(), bank, "high_noise", level, query)
        assert snr_db == pytest.approx(0.0, abs=0.01)
        assert np.abs(noise).max() > 100 * STEP


def test_noise_with_an_offset_is_not_louder_for_it(banks):
    plain, shifted = (
        heard_level(speech(), banks(load_noise_bank, signal(5, 60_000) + np.float32(offset)), "high_noise")
        for offset in (0.0, 0.4)
    )
    assert shifted[0] == pytest.approx(0.0, abs=0.01)
    assert abs(shifted[1].mean()) < 0.01 * np.abs(plain[1]).max()


def test_noise_that_cancels_between_channels(banks):
    left = signal(6, 60_000)
    stereo = np.stack([left, -left], axis=1)
    with pytest.raises(AudioError, match=r"x\.wav has 2 channels"):
        banks(load_noise_bank, stereo).read("x")
    # The mean would be silence.
    snr_db, noise, row = heard_level(speech(), banks(load_noise_bank, stereo, channel=1), "high_noise")
    assert snr_db == pytest.approx(0.0, abs=0.01)
    used = noise_segment(-left, round(row.noise_offset_s * SAMPLE_RATE), noise.size)
    assert np.corrcoef(noise, used)[0, 1] > 0.999


def test_files_of_different_rates_one_after_the_other(tmp_path, monkeypatch):
    """A tone stays that tone, whatever the rate of the file before it."""
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    (tmp_path / "bank").mkdir()
    rates = {"a": 32_000, "b": 16_000, "c": 44_100, "d": 24_000, "e": 8_000}
    for name, rate in rates.items():
        tone = np.sin(2 * np.pi * 1000 * np.arange(2 * rate) / rate) * 0.3
        soundfile.write(tmp_path / "bank" / f"{name}.wav", tone, rate, subtype="FLOAT")
    for order in (list(rates), list(rates)[::-1]):
        bank = load_noise_bank(tmp_path / "bank")
        for name in order:
            samples = bank.read(name)
            assert samples.size == 2 * SAMPLE_RATE
            power = np.square(np.abs(np.fft.rfft(samples[2400:-2400] * np.hanning(samples.size - 4800))))
            hz = np.fft.rfftfreq(samples.size - 4800, 1 / SAMPLE_RATE)
            assert hz[np.argmax(power)] == pytest.approx(1000, abs=1)
            assert float(np.std(samples)) == pytest.approx(0.3 / math.sqrt(2), rel=0.01)


def test_noise_beyond_full_scale(banks):
    snr_db, _, row = heard_level(speech(), banks(load_noise_bank, signal(7, 60_000, 30.0)), "high_noise")
    assert snr_db == pytest.approx(0.0, abs=0.01)
    assert np.abs(decode(row)).max() <= 0.9 + STEP


# Speech


@pytest.mark.parametrize("level", ["whole", "active"])
def test_speech_with_a_second_of_silence_at_each_end(banks, level):
    silence = np.zeros(SAMPLE_RATE, dtype=np.float32)
    clip = np.concatenate([silence, speech(), silence])
    bank = banks(load_noise_bank, signal(8, 5 * SAMPLE_RATE))
    snr_db, noise, row = heard_level(clip, bank, "medium_noise", level)
    assert snr_db == pytest.approx(10.0, abs=0.01)
    # The clip keeps its silence, with the noise in it.
    assert decode(row).size == clip.size
    assert np.square(noise[:SAMPLE_RATE]).mean() == pytest.approx(np.square(noise).mean(), rel=0.1)
    # Over the whole clip two thirds are silent, which is 10·log10(3) dB.
    expected = 10.0 if level == "active" else 10.0 + 10.0 * math.log10(3.0)
    assert row.snr_active_db == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("level", ["whole", "active"])
def test_speech_with_an_offset_gets_no_more_noise_for_it(banks, level):
    silence = np.zeros(SAMPLE_RATE // 2, dtype=np.float32)
    clip = np.concatenate([silence, speech(), silence])
    bank = banks(load_noise_bank, signal(9, 5 * SAMPLE_RATE))
    plain, shifted = (heard_level(clip + np.float32(offset), bank, "high_noise", level)[1] for offset in (0.0, 0.25))
    assert level_db(plain, shifted) == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("condition", ["clean", "medium_noise", "reverb", "reverb_high_noise"])
def test_float_speech_above_one_is_brought_down_and_never_clipped(banks, condition):
    context = StepContext(banks(load_noise_bank, signal(10, 60_000)), banks(load_rir_bank, decay(0.3, 0.4)), seed=1)
    plain, loud = (
        render(QUERY, CleanSpeech(speech() * np.float32(gain)), parse_condition(condition), context) for gain in (1, 40)
    )
    samples = decode(loud)
    assert np.abs(samples).max() == pytest.approx(0.9, abs=STEP)
    assert loud.gain_db < 0.0
    # The same shape: not one sample was flattened.
    scale = float(samples @ decode(plain) / (decode(plain) @ decode(plain)))
    assert np.abs(samples - scale * decode(plain)).max() < 2 * (1 + scale) * STEP


@pytest.mark.parametrize("size", [24_001, 24_000, 23_999, 1_001])
@pytest.mark.parametrize("target", [16_000, 8_000, 48_000, 44_100])
def test_clean_and_noisy_stay_equally_long_when_resampled(banks, size, target):
    clip = speech(samples=size)
    context = StepContext(banks(load_noise_bank, signal(11, 60_000)), banks(load_rir_bank, decay(0.3, 0.4)), seed=1)
    lengths = set()
    for condition in ("clean", "low_noise", "snr_-5"):
        row = render(QUERY, CleanSpeech(clip), parse_condition(condition), context)
        assert decode(row).size == size
        lengths.add(resample(decode(row).astype(np.float32), SAMPLE_RATE, target).size)
    # The rule: the length times the ratio, rounded up.
    assert lengths == {-(-size * target // SAMPLE_RATE)}
    if (size, target) == (24_001, 16_000):
        assert lengths == {16_001}


def test_speech_that_is_read_at_another_rate_has_the_length_of_the_rule(tmp_path):
    for rate in (16_000, 22_050, 44_100):
        soundfile.write(tmp_path / "s.wav", signal(12, rate + 1), rate)
        samples, found = decode_audio(tmp_path / "s.wav", "s")
        assert resample(samples, found).size == -(-(rate + 1) * SAMPLE_RATE // rate)


# Rooms


@pytest.mark.parametrize("zeros", [0, 1, 777, 12_000])
def test_leading_zeros_shift_nothing(banks, zeros):
    response = decay(0.3, 0.4)
    bank = banks(load_rir_bank, np.concatenate([np.zeros(zeros, dtype=np.float32), response]))
    row = render(QUERY, CleanSpeech(speech()), parse_condition("reverb"), StepContext(None, bank))
    direct = render(
        QUERY, CleanSpeech(speech()), parse_condition("reverb"), StepContext(None, banks(load_rir_bank, response))
    )
    assert row.onset_samples == zeros
    assert decode(row).size == decode(direct).size
    assert np.abs(decode(row) - decode(direct)).max() <= STEP
    assert (row.rt60_s, row.drr_db, row.c50_db) == (direct.rt60_s, direct.drr_db, direct.c50_db)


def test_a_response_without_energy_is_refused(banks):
    for samples in (np.zeros(1000), np.full(1000, 0.2), np.zeros(0)):
        bank = banks(load_rir_bank, samples.astype(np.float32))
        with pytest.raises(AudioError, match=r"impulse response .*x\.wav"):
            render(QUERY, CleanSpeech(speech()), parse_condition("reverb"), StepContext(None, bank))
    for samples in (np.zeros(1000, dtype=np.float32), np.array([0.1, np.nan], dtype=np.float32)):
        with pytest.raises(AudioError, match="'r1'"):
            measure_rir(samples, "r1")


def test_a_response_with_several_channels(banks):
    left, right = decay(0.3, 0.4, seed=1), decay(0.6, 0.8, seed=2)
    both = np.stack([np.pad(left, (0, right.size - left.size)), right], axis=1)
    with pytest.raises(AudioError, match=r"x\.wav has 2 channels.* 0 to 1"):
        banks(load_rir_bank, both).read("x")
    rows = [
        render(
            QUERY,
            CleanSpeech(speech()),
            parse_condition("reverb"),
            StepContext(None, banks(load_rir_bank, both, channel=n)),
        )
        for n in (0, 1)
    ]
    assert rows[0].rt60_s == pytest.approx(0.3, rel=0.1)
    assert rows[1].rt60_s == pytest.approx(0.6, rel=0.1)
    with pytest.raises(AudioError, match="none numbered 2"):
        banks(load_rir_bank, both, channel=2).read("x")


@pytest.mark.parametrize("share", [0.05, 0.2, 0.45])
def test_a_response_shorter_than_its_reverberation_time_needs(banks, share):
    """It is used, but its RT60 is NaN: the row says so, and the measures say why."""
    bank = banks(load_rir_bank, decay(1.0, share))
    row = render(QUERY, CleanSpeech(speech()), parse_condition("reverb"), StepContext(None, bank))
    assert math.isnan(row.rt60_s)
    assert row.rir_id == "x"
    assert measure_rir(bank.read("x"), "x").reasons["rt60_s"]
    assert row.duration_s == pytest.approx(1.0 + share, abs=0.01)


# For every random signal


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(2_400, 40_000),
    noise_samples=st.integers(600, 90_000),
    snr_db=st.integers(-20, 40),
    level=st.sampled_from(["whole", "active"]),
    loudness=st.floats(0.02, 3.0),
)
def test_the_level_in_the_mixture_is_the_asked_one(seed, samples, noise_samples, snr_db, level, loudness):
    from squtr.loaders.mixing import level_noise, level_speech, mix, remove_dc

    clip = level_speech(remove_dc(speech(seed, samples, loudness)))
    noise = signal(seed + 1, noise_samples, 0.05)
    segment = noise_segment(noise, seed % noise_samples, samples)
    made = mix(clip, level_noise(segment, clip), snr_db, level=level)
    dry = clip.samples.astype(np.float64) * 10.0 ** (made.gain_db / 20.0)
    heard = made.samples.astype(np.float64) - dry
    part = slice(clip.start, clip.stop) if level == "active" else slice(None)
    assert abs(level_db(dry[part], heard[part]) - snr_db) < 0.01
    assert np.abs(made.samples).max() <= np.float32(0.9)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(2_400, 30_000),
    delay=st.integers(0, 3_000),
    rt60_s=st.floats(0.1, 0.8),
    tail=st.booleans(),
)
def test_reverberant_speech_is_aligned_within_one_sample(seed, samples, delay, rt60_s, tail):
    response = np.concatenate([np.zeros(delay, dtype=np.float32), decay(rt60_s, rt60_s, seed) * np.float32(0.1)])
    response[delay] = 1.0
    room = prepare_rir(response, "r")
    clip = signal(seed + 1, samples)
    wet = reverberate(clip, room, keep_tail=tail).astype(np.float64)
    size = 2 * (clip.size + wet.size)
    cross = np.fft.irfft(np.fft.rfft(wet, size) * np.conj(np.fft.rfft(clip.astype(np.float64), size)), size)
    lag = int(np.argmax(cross))
    assert min(lag, size - lag) <= 1
    assert find_onset(response) == room.onset_samples == delay


def test_the_same_bytes_for_any_order_and_number_of_workers(banks):
    context = StepContext(banks(load_noise_bank, signal(13, 90_000)), banks(load_rir_bank, decay(0.4, 0.5)), seed=5)
    names = ("clean", "snr_5", "reverb", "reverb_low_noise", "high_noise")
    items = [(number, name) for number in range(5) for name in names]

    def build(item, context=context):
        number, name = item
        return render(
            replace(QUERY, id=f"q{number}"), CleanSpeech(speech(number)), parse_condition(name), context
        ).audio

    alone = [build(item, StepContext(context.noise, context.rirs, seed=5)) for item in items]
    order = np.random.default_rng(0).permutation(len(items))
    for workers in (1, 2, 5):
        with ThreadPoolExecutor(workers) as pool:
            made = list(pool.map(build, [items[n] for n in order]))
        assert [made[int(np.flatnonzero(order == n)[0])] for n in range(len(items))] == alone
