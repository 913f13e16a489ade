import hashlib
import socket

import numpy as np
import pytest

from squtr.errors import FetchError, IntegrityError, StorageError, UsageError
from squtr.loaders.banks.download import check_file, download
from squtr.loaders.retries import Backoff

from .web_for_tests import serve

CONTENT = np.random.default_rng(0).bytes(1_500_000)
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
MD5 = "md5:" + hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def web():
    with serve() as running:
        running.files["a.bin"] = CONTENT
        yield running


def waiting(pauses, attempts=4):
    return Backoff(attempts=attempts, sleep=pauses.append, jitter=lambda: 1.0)


def get(web, path, **options):
    pauses = []
    got = download(web.url("a.bin"), path, backoff=waiting(pauses), timeout_s=10, **options)
    return got, pauses


@pytest.mark.parametrize("checksum", ["", SHA256, MD5])
def test_a_file_arrives_whole_and_is_checked(web, tmp_path, checksum):
    seen = []
    got, pauses = get(
        web, tmp_path / "deep" / "a.bin", checksum=checksum, progress=lambda done, total: seen.append((done, total))
    )
    assert (tmp_path / "deep" / "a.bin").read_bytes() == CONTENT
    assert got.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert (got.bytes, got.checked) == (len(CONTENT), checksum.partition(":")[0])
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert seen == sorted(seen)
    assert pauses == []
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a.bin"]


def test_a_dropped_connection_continues_where_it_ended(web, tmp_path):
    web.breaks = [600_000, 100_000]
    _, pauses = get(web, tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert [asked for _, asked in web.asked] == ["", "bytes=600000-", "bytes=700000-"]
    assert pauses == [1.0, 1.0]


def test_the_next_call_continues(web, tmp_path):
    web.breaks = [400_000] + [0] * 3
    with pytest.raises(FetchError, match=r"a\.bin cannot be downloaded"):
        get(web, tmp_path / "a.bin")
    assert not (tmp_path / "a.bin").exists()
    assert (tmp_path / "a.bin.part").stat().st_size == 400_000
    web.asked.clear()
    get(web, tmp_path / "a.bin")
    assert web.asked == [("a.bin", "bytes=400000-")]
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_part_that_was_complete_is_only_checked(web, tmp_path):
    get(web, tmp_path / "a.bin")
    (tmp_path / "a.bin").rename(tmp_path / "a.bin.part")
    got, _ = get(web, tmp_path / "a.bin", checksum=SHA256)
    assert web.asked[-1] == ("a.bin", f"bytes={len(CONTENT)}-")
    assert got.bytes == len(CONTENT)
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


@pytest.mark.parametrize("checksum", ["", "known"])
def test_another_file_on_the_server_is_not_sewn_to_the_old_part(web, tmp_path, checksum):
    web.breaks = [400_000] + [0] * 3
    with pytest.raises(FetchError):
        get(web, tmp_path / "a.bin")
    web.files["a.bin"] = other = CONTENT[::-1]
    get(web, tmp_path / "a.bin", checksum="sha256:" + hashlib.sha256(other).hexdigest() if checksum else "")
    assert (tmp_path / "a.bin").read_bytes() == other


@pytest.mark.parametrize(("ranges", "etags"), [(False, True), (True, False), (False, False)])
def test_a_server_that_cannot_continue_starts_again(web, tmp_path, ranges, etags):
    web.ranges, web.etags, web.breaks = ranges, etags, [600_000]
    get(web, tmp_path / "a.bin")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_with_a_checksum_a_server_without_tags_continues_too(web, tmp_path):
    web.etags, web.breaks = False, [600_000]
    get(web, tmp_path / "a.bin", checksum=SHA256)
    assert web.asked[-1] == ("a.bin", "bytes=600000-")
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_wrong_checksum_is_refused_and_nothing_stays(web, tmp_path):
    with pytest.raises(IntegrityError, match=r"sha256 \w+ where 0000 is expected"):
        get(web, tmp_path / "a.bin", checksum="sha256:0000")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(IntegrityError, match="md5"):
        get(web, tmp_path / "a.bin", checksum="md5:0000")


def test_a_cut_file_of_unknown_length_is_found_by_its_checksum(web, tmp_path):
    web.says_length, web.breaks = False, [1000]
    with pytest.raises(IntegrityError):
        get(web, tmp_path / "a.bin", checksum=SHA256)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_told_at_once(web, tmp_path, status):
    web.statuses = [status]
    with pytest.raises(FetchError, match=rf"a\.bin cannot be downloaded: the server answers {status}"):
        get(web, tmp_path / "a.bin")
    assert len(web.asked) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_busy_server_is_asked_again(web, tmp_path):
    web.statuses = [503, 429, 500]
    _, pauses = get(web, tmp_path / "a.bin")
    assert pauses == [1.0, 2.0, 4.0]
    web.statuses = [503] * 9
    with pytest.raises(FetchError, match="503"):
        get(web, tmp_path / "b.bin")


def test_no_server(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pauses = []
    with pytest.raises(FetchError, match="cannot be downloaded"):
        download(f"http://127.0.0.1:{port}/a", tmp_path / "a", backoff=waiting(pauses, attempts=3))
    assert pauses == [1.0, 2.0]


def test_wrong_calls(tmp_path):
    for url in ("file:///etc/passwd", "ftp://x/y", "x"):
        with pytest.raises(UsageError, match="no address"):
            download(url, tmp_path / "a")
    (tmp_path / "f").write_bytes(b"x")
    with pytest.raises(UsageError, match="crc"):
        check_file(tmp_path / "f", "crc:00", "f")


def test_a_disk_that_refuses(web, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"a\.bin cannot be written"):
        get(web, tmp_path / "file" / "a.bin")
