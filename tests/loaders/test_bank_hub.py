"""A data set with an audio column as a bank. Folders stand for the Hub: `datasets` reads both alike."""

import io
import pickle

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, HubError, UnknownNameError, UsageError
from squtr.loaders.banks import load_noise_bank, load_rir_bank


def wav(seed=0, rate=16_000, channels=1):
    shape = (1600, channels) if channels > 1 else 1600
    buffer = io.BytesIO()
    soundfile.write(buffer, np.random.default_rng(seed).standard_normal(shape) * 0.1 + 0.02, rate, format="WAV")
    return buffer.getvalue()


def make(folder, columns, split="train", features=None):
    import datasets

    rows = {"audio": [{"bytes": wav(n), "path": f"s{n}.wav"} for n in range(3)], **columns}
    sound = {"bytes": datasets.Value("binary"), "path": datasets.Value("string")}
    types = {key: (features or {}).get(key) or datasets.Value("string") for key in rows}
    types["audio"] = sound if rows["audio"] else datasets.Value("string")
    if not rows["audio"]:
        rows["audio"] = [""] * len(rows["text"])
    table = datasets.Dataset.from_dict(rows, features=datasets.Features(types))
    if types["audio"] is sound:
        table = table.cast_column("audio", datasets.Audio())
    (folder / "data").mkdir(parents=True, exist_ok=True)
    table.to_parquet(folder / "data" / f"{split}-00000-of-00001.parquet")
    return f"hub:{folder}"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))


def test_rows_are_noises(tmp_path):
    import datasets

    family = datasets.ClassLabel(names=["rain", "street"])
    name = make(tmp_path / "set", {"id": ["b", "a", "c"], "label": [0, 1, 1]}, features={"label": family})
    bank = load_noise_bank(name)
    assert [(i.id, i.family) for i in bank.noises()] == [("a", "street"), ("b", "rain"), ("c", "street")]
    assert (bank.name, bank.license) == ("hub:set", "unknown")
    sound = bank.read("b")
    assert sound.size == 2400
    # Row 0, resampled, without its offset.
    assert abs(float(sound.mean())) < 1e-6
    direct = soundfile.read(io.BytesIO(wav(0)))[0]
    assert float(np.std(sound)) == pytest.approx(float(np.std(direct)), rel=0.2)
    assert not sound.flags.writeable
    assert np.array_equal(pickle.loads(pickle.dumps(bank)).read("b"), sound)
    with pytest.raises(UnknownNameError, match="'aa'"):
        bank.read("aa")


def test_ids_and_families_where_no_column_says_them(tmp_path):
    bank = load_noise_bank(make(tmp_path / "set", {"text": ["x", "y", "z"]}))
    assert [(i.id, i.family) for i in bank.noises()] == [("s0", "set"), ("s1", "set"), ("s2", "set")]
    nameless = {"audio": [{"bytes": wav(n), "path": None} for n in range(2)]}
    assert [i.id for i in load_noise_bank(make(tmp_path / "b", nameless)).noises()] == ["000000", "000001"]


def test_rows_are_rooms_and_keep_their_offset(tmp_path):
    bank = load_rir_bank(make(tmp_path / "set", {}) + "?license=CC0-1.0")
    assert list(bank.rirs()) == ["s0", "s1", "s2"]
    assert bank.license == "CC0-1.0"
    assert float(bank.read("s1").mean()) == pytest.approx(0.02, abs=0.01)


def test_the_version_follows_content_and_choices(tmp_path):
    name = make(tmp_path / "set", {"id": ["a", "b", "c"], "other": ["d", "e", "f"]})
    first = load_noise_bank(name).version
    assert load_noise_bank(name).version == first
    assert load_noise_bank(name + "?id=other").version != first
    assert load_noise_bank(name, channel=0).version != first
    assert load_noise_bank(name + "?license=MIT").version == first
    make(tmp_path / "set", {"id": ["a", "b", "x"], "other": ["d", "e", "f"]})
    assert load_noise_bank(name).version != first
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert load_noise_bank(f"hub:org/name@{commit}").version == commit
    assert load_noise_bank(f"hub:org/name@{commit}?split=test", channel=1).version == f"{commit}?split=test&channel=1"


def test_a_channel_is_chosen_never_averaged(tmp_path):
    rows = {"audio": [{"bytes": wav(0, channels=2), "path": "two.wav"}, {"bytes": wav(1), "path": "one.wav"}]}
    name = make(tmp_path / "set", rows)
    with pytest.raises(AudioError, match="2 channels"):
        load_noise_bank(name).read("two")
    bank = load_noise_bank(name, channel=1)
    assert bank.read("two").size == bank.read("one").size == 2400


def test_what_cannot_be_used(tmp_path):
    silence = io.BytesIO()
    soundfile.write(silence, np.zeros(1000), 16_000, format="WAV")
    rows = {"audio": [{"bytes": silence.getvalue(), "path": "a.wav"}, {"bytes": b"no sound", "path": "b.wav"}]}
    bank = load_noise_bank(make(tmp_path / "set", rows))
    with pytest.raises(AudioError, match=r"noise 'a' of hub:set is silent"):
        bank.read("a")
    with pytest.raises(AudioError, match=r"noise 'b' of hub:set cannot be read"):
        bank.read("b")
    with pytest.raises(DataError, match="'a' in rows 0 and 1"):
        load_noise_bank(make(tmp_path / "twice", {"id": ["a", "a", "b"]})).noises()
    with pytest.raises(UsageError, match="0 audio columns"):
        load_noise_bank(make(tmp_path / "texts", {"audio": [], "text": ["x"]})).noises()
    with pytest.raises(UnknownNameError, match="'audio'"):
        load_noise_bank(make(tmp_path / "o", {}) + "?audio=audoi").noises()
    with pytest.raises(UnknownNameError, match="family"):
        load_noise_bank(f"hub:{tmp_path / 'o'}?familly=x")
    make(tmp_path / "o", {}, split="test")
    with pytest.raises(UsageError, match=r"splits train, test.* \?split="):
        load_noise_bank(f"hub:{tmp_path / 'o'}").noises()
    assert len(load_noise_bank(f"hub:{tmp_path / 'o'}?split=test").noises()) == 3
    with pytest.raises(UsageError, match="40 digits"):
        load_noise_bank("hub:org/name@main")
    with pytest.raises(HubError, match=r"hub:org/name@\w+ cannot be loaded"):
        load_noise_bank("hub:org/name@" + "0" * 40).noises()
