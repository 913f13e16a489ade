import hashlib
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, UnknownNameError
from squtr.loaders.banks import load_noise_bank, load_rir_bank
from squtr.loaders.noise.synthetic import DURATION_S, MAKERS, VARIANTS, SyntheticNoises
from squtr.loaders.noise.textures import frequencies, speech_magnitude
from squtr.loaders.records import SAMPLE_RATE
from squtr.loaders.rir_measures import measure_rir
from squtr.loaders.rirs.simulated import LONGEST_RT60_S, SHORTEST_RT60_S, SimulatedRirs


@pytest.fixture(scope="module")
def synthetic():
    return SyntheticNoises()


def octave_levels(samples):
    """Levels in dB relative to the whole of the octaves from 125 Hz to 8 kHz."""
    power = np.square(np.abs(np.fft.rfft(samples.astype(np.float64))))
    return _octaves(power, np.fft.rfftfreq(samples.size, 1 / SAMPLE_RATE))


def _octaves(power, hz):
    centers = 125.0 * 2.0 ** np.arange(7)
    bands = [power[(hz >= c / 2**0.5) & (hz < c * 2**0.5)].sum() for c in centers]
    return 10.0 * np.log10(np.array(bands) / power.sum())


def modulation(samples, low_hz, high_hz):
    """Depth of the envelope's modulation between two rates, relative to its mean."""
    frame = 240
    envelope = np.sqrt(np.square(samples.astype(np.float64)).reshape(-1, frame).mean(axis=1))
    spectrum = np.square(np.abs(np.fft.rfft(envelope / envelope.mean() - 1.0))) / envelope.size**2
    hz = np.fft.rfftfreq(envelope.size, frame / SAMPLE_RATE)
    return float(np.sqrt(2.0 * spectrum[(hz >= low_hz) & (hz < high_hz)].sum()))


def noise(synthetic, family, variant=1):
    return synthetic.read(f"synthetic_{family}_v{variant:02d}")


def test_the_embedded_bank_lists_its_families(synthetic):
    infos = synthetic.noises()
    assert len(infos) == len(MAKERS) * VARIANTS == 20
    assert {info.family for info in infos} == {"babble", "speech_shaped", "pink", "traffic", "kitchen"}
    assert [info.id for info in infos] == sorted(info.id for info in infos)


@pytest.mark.parametrize("family", sorted(MAKERS))
def test_each_noise_is_usable(synthetic, family):
    samples = noise(synthetic, family)
    assert samples.dtype == np.float32
    assert samples.size == DURATION_S * SAMPLE_RATE
    assert not samples.flags.writeable
    assert np.isfinite(samples).all()
    assert np.sqrt(np.square(samples.astype(np.float64)).mean()) == pytest.approx(0.1, abs=1e-5)
    assert abs(float(samples.mean())) < 1e-6
    # Never silent: the weakest half second lies within 25 dB of the whole.
    blocks = np.square(samples.astype(np.float64)).reshape(-1, 12_000).mean(axis=1)
    assert blocks.min() > 0.01 * 10**-2.5
    # Circular: the step over the seam is like any other step.
    assert abs(float(samples[0] - samples[-1])) < 6 * np.diff(samples).std()


@pytest.mark.parametrize("family", ["babble", "speech_shaped"])
def test_speech_like_noise_has_the_spectrum_of_speech(synthetic, family):
    hz = frequencies(DURATION_S * SAMPLE_RATE)
    expected = _octaves(np.square(speech_magnitude(hz)), hz)
    # Variants of the stationary noise are tilted on purpose, by at most 1.5 dB per octave.
    tolerance = 1.5 if family == "babble" else 5.5
    assert np.abs(octave_levels(noise(synthetic, family)) - expected).max() < tolerance


def test_babble_comes_and_goes_at_the_rate_of_syllables(synthetic):
    babble, stationary = noise(synthetic, "babble"), noise(synthetic, "speech_shaped")
    assert modulation(babble, 2, 8) > 2 * modulation(stationary, 2, 8)
    assert modulation(babble, 2, 8) > modulation(babble, 8, 16)


def test_babble_has_voices_with_pitch(synthetic):
    """Short frames of babble repeat themselves at a pitch period far more than noise of the same spectrum does."""

    def periodicity(samples):
        found = []
        for start in range(0, samples.size - 1200, 24_000):
            frame = samples[start : start + 1200].astype(np.float64) * np.hanning(1200)
            spectrum = np.abs(np.fft.rfft(frame, 4096))
            # The cepstrum takes the spectrum's shape away and keeps its harmonics.
            cepstrum = np.fft.irfft(np.log(spectrum + 1e-9))
            found.append(cepstrum[100:280].max())
        return float(np.median(found))

    assert periodicity(noise(synthetic, "babble")) > 1.15 * periodicity(noise(synthetic, "speech_shaped"))


def test_pink_noise_has_equal_octaves(synthetic):
    levels = octave_levels(noise(synthetic, "pink"))
    assert np.ptp(levels) < 1.0


def test_traffic_is_low_and_kitchen_is_impulsive(synthetic):
    traffic, kitchen = noise(synthetic, "traffic"), noise(synthetic, "kitchen")
    assert octave_levels(traffic)[:3].max() > octave_levels(traffic)[5:].max() + 10
    kurtosis = {
        name: float(np.mean(x.astype(np.float64) ** 4) / np.mean(x.astype(np.float64) ** 2) ** 2)
        for name, x in (("kitchen", kitchen), ("pink", noise(synthetic, "pink")))
    }
    assert kurtosis["kitchen"] > 8
    assert kurtosis["pink"] == pytest.approx(3.0, abs=0.2)


def test_variants_differ(synthetic):
    first, second = noise(synthetic, "kitchen", 1), noise(synthetic, "kitchen", 2)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.1


def test_embedded_banks_are_the_same_in_threads_and_in_another_process():
    noise_id, rir_id = "synthetic_traffic_v02", "simulated_room_05"
    code = (
        "import hashlib; from squtr.loaders.banks import load_noise_bank as n, load_rir_bank as r;"
        f"print(hashlib.sha256(n('synthetic').read({noise_id!r}).tobytes()).hexdigest(),"
        f"hashlib.sha256(r('simulated').read({rir_id!r}).tobytes()).hexdigest())"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_environment(OMP_NUM_THREADS="2")
    ).stdout.split()
    noises, rooms = SyntheticNoises(), SimulatedRirs()
    with ThreadPoolExecutor(4) as pool:
        arrays = list(pool.map(noises.read, [noise_id] * 4))
        responses = list(pool.map(rooms.read, [rir_id] * 4))
    assert all(array is arrays[0] for array in arrays)
    assert [hashlib.sha256(x[0].tobytes()).hexdigest() for x in (arrays, responses)] == other


def digest(samples):
    """Of 12-bit samples, so that the last digits of a machine's arithmetic do not matter."""
    return hashlib.sha256(np.rint(samples * 2048).astype("<i2").tobytes()).hexdigest()[:16]


def test_what_the_versions_stand_for(synthetic):
    """Whoever changes one of these changes every data set made from it, and raises the bank's version."""
    found = {info.id: digest(synthetic.read(info.id)) for info in synthetic.noises() if info.id.endswith("v01")}
    rooms = SimulatedRirs()
    found |= {rir_id: digest(rooms.read(rir_id)) for rir_id in rooms.rirs()[:12:5]}
    assert found == GOLDEN
    assert (synthetic.version, rooms.version) == ("1", "1")


GOLDEN = {
    "synthetic_babble_v01": "b0a225056cc537f4",
    "synthetic_kitchen_v01": "fc87746accda7faa",
    "synthetic_pink_v01": "b562abc034022142",
    "synthetic_speech_shaped_v01": "d91e313908a3aad3",
    "synthetic_traffic_v01": "3433681bbb92b1e3",
    "simulated_room_01": "b41e2f0da2e76421",
    "simulated_room_06": "a810baf878c8e9c8",
    "simulated_room_11": "143cf2f6d8a9428a",
}


def _environment(**extra):
    import os

    return {**os.environ, **extra}


def test_a_pickled_bank_is_small_and_the_same(synthetic):
    noise(synthetic, "pink")
    content = pickle.dumps(synthetic)
    assert len(content) < 10_000
    assert np.array_equal(noise(pickle.loads(content), "pink"), noise(synthetic, "pink"))


@pytest.mark.parametrize("number", [1, 9, 17, 24])
def test_simulated_rooms_reach_their_reverberation_time(number):
    bank = SimulatedRirs()
    rir_id = f"simulated_room_{number:02d}"
    samples = bank.read(rir_id)
    measures = measure_rir(samples, rir_id)
    assert measures.rt60_s == pytest.approx(bank.target_rt60(rir_id), rel=0.021)
    assert -15.0 < measures.drr_db < 10.0
    assert samples.size < SAMPLE_RATE * (bank.target_rt60(rir_id) + 0.15)
    # The direct path falls on a whole sample: right before it there is next to nothing.
    onset = measures.onset_samples
    assert abs(samples[onset - 1]) < 0.05 * abs(samples[onset])
    assert not samples.flags.writeable


def test_simulated_rooms_are_spread_over_the_range():
    bank = SimulatedRirs()
    targets = [bank.target_rt60(rir_id) for rir_id in bank.rirs()]
    assert targets == sorted(targets)
    assert (targets[0], targets[-1]) == pytest.approx((SHORTEST_RT60_S, LONGEST_RT60_S))
    assert len(bank.rirs()) == 24


def test_unknown_names_are_told_with_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'synthetic'"):
        load_noise_bank("sinthetic")
    with pytest.raises(UnknownNameError, match="Did you mean 'simulated'"):
        load_rir_bank("simulatd")
    with pytest.raises(UnknownNameError):
        load_noise_bank("")
    with pytest.raises(UnknownNameError, match="synthetic_babble_v01"):
        SyntheticNoises().read("synthetic_bable_v01")
    with pytest.raises(UnknownNameError, match="simulated_room_01"):
        SimulatedRirs().read("simulated_room_1")


def tone(samples, rate, hz=440.0):
    return (0.3 * np.sin(2 * np.pi * hz * np.arange(samples) / rate)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    """Several formats, rates and channel counts, sub-folders, and files that are not sound."""
    root = tmp_path / "my noise"
    (root / "cafe" / "late").mkdir(parents=True)
    (root / ".hidden").mkdir()
    soundfile.write(root / "cafe" / "monday.wav", tone(32_000, 32_000), 32_000)
    soundfile.write(root / "cafe" / "late" / "sunday.flac", tone(16_000, 16_000), 16_000)
    soundfile.write(root / "rain.ogg", tone(44_100, 44_100), 44_100)
    soundfile.write(root / ".hidden" / "x.wav", tone(100, 16_000), 16_000)
    (root / "LICENSE.txt").write_text("CC0")
    (root / "._rain.ogg").write_bytes(b"resource fork")
    return root


def test_a_folder_is_a_bank(folder):
    bank = load_noise_bank(str(folder))
    assert bank.name == "my noise"
    assert [(info.id, info.family) for info in bank.noises()] == [
        ("cafe/late/sunday", "cafe"),
        ("cafe/monday", "cafe"),
        ("rain", "rain"),
    ]
    for info in bank.noises():
        samples = bank.read(info.id)
        # One second each, whatever the rate of the file before it.
        assert samples.size == SAMPLE_RATE
        spectrum = np.abs(np.fft.rfft(samples[2000:22000]))
        assert np.argmax(spectrum) * SAMPLE_RATE / 20_000 == pytest.approx(440, abs=2)


def test_the_version_follows_names_contents_and_channel(folder):
    first = load_noise_bank(folder).version
    assert load_noise_bank(folder).version == first
    assert load_noise_bank(folder, channel=1).version != first
    (folder / "LICENSE.txt").write_text("CC-BY-4.0")
    assert load_noise_bank(folder).version == first
    (folder / "rain.ogg").rename(folder / "drizzle.ogg")
    renamed = load_noise_bank(folder).version
    assert renamed != first
    soundfile.write(folder / "drizzle.ogg", tone(44_100, 44_100, 450.0), 44_100)
    assert load_noise_bank(folder).version not in (first, renamed)


def test_a_channel_is_chosen_never_averaged(tmp_path):
    left = tone(24_000, 24_000)
    soundfile.write(tmp_path / "cancel.wav", np.stack([left, -left], axis=1), 24_000, subtype="FLOAT")
    soundfile.write(tmp_path / "mono.wav", left, 24_000, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"cancel\.wav has 2 channels"):
        load_noise_bank(tmp_path).read("cancel")
    with pytest.raises(AudioError, match=r"cancel\.wav has 2 channels"):
        load_rir_bank(tmp_path).read("cancel")
    assert np.allclose(load_noise_bank(tmp_path, channel=1).read("cancel"), -left, atol=1e-6)
    assert np.allclose(load_noise_bank(tmp_path, channel=1).read("mono"), left, atol=1e-6)
    with pytest.raises(AudioError, match="none numbered 2"):
        load_rir_bank(tmp_path, channel=2).read("cancel")


@pytest.mark.parametrize("load", [load_noise_bank, load_rir_bank])
def test_bad_folders_are_refused(tmp_path, load):
    with pytest.raises(DataError, match="does not exist"):
        load(tmp_path / "nowhere")
    with pytest.raises(DataError, match="does not exist"):
        load("./nowhere")
    with pytest.raises(DataError, match="holds no audio files"):
        load(tmp_path)
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    with pytest.raises(DataError, match="is a file"):
        load(tmp_path / "a.wav")
    (tmp_path / "a.flac").write_bytes(b"fLaC")
    with pytest.raises(DataError, match="share the id 'a'"):
        load(tmp_path)


@pytest.mark.parametrize("load", [load_noise_bank, load_rir_bank])
def test_bad_files_are_refused_by_name(tmp_path, load):
    (tmp_path / "broken.wav").write_bytes(b"RIFF and so on")
    soundfile.write(tmp_path / "silent.wav", np.zeros(1000), 16_000)
    soundfile.write(tmp_path / "constant.wav", np.full(1000, 0.25), 16_000)
    soundfile.write(tmp_path / "nan.wav", np.array([0.1, np.nan, 0.2]), 16_000, subtype="FLOAT")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), 16_000)
    bank = load(tmp_path)
    for name in ("broken", "silent", "constant", "nan", "empty"):
        with pytest.raises(AudioError, match=rf"{name}\.wav"):
            bank.read(name)
    with pytest.raises(UnknownNameError, match="silent"):
        bank.read("silnt")


def test_noise_loses_its_offset(tmp_path):
    soundfile.write(tmp_path / "a.wav", tone(24_000, 24_000) + 0.2, 24_000, subtype="FLOAT")
    assert abs(float(load_noise_bank(tmp_path).read("a").mean())) < 1e-6
