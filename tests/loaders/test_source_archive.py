"""Zips from strangers: hostile members are refused by name, damage is an error, nothing is unpacked."""

from __future__ import annotations

import stat
import struct
import warnings
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import AudioError, DataError
from squtr.loaders.sources import archive
from squtr.loaders.sources.archive import FolderTree, ZipTree, read_recording


def make_zip(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


@pytest.mark.parametrize(
    "name",
    ["../evil", "a/../../evil", "a/..", "/etc/passwd", "//host/x", "C:/evil", "c:evil", "..\\evil", "a\\b", "a\\..\\b"],
)
def test_members_that_lead_out(tmp_path: Path, name: str) -> None:
    path = make_zip(tmp_path / "x.zip", {"good.txt": b"good", name: b"evil"})
    with pytest.raises(DataError) as caught:
        _ = ZipTree(path).files
    assert repr(name) in str(caught.value)
    assert "get it from its publisher" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["x.zip"]


def test_a_name_with_a_nul(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"goodXbad": b"x"})
    path.write_bytes(path.read_bytes().replace(b"goodXbad", b"good\0bad"))
    with pytest.raises(DataError, match="NUL"):
        _ = ZipTree(path).files


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices(tmp_path: Path, kind: int) -> None:
    info = zipfile.ZipInfo("data/link")
    info.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match="'data/link', which is a link or a device"):
        _ = ZipTree(tmp_path / "x.zip").files


def test_a_bomb(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"corpus.jsonl": b" " * (5 << 20)})
    with pytest.raises(DataError, match=r"'corpus\.jsonl', which would expand from .* to 5,242,880 bytes"):
        _ = ZipTree(path).files


def test_small_or_ordinary_members_are_no_bomb(tmp_path: Path) -> None:
    text = b"".join(b'{"_id": "d%d", "text": "some words here"}\n' % i for i in range(50_000))
    tree = ZipTree(make_zip(tmp_path / "x.zip", {"small": b" " * 1000, "corpus.jsonl": text}))
    assert dict(tree.files) == {"corpus.jsonl": len(text), "small": 1000}
    with tree.open("corpus.jsonl") as stream:
        assert stream.read() == text


def test_a_member_that_lies_about_its_size(tmp_path: Path) -> None:
    """A small declared size passes the check of the ratio, so reading must stop there."""
    content = b" " * (5 << 20)
    path = make_zip(tmp_path / "x.zip", {"a.wav": content})
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", len(content)), struct.pack("<I", 1000)))
    tree = ZipTree(path)
    assert tree.files["a.wav"] == 1000
    with pytest.raises(DataError, match=r"a\.wav in .*x\.zip is damaged"), tree.open("a.wav") as stream:
        stream.read()


def test_encrypted_members(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"a": b"x" * 100}, zipfile.ZIP_STORED)
    with zipfile.ZipFile(path) as file:
        flags = file.start_dir + 8
    content = bytearray(path.read_bytes())
    content[flags] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="is encrypted"):
        _ = ZipTree(path).files


def test_the_same_name_twice(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file.writestr("a", "one")
        file.writestr("a", "two")
    with pytest.raises(DataError, match="the member 'a' twice"):
        _ = ZipTree(tmp_path / "x.zip").files


def test_a_damaged_member(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"a.wav": b"content" * 100, "b.wav": b"other"}, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"contentcontent", b"contentCONTENT", 1))
    tree = ZipTree(path)
    with pytest.raises(DataError, match=r"a\.wav in .*x\.zip is damaged"):
        read_recording(tree, "a.wav")
    assert read_recording(tree, "b.wav") == b"other"


def test_a_zip_that_was_cut_off(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "x.zip", {"a": b"x" * 1000})
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="no usable zip"):
        _ = ZipTree(path).files
    with pytest.raises(DataError, match="does not exist"):
        _ = ZipTree(tmp_path / "none.zip").files


def test_a_recording_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ZipTree(make_zip(tmp_path / "x.zip", {"a.wav": b"x" * 1000}))
    monkeypatch.setattr(archive, "MAX_CLIP_BYTES", 999)
    with pytest.raises(AudioError, match=r"a\.wav in .* has 1,000 bytes"):
        read_recording(tree, "a.wav")


@given(st.dictionaries(st.text("ab/.é ", min_size=1, max_size=8), st.binary(max_size=50), max_size=5))
def test_folder_and_zip_agree(tmp_path_factory: pytest.TempPathFactory, members: dict[str, bytes]) -> None:
    root = tmp_path_factory.mktemp("tree")
    kept: dict[str, bytes] = {}
    for name, content in members.items():
        path = root / "folder" / name
        parts = name.split("/")
        if "" in parts or any(set(part) <= {".", " "} for part in parts) or path.exists():
            continue
        if any(parent.is_file() for parent in path.parents):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        kept[name] = content
    (root / "folder").mkdir(exist_ok=True)
    folder, packed = FolderTree(root / "folder"), ZipTree(make_zip(root / "x.zip", kept))
    assert dict(folder.files) == dict(packed.files)
    assert list(folder.files) == list(packed.files)
    digests = folder.kept_digests()
    for name in folder.files:
        assert read_recording(folder, name) == read_recording(packed, name) == kept[name]
        assert folder.crc32(name, digests) == packed.crc32(name, digests)
        assert folder.sha256(name, digests) == packed.sha256(name, packed.kept_digests())
