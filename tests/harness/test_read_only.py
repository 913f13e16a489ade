"""A cache that may not be written: one that is complete serves, one that is not says so and names the folder."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from squtr.errors import StorageError
from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache, text_key
from squtr.harness.evaluation.store import Ranking, RankingKey, Store
from squtr.harness.protocols import Hit, Reply, Rewritten, Transcript

KEY = RankingKey("bm25", "corpus", "en", 10)


def fill(store: Store) -> None:
    store.keep_transcripts({"file": "pcm"}, {"pcm": (Transcript("a"), 1.0)}, language="en", model="m")
    store.keep_rewrites("r", "en", {"d": Rewritten("b")})
    store.keep_rankings(KEY, {"q": Ranking.of([Hit("d", 1.0)], 0.1)})
    store.keep_replies("a", {"k": Reply("c")})
    store.keep_indexing_s(KEY, 2.0)


@pytest.fixture
def complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a store that SQLite opens for reading only from now on, as on a disk that is mounted so."""
    folder = tmp_path / "cache"
    fill(Store(folder))
    connect = sqlite3.connect

    def read_only(path: Path, **options: float) -> sqlite3.Connection:
        return connect(f"file:{path}?mode=ro", uri=True, **options)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(sqlite3, "connect", read_only)
    return folder


def test_a_complete_store_serves(complete: Path) -> None:
    store = Store(complete)
    store.merge()
    fill(store)
    assert store.transcripts(["pcm"], language="en", model="m")["pcm"].text == "a"
    assert store.rankings(KEY, ["q"])["q"].hits == (Hit("d", 1.0),)


def test_what_is_not_there_says_read_only_and_the_folder(complete: Path) -> None:
    store = Store(complete)
    with pytest.raises(StorageError, match=rf"{complete} is read-only, and not all") as caught:
        store.keep_transcripts({"file": "pcm"}, {"other": (Transcript("b"), 1.0)}, language="en", model="m")
    assert "ree space" not in str(caught.value)
    with pytest.raises(StorageError, match="read-only"):
        store.keep_replies("another", {"k": Reply("c")})


def test_other_processes_read_the_main_file_where_they_may_write_none(
    complete: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    store = Store(complete, rank=1)
    fill(store)
    store.clear()
    store.close()
    main = Store(complete)
    main.merge([store.own])
    assert main.replies("a", ["k"])["k"].text == "c"


def test_a_full_disk_says_free_space(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with sqlite3.connect(store.path) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    opened = sqlite3.connect

    def small(path: Path, **options: float) -> sqlite3.Connection:
        connection = opened(path, **options)  # type: ignore[call-overload]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection  # type: ignore[no-any-return]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sqlite3, "connect", small)
        with pytest.raises(StorageError, match=f"Free space in {tmp_path}"):
            store.keep_replies("a", {str(i): Reply("long " * 1000) for i in range(50)})


def test_a_damaged_store_says_remove_it(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError, match="damaged; remove it: it is made again"):
        Store(tmp_path)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EROFS, "is read-only: make it writable"),
        (errno.EACCES, "is read-only: make it writable"),
        (errno.ENOSPC, "Free space there"),
        (errno.EDQUOT, "The quota is used up"),
    ],
)
def test_vectors_say_why_they_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    cache = DirectoryEmbeddingCache(tmp_path)
    vectors = np.ones((1, 2), np.float32)
    cache.put_many("space", [text_key("a")], vectors)

    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refused)
    with pytest.raises(StorageError, match=said):
        cache.put_many("space", [text_key("b")], vectors)
    assert list(DirectoryEmbeddingCache(tmp_path).get_many("space", [text_key("a")])) == [text_key("a")]
