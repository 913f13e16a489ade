"""A divided folder stays divided as it was built, whatever else is asked of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest

import squtr
from squtr.errors import UnknownNameError, UsageError
from squtr.loaders.build import build
from squtr.loaders.recipe import open_recipe
from squtr.loaders.splits import SPLITS

from .rirs_for_tests import make_speech

NOISE = "synthetic?family=pink,speech_shaped"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = make_speech(tmp_path_factory.mktemp("divided") / "own", 12, rate=16_000)
    return f"recorded:{folder}?language=en&subset=own"


@pytest.fixture(scope="module")
def folder(speech: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Fewer than all, so that what is there would be divided in another way.
    out = tmp_path_factory.mktemp("built") / "data"
    given: dict[str, Any] = {"noise": NOISE, "limit": 8, "sample_rate": 16_000}
    build(open_recipe(speech, conditions=["clean", "snr_0"], divided=True, **given), out)
    return out


@pytest.mark.parametrize(
    "options", [{"seed": 4}, {"noise": "synthetic?family=speech_shaped"}, {"level": "active", "sample_rate": 8_000}]
)
def test_another_mixture_has_the_same_splits(options: dict[str, Any], folder: Path) -> None:
    built = squtr.load_dataset("en_snr_0", source=str(folder), split=None)
    mixed = squtr.load_dataset("en_snr_0", source=str(folder), split=None, **options)
    assert set(built) == set(mixed) == set(SPLITS)
    noises = []
    for split in SPLITS:
        assert sorted(mixed[split]["id"]) == sorted(built[split]["id"])
        assert mixed[split]["audio"][:] != built[split]["audio"][:]
        noises.append(set(mixed[split]["noise_id"]))
    assert not noises[0] & noises[2]
    streamed = squtr.load_dataset("en_snr_0", source=str(folder), split="train", streaming=True, **options)
    assert [row["audio"] for row in streamed] == list(mixed["train"]["audio"])


def test_what_a_divided_folder_is_asked(folder: Path, speech: str) -> None:
    source = {"source": str(folder)}
    built = squtr.load_dataset("en_snr_0", **source, split="train")
    assert (
        squtr.load_dataset("en_snr_0", **source, split="train", divided=True, splits=False)["audio"] == built["audio"]
    )
    fewer = squtr.load_dataset("en_snr_0", **source, split=None, limit=5)
    assert sum(rows.num_rows for rows in fewer.values()) == 5
    whole = squtr.load_dataset("en_snr_0", **source, split=None, divided=False)
    assert {split: rows.num_rows for split, rows in whole.items()} == {"test": 8}
    live = squtr.load_dataset("en_snr_0", source=speech, noise=NOISE, split=None, divided=True)
    assert set(built["id"]) <= set(live["train"]["id"])
    with pytest.raises(UsageError, match="none are"):
        squtr.load_dataset("en_snr_0", source=speech, noise=NOISE, shared_speakers=True)
    with pytest.raises(UsageError, match="Leave out stratify"):
        squtr.load_dataset("en_clean", **source, stratify="rt60")
    with pytest.raises(UnknownNameError, match=r"unknown split 'train'.*divided=True"):
        squtr.load_dataset("en_snr_0", source=speech, noise=NOISE, split="train")
