"""Vectors of a corpus: encoded once, in fixed blocks, by any number of processes, killed at any time."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from squtr.errors import DataError, IntegrityError, ModelError, StorageError
from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache
from squtr.harness.components.retrievers import corpus_vectors
from squtr.harness.components.retrievers.corpus_vectors import CorpusVectors
from squtr.harness.components.retrievers.dense import DenseRetriever
from squtr.harness.protocols import Preparable, Retriever
from squtr.loaders.corpus import Corpus, as_corpus
from squtr.loaders.records import Document

from .encoders_for_tests import HashedWordsEncoder


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_vectors, "BLOCK_DOCUMENTS", 8)


def corpus(n: int = 50) -> Corpus:
    return as_corpus([Document(f"d{i}", "", f"word{i} word{i % 5}") for i in range(n)])


class Neighbors(HashedWordsEncoder):
    """A vector depends a little on what is encoded with it, as those of real models do."""

    def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
        vectors = super().encode(texts, role=role)
        vectors = vectors * np.float32(1 + 1e-6 * len(texts)) + np.float32(1e-6) * vectors.mean(axis=0)
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_files_are_the_same_for_any_number_of_processes_in_any_order(tmp_path: Path) -> None:
    found = []
    for name, size in (("one", 1), ("two", 2), ("three", 3), ("many", 20)):
        encoders = [Neighbors() for _ in range(size)]
        for rank in reversed(range(size)):
            CorpusVectors(encoders[rank], root=tmp_path / name).prepare(corpus(), rank=rank, size=size)
        assert sum(len(encoder.encoded) for encoder in encoders) == 50, "nothing twice"
        found.append(files(tmp_path / name))
    assert len(found[0]) == 7
    assert all(other == found[0] for other in found)
    folder = CorpusVectors(Neighbors(), root=tmp_path / "one").folder
    assert folder is not None
    assert folder.name == f"{Neighbors().spec.fingerprint}-document-float32"


def test_prepared_and_indexed_alone_search_alike(tmp_path: Path) -> None:
    rankings = []
    for size, cache in ((1, None), (1, tmp_path / "one"), (3, tmp_path / "three")):
        kept = None if cache is None else DirectoryEmbeddingCache(cache)
        encoders = [Neighbors() for _ in range(size)]
        retrievers = [DenseRetriever(encoder=encoder, cache=kept) for encoder in encoders]
        for rank, retriever in enumerate(retrievers):
            preparable: Preparable = retriever
            preparable.prepare(corpus(), language="en", rank=rank, size=size)
        before = sum(len(encoder.encoded) for encoder in encoders)
        assert before == (0 if cache is None else 50)
        for retriever in retrievers:
            retriever.index(corpus(), language="en")
            rankings.append(retriever.search(["word3 word1", "word7"], k=50))
        assert sum(len(e.encoded) for e in encoders) == 50 + 2 * (size if cache is None else 1)
    assert all(ranking == rankings[0] for ranking in rankings)


def test_only_blocks_that_changed_are_encoded_again(tmp_path: Path) -> None:
    vectors = CorpusVectors(first := Neighbors(), root=tmp_path)
    assert [block.shape for block in vectors.blocks(corpus())] == [(8, 16)] * 6 + [(2, 16)]
    assert len(first.encoded) == 50
    rows = list(corpus())
    rows[20] = Document("d20", "", "another text")
    CorpusVectors(second := Neighbors(), root=tmp_path).blocks(as_corpus(rows))
    assert [text for _, text in second.encoded] == [rows[i].contents for i in range(16, 24)]


def test_half_precision_has_a_folder_of_its_own(tmp_path: Path) -> None:
    for storage in ("float32", "float16", "bfloat16"):
        CorpusVectors(HashedWordsEncoder(), root=tmp_path, storage=storage).prepare(corpus(8))  # type: ignore[arg-type]
    sizes = {folder.name.rpartition("-")[2]: sum(map(len, files(folder).values())) for folder in tmp_path.iterdir()}
    assert sizes == {
        "float32": 128 + 8 * 16 * 4 + 32,
        "float16": 128 + 8 * 16 * 2 + 32,
        "bfloat16": 128 + 8 * 16 * 2 + 32,
    }


def test_equal_texts_of_a_block_are_encoded_once(tmp_path: Path) -> None:
    encoder = HashedWordsEncoder()
    rows = as_corpus([Document(str(i), "", f"text {i % 3}") for i in range(8)])
    (block,) = CorpusVectors(encoder, root=tmp_path).blocks(rows)
    assert [text for _, text in encoder.encoded] == ["text 0", "text 1", "text 2"]
    assert np.array_equal(block.read(), HashedWordsEncoder().encode([d.contents for d in rows], role="document"))


def test_damage_is_named_and_mended_by_deleting_the_file(tmp_path: Path) -> None:
    vectors = CorpusVectors(HashedWordsEncoder(), root=tmp_path)
    vectors.blocks(corpus())
    whole = files(tmp_path)
    name = sorted(whole)[3]
    (tmp_path / name).write_bytes(whole[name][:-40])
    with pytest.raises(IntegrityError, match=Path(name).name):
        vectors.blocks(corpus())
    (tmp_path / name).unlink()
    vectors.blocks(corpus())
    assert files(tmp_path) == whole


def test_leftovers_of_a_killed_run_go_when_they_are_old(tmp_path: Path) -> None:
    vectors = CorpusVectors(HashedWordsEncoder(), root=tmp_path)
    assert vectors.folder is not None
    vectors.folder.mkdir(parents=True)
    old, new = vectors.folder / ".old.1.part", vectors.folder / ".new.2.part"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (0, 0))
    vectors.blocks(corpus())
    assert not old.exists()
    assert new.exists(), "another process may be writing it"


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_a_disk_without_room_is_named_before_it_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = HashedWordsEncoder()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10_000, 9_000, 1_000))
    with pytest.raises(StorageError, match=r"50 documents take .* GB.*float16"):
        CorpusVectors(encoder, root=tmp_path).prepare(corpus())
    assert len(encoder.encoded) == 8
    assert not files(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10_000, 0, 10_000))
    CorpusVectors(encoder, root=tmp_path).prepare(corpus())


def test_a_disk_that_gets_full_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = 0
    real = os.fsync

    def fills(descriptor: int) -> None:
        nonlocal done
        done += 1
        if done > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fills)
        with pytest.raises(StorageError, match="No space left"):
            CorpusVectors(Neighbors(), root=tmp_path / "full").blocks(corpus())
    assert len(files(tmp_path / "full")) == 3
    CorpusVectors(encoder := Neighbors(), root=tmp_path / "full").blocks(corpus())
    assert len(encoder.encoded) == 50 - 3 * 8
    CorpusVectors(Neighbors(), root=tmp_path / "empty").blocks(corpus())
    assert files(tmp_path / "full") == files(tmp_path / "empty")


def test_a_vector_that_is_not_finite_is_named_by_document(tmp_path: Path) -> None:
    class Breaks(HashedWordsEncoder):
        def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
            vectors = super().encode(texts, role=role)
            vectors[[text.startswith("word20 ") for text in texts]] = np.nan
            return vectors

    for root in (None, tmp_path):
        with pytest.raises(ModelError, match=r"a vector that is not finite for the document 'd20', which reads"):
            CorpusVectors(Breaks(), root=root).blocks(corpus())
    assert len(files(tmp_path)) == 2, "what came before is kept"


@pytest.mark.parametrize("shape", [(7, 16), (8,)])
def test_too_few_vectors_are_refused(shape: tuple[int, ...]) -> None:
    class Few(HashedWordsEncoder):
        def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
            return np.ones(shape, dtype=np.float32)

    with pytest.raises(ModelError, match="for 8 items"):
        CorpusVectors(Few()).blocks(corpus(8))


def test_vectors_of_several_widths_are_refused() -> None:
    class Grows(HashedWordsEncoder):
        def encode(self, texts: Sequence[str], *, role: Literal["query", "document"]) -> NDArray[np.float32]:
            self.width += 1
            return super().encode(texts, role=role)

    with pytest.raises(ModelError, match="17 and 18 dimensions"):
        CorpusVectors(Grows()).blocks(corpus(16))


@pytest.mark.parametrize("cached", [False, True])
def test_empty_documents_among_others_are_encoded_and_all_empty_ones_refused(tmp_path: Path, cached: bool) -> None:
    cache = DirectoryEmbeddingCache(tmp_path) if cached else None
    encoder = HashedWordsEncoder()
    retriever: Retriever = DenseRetriever(encoder=encoder, cache=cache)
    with pytest.raises(DataError, match="all 20 documents are empty"):
        retriever.index(as_corpus([Document(str(i), "", " ") for i in range(20)]), language="en")
    assert not encoder.encoded
    retriever.index([Document("a", "", ""), Document("b", "", "word")], language="en")
    assert [hit.document_id for hit in retriever.search(["word"], k=2)[0]] == ["b", "a"]


def test_progress_counts_every_document(tmp_path: Path) -> None:
    for root in (None, tmp_path, tmp_path):
        told: list[int] = []
        vectors = CorpusVectors(HashedWordsEncoder(), root=root)
        if root is not None:
            vectors.prepare(corpus(), progress=told.append)
        else:
            vectors.blocks(corpus(), progress=told.append)
        assert sum(told) == 50


KILLED = """
import sys, time
from pathlib import Path
from squtr.harness.components.retrievers import corpus_vectors
from tests.harness.test_corpus_vectors import Neighbors, corpus

class Slow(Neighbors):
    def encode(self, texts, *, role):
        time.sleep(0.02)
        return super().encode(texts, role=role)

corpus_vectors.BLOCK_DOCUMENTS = 8
print("started", flush=True)
rank, size = int(sys.argv[2]), int(sys.argv[3])
corpus_vectors.CorpusVectors(Slow(), root=Path(sys.argv[1])).prepare(corpus(800), rank=rank, size=size)
"""


@pytest.mark.slow
def test_killed_at_any_time_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    def start(rank: int, size: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", KILLED, str(tmp_path / "killed"), str(rank), str(size)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])

    rng = np.random.default_rng(0)
    kills = 0
    for _ in range(6):
        running = [start(rank, 2) for rank in range(2)]
        for process in running:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
        time.sleep(rng.uniform(0.0, 0.3))
        for process in running:
            process.send_signal(signal.SIGKILL)
            kills += process.wait() == -signal.SIGKILL
            process.stdout.close()  # type: ignore[union-attr]
    assert kills >= 6
    last = start(0, 1)
    last.communicate(timeout=60)
    assert last.returncode == 0
    CorpusVectors(Neighbors(), root=tmp_path / "whole").prepare(corpus(800))
    killed = {name: content for name, content in files(tmp_path / "killed").items() if not name.endswith(".part")}
    assert killed == files(tmp_path / "whole")
