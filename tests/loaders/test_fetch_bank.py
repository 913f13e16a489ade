"""Fetching a whole bank from a server on loopback, and from archives that someone put there."""

import hashlib
import io
import json
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from squtr.errors import FetchError, HubError, IntegrityError, UnknownNameError
from squtr.loaders.banks import load_noise_bank
from squtr.loaders.banks.catalog import CATALOG, DEMAND_ENVIRONMENTS, bank_folder
from squtr.loaders.banks.fetch import fetch_bank, where_from
from squtr.loaders.retries import Backoff

from .web_for_tests import serve

OPTIONS = {"backoff": Backoff(attempts=2, sleep=lambda _: None), "timeout_s": 10}


def wav(seed):
    buffer = io.BytesIO()
    soundfile.write(buffer, np.random.default_rng(seed).standard_normal(800) * 0.1, 16_000, format="WAV")
    return buffer.getvalue()


def zip_of(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def environment(name, seed=0):
    return zip_of({f"{name}/ch{channel:02d}.wav": wav(seed + channel) for channel in range(1, 17)})


@pytest.fixture
def web(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    with serve() as running:
        for number, name in enumerate(DEMAND_ENVIRONMENTS):
            running.files[f"{name}_48k.zip"] = environment(name, 100 * number)
        yield running


def fetch(web, name="demand", **options):
    return fetch_bank(CATALOG[name], base_url=web.address, **OPTIONS, **options)


def test_demand_arrives_and_is_a_bank(web):
    seen = []
    fetched = fetch(web, progress=lambda name, done, total: seen.append((name, done, total)))
    folder = bank_folder("demand")
    assert fetched.folder == folder
    assert len(fetched.new) == len(fetched.files) == 16
    assert {name for name, *_ in seen} == set(web.files)
    assert len(load_noise_bank("demand").noises()) == 256
    # Archives are gone; what was fetched is recorded.
    assert sorted(path.name for path in folder.iterdir()) == sorted([*DEMAND_ENVIRONMENTS, "fetched.json"])
    record = json.loads((folder / "fetched.json").read_text())
    scafe = next(file for file in record["files"] if file["name"] == "SCAFE_48k.zip")
    assert scafe["sha256"] == hashlib.sha256(web.files["SCAFE_48k.zip"]).hexdigest()
    assert scafe["url"] == web.url("SCAFE_48k.zip")
    assert scafe["checked"] == ""
    assert len(scafe["unpacked"]) == 16


def test_what_is_there_is_not_fetched_again(web):
    fetch(web)
    web.asked.clear()
    assert fetch(web).new == ()
    assert web.asked == []
    (bank_folder("demand") / "TBUS" / "ch03.wav").unlink()
    assert fetch(web).new == ("TBUS_48k.zip",)
    assert [name for name, _ in web.asked] == ["TBUS_48k.zip"]


def test_a_stopped_fetch_continues(web):
    web.breaks = [10**9, 10**9, 500, 0]
    with pytest.raises(FetchError, match=r"DWASHING_48k\.zip cannot be downloaded") as caught:
        fetch(web)
    assert f"put it into {bank_folder('demand')} as DWASHING_48k.zip" in caught.value.hint
    web.asked.clear()
    fetched = fetch(web)
    assert fetched.new[0] == "DWASHING_48k.zip"
    assert len(fetched.files) == 16
    assert web.asked[0] == ("DWASHING_48k.zip", "bytes=500-")
    assert len(load_noise_bank("demand").noises()) == 256


def test_archives_that_someone_put_there_need_no_network(web):
    folder = bank_folder("demand")
    folder.mkdir(parents=True)
    for name, content in web.files.items():
        (folder / name).write_bytes(content)
    fetched = fetch(web)
    assert web.asked == []
    assert len(load_noise_bank("demand").noises()) == 256
    assert {file.url for file in fetched.files} == {""}
    # They are not ours to remove.
    assert (folder / "SCAFE_48k.zip").exists()


def test_checksums_of_the_catalog_are_compared(web):
    web.files["DKITCHEN_16k.zip"] = environment("DKITCHEN")
    with pytest.raises(IntegrityError, match=r"md5 \w+ where 7ffbf52d7f4699f96927846103dc8788 is expected"):
        fetch(web, variant="16k")
    assert not (bank_folder("demand") / "DKITCHEN").exists()
    with pytest.raises(UnknownNameError, match="16k"):
        fetch(web, variant="8k")


def test_a_hostile_archive_leaves_nothing(web):
    web.files["DKITCHEN_48k.zip"] = zip_of({"DKITCHEN/ch01.wav": wav(0), "../../evil.wav": b"x"})
    with pytest.raises(IntegrityError, match="evil"):
        fetch(web)
    folder = bank_folder("demand")
    assert not list(folder.parents[1].rglob("evil.wav"))
    assert not (folder / "DKITCHEN").exists()


def test_a_server_that_lacks_a_file(web):
    del web.files["DKITCHEN_48k.zip"]
    with pytest.raises(FetchError, match="404") as caught:
        fetch(web)
    assert "zenodo.org/records/1227121" in caught.value.hint


def test_only_the_noise_of_musan_is_unpacked(web):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in ("noise/free-sound/noise-free-sound-0000.wav", "speech/us-gov/speech-us-gov-0000.wav"):
            info = tarfile.TarInfo(f"musan/{name}")
            info.size = len(wav(0))
            archive.addfile(info, io.BytesIO(wav(0)))
    web.files["musan.tar.gz"] = buffer.getvalue()
    with pytest.raises(IntegrityError, match="md5"):
        fetch(web, "musan")
    digest = hashlib.md5(web.files["musan.tar.gz"]).hexdigest()
    spec = CATALOG["musan"]
    file = replace(spec.files()[0], checksum=f"md5:{digest}")
    fetched = fetch_bank(replace(spec, variants={"all": (file,)}), base_url=web.address, **OPTIONS)
    assert fetched.files[0].checked == "md5"
    assert [info.id for info in load_noise_bank("musan").noises()] == ["musan_noise-free-sound-0000"]
    assert not list(bank_folder("musan").rglob("*speech*"))


def test_a_file_that_is_no_archive_stays_as_it_is(web):
    web.files["babble.mat"] = b"published"
    fetch(web, "noisex")
    assert (bank_folder("noisex") / "babble.mat").read_bytes() == b"published"
    assert fetch(web, "noisex").new == ()


def test_where_to_get_the_files_by_hand(tmp_path):
    text = where_from(CATALOG["demand"], tmp_path)
    assert text.count("https://zenodo.org/records/1227121/files/") == 16
    assert str(tmp_path) in text
    assert "md5:95daf4df678e13b120e14211e6d89571" in where_from(CATALOG["demand"], tmp_path, "16k")
    assert "mandipgoswami/rirmega at the commit fb74c5a" in where_from(CATALOG["rir_mega"], tmp_path)


def test_a_repository_comes_through_the_client_of_the_hub(tmp_path, monkeypatch):
    asked = {}

    def snapshot_download(repository, **options):
        asked.update(repository=repository, **options)
        return str(options["local_dir"])

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    fetched = fetch_bank(CATALOG["rir_mega"], tmp_path)
    assert asked["repository"] == "mandipgoswami/rirmega"
    assert asked["repo_type"] == "dataset"
    assert asked["revision"] == CATALOG["rir_mega"].revision
    assert fetched.new == ("mandipgoswami/rirmega",)


def test_no_hub(tmp_path):
    # The tests run with the Hub switched off.
    with pytest.raises(HubError, match="mandipgoswami/rirmega cannot be fetched") as caught:
        fetch_bank(CATALOG["rir_mega"], tmp_path / "r")
    assert f"put its files into {tmp_path / 'r'}" in caught.value.hint
