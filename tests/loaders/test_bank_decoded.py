"""Long recordings are decoded once and mapped; the samples are the same in every way to them."""

import numpy as np
import pytest
import soundfile

from squtr.loaders.banks import decoded, load_noise_bank
from squtr.loaders.banks.decoded import SHORTEST_SAMPLES, DecodedAudio, memory_cost


def sound(seed=0, samples=SHORTEST_SAMPLES):
    return (np.random.default_rng(seed).standard_normal(samples) * 0.1).astype(np.float32)


def test_a_long_sound_is_made_once(tmp_path):
    made = []

    def make():
        made.append(1)
        return sound()

    store = DecodedAudio(tmp_path / "d")
    first, second = store.get("a", make), DecodedAudio(tmp_path / "d").get("a", make)
    assert len(made) == 1
    assert np.array_equal(first, sound())
    assert np.array_equal(second, sound())
    assert not second.flags.writeable
    assert memory_cost(second) < 10_000 < memory_cost(sound())
    assert len(list((tmp_path / "d").iterdir())) == 1
    assert np.array_equal(store.get("b", lambda: sound(1)), sound(1))


def test_a_short_sound_is_not_kept(tmp_path):
    short = sound(samples=1000)
    assert DecodedAudio(tmp_path / "d").get("a", lambda: short) is short
    assert not (tmp_path / "d").exists()


def test_what_is_kept_but_broken_is_made_again(tmp_path):
    store = DecodedAudio(tmp_path / "d")
    store.get("a", sound)
    (kept,) = (tmp_path / "d").iterdir()
    whole = kept.read_bytes()
    for content in (b"", whole[:1000], b"\x00" * len(whole)):
        kept.unlink()
        kept.write_bytes(content)
        assert np.array_equal(store.get("a", lambda: sound(2)), sound(2))


def test_no_room_and_no_permission_only_cost_time(tmp_path, monkeypatch):
    monkeypatch.setattr(decoded, "LARGEST_BYTES", 100)
    assert np.array_equal(DecodedAudio(tmp_path / "d").get("a", sound), sound())
    assert list((tmp_path / "d").iterdir()) == []
    (tmp_path / "file").write_bytes(b"")
    assert np.array_equal(DecodedAudio(tmp_path / "file" / "d").get("a", sound), sound())


def test_a_bank_gives_the_same_samples_kept_or_not(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    folder = tmp_path / "noise"
    folder.mkdir()
    path = folder / "long.wav"
    soundfile.write(path, sound(3, 16_000 * 31) + np.float32(0.05), 16_000)
    first = load_noise_bank(folder).read("long")
    mapped = load_noise_bank(folder).read("long")
    assert memory_cost(mapped) < 10_000
    monkeypatch.setattr(decoded, "SHORTEST_SAMPLES", 10**9)
    plain = load_noise_bank(folder).read("long")
    assert memory_cost(plain) > 10_000
    assert np.array_equal(first, plain)
    assert np.array_equal(mapped, plain)
    monkeypatch.undo()
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    # Another file under the same name is another sound.
    soundfile.write(path, sound(4, 16_000 * 31), 16_000)
    assert not np.array_equal(load_noise_bank(folder).read("long"), plain)


@pytest.mark.parametrize("channel", [0, 1])
def test_channels_are_kept_apart(tmp_path, monkeypatch, channel):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    (tmp_path / "noise").mkdir()
    both = np.stack([sound(5), sound(6)], axis=1)
    soundfile.write(tmp_path / "noise" / "two.wav", both, 24_000, subtype="FLOAT")
    load_noise_bank(tmp_path / "noise", channel=1 - channel).read("two")
    assert np.allclose(load_noise_bank(tmp_path / "noise", channel=channel).read("two"), both[:, channel], atol=1e-3)
