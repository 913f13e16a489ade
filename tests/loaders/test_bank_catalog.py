"""Recorded banks by name: ids, families, layouts, and what is said when they are not there."""

import csv
import math
import pickle

import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, UnknownNameError, UsageError
from squtr.loaders.banks import load_noise_bank, load_rir_bank
from squtr.loaders.banks.catalog import CATALOG, DEMAND_ENVIRONMENTS, bank_folder
from squtr.loaders.conditions import parse_condition
from squtr.loaders.conditions.noise import draw_noise
from squtr.loaders.licenses import OTHER, merge_licenses
from squtr.loaders.recipe import open_recipe
from squtr.loaders.render import render


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def write(path, seed=0, rate=16_000, samples=1600, channels=1):
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (samples, channels) if channels > 1 else samples
    sound = (np.random.default_rng(seed).standard_normal(shape) * 0.1).astype(np.float32)
    soundfile.write(path, sound, rate)
    return path


def make_demand(folder, pattern="{0}/ch{1:02d}.wav"):
    for number, environment in enumerate(DEMAND_ENVIRONMENTS):
        for channel in range(1, 17):
            write(folder / pattern.format(environment, channel), seed=100 * number + channel)
    return folder


def test_the_catalog_is_consistent():
    for name, spec in CATALOG.items():
        assert spec.name == name
        assert spec.license == "unknown" or merge_licenses([spec.license]) != OTHER
        assert bool(spec.repository) != bool(spec.variants)
        for files in spec.variants.values():
            assert len({file.name for file in files}) == len(files)
            for file in files:
                assert spec.url(file).startswith(("https://", "http://"))
                assert file.checksum == "" or len(file.checksum) == len("md5:") + 32
    demand = CATALOG["demand"]
    assert [len(files) for files in demand.variants.values()] == [16, 16]
    assert demand.url(demand.files()[11]) == "https://zenodo.org/records/1227121/files/SCAFE_48k.zip?download=1"
    assert demand.url(demand.files("16k")[0], "http://mirror/x/") == "http://mirror/x/DKITCHEN_16k.zip"
    with pytest.raises(UnknownNameError, match="48k"):
        demand.files("44k")


@pytest.mark.parametrize("pattern", ["{0}/ch{1:02d}.wav", "{0}_48k/{0}/ch{1:02d}.wav"])
def test_demand(pattern):
    make_demand(bank_folder("demand"), pattern)
    # Its two environments that the benchmark does not use are passed over.
    write(bank_folder("demand") / "OOFFICE" / "ch01.wav")
    bank = load_noise_bank("demand")
    infos = bank.noises()
    assert len(infos) == 256
    assert infos[0].id == "demand_DKITCHEN_ch01"
    assert [info.family for info in infos if info.id == "demand_SCAFE_ch07"] == ["SCAFE"]
    assert {info.family for info in infos} == set(DEMAND_ENVIRONMENTS)
    assert (bank.name, bank.license) == ("demand", "CC-BY-SA-3.0")
    assert bank.read("demand_TBUS_ch16").size == 2400
    # The family is drawn first, then the channel: both by key alone.
    drawn = {draw_noise(("s", f"q{n}"), bank, 0).id for n in range(400)}
    assert len({noise_id.split("_")[1] for noise_id in drawn}) == 16
    assert len({noise_id.split("_")[2] for noise_id in drawn}) == 16
    assert load_noise_bank(f"demand:{bank_folder('demand')}").version == bank.version
    assert pickle.loads(pickle.dumps(bank)).version == bank.version


def test_a_demand_that_is_not_whole_is_no_demand(home):
    with pytest.raises(DataError) as caught:
        load_noise_bank("demand")
    assert str(caught.value) == (
        "the noise bank 'demand' has not been fetched. Run `squtr fetch noise demand`, or put its files into "
        f"{home}/banks/demand as <ENVIRONMENT>/ch01.wav to ch16.wav, for example SCAFE/ch07.wav."
    )
    write(bank_folder("demand") / "SCAFE" / "ch01.wav")
    with pytest.raises(DataError, match="lacks 255 of its 256 files, the first demand_DKITCHEN_ch01"):
        load_noise_bank("demand")
    # As a folder it may have what it has.
    assert len(load_noise_bank(bank_folder("demand")).noises()) == 1
    with pytest.raises(DataError, match="--to /nowhere"):
        load_noise_bank("demand:/nowhere")


def test_large_banks_are_hashed_once(monkeypatch):
    folder = make_demand(bank_folder("demand"))
    # Files that are this new are read again otherwise.
    monkeypatch.setattr("squtr.loaders.sources.digests._SETTLED_NS", 0)
    version = load_noise_bank("demand").version
    with monkeypatch.context() as patched:
        patched.setattr("squtr.loaders.sources.digests.file_sha256", lambda path: pytest.fail("read again"))
        assert load_noise_bank("demand").version == version
    write(folder / "SCAFE" / "ch07.wav", seed=12345)
    assert load_noise_bank("demand").version != version


def test_noisex(home):
    from scipy.io import savemat

    with pytest.raises(DataError, match="squtr fetch noise noisex"):
        load_noise_bank("noisex")
    folder = bank_folder("noisex")
    samples = (np.random.default_rng(0).standard_normal(19_980) * 3000).astype(np.int16)
    write(folder / "babble.wav", samples=800)
    assert load_noise_bank("noisex").read("noisex_babble").size == 1200
    # The published form wins.
    savemat(folder / "babble.mat", {"babble": samples[:, None].astype(np.float64)})
    bank = load_noise_bank("noisex")
    assert [(info.id, info.family) for info in bank.noises()] == [("noisex_babble", "BABBLE")]
    sound = bank.read("noisex_babble")
    assert sound.size == 24_000
    assert sound.dtype == np.float32
    assert float(np.std(sound)) == pytest.approx(3000 / 32768, rel=0.05)
    assert bank.version != ""
    savemat(folder / "babble.mat", {"a": samples, "b": samples})
    with pytest.raises(AudioError, match="2 signals"):
        load_noise_bank("noisex").read("noisex_babble")
    (folder / "babble.mat").write_bytes(b"no matrix")
    with pytest.raises(AudioError, match=r"babble\.mat cannot be read as a MATLAB file"):
        load_noise_bank("noisex").read("noisex_babble")


def test_musan():
    folder = bank_folder("musan")
    for name in ("noise/free-sound/noise-free-sound-0001", "noise/sound-bible/noise-sound-bible-0000"):
        write(folder / f"{name}.wav")
    write(folder / "speech" / "librivox" / "speech-librivox-0000.wav")
    bank = load_noise_bank("musan")
    assert [(i.id, i.family) for i in bank.noises()] == [
        ("musan_noise-free-sound-0001", "MUSAN"),
        ("musan_noise-sound-bible-0000", "MUSAN"),
    ]
    assert bank.license == "CC-BY-4.0"


def test_several_banks_as_one(tmp_path):
    make_demand(bank_folder("demand"))
    write(bank_folder("noisex") / "babble.wav")
    bank = load_noise_bank("demand+noisex")
    assert len({info.family for info in bank.noises()}) == 17
    assert [i.id for i in bank.noises()] == sorted(i.id for i in bank.noises())
    assert bank.name == "demand+noisex"
    assert bank.license == "CC-BY-SA-3.0, unknown"
    assert bank.version == "+".join(load_noise_bank(name).version for name in ("demand", "noisex"))
    assert np.array_equal(bank.read("noisex_babble"), load_noise_bank("noisex").read("noisex_babble"))
    with pytest.raises(UnknownNameError, match="noisex_babble"):
        bank.read("noisex_bable")
    with pytest.raises(DataError, match="in both"):
        load_noise_bank("noisex+noisex")
    with pytest.raises(UnknownNameError, match="Did you mean 'noisex'"):
        load_noise_bank("demand+noisx")
    # A folder whose name has the sign is a folder.
    write(tmp_path / "a+b" / "x.wav")
    assert load_noise_bank(str(tmp_path / "a+b")).name == "a+b"
    write(tmp_path / "rooms" / "r.wav")
    rooms = load_rir_bank(f"simulated+{tmp_path / 'rooms'}")
    assert len(rooms.rirs()) == 25
    assert np.array_equal(rooms.read("r"), load_rir_bank(tmp_path / "rooms").read("r"))
    with pytest.raises(UnknownNameError):
        rooms.read("s")


def make_rir_mega(folder, splits):
    rows = []
    for number, split in enumerate(splits):
        name = f"rir_{number:06d}"
        write(folder / "data" / f"{name}.wav", seed=number)
        metrics = f"{{'rt60': {0.5 + number}, 'drr_db': nan, 'c50_db': np.float64(3.25), 'band_rt60s': {{'125': nan}}}}"
        rows.append({"id": name, "split": split, "wav": f"data/{name}.wav", "metrics": metrics})
    (folder / "metadata").mkdir(parents=True)
    with (folder / "metadata" / "metadata.csv").open("w", newline="") as out:
        table = csv.DictWriter(out, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def test_rir_mega(home):
    folder = bank_folder("rir_mega")
    make_rir_mega(folder, ["train", "train", "val"])
    # The small copy that the repository also holds.
    (folder / "data-mini").mkdir()
    (folder / "data-mini" / "rir_000000.wav").write_bytes((folder / "data" / "rir_000000.wav").read_bytes())
    bank = load_rir_bank("rir_mega")
    assert list(bank.rirs()) == ["rir_000000", "rir_000001", "rir_000002"]
    assert bank.license == "CC-BY-NC-4.0"
    own = bank.own_values("rir_000001")
    assert (own["rt60_s"], own["c50_db"]) == (1.5, 3.25)
    assert math.isnan(own["drr_db"])
    assert math.isnan(own["c80_db"])
    with pytest.raises(UnknownNameError):
        bank.own_values("rir_9")
    train = load_rir_bank("rir_mega?split=train")
    assert list(train.rirs()) == ["rir_000000", "rir_000001"]
    assert train.name == "rir_mega?split=train"
    assert train.version != bank.version
    with pytest.raises(UnknownNameError, match="Did you mean 'train'"):
        load_rir_bank("rir_mega?split=trian")
    with pytest.raises(UnknownNameError, match="split"):
        load_rir_bank("rir_mega?splits=train")
    write(folder / "data-mini" / "rir_000000.wav", seed=99)
    with pytest.raises(DataError, match="share an id but differ"):
        load_rir_bank("rir_mega")


def test_rir_mega_reads_both_versions_of_its_metadata_and_knows_rooms():
    folder = bank_folder("rir_mega")
    make_rir_mega(folder, ["train", "train", "val"])
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "ID": ["rir_000000", "rir_000001", "rir_000002"],
        "RT60": [0.61, math.nan, None],
        "EDT": [0.4, 0.5, None],
        "seed_room": [7, 7, 8],
    }
    pq.write_table(pa.table(columns), folder / "metadata" / "metadata_v2.parquet")
    (folder / "data-mini" / "metadata").mkdir(parents=True)
    (folder / "data-mini" / "metadata" / "metadata.csv").write_text("id,split\nrir_000000,train\n")
    bank = load_rir_bank("rir_mega")
    own = [bank.own_values(rir_id) for rir_id in bank.rirs()]
    assert [values["rt60_s"] for values in own] == [0.61, 1.5, 2.5]
    assert [values["edt_s"] for values in own[:2]] == [0.4, 0.5]
    assert math.isnan(own[2]["edt_s"])
    assert [bank.room_of(rir_id) for rir_id in bank.rirs()] == [f"rir_mega_room_{n}" for n in (7, 7, 8)]
    assert list(load_rir_bank("rir_mega?split=train").rirs()) == ["rir_000000", "rir_000001"]
    with pytest.raises(UnknownNameError):
        bank.room_of("rir_9")
    (folder / "metadata" / "metadata_v2.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"metadata_v2\.parquet cannot be read"):
        load_rir_bank("rir_mega").own_values("rir_000000")


def test_a_sound_at_another_rate_is_resampled_once(tmp_path):
    from squtr.loaders.banks.details import own_values, read_at, room_of

    write(tmp_path / "rooms" / "r.wav", rate=16_000)
    bank = load_rir_bank(f"simulated+{tmp_path / 'rooms'}")
    native, _ = soundfile.read(tmp_path / "rooms" / "r.wav", dtype="float32")
    assert np.array_equal(read_at(bank, "r", 16_000), native)
    assert np.array_equal(read_at(bank, "r", 24_000), bank.read("r"))
    assert room_of(bank, "r") == "r"
    assert own_values(bank, "r") == {}


def test_metadata_that_cannot_be_read():
    folder = bank_folder("rir_mega")
    make_rir_mega(folder, ["train"])
    table = folder / "metadata" / "metadata.csv"
    table.write_text("id,split,metrics\nrir_000000,train,\"__import__('os')\"\n")
    with pytest.raises(DataError, match="'rir_000000' cannot be read"):
        load_rir_bank("rir_mega").own_values("rir_000000")
    table.write_text("id,split,rt60,drr_db\nrir_000000,train,0.7,\n")
    assert load_rir_bank("rir_mega").own_values("rir_000000")["rt60_s"] == 0.7
    table.write_text("id,split,rt60\nrir_000000,train,long\n")
    with pytest.raises(DataError, match="'long'"):
        load_rir_bank("rir_mega").own_values("rir_000000")


def test_names_of_the_other_kind_and_wrong_names():
    with pytest.raises(UnknownNameError, match="Known: demand, musan, noisex, synthetic"):
        load_noise_bank("rir_mega")
    with pytest.raises(UnknownNameError, match="Known: rir_mega, simulated"):
        load_rir_bank("demand")
    with pytest.raises(UnknownNameError, match="Did you mean 'demand'"):
        load_noise_bank("demnad")
    with pytest.raises(UnknownNameError, match="option of the noise bank demand"):
        load_noise_bank("demand?rate=16k")
    with pytest.raises(UsageError, match="noise bank 'demand\\?x' is not written"):
        load_noise_bank("demand?x")


def test_a_recipe_names_its_banks():
    make_demand(bank_folder("demand"))
    write(bank_folder("noisex") / "babble.wav")
    options = {"conditions": ["high_noise"], "languages": ["en"], "limit": 4}
    opened = open_recipe("mini", noise="demand+noisex", **options)
    (noise,) = opened.recipe.noise
    assert (noise.name, noise.license) == ("demand+noisex", "CC-BY-SA-3.0, unknown")
    assert noise.version == opened.context.noise.version
    assert opened.recipe.fingerprint != open_recipe("mini", noise="demand", **options).recipe.fingerprint
    (subset, _), *_ = opened.recipe.subsets
    for query in opened.queries(subset):
        row = render(query, opened.source.speech(query), parse_condition("high_noise"), opened.context)
        assert row.noise_id.split("_")[0] in ("demand", "noisex")
        assert row.noise_family in (*DEMAND_ENVIRONMENTS, "BABBLE")
