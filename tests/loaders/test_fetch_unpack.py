import io
import stat
import tarfile
import zipfile

import pytest

from squtr.errors import IntegrityError
from squtr.loaders.banks.unpack import unpack

HOSTILE = ["../out.wav", "/abs.wav", "a/../../out.wav", "..", "C:/x.wav", "a\\..\\..\\out.wav", "a:b.wav"]


def make_zip(path, members, modes=()):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)
            if name in modes:
                info.external_attr = modes[name] << 16
                info.create_system = 3
            archive.writestr(info, content)
    return path


def make_tar(path, members, types=()):
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            if name in types:
                info.type, info.linkname, info.size = types[name], "/etc/passwd", 0
            archive.addfile(info, io.BytesIO(content))
    return path


def test_files_come_out_where_they_belong(tmp_path):
    members = {"SCAFE/ch01.wav": b"one", "SCAFE/ch02.wav": b"two" * 9, "__MACOSX/SCAFE/._ch01.wav": b"x"}
    made = unpack(make_zip(tmp_path / "a.zip", members), tmp_path / "out")
    assert made == {"SCAFE/ch01.wav": 3, "SCAFE/ch02.wav": 27}
    assert (tmp_path / "out" / "SCAFE" / "ch02.wav").read_bytes() == b"two" * 9
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["SCAFE"]


@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar"])
def test_only_what_is_wanted_comes_out_of_a_tar(tmp_path, name):
    members = {"musan/noise/free/a.wav": b"a", "musan/speech/b.wav": b"b", "musan/README": b"c"}
    archive = make_tar(tmp_path / name, members)
    assert unpack(archive, tmp_path / "out", keep="musan/noise/", strip=1) == {"noise/free/a.wav": 1}
    assert not (tmp_path / "out" / "speech").exists()
    with pytest.raises(IntegrityError, match="no files below 'other/'"):
        unpack(archive, tmp_path / "out", keep="other/")


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_a_member_that_would_leave_the_folder_is_refused(tmp_path, name, make):
    suffix = "a.zip" if make is make_zip else "a.tar.gz"
    archive = make(tmp_path / suffix, {"good.wav": b"good", name: b"bad"})
    with pytest.raises(IntegrityError, match="outside of the folder"):
        unpack(archive, tmp_path / "deep" / "out")
    # Neither the bad one nor a good one before it.
    assert list((tmp_path / "deep" / "out").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [suffix, "deep"]


def test_links_and_devices_are_refused(tmp_path):
    archive = make_zip(tmp_path / "a.zip", {"ok": b"x", "link": b"/etc/passwd"}, {"link": stat.S_IFLNK | 0o777})
    with pytest.raises(IntegrityError, match="'link', which is no plain file"):
        unpack(archive, tmp_path / "out")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        archive = make_tar(tmp_path / "a.tar", {"ok": b"x", "link": b""}, {"link": kind})
        with pytest.raises(IntegrityError, match="'link', which is no plain file"):
            unpack(archive, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_damage_is_told_and_leaves_nothing(tmp_path):
    whole = make_zip(tmp_path / "a.zip", {"a.wav": bytes(range(256)) * 50}).read_bytes()
    middle = bytearray(whole)
    middle[60] ^= 0xFF
    for content in (whole[:200], b"no zip", bytes(middle)):
        (tmp_path / "a.zip").write_bytes(content)
        with pytest.raises(IntegrityError, match=r"a\.zip is damaged"):
            unpack(tmp_path / "a.zip", tmp_path / "out")
    packed = make_tar(tmp_path / "a.tar.gz", {"a.wav": bytes(range(256)) * 5000}).read_bytes()
    (tmp_path / "a.tar.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(IntegrityError, match="damaged"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_name_that_comes_twice_is_refused(tmp_path):
    archive = make_tar(tmp_path / "a.tar", {"x/a.wav": b"1", "y/a.wav": b"2"})
    with pytest.raises(IntegrityError, match="twice"):
        unpack(archive, tmp_path / "out", strip=1)
