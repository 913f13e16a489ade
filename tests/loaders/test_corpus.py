"""A corpus read on demand: the same documents by position, slice, id and iteration, wherever they lie."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, StorageError
from squtr.harness.protocols import DocumentLookup
from squtr.loaders import corpus_parquet
from squtr.loaders.corpus import Corpus, as_corpus
from squtr.loaders.corpus_parquet import ParquetRows
from squtr.loaders.document_ids import DocumentIds
from squtr.loaders.manifest import Shard, file_sha256
from squtr.loaders.records import Document


def documents(n: int) -> list[Document]:
    return [Document(f"d{i * 7 % n}-é", "t" * (i % 3), f"text {i} 你好" * (i % 4)) for i in range(n)]


def write_parquet(folder: Path, rows: Sequence[Document], *, per_shard: int, per_group: int) -> list[Shard]:
    shards = []
    for start in range(0, len(rows), per_shard):
        part = rows[start : start + per_shard]
        table = pa.table({"id": [d.id for d in part], "title": [d.title for d in part], "text": [d.text for d in part]})
        path = folder / f"{start:05}.parquet"
        pq.write_table(table, path, row_group_size=per_group)
        shards.append(Shard(path=path.name, sha256=file_sha256(path), bytes=path.stat().st_size, rows=len(part)))
    return shards


def in_parquet(rows: Sequence[Document], folder: Path) -> Corpus:
    return Corpus(ParquetRows(folder, write_parquet(folder, rows, per_shard=40, per_group=7)))


MAKERS: dict[str, Callable[[Sequence[Document], Path], Corpus]] = {
    "sequence": lambda rows, _: as_corpus(rows),
    "arrow": lambda rows, _: Corpus.of(iter(rows)),
    "parquet": in_parquet,
}


@pytest.fixture(params=sorted(MAKERS))
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Sequence[Document]], Corpus]:
    return lambda rows: MAKERS[request.param](rows, tmp_path)


def test_every_way_to_a_document_gives_the_same(make: Callable[[Sequence[Document]], Corpus]) -> None:
    rows = documents(100)
    corpus = make(rows)
    assert len(corpus) == 100
    assert list(corpus) == rows
    assert corpus == rows
    assert rows == corpus
    assert corpus != rows[:-1]
    assert corpus != [*rows[:-1], rows[0]]
    assert [corpus[i] for i in (0, 6, 7, 39, 40, 99, -1, -100)] == [rows[i] for i in (0, 6, 7, 39, 40, 99, -1, -100)]
    for place in (
        slice(None),
        slice(5, 60),
        slice(38, 41),
        slice(9, 3),
        slice(90, 200),
        slice(-3, None),
        slice(2, 90, 9),
    ):
        assert corpus[place] == rows[place]
    assert corpus[::-1] == rows[::-1]
    for outside in (100, -101):
        with pytest.raises(IndexError):
            corpus[outside]
    assert list(corpus.ids) == [d.id for d in rows]


def test_documents_by_id_come_in_the_order_asked_for(make: Callable[[Sequence[Document]], Corpus]) -> None:
    rows = documents(100)
    corpus: DocumentLookup = make(rows)
    wanted = [rows[i] for i in (50, 3, 99, 3, 0)]
    assert corpus.by_id([d.id for d in wanted]) == wanted
    assert corpus.by_id([]) == []
    with pytest.raises(DataError, match="'nobody' is not in the corpus"):
        corpus.by_id([rows[0].id, "nobody"])


def test_an_empty_corpus_is_false_and_equal_to_an_empty_list(make: Callable[[Sequence[Document]], Corpus]) -> None:
    corpus = make([])
    assert not corpus
    assert corpus == []
    assert list(corpus) == list(corpus.ids) == corpus[:5] == []
    with pytest.raises(DataError, match="no documents"):
        corpus.check_ids()


def test_the_digest_is_that_of_ids_and_contents_in_order(make: Callable[[Sequence[Document]], Corpus]) -> None:
    rows = documents(30)
    assert make(rows).digest == as_corpus(rows).digest
    changed = [
        rows[::-1],
        rows[:-1],
        [Document("new", rows[0].title, rows[0].text), *rows[1:]],
        [Document(rows[0].id, rows[0].title, "new"), *rows[1:]],
        [Document(rows[0].id + "x", "", rows[0].contents[1:]), *rows[1:]],
    ]
    assert len({as_corpus(other).digest for other in [rows, *changed]}) == 6


def test_a_repeated_id_is_named_with_its_places(make: Callable[[Sequence[Document]], Corpus]) -> None:
    rows = documents(60)
    make(rows).check_ids()
    twice = [*rows[:50], Document(rows[20].id, "", "x"), *rows[50:], Document(rows[3].id, "", "y")]
    with pytest.raises(DataError, match="occurs twice, at positions 20 and 50 of the corpus"):
        make(twice).check_ids()


def test_lone_surrogates_are_kept() -> None:
    rows = [Document("a\ud800", "", "b\udfff"), Document("a", "", "")]
    corpus = Corpus.of(rows)
    assert list(corpus) == rows
    assert corpus.by_id(["a\ud800"]) == rows[:1]
    assert len(corpus.digest) == 64


@given(st.lists(st.text(max_size=4), unique=True, max_size=40))
def test_ids_are_ordered_by_code_points_and_found(ids: list[str]) -> None:
    held = DocumentIds.of(ids)
    assert list(held) == ids
    assert held.repeated is None
    order = sorted(range(len(ids)), key=ids.__getitem__)
    assert [int(held.ranks[i]) for i in order] == list(range(len(ids)))
    assert held.positions([*ids, "longer than any"]).tolist() == [*range(len(ids)), -1]
    assert held.take(np.arange(len(ids))[::-1]) == ids[::-1]
    assert held[1:3] == ids[1:3]


def test_ids_that_share_a_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    held = DocumentIds.of(["a", "b", "c"])
    monkeypatch.setattr("squtr.loaders.document_ids.hash", lambda _: 1, raising=False)
    assert held.positions(["c", "a", "x"]).tolist() == [2, 0, -1]


def test_ids_travel_to_another_process() -> None:
    held = DocumentIds.of(["b", "a"])
    assert held.positions(["a"]).tolist() == [1]
    assert pickle.loads(pickle.dumps(held)).positions(["a"]).tolist() == [1]


def test_a_corpus_that_is_not_held_is_read_from_a_mapped_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(corpus_parquet, "HELD_BYTES", 1)
    rows = documents(100)
    ids = [rows[i].id for i in (99, 0, 41, 40, 7)]
    shards = write_parquet(tmp_path, rows, per_shard=40, per_group=7)
    assert Corpus(ParquetRows(tmp_path, shards)).by_id(ids) == [rows[i] for i in (99, 0, 41, 40, 7)]
    (copy,) = (tmp_path / "home" / "corpora").iterdir()
    made = copy.stat().st_mtime_ns
    again = Corpus(ParquetRows(tmp_path, shards))
    assert again.by_id(ids) == [rows[i] for i in (99, 0, 41, 40, 7)]
    assert copy.stat().st_mtime_ns == made
    copy.write_bytes(copy.read_bytes()[:300])
    assert Corpus(ParquetRows(tmp_path, shards)).by_id(ids[:1]) == [rows[99]]
    assert [file.name for file in copy.parent.iterdir()] == [copy.name]


def test_a_home_that_cannot_hold_the_copy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(corpus_parquet, "HELD_BYTES", 1)
    with pytest.raises(StorageError, match="cannot be unpacked"):
        in_parquet(documents(9), tmp_path).by_id([documents(9)[0].id])


def test_a_damaged_or_foreign_shard_is_named(tmp_path: Path) -> None:
    shards = write_parquet(tmp_path, documents(50), per_shard=40, per_group=7)
    longer = [shards[0], shards[1].model_copy(update={"rows": 11})]
    with pytest.raises(DataError, match=r"00040\.parquet has 10 rows, the manifest says 11"):
        Corpus(ParquetRows(tmp_path, longer))[0]
    file = tmp_path / shards[1].path
    file.write_bytes(file.read_bytes()[:-100])
    for read in (list, lambda c: list(c.ids)):
        with pytest.raises(DataError, match=r"00040\.parquet cannot be read"):
            read(Corpus(ParquetRows(tmp_path, shards)))


def test_row_groups_are_read_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = in_parquet(documents(100), tmp_path)
    read: list[int] = []
    real = pq.ParquetFile.read_row_group

    def counted(self: pq.ParquetFile, group: int, **options: object) -> pa.Table:
        read.append(group)
        return real(self, group, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    assert corpus[8] == documents(100)[8]
    assert read == [1]
    assert corpus[7:14] == documents(100)[7:14]
    assert read == [1]
