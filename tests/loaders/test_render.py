import hashlib
import io
import math
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, UnknownNameError, UsageError
from squtr.loaders.audio import pcm_sha256
from squtr.loaders.banks import NoiseInfo
from squtr.loaders.conditions import noise, parse_condition, rir
from squtr.loaders.conditions.noise import draw_noise
from squtr.loaders.conditions.step import StepContext
from squtr.loaders.mixing import active_span, mean_square, noise_segment
from squtr.loaders.records import SAMPLE_RATE, CleanSpeech, Query, Take
from squtr.loaders.render import render, render_all
from squtr.loaders.reverb import prepare_rir, reverberate
from squtr.loaders.rir_measures import measure_rir

CONDITIONS = (
    "clean",
    "low_noise",
    "medium_noise",
    "high_noise",
    "reverb",
    "reverb_high_noise",
    "reverb_snr_-5",
    "snr_40",
)


class Noises:
    """Six short noises in three families of unequal size."""

    name, version, license = "test", "1", "CC0-1.0"

    def __init__(self, samples=90_000):
        self.samples = samples

    def noises(self):
        return [
            NoiseInfo(f"{family}_{n}", family) for family, count in (("a", 1), ("b", 4), ("c", 1)) for n in range(count)
        ]

    def read(self, noise_id):
        seed = int.from_bytes(noise_id.encode(), "big") % 2**32
        return (np.random.default_rng(seed).standard_normal(self.samples) * 0.2).astype(np.float32)


class Rooms:
    """Three rooms with decays between 0.2 and 0.6 s behind 50 leading zeros."""

    name, version, license = "test", "1", "CC0-1.0"

    def rirs(self):
        return ["r1", "r2", "r3"]

    def read(self, rir_id):
        rt60 = 0.2 * int(rir_id[1])
        length = int(1.1 * rt60 * SAMPLE_RATE)
        tail = np.random.default_rng(int(rir_id[1])).standard_normal(length) * 0.1
        tail *= 10.0 ** (-3.0 * np.arange(length) / SAMPLE_RATE / rt60)
        tail[0] = 1.0
        return np.concatenate([np.zeros(50), tail]).astype(np.float32)


def query(number=0, subset="mini-en"):
    return Query(f"q{number}", subset, "en", f"question {number}")


def speech(number=0, seconds=1.5, level=0.1):
    """Noise with the rhythm of syllables, and a quarter of a second of silence at each end."""
    samples = int(seconds * SAMPLE_RATE)
    rng = np.random.default_rng(number)
    envelope = np.abs(np.sin(2 * np.pi * 2.0 * np.arange(samples) / SAMPLE_RATE))
    quiet = np.zeros(SAMPLE_RATE // 4)
    sound = np.concatenate([quiet, level * envelope * rng.standard_normal(samples), quiet])
    return CleanSpeech(sound.astype(np.float32), speaker="s1", voice="v1", tts_error_rate=0.1)


def context(**changes):
    return StepContext(**{"noise": Noises(), "rirs": Rooms(), "seed": 3, **changes})


def decode(row):
    samples, rate = soundfile.read(io.BytesIO(row.audio), dtype="float64")
    assert rate == SAMPLE_RATE
    return samples


def same(a, b):
    """Rows are equal, NaN included."""
    return repr(a) == repr(b)


def test_the_row_of_clean_speech():
    row = render(query(), speech(), parse_condition("clean"), context(noise=None, rirs=None))
    assert (row.id, row.subset, row.language, row.text, row.condition) == ("q0", "mini-en", "en", "question 0", "clean")
    assert (row.speaker, row.voice, row.tts_error_rate, row.seed) == ("s1", "v1", 0.1, 3)
    assert (row.noise_id, row.noise_family, row.rir_id) == ("", "", "")
    for name in ("snr_db", "snr_active_db", "noise_offset_s", "rt60_s", "drr_db", "c50_db"):
        assert math.isnan(getattr(row, name))
    assert (row.onset_samples, row.gain_db) == (0, 0.0)
    assert np.array_equal(decode(row) * 32768, np.rint(speech().samples * np.float32(32768)))
    assert row.duration_s == pytest.approx(2.0)


@pytest.mark.parametrize("snr_db", [-5, 0, 10, 20, 40])
def test_the_stored_file_has_the_asked_level(snr_db):
    clean = render(query(), speech(), parse_condition("clean"), context())
    row = render(query(), speech(), parse_condition(f"snr_{snr_db}"), context())
    heard = decode(clean) * 10 ** (row.gain_db / 20)
    noise = decode(row) - heard
    assert 20 * math.log10(math.sqrt(mean_square(heard)) / math.sqrt(mean_square(noise))) == pytest.approx(
        snr_db, abs=0.05
    )
    start, stop = active_span(np.square(speech().samples, dtype=np.float64))
    active = 20 * math.log10(math.sqrt(mean_square(heard[start:stop])) / math.sqrt(mean_square(noise[start:stop])))
    assert row.snr_active_db == pytest.approx(active, abs=0.05)
    assert row.snr_db == snr_db
    # The very noise that the row names, from where it says.
    offset = round(row.noise_offset_s * SAMPLE_RATE)
    assert np.corrcoef(noise, noise_segment(Noises().read(row.noise_id), offset, noise.size))[0, 1] > 0.99
    assert row.noise_id.startswith(row.noise_family)


def test_the_noise_is_the_same_at_every_level_and_in_a_room():
    names = ("low_noise", "high_noise", "snr_-5", "reverb_low_noise", "reverb_high_noise")
    rows = [render(query(5), speech(5), parse_condition(name), context()) for name in names]
    assert len({(row.noise_id, row.noise_offset_s) for row in rows}) == 1
    assert len({row.rir_id for row in rows[3:]}) == 1
    reverb = render(query(5), speech(5), parse_condition("reverb"), context())
    assert reverb.rir_id == rows[3].rir_id


def test_in_a_room_the_noise_is_set_against_the_reverberant_speech():
    dry = render(query(2), speech(2), parse_condition("reverb"), context())
    noisy = render(query(2), speech(2), parse_condition("reverb_medium_noise"), context())
    heard = decode(dry) * 10 ** ((noisy.gain_db - dry.gain_db) / 20)
    assert 20 * math.log10(
        math.sqrt(mean_square(heard)) / math.sqrt(mean_square(decode(noisy) - heard))
    ) == pytest.approx(10.0, abs=0.05)


def test_the_row_of_reverberant_speech():
    row = render(query(1), speech(1), parse_condition("reverb"), context())
    rir = Rooms().read(row.rir_id)
    measures = measure_rir(rir, row.rir_id)
    assert (row.rt60_s, row.drr_db, row.c50_db) == (measures.rt60_s, measures.drr_db, measures.c50_db)
    assert row.onset_samples == 50
    wet = reverberate(speech(1).samples, prepare_rir(rir, "r"))
    assert np.abs(decode(row) - wet * 10 ** (row.gain_db / 20)).max() < 2 / 32768
    # The tail is kept, the direct path is not shifted.
    assert row.duration_s == pytest.approx((speech(1).samples.size + rir.size - 51) / SAMPLE_RATE)


def test_a_tail_beyond_the_end_of_the_noise_wraps_round():
    clip = speech(0)
    bank = Noises(samples=clip.samples.size + 1)
    row = render(query(), clip, parse_condition("reverb_high_noise"), context(noise=bank))
    dry = render(query(), clip, parse_condition("reverb"), context(noise=bank))
    noise = decode(row) - decode(dry) * 10 ** ((row.gain_db - dry.gain_db) / 20)
    used = noise_segment(bank.read(row.noise_id), round(row.noise_offset_s * SAMPLE_RATE), noise.size)
    assert noise.size > bank.samples
    assert np.corrcoef(noise, used)[0, 1] > 0.999


def test_bytes_do_not_depend_on_order_or_threads():
    items = [(query(n), speech(n), parse_condition(name)) for n in range(4) for name in CONDITIONS]
    alone = [render(*item, context()) for item in items]
    shared = context()
    backwards = [render(*item, shared) for item in reversed(items)][::-1]
    with ThreadPoolExecutor(4) as pool:
        threaded = list(pool.map(lambda item: render(*item, shared), items))
    for one, two, three in zip(alone, backwards, threaded, strict=True):
        assert same(one, two)
        assert same(one, three)
    assert len({row.audio for row in alone}) == len(items)


def test_all_conditions_at_once_give_the_same_rows_and_prepare_once(monkeypatch):
    conditions = [parse_condition(name) for name in CONDITIONS]
    alone = [render(query(), speech(), condition, context()) for condition in conditions]
    calls = []

    def counted(module, name):
        inner = getattr(module, name)

        def call(*arguments):
            calls.append(name)
            return inner(*arguments)

        return call

    for module, name in ((rir, "reverberate"), (noise, "level_noise"), (noise, "draw_offset")):
        monkeypatch.setattr(module, name, counted(module, name))
    together = render_all(Take(query()), speech(), conditions, context())
    assert all(len(rows) == 1 and same(one, rows[0]) for one, rows in zip(alone, together, strict=True))
    # The noise is measured over the dry clip and over the longer one in the room.
    assert sorted(calls) == ["draw_offset", "level_noise", "level_noise", "reverberate"]


def test_bytes_do_not_depend_on_the_process():
    conditions = [parse_condition(name) for name in ("high_noise", "reverb_medium_noise")]
    from squtr.loaders.banks import load_noise_bank, load_rir_bank

    code = """
import sys, pickle, hashlib
from squtr.loaders.render import render
for item in pickle.load(sys.stdin.buffer):
    print(hashlib.sha256(repr(render(*item)).encode()).hexdigest())
"""
    embedded = StepContext(load_noise_bank("synthetic"), load_rir_bank("simulated"), seed=2)
    items = [(query(n), speech(n), condition, embedded) for n in range(2) for condition in conditions]
    here = [hashlib.sha256(repr(render(*item)).encode()).hexdigest() for item in items]
    there = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(items),
        capture_output=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "PYTHONHASHSEED": "7"},
    ).stdout.decode()
    assert there.split() == here


GOLDEN = {
    "clean": "b4c93b46719ee525",
    "medium_noise": "6a6bdfe016bc6176",
    "reverb": "37b25b73f205ecf4",
    "reverb_high_noise": "1f0d633be40ec264",
}


def test_a_fixed_row_never_changes():
    """What a recipe promises: the same seed gives the same samples in every later version."""
    digests = {
        name: pcm_sha256(render(query(7), speech(7), parse_condition(name), context()).audio, name)[:16]
        for name in ("clean", "medium_noise", "reverb", "reverb_high_noise")
    }
    assert digests == GOLDEN


def test_another_seed_draws_otherwise_and_another_recording_is_not_confused():
    shared = context()
    rows = [render(query(), speech(0), parse_condition("high_noise"), context(seed=seed)) for seed in range(6)]
    assert len({(row.noise_id, row.noise_offset_s) for row in rows}) > 3
    first = render(query(), speech(0), parse_condition("reverb"), shared)
    second = render(query(), speech(1), parse_condition("reverb"), shared)
    assert first.audio != second.audio
    assert same(second, render(query(), speech(1), parse_condition("reverb"), context()))
    # Changed in place between two calls.
    clip = speech(0)
    render(query(), clip, parse_condition("reverb"), shared)
    clip.samples[:] = speech(1).samples
    assert same(render(query(), clip, parse_condition("reverb"), shared), second)


def test_families_are_drawn_before_noises():
    families = [draw_noise(("s", str(n)), Noises(), 0).family for n in range(600)]
    for family in "abc":
        assert families.count(family) == pytest.approx(200, abs=45)
    members = [draw_noise(("s", str(n)), Noises(), 0).id for n in range(600)]
    assert len(set(members)) == 6


class MostlySilent(Noises):
    """Sound only in one second of a minute."""

    def read(self, noise_id):
        noise = np.zeros(60 * SAMPLE_RATE, dtype=np.float32)
        noise[40 * SAMPLE_RATE : 41 * SAMPLE_RATE] = super().read(noise_id)[:SAMPLE_RATE]
        return noise


class OneClick(Noises):
    """Silence but for 20 samples."""

    def read(self, noise_id):
        noise = np.zeros(60 * SAMPLE_RATE, dtype=np.float32)
        noise[5 * SAMPLE_RATE : 5 * SAMPLE_RATE + 20] = 0.5
        return noise


@pytest.mark.parametrize("bank", [MostlySilent(), OneClick()])
@pytest.mark.parametrize("level", ["whole", "active"])
def test_noise_that_is_silent_in_part_is_always_heard(bank, level):
    clip = speech(0, seconds=1.0)
    start, stop = active_span(np.square(clip.samples, dtype=np.float64))
    for number in range(12):
        clean = render(query(number), clip, parse_condition("clean"), context())
        row = render(query(number), clip, parse_condition("medium_noise"), context(noise=bank, level=level))
        noise = decode(row) - decode(clean) * 10 ** (row.gain_db / 20)
        part = slice(start, stop) if level == "active" else slice(None)
        found = 20 * math.log10(
            math.sqrt(mean_square(decode(clean)[part])) * 10 ** (row.gain_db / 20) / math.sqrt(mean_square(noise[part]))
        )
        assert found == pytest.approx(10.0, abs=0.05)


class Silent(Noises):
    def read(self, noise_id):
        return np.zeros(1000, dtype=np.float32)


def test_what_cannot_be_used_is_refused_by_id():
    with pytest.raises(AudioError, match="silent"):
        render(query(), speech(), parse_condition("low_noise"), context(noise=Silent()))
    for samples in ([], [0.0] * 100, [0.5] * 100, [0.1, math.nan, 0.2], [0.1, math.inf]):
        with pytest.raises(AudioError, match=r"'q9' \(mini-en\)"):
            render(query(9), CleanSpeech(np.array(samples, dtype=np.float32)), parse_condition("low_noise"), context())
    with pytest.raises(AudioError, match="16 bits"):
        render(query(), speech(level=0.01), parse_condition("snr_90"), context())
    with pytest.raises(UsageError, match="noise"):
        render(query(), speech(), parse_condition("low_noise"), context(noise=None))
    with pytest.raises(UsageError, match="RIR bank"):
        render(query(), speech(), parse_condition("reverb"), context(rirs=None))
    with pytest.raises(UnknownNameError, match="whole"):
        context(level="hole")


def test_speech_beyond_full_scale_and_with_an_offset():
    loud = replace(speech(), samples=speech().samples * np.float32(40))
    for name in CONDITIONS:
        row = render(query(), loud, parse_condition(name), context())
        assert np.abs(decode(row)).max() <= 0.9 + 1 / 32768
        assert row.gain_db < 0
    shifted = replace(speech(), samples=speech().samples + np.float32(0.2))
    for name in ("clean", "high_noise", "reverb"):
        plain, moved = (decode(render(query(), clip, parse_condition(name), context())) for clip in (speech(), shifted))
        assert abs(moved.mean()) < 1e-4
        assert np.abs(plain - plain.mean() - moved).max() < 0.001


def test_air_travels_to_another_process_without_its_cache():
    shared = context()
    render(query(), speech(), parse_condition("reverb_high_noise"), shared)
    content = pickle.dumps(shared)
    assert len(content) < 5000
    copied = pickle.loads(content)
    condition = parse_condition("reverb_high_noise")
    assert same(render(query(), speech(), condition, copied), render(query(), speech(), condition, shared))
