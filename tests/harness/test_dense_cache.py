"""The store of embeddings: nothing is encoded twice, nothing half-written is read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from squtr.errors import IntegrityError, StorageError, UsageError
from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache, EmbeddingCache, text_key
from squtr.harness.components.retrievers import corpus_vectors
from squtr.harness.components.retrievers.dense import DenseRetriever
from squtr.loaders.records import Document

from .encoders_for_tests import HashedWordsEncoder


def vectors(n: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((n, 5)).astype(np.float32)


def test_what_was_put_is_got_bit_for_bit_also_by_another_process(tmp_path: Path) -> None:
    cache: EmbeddingCache = DirectoryEmbeddingCache(tmp_path)
    keys = [text_key(str(i)) for i in range(6)]
    values = vectors(6)
    assert cache.get_many("e-query", keys) == {}
    cache.put_many("e-query", keys[:4], values[:4])
    cache.put_many("e-query", keys[4:], values[4:])
    for reader in (cache, DirectoryEmbeddingCache(tmp_path)):
        found = reader.get_many("e-query", [*keys, text_key("unknown")])
        assert set(found) == set(keys)
        assert all(found[key].tobytes() == value.tobytes() for key, value in zip(keys, values, strict=True))
        assert reader.get_many("e-document", keys) == {}


def test_a_cache_sees_what_others_write_later(tmp_path: Path) -> None:
    reader, writer = DirectoryEmbeddingCache(tmp_path), DirectoryEmbeddingCache(tmp_path)
    key = text_key("a")
    assert reader.get_many("e", [key]) == {}
    writer.put_many("e", [key], vectors(1))
    assert set(reader.get_many("e", [key])) == {key}


def test_the_same_texts_make_one_shard(tmp_path: Path) -> None:
    cache = DirectoryEmbeddingCache(tmp_path)
    for _ in range(2):
        cache.put_many("e", [text_key("a")], vectors(1))
    cache.put_many("e", [], np.zeros((0, 5), dtype=np.float32))
    assert [path.suffix for path in (tmp_path / "e").iterdir()] == [".npz"]


def test_leftovers_of_a_killed_run_are_not_read(tmp_path: Path) -> None:
    cache = DirectoryEmbeddingCache(tmp_path)
    cache.put_many("e", [text_key("a")], vectors(1))
    (tmp_path / "e" / ".half.1.ab.part").write_bytes(b"half")
    assert set(DirectoryEmbeddingCache(tmp_path).get_many("e", [text_key("a")])) == {text_key("a")}


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "foreign"])
def test_a_damaged_shard_is_named(tmp_path: Path, damage: str) -> None:
    cache = DirectoryEmbeddingCache(tmp_path)
    cache.put_many("e", [text_key(str(i)) for i in range(50)], vectors(50))
    (shard,) = (tmp_path / "e").iterdir()
    whole = shard.read_bytes()
    if damage == "foreign":
        with shard.open("wb") as stream:
            np.savez(stream, keys=np.zeros(3), vectors=np.zeros(3))
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :]
        shard.write_bytes({"cut": whole[:middle], "flip": flipped, "empty": b""}[damage])
    with pytest.raises(IntegrityError, match=shard.name):
        DirectoryEmbeddingCache(tmp_path).get_many("e", [text_key(str(i)) for i in range(50)])


def test_wrong_calls_are_refused(tmp_path: Path) -> None:
    cache = DirectoryEmbeddingCache(tmp_path)
    for space in ("", "a/b", "..", "a b"):
        with pytest.raises(UsageError):
            cache.get_many(space, [])
    with pytest.raises(UsageError, match="2 keys"):
        cache.put_many("e", ["0" * 64, "1" * 64], vectors(1))


def test_a_disk_that_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageError, match="cannot be written"):
        DirectoryEmbeddingCache(tmp_path / "file").put_many("e", [text_key("a")], vectors(1))


def corpus() -> list[Document]:
    return [Document(str(i), "", f"word{i} word{i % 5}") for i in range(40)]


def test_a_corpus_is_encoded_once_for_all_retrievers(tmp_path: Path) -> None:
    plain = DenseRetriever(encoder=HashedWordsEncoder())
    plain.index(corpus(), language="en")
    for expected in (40 + 2, 0):
        encoder = HashedWordsEncoder()
        retriever = DenseRetriever(encoder=encoder, cache=DirectoryEmbeddingCache(tmp_path))
        retriever.index(corpus(), language="en")
        queries = ["word3 word1", "word7"]
        assert retriever.search(queries, k=10) == plain.search(queries, k=10)
        assert len(encoder.encoded) == expected


def test_roles_and_encoders_do_not_mix(tmp_path: Path) -> None:
    cache = DirectoryEmbeddingCache(tmp_path)
    encoder = HashedWordsEncoder()
    retriever = DenseRetriever(encoder=encoder, cache=cache)
    retriever.index([Document("a", "", "same text")], language="en")
    retriever.search(["same text"], k=1)
    assert encoder.encoded == [("document", "same text"), ("query", "same text")]
    wider = HashedWordsEncoder(width=24)
    DenseRetriever(encoder=wider, cache=cache).index([Document("a", "", "same text")], language="en")
    assert wider.encoded == [("document", "same text")]


class DiesLate(HashedWordsEncoder):
    """Fails, as if interrupted, once it has encoded a number of texts."""

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        if len(self.encoded) >= 24:
            raise KeyboardInterrupt
        return super().encode(texts, role=role)


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_vectors, "BLOCK_DOCUMENTS", 8)
    with pytest.raises(KeyboardInterrupt):
        DenseRetriever(encoder=DiesLate(), cache=DirectoryEmbeddingCache(tmp_path)).index(corpus(), language="en")
    encoder = HashedWordsEncoder()
    resumed = DenseRetriever(encoder=encoder, cache=DirectoryEmbeddingCache(tmp_path))
    resumed.index(corpus(), language="en")
    assert len(encoder.encoded) == 40 - 24
    whole = DenseRetriever(encoder=HashedWordsEncoder())
    whole.index(corpus(), language="en")
    assert resumed.search(["word3 word1"], k=40) == whole.search(["word3 word1"], k=40)
