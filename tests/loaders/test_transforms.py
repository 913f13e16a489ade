"""What `datasets` does with sets of squtr, built, on the fly and streaming, where torchcodec cannot be imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
from datasets import Audio, Value
from datasets.distributed import split_dataset_by_node

import squtr
from squtr.loaders.build import build
from squtr.loaders.recipe import open_recipe
from squtr.loaders.undecoded import UndecodedAudio

from .collections_for_tests import make_collection

Rows = list[dict[str, Any]]
Transform = Callable[[Any, Path], Any]


def texts(rows: Any) -> Any:
    return rows.rename_column("text", "transcript")


def set_transform(rows: Any, _: Path) -> Any:
    rows = rows.select([0, 1])
    rows.set_transform(lambda batch: {"audio": batch["audio"], "length": [len(text) for text in batch["text"]]})
    return rows


def save_and_load(rows: Any, folder: Path) -> Any:
    rows.save_to_disk(str(folder / "saved"))
    return datasets.load_from_disk(str(folder / "saved")).map(lambda row: {"n": 1})


def to_parquet(rows: Any, folder: Path) -> Any:
    rows.to_parquet(folder / "p.parquet")
    return datasets.load_dataset(
        "parquet", data_files=str(folder / "p.parquet"), split="train", cache_dir=str(folder / "c")
    )


def loader(rows: Any, workers: int) -> Rows:
    from torch.utils.data import DataLoader

    batches = DataLoader(rows, batch_size=2, num_workers=workers, collate_fn=list)
    return [row for batch in batches for row in batch]


BOTH: dict[str, Transform] = {
    "map": lambda d, _: d.map(lambda row: {"n": len(row["text"])}),
    "map batched": lambda d, _: d.map(lambda batch: {"n": [len(t) for t in batch["text"]]}, batched=True),
    "map audio": lambda d, _: d.map(lambda row: {"audio": row["audio"]}),
    "map remove": lambda d, _: d.map(lambda row: {"n": 1}, remove_columns=["text"]),
    "filter": lambda d, _: d.filter(lambda row: bool(row["text"])),
    "shuffle": lambda d, _: d.shuffle(seed=1),
    "remove_columns": lambda d, _: d.remove_columns(["text", "seed"]),
    "rename_column": lambda d, _: texts(d),
    "rename audio": lambda d, _: d.rename_column("audio", "clip").rename_column("clip", "audio"),
    "rename_columns": lambda d, _: d.rename_columns({"text": "t", "id": "i"}),
    "select_columns": lambda d, _: d.select_columns(["audio", "text"]),
    "cast_column": lambda d, _: d.cast_column("seed", Value("int32")),
    "cast_column audio": lambda d, _: d.cast_column("audio", Audio(sampling_rate=24_000, decode=False)),
    "cast": lambda d, _: d.cast(d.features),
    "take": lambda d, _: d.take(2),
    "skip": lambda d, _: d.skip(1),
    "repeat": lambda d, _: d.repeat(2),
    "shard": lambda d, _: d.shard(num_shards=1, index=0),
    "split_dataset_by_node": lambda d, _: split_dataset_by_node(d, 0, 2),
    "interleave": lambda d, _: datasets.interleave_datasets([texts(d), texts(d)]),
    "concatenate": lambda d, _: datasets.concatenate_datasets([texts(d), texts(d)]),
    "renamed, mapped, filtered": lambda d, _: (
        texts(d).map(lambda row: {"n": 1}).filter(lambda row: True).remove_columns(["transcript"])
    ),
    "from_generator": lambda d, folder: datasets.Dataset.from_generator(
        lambda: iter(d), features=d.features, cache_dir=str(folder)
    ),
    "from_list": lambda d, _: datasets.Dataset.from_list(list(d), features=d.features),
    "DataLoader": lambda d, _: loader(d, 0),
    "DataLoader with workers": lambda d, _: loader(texts(d), 2),
}
FORMATTED: dict[str, Transform] = {
    **{f"with_format {name}": lambda d, _, name=name: d.with_format(name) for name in ("numpy", "torch", "arrow")},
    **{f"renamed {name}": lambda d, _, name=name: texts(d).with_format(name) for name in ("numpy", "torch", "pandas")},
    "batch": lambda d, _: d.batch(2),
}
MAP_STYLE: dict[str, Transform] = {
    "select": lambda d, _: d.select([1, 0]),
    "flatten_indices": lambda d, _: d.select([1, 0]).flatten_indices(),
    "set_transform": set_transform,
    "train_test_split": lambda d, _: d.train_test_split(0.5)["test"],
    "sort": lambda d, _: d.sort("id"),
    "class_encode_column": lambda d, _: d.class_encode_column("language"),
    "add_column": lambda d, _: d.add_column("n", list(range(len(d)))),
    "to_iterable_dataset": lambda d, _: texts(d.to_iterable_dataset(num_shards=2)),
    "to_list": lambda d, _: d.to_list(),
    "to_pandas": lambda d, _: d.to_pandas().to_dict("records"),
    "save_to_disk": save_and_load,
    "to_parquet": to_parquet,
    "map in processes": lambda d, _: d.map(lambda row: {"n": 1}, num_proc=2),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("transforms")
    source = str(make_collection(root / "tiny", queries=4, documents=5))
    build(open_recipe(source, conditions=["clean"], languages=["en"]), root / "built")
    return root


@pytest.fixture(autouse=True)
def no_torchcodec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchcodec", None)


def load(folder: Path, kind: str) -> Any:
    source = str(folder / ("built" if kind.startswith("built") else "tiny"))
    streaming = "streaming" in kind
    return squtr.load_dataset("en_clean", source=source, streaming=streaming, cache_dir=str(folder / "cache"))


@pytest.mark.parametrize("kind", ["built", "on the fly", "built, streaming", "streaming"])
def test_usual_transforms(kind: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    rows = load(folder, kind)
    expected = {row["audio"]["bytes"] for row in rows}
    assert len(expected) == 4
    transforms = BOTH if "streaming" in kind else BOTH | MAP_STYLE
    for name, transform in transforms.items():
        found = list(transform(rows, tmp_path / name))
        assert found, name
        assert {row["audio"]["bytes"] for row in found} <= expected, name
    for name, transform in FORMATTED.items():
        assert list(transform(rows, tmp_path / name)), name


def test_features_are_those_of_plain_audio(folder: Path, tmp_path: Path) -> None:
    plain = Audio(sampling_rate=24_000, decode=False)
    for _ in range(2):
        # The second time they are read back.
        rows = load(folder, "on the fly")
        assert type(rows.features["audio"]) is UndecodedAudio
        assert rows.features["audio"] == plain
        assert plain == rows.features["audio"]
        assert rows.features["audio"] != Audio(sampling_rate=24_000)
        assert datasets.Features.from_dict(rows.features.to_dict())["audio"] == plain
    row = next(iter(datasets.load_dataset(str(folder / "built"), "en_clean", split="test", cache_dir=str(tmp_path))))
    assert row["audio"] == rows[0]["audio"]


def test_what_needs_torchcodec_says_so(folder: Path) -> None:
    """What docs/data.md lists."""
    rows = load(folder, "streaming")
    with pytest.raises(ImportError, match="decoding audio data, please install 'torchcodec'"):
        next(iter(rows.cast_column("audio", Audio(sampling_rate=16_000))))
    array = {"array": [0.0], "sampling_rate": 24_000}
    with pytest.raises(ImportError, match="encoding audio data, please install 'torchcodec'"):
        rows.features["audio"].encode_example(array)
    plain = datasets.load_dataset(str(folder / "built"), "en_clean", split="test", streaming=True)
    with pytest.raises(ImportError, match="encoding audio data, please install 'torchcodec'"):
        next(iter(plain.remove_columns(["text"])))
    fixed = plain.cast_column("audio", UndecodedAudio(24_000)).remove_columns(["text"])
    assert next(iter(fixed))["audio"]["bytes"]
