"""The bare name "squtr" in `datasets`: every path gives the same bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest

import squtr
from squtr.errors import DataError, SqutrError, UnknownNameError
from squtr.harness.data import open_data
from squtr.loaders import on_the_fly
from squtr.loaders.build import build
from squtr.loaders.hook import _wrap, install
from squtr.loaders.recipe import OpenedRecipe, open_recipe
from squtr.loaders.records import Samples
from squtr.loaders.rirs.simulated import SimulatedRirs
from squtr.loaders.sources.release import REPOSITORY, REVISION

from .collections_for_tests import make_collection
from .sources_for_tests import make_release, zip_folder


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    # More than one block of rows, so that two processes have something to share.
    return str(make_collection(tmp_path_factory.mktemp("bare") / "tiny", queries=40, documents=45))


def audio(rows: object) -> list[bytes]:
    return [row["audio"]["bytes"] for row in rows]  # type: ignore[attr-defined]


def test_all_paths_give_the_same_bytes(root: str, tmp_path: Path) -> None:
    options = {"source": root, "split": "test"}
    one = datasets.load_dataset("squtr", "zh_snr_3", cache_dir=str(tmp_path / "1"), **options)
    two = datasets.load_dataset("squtr", "zh_snr_3", cache_dir=str(tmp_path / "2"), num_proc=2, **options)
    stream = datasets.load_dataset("squtr", "zh_snr_3", streaming=True, **options)
    ours = squtr.load_dataset("zh_snr_3", source=root, cache_dir=str(tmp_path / "3"))
    build(open_recipe(root, conditions=["snr_3"], languages=["zh"]), tmp_path / "built")
    folder = datasets.load_dataset(str(tmp_path / "built"), "zh_snr_3", split="test", cache_dir=str(tmp_path / "4"))
    expected = audio(one)
    assert len(expected) == 40
    assert audio(two) == audio(stream) == audio(ours) == audio(folder) == expected
    assert [row["id"] for row in two] == [row["id"] for row in stream] == [f"q{i}" for i in range(40)]
    assert one.features == two.features == folder.features == stream.features


def test_options_change_the_bytes_and_the_cache_key(root: str, tmp_path: Path) -> None:
    def load(**options: object) -> list[bytes]:
        return audio(squtr.load_dataset("tiny-en_high_noise", source=root, cache_dir=str(tmp_path), limit=2, **options))

    plain = load()
    assert load(seed=1) != plain
    assert load(level="active") != plain
    assert load() == plain


def test_cache_is_reused_until_the_source_changes(tmp_path: Path) -> None:
    root = make_collection(tmp_path / "tiny")
    first = squtr.load_dataset("en_clean", source=str(root), cache_dir=str(tmp_path / "cache"))
    again = squtr.load_dataset("en_clean", source=str(root), cache_dir=str(tmp_path / "cache"))
    assert first.cache_files == again.cache_files
    with (root / "corpus.en.jsonl").open("a") as file:
        file.write('{"_id": "new", "text": "new"}\n')
    changed = squtr.load_dataset("en_clean", source=str(root), cache_dir=str(tmp_path / "cache"))
    assert changed.cache_files != first.cache_files


def test_tables(root: str, tmp_path: Path) -> None:
    corpus = squtr.load_dataset("tiny-zh-corpus", source=root, cache_dir=str(tmp_path))
    qrels = squtr.load_dataset("tiny-zh-qrels", source=root, cache_dir=str(tmp_path), limit=3)
    assert len(corpus) == 45
    assert len(qrels) == 3


def test_a_stream_opens_banks_once_and_gives_its_first_row_early(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`datasets` asks for every block alone; banks that were opened again would make their rooms again."""
    calls: list[str] = []
    opened, read = on_the_fly.open_recipe, SimulatedRirs.read

    def open_counted(*arguments: Any, **options: Any) -> OpenedRecipe:
        calls.append("opened")
        return opened(*arguments, **options)

    def read_counted(bank: SimulatedRirs, rir_id: str) -> Samples:
        calls.append(rir_id)
        return read(bank, rir_id)

    monkeypatch.setattr(on_the_fly, "open_recipe", open_counted)
    monkeypatch.setattr(SimulatedRirs, "read", read_counted)
    rows = iter(squtr.load_dataset("en_reverb", source=root, streaming=True))
    next(rows)
    assert len(calls) == 1 + on_the_fly.FIRST_BLOCKS[0]
    assert len(list(rows)) == 39
    assert calls.count("opened") == 1
    # Each room once, though several blocks use it.
    assert len(set(calls)) == len(calls)


def test_blocks_follow_each_other() -> None:
    for size in (0, 1, 2, 3, 32, 33, 1000):
        bounds = list(on_the_fly._block_bounds(size))
        assert [n for start, stop in bounds for n in range(start, stop)] == list(range(size))
        assert all(0 < stop - start <= on_the_fly.ROWS_PER_BLOCK for start, stop in bounds)


def test_source_mini_streams() -> None:
    row = next(iter(squtr.load_dataset("es_reverb_low_noise", source="mini", streaming=True)))
    assert row["language"] == "es"
    assert row["snr_db"] == 20.0
    assert row["rt60_s"] > 0
    assert row["audio"]["bytes"][:4] == b"fLaC"


def test_config_names() -> None:
    names = squtr.config_names("mini")
    assert {"zh_medium_noise", "mini-es_reverb", "mini-en-qrels"} <= set(names)


def test_datasets_lists_the_configs(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path))
    assert {"zh_medium_noise", "mini-es-qrels"} <= set(datasets.get_dataset_config_names("squtr"))
    build(open_recipe(root, conditions=["snr_3"], languages=["en"], limit=2), tmp_path / "squtr")
    names = ["en_snr_3", "tiny-en_snr_3", "tiny-en-corpus", "tiny-en-qrels"]
    assert datasets.get_dataset_config_names("squtr") == names


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("zh_medum_noise", "Did you mean 'medium_noise'"),
        ("zz_clean", "unknown config 'zz_clean'"),
        ("tiny-e_clean", "Did you mean"),
    ],
)
def test_wrong_config(root: str, config: str, said: str) -> None:
    with pytest.raises(UnknownNameError, match=said):
        squtr.load_dataset(config, source=root)


def test_wrong_source() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'mini'"):
        squtr.load_dataset("en_clean", source="minni")


def test_wrong_option(root: str) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'noise'"):
        squtr.load_dataset("en_clean", source=root, noize="synthetic")


def test_missing_config_name() -> None:
    with pytest.raises(SqutrError, match="config's name is missing"):
        datasets.load_dataset("squtr", source="mini")


def test_no_source_never_means_mini(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path))
    with pytest.raises(DataError, match=r'no data set was built into .*source="mini"'):
        squtr.load_dataset("en_clean")


def test_no_source_reads_the_published_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path))
    archive = zip_folder(make_release(tmp_path / "release"), tmp_path / "source_data.zip")
    asked = []

    def download(repository: str, file: str, *, repo_type: str, revision: str) -> str:
        asked.append((repository, revision))
        return str(archive)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", lambda *_, **__: ["source_data.zip"])
    cache = str(tmp_path / "cache")
    rows = squtr.load_dataset("fiqa_high_noise", cache_dir=cache)
    assert set(asked) == {(REPOSITORY, REVISION)}
    published = open_data(f"release:{archive}")
    expected = list(published.spoken("fiqa", "high_noise"))
    assert [(r["id"], r["noise_id"]) for r in rows] == [(e.id, e.noise_id) for e in expected]
    assert audio(rows) == [e.audio for e in expected]
    assert audio(squtr.load_dataset("fiqa_high_noise", streaming=True)) == audio(rows)
    # Another mixture, or a condition that was not published, is made from the release's clean speech.
    assert "synthetic" in squtr.load_dataset("fiqa_snr_5", cache_dir=cache, limit=1)[0]["noise_id"]
    mixed = squtr.load_dataset("fiqa_high_noise", source=f"release:{archive}", cache_dir=cache, limit=1)
    assert "synthetic" in mixed[0]["noise_id"]
    assert squtr.load_dataset("fiqa-corpus", cache_dir=cache).column_names == ["id", "title", "text"]


def test_no_source_reads_what_was_built(root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path))
    build(open_recipe(root, conditions=["clean", "reverb"], languages=["en"], limit=4), tmp_path / "squtr")
    rows = squtr.load_dataset("en_reverb", cache_dir=str(tmp_path / "cache"))
    live = squtr.load_dataset("en_reverb", source=root, limit=4, cache_dir=str(tmp_path / "cache"))
    assert audio(rows) == audio(live)
    assert len(squtr.load_dataset("tiny-en-qrels", cache_dir=str(tmp_path / "cache"))) == 4
    with pytest.raises(UnknownNameError, match="en_clean"):
        squtr.load_dataset("en_snr_5", cache_dir=str(tmp_path / "cache"))


def test_errors_of_the_data_come_through_plainly(tmp_path: Path) -> None:
    root = make_collection(tmp_path / "tiny")
    (root / "speech/en/q1.flac").write_bytes(b"not a sound")
    with pytest.raises(SqutrError, match="query 'q1' cannot be read"):
        squtr.load_dataset("en_clean", source=str(root), cache_dir=str(tmp_path / "cache"))


@pytest.mark.parametrize("order", ["import squtr, datasets", "import datasets, squtr", "import squtr.errors, datasets"])
def test_any_import_order(order: str, tmp_path: Path) -> None:
    code = f"""{order}
from datasets import load_dataset
row = next(iter(load_dataset("squtr", "en_clean", source="mini", split="test", streaming=True)))
print(row["id"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "en-fin-q01\n"


def test_other_names_are_untouched() -> None:
    with pytest.raises(Exception, match="no-such-org") as raised:
        datasets.load_dataset("no-such-org/no-such-data")
    assert not isinstance(raised.value, SqutrError)


def test_wrapping_twice_changes_nothing() -> None:
    before = datasets.load.dataset_module_factory
    install()
    assert datasets.load.dataset_module_factory is before


def test_an_unknown_version_of_datasets_fails_loudly() -> None:
    class Other:
        @staticmethod
        def dataset_module_factory(name: str) -> None:
            return None

    _wrap(Other)  # type: ignore[arg-type]
    with pytest.raises(SqutrError, match="does not let squtr answer"):
        Other.dataset_module_factory("squtr")
    assert Other.dataset_module_factory("other") is None  # type: ignore[func-returns-value]
