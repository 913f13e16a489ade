"""Building a folder: complete, resumable, the same bytes every way, and safe with what was there."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest

from squtr.errors import DataError, IntegrityError, RecipeMismatchError, SqutrWarning, StorageError
from squtr.loaders import build as build_module
from squtr.loaders import engines as engines_module
from squtr.loaders.audio import pcm_sha256
from squtr.loaders.build import build, count_clips
from squtr.loaders.data import BuiltData, LiveData
from squtr.loaders.manifest import MANIFEST_NAME, file_sha256, read_manifest
from squtr.loaders.recipe import OpenedRecipe, open_recipe
from squtr.loaders.records import Document
from squtr.loaders.sources import load_source

from .collections_for_tests import make_collection

CONDITIONS = ["clean", "medium_noise", "reverb_snr_-5"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_collection(tmp_path_factory.mktemp("build") / "tiny")


@pytest.fixture(scope="module")
def opened(root: Path) -> OpenedRecipe:
    return open_recipe(str(root), conditions=CONDITIONS)


@pytest.fixture(scope="module")
def built(opened: OpenedRecipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "data"
    build(opened, out)
    return out


def digests(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): file_sha256(p) for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_folder(built: Path, opened: OpenedRecipe) -> None:
    manifest = read_manifest(built)
    assert manifest.complete
    assert manifest.recipe_fingerprint == opened.recipe.fingerprint
    listed = {shard.path for shard in manifest.shards}
    assert set(digests(built)) == listed | {"README.md", "eval.yaml", MANIFEST_NAME}
    assert "queries/zh/tiny-zh/reverb_snr_-5/test-00000-of-00001.parquet" in listed
    for shard in manifest.shards:
        assert file_sha256(built / shard.path) == shard.sha256
        assert (built / shard.path).stat().st_size == shard.bytes


def test_plain_datasets_reads_it(built: Path, tmp_path: Path) -> None:
    rows = datasets.load_dataset(str(built), "zh_medium_noise", split="test", cache_dir=str(tmp_path))
    assert [row["id"] for row in rows] == ["q0", "q1", "q2", "q3", "q4"]
    assert isinstance(rows.features["audio"], datasets.Audio)
    assert {row["snr_db"] for row in rows} == {10.0}
    assert rows[0]["audio"]["bytes"][:4] == b"fLaC"
    same = datasets.load_dataset(str(built), "tiny-zh_medium_noise", split="test", cache_dir=str(tmp_path))
    assert same[3]["audio"] == rows[3]["audio"]
    corpus = datasets.load_dataset(str(built), "tiny-en-corpus", split="test", cache_dir=str(tmp_path))
    assert corpus.column_names == ["id", "title", "text"]
    qrels = datasets.load_dataset(str(built), "tiny-en-qrels", split="test", cache_dir=str(tmp_path))
    assert qrels[0] == {"query-id": "q0", "corpus-id": "d0", "score": 2}


def test_no_nulls(built: Path) -> None:
    for shard in read_manifest(built).shards:
        table = pq.read_table(built / shard.path, partitioning=None)
        assert all(column.null_count == 0 for column in table.columns), shard.path


def test_pairing_across_conditions(built: Path, opened: OpenedRecipe) -> None:
    data = BuiltData(built)
    rows = {c: list(data.spoken("tiny-en", c)) for c in CONDITIONS}
    ids = [[row.id for row in rows[c]] for c in CONDITIONS]
    assert ids[0] == ids[1] == ids[2] == [q.id for q in opened.queries("tiny-en")]
    for clean, noisy, both in zip(*(rows[c] for c in CONDITIONS), strict=True):
        assert (noisy.noise_id, noisy.noise_offset_s) == (both.noise_id, both.noise_offset_s)
        assert noisy.duration_s == clean.duration_s
        assert clean.noise_id == clean.rir_id == noisy.rir_id == ""
        assert both.rir_id


def test_any_worker_count_gives_the_same_bytes(built: Path, opened: OpenedRecipe, tmp_path: Path) -> None:
    build(opened, tmp_path / "alone", workers=1)
    build(opened, tmp_path / "many", workers=7)
    assert digests(tmp_path / "alone") == digests(tmp_path / "many") == digests(built)


def test_on_the_fly_is_the_same_sound(built: Path, opened: OpenedRecipe) -> None:
    live, folder = LiveData(opened), BuiltData(built)
    for subset, condition in itertools.product(live.subsets, CONDITIONS):
        for here, there in zip(live.spoken(subset, condition), folder.spoken(subset, condition), strict=True):
            assert here.audio == there.audio
            assert here.id == there.id
        assert live.qrels(subset) == folder.qrels(subset)
        assert live.documents(subset) == folder.documents(subset)


class Stop(Exception):
    pass


@pytest.mark.parametrize("after", [1, 6, 13])
def test_a_stopped_build_continues(built: Path, opened: OpenedRecipe, tmp_path: Path, after: int) -> None:
    seen = 0

    def stop(n: int) -> None:
        nonlocal seen
        seen += n
        if seen >= after:
            raise Stop

    with pytest.raises(Stop):
        build(opened, tmp_path / "data", progress=stop)
    assert not read_manifest(tmp_path / "data").complete
    assert not list((tmp_path / "data").rglob(".*.parquet.*"))
    with pytest.raises(DataError, match="is not finished"):
        BuiltData(tmp_path / "data")
    counted: list[int] = []
    build(opened, tmp_path / "data", progress=counted.append)
    assert sum(counted) == count_clips(opened)
    assert digests(tmp_path / "data") == digests(built)


def test_finished_shards_are_kept(opened: OpenedRecipe, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a finished shard was rendered again")

    monkeypatch.setattr(engines_module, "rendered_take", never)
    build(opened, built)


def flip(path: Path) -> None:
    """One bit in the middle: the row count stays."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


VICTIMS = [
    f"{place}/test-00000-of-00001.parquet"
    for place in ("queries/en/tiny-en/clean", "queries/zh/tiny-zh/medium_noise", "corpus/tiny-en", "qrels/tiny-zh")
]


def test_damaged_shards_are_made_again(opened: OpenedRecipe, built: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(built, tmp_path / "data"))
    for victim in VICTIMS[1:]:
        flip(out / victim)
    (out / VICTIMS[0]).write_bytes((out / VICTIMS[0]).read_bytes()[:-50])
    with pytest.raises(DataError, match="cannot be read"):
        list(BuiltData(out).spoken("tiny-en", "clean"))
    with pytest.warns(SqutrWarning, match="4 shards were damaged and made again") as warned:
        build(opened, out)
    for victim in VICTIMS:
        assert victim in str(warned[0].message)
    assert digests(out) == digests(built)


@pytest.mark.parametrize("victim", VICTIMS)
def test_damage_in_an_unfinished_folder(
    opened: OpenedRecipe, built: Path, tmp_path: Path, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise Stop

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(build_module, "side_contents", stop)
        build(opened, tmp_path / "data")
    assert not read_manifest(tmp_path / "data").complete
    flip(tmp_path / "data" / victim)
    with pytest.warns(SqutrWarning, match="1 shard was damaged and made again") as warned:
        build(opened, tmp_path / "data")
    assert victim in str(warned[0].message)
    assert digests(tmp_path / "data") == digests(built)


def rewritten(out: Path, **change: Any) -> None:
    manifest = json.loads((out / MANIFEST_NAME).read_bytes())
    (out / MANIFEST_NAME).write_text(json.dumps(manifest | change), encoding="utf-8")


def test_a_manifest_takes_no_other_hash(opened: OpenedRecipe, built: Path, tmp_path: Path) -> None:
    """Somebody has made the manifest agree with a damaged file, and then removed the file."""
    out = Path(shutil.copytree(built, tmp_path / "data"))
    shards = [shard.model_dump() for shard in read_manifest(out).shards]
    next(shard for shard in shards if shard["path"] == VICTIMS[0])["sha256"] = "0" * 64
    rewritten(out, shards=shards)
    (out / VICTIMS[0]).unlink()
    before = (out / MANIFEST_NAME).read_bytes()
    with pytest.raises(IntegrityError, match=r"other bytes than the manifest .* lists .*sha256"):
        build(opened, out)
    assert (out / MANIFEST_NAME).read_bytes() == before


@pytest.mark.parametrize(
    ("libraries", "words"), [({}, "does not say which libraries"), ({"pyarrow": "1.0"}, r"pyarrow was 1\.0, is ")]
)
def test_other_libraries_may_give_other_bytes(
    opened: OpenedRecipe, built: Path, tmp_path: Path, libraries: dict[str, str], words: str
) -> None:
    out = Path(shutil.copytree(built, tmp_path / "data"))
    shards = [shard.model_dump() for shard in read_manifest(out).shards]
    next(shard for shard in shards if shard["path"] == VICTIMS[0])["sha256"] = "0" * 64
    rewritten(out, shards=shards, libraries=libraries)
    with pytest.warns(SqutrWarning) as warned:
        build(opened, out)
    assert any(re.search(words, str(one.message)) for one in warned)
    manifest = read_manifest(out)
    assert manifest.shards == read_manifest(built).shards
    now = read_manifest(built).libraries["pyarrow"]
    assert manifest.libraries["pyarrow"] == ", ".join(sorted({*libraries.values(), now}))


class Counted:
    """A source of texts that counts how often its corpus is read."""

    def __init__(self, source: Any) -> None:
        self._source, self.read = source, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def documents(self, subset: str) -> Iterator[Document]:
        self.read += 1
        yield from self._source.documents(subset)


def test_a_corpus_is_read_once(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "DOCUMENTS_PER_SHARD", 5)
    monkeypatch.setattr(build_module, "DOCUMENTS_PER_TABLE", 2)
    source = Counted(load_source(str(root)))
    opened, out = open_recipe(source, conditions=["clean"], languages=["en"]), tmp_path / "data"
    build(opened, out)
    assert source.read == 1
    shards = sorted((out / "corpus/tiny-en").iterdir())
    assert [shard.name for shard in shards] == [f"test-{i:05d}-of-00003.parquet" for i in range(3)]
    assert [pq.read_metadata(shard).num_rows for shard in shards] == [5, 5, 2]
    assert [d.id for d in BuiltData(out).documents("tiny-en")] == [f"d{i}" for i in range(12)]
    assert pq.read_metadata(shards[0]).num_row_groups == 3
    whole, times = digests(out), {shard: shard.stat().st_mtime_ns for shard in shards}
    build(opened, out)
    assert source.read == 1
    flip(shards[1])
    with pytest.warns(SqutrWarning, match="corpus/tiny-en/test-00001-of-00003"):
        build(opened, out)
    assert (source.read, digests(out)) == (2, whole)
    assert [shard for shard in shards if shard.stat().st_mtime_ns != times[shard]] == [shards[1]]


def test_a_corpus_that_became_another_is_refused(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "DOCUMENTS_PER_SHARD", 5)
    source = Counted(load_source(str(root)))
    opened, out = open_recipe(source, conditions=["clean"], languages=["en"]), tmp_path / "data"
    build(opened, out)
    before = (out / MANIFEST_NAME).read_bytes()
    (out / "corpus/tiny-en/test-00000-of-00003.parquet").unlink()
    monkeypatch.setattr(Counted, "documents", lambda *_: iter([Document("d0", "", "the only one")]))
    with pytest.raises(DataError, match="gives another corpus of tiny-en"):
        build(opened, out)
    assert (out / MANIFEST_NAME).read_bytes() == before


def test_another_recipe_is_refused(built: Path, root: Path) -> None:
    before = digests(built)
    with pytest.raises(RecipeMismatchError, match="seed 0 there, 5 here"):
        build(open_recipe(str(root), conditions=CONDITIONS, seed=5), built)
    assert digests(built) == before


def test_a_foreign_folder_is_refused(opened: OpenedRecipe, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RecipeMismatchError, match="not empty"):
        build(opened, tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"
    with pytest.raises(RecipeMismatchError, match="is a file"):
        build(opened, tmp_path / "thesis.txt")


def test_no_space(opened: OpenedRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(StorageError, match="no space is left"):
        build(opened, tmp_path / "data")
    monkeypatch.undo()
    build(opened, tmp_path / "data")


def test_the_card(built: Path) -> None:
    card = (built / "README.md").read_text(encoding="utf-8")
    assert "config_name: zh_reverb_snr_-5" in card
    assert "| tiny-en | en | 5 | 12 | 5 |" in card
    assert "v0 (3), v1 (2)" in card
    assert "CC0-1.0" in card
    assert "$" not in card


def test_shards_and_row_groups(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: Path) -> None:
    monkeypatch.setattr(build_module, "ROWS_PER_SHARD", 2)
    opened = open_recipe(str(root), conditions=["clean"], languages=["en"])
    build(opened, tmp_path / "data")
    shards = sorted((tmp_path / "data/queries/en/tiny-en/clean").iterdir())
    assert [s.name for s in shards] == [f"test-{i:05d}-of-00003.parquet" for i in range(3)]
    here = [pcm_sha256(r.audio, r.id) for r in BuiltData(tmp_path / "data").spoken("tiny-en", "clean")]
    there = [pcm_sha256(r.audio, r.id) for r in BuiltData(built).spoken("tiny-en", "clean")]
    assert here == there


def test_manifest_has_no_place_and_no_time(built: Path, tmp_path: Path, root: Path) -> None:
    text = (built / MANIFEST_NAME).read_text()
    assert str(root) not in text
    assert hashlib.sha256(text.encode()).hexdigest() == BuiltData(built).manifest_sha256
    assert json.loads(text)["schema_version"] == "1"


@pytest.mark.parametrize("content", ["", "{}", '{"schema_version": "99"}', "[]"])
def test_broken_manifest(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST_NAME).write_text(content)
    with pytest.raises(DataError, match=r"manifest\.json"):
        BuiltData(tmp_path)


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        BuiltData(tmp_path / "nowhere")
