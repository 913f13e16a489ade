"""The configs of a card that `mteb` loads: the queries' id and sound alone, over the same files."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest

from squtr.loaders.build import build
from squtr.loaders.card import config_folders, retrieval_folders
from squtr.loaders.manifest import read_manifest
from squtr.loaders.recipe import open_recipe

from .collections_for_tests import make_collection

CONDITIONS = ("clean", "high_noise")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("retrieval")
    build(open_recipe(str(make_collection(folder / "tiny")), conditions=CONDITIONS), folder / "data")
    return folder / "data"


def load(built: Path, config: str, cache: Path) -> datasets.Dataset:
    return datasets.load_dataset(str(built), config, split="test", cache_dir=str(cache))


def test_spoken_queries_have_nothing_but_id_and_sound(built: Path, tmp_path: Path) -> None:
    for condition in CONDITIONS:
        queries = load(built, f"tiny-zh_{condition}-queries", tmp_path)
        assert queries.column_names == ["id", "audio"]
        whole = load(built, f"tiny-zh_{condition}", tmp_path)
        assert queries["id"][:] == whole["id"][:]
        assert [a["bytes"] for a in queries["audio"]] == [a["bytes"] for a in whole["audio"]]


def test_typed_queries_have_nothing_but_id_and_text(built: Path, tmp_path: Path) -> None:
    queries = load(built, "tiny-zh_text-queries", tmp_path)
    assert queries.column_names == ["id", "text"]
    assert queries["text"][:] == load(built, "tiny-zh_clean", tmp_path)["text"][:]


def test_tables_are_those_of_the_subset(built: Path, tmp_path: Path) -> None:
    for table in ("corpus", "qrels"):
        same = load(built, f"tiny-en-{table}", tmp_path).to_list()
        assert load(built, f"tiny-en_high_noise-{table}", tmp_path).to_list() == same
        assert load(built, f"tiny-en_text-{table}", tmp_path).to_list() == same


def test_every_config_of_a_subset_has_its_three(built: Path) -> None:
    manifest = read_manifest(built)
    expected = {
        f"{subset}_{condition}-{table}"
        for subset in manifest.subsets
        for condition in (*CONDITIONS, "text")
        for table in ("queries", "corpus", "qrels")
    }
    patterns = retrieval_folders(manifest)
    assert set(patterns) == expected
    assert not expected & set(config_folders(manifest))
    # Nothing is stored twice: every folder holds files that are there anyway.
    for folders, _ in patterns.values():
        assert all(any(built.glob(f"{folder}/*.parquet")) for folder in folders)


def test_recordings_alone_have_none(built: Path) -> None:
    manifest = read_manifest(built)
    spoken = manifest.model_copy(update={"shards": [s for s in manifest.shards if s.path.startswith("queries/")]})
    assert retrieval_folders(spoken) == {}
