"""The cache of `datasets` never answers for another source, bank or option: each of them changes the key."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import soundfile

import squtr
from squtr.errors import UnknownNameError, UsageError
from squtr.loaders.build import build
from squtr.loaders.on_the_fly import OPTIONS
from squtr.loaders.recipe import open_recipe
from squtr.loaders.sources import load_source

from .collections_for_tests import make_collection
from .rirs_for_tests import make_rooms, make_speech, response

TABLES = ("en_clean", "tiny-en-corpus", "tiny-en-qrels")
PINK = "synthetic?family=pink"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def write(path: Path, seed: int) -> None:
    samples = np.random.default_rng(seed).standard_normal(24_000) * 0.1
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, samples, 24_000, subtype="PCM_16")


def key(config: str, **options: Any) -> str:
    return str(datasets.load_dataset_builder("squtr", config, **options).config_id)


def keys_around(change: Callable[[], object], config: str, **options: Any) -> tuple[str, str]:
    before = key(config, **options)
    assert key(config, **options) == before
    change()
    return before, key(config, **options)


def test_every_option_of_a_recipe_is_an_option_of_loading() -> None:
    """One that is added to `open_recipe` has to be added here too, or to what loading leaves out on purpose."""
    ours = {"source", "conditions", "subsets", "benchmark", "steps", "workers", "progress"}
    assert set(inspect.signature(open_recipe).parameters) - ours <= set(OPTIONS)


RT60, BOTH = {"stratify": "rt60", "rt60_bins": 3}, {"stratify": "rt60+drr", "rt60_bins": 2, "drr_bins": 1}


@pytest.mark.parametrize(
    ("before", "option"),
    [
        ({}, {"seed": 1}), ({}, {"limit": 3}), ({}, {"level": "active"}), ({}, {"sample_rate": 16_000}),
        ({}, {"draws": 2}), ({}, {"speech_channel": 0}), ({}, {"speech_channel": "mean"}),
        ({}, {"noise": "synthetic"}), ({}, {"noise": "synthetic?family=babble"}),
        ({}, {"noise": "synthetic?family=babble,pink"}), ({}, {"rirs": "simulated"}), ({}, {"stratify": "rt60"}),
        (RT60, {"rt60_bins": 2}), (RT60, {"rirs_per_utterance": 2}), (RT60, {"utterances": 4}),
        (RT60, {"splits": True}), (RT60, {"known_rirs_only": True}), (RT60, BOTH), (BOTH, {"drr_bins": 2}),
    ],
    ids=str,
)  # fmt: skip
def test_an_option_changes_the_key(before: dict[str, Any], option: dict[str, Any], tmp_path: Path) -> None:
    source = {"source": f"recorded:{make_speech(tmp_path / 'speech')}", "rirs": str(make_rooms(tmp_path / "rooms"))}
    given = {**source, "noise": PINK, **before}
    assert key("en_reverb_snr_0", **given) != key("en_reverb_snr_0", **{**given, **option})


def test_mended_speech_is_read_again(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / "clips" / f"{number}.wav", number)
    rows = [f'{{"id": "{n}", "file": "{n}.wav", "text": "word"}}' for n in range(3)]
    (tmp_path / "clips" / "manifest.jsonl").write_text("\n".join(rows) + "\n")
    source = {"source": f"recorded:{tmp_path / 'clips'}?language=en"}
    first = squtr.load_dataset("en_clean", **source)
    before, after = keys_around(lambda: write(tmp_path / "clips" / "1.wav", 9), "en_clean", **source)
    assert before != after
    mended = squtr.load_dataset("en_clean", **source)
    assert [a == b for a, b in zip(first["audio"], mended["audio"], strict=True)] == [True, False, True]
    text = (tmp_path / "clips" / "manifest.jsonl").read_text().replace('"text": "word"', '"text": "words"', 1)
    (tmp_path / "clips" / "manifest.jsonl").write_text(text)
    assert key("en_clean", **source) not in {before, after}
    assert squtr.load_dataset("en_clean", **source)["text"][:] == ["words", "word", "word"]


@pytest.mark.parametrize("table", ["qrels.en.jsonl", "queries.en.jsonl", "corpus.en.jsonl"])
def test_mended_tables_are_read_again(table: str, tmp_path: Path) -> None:
    root = make_collection(tmp_path / "tiny")
    path = next(root.glob(f"{table.partition('.')[0]}*en.jsonl"))
    for config in ("en_clean", "tiny-en-qrels", "tiny-en-corpus"):
        mended = path.read_text() + "\n"
        before, after = keys_around(functools.partial(path.write_text, mended), config, source=str(root))
        assert before != after, config


def test_recordings_of_a_text_source_are_part_of_it(tmp_path: Path) -> None:
    root = make_collection(tmp_path / "tiny")
    for number, id_ in enumerate(f"q{n}" for n in range(3)):
        write(tmp_path / "own" / f"{id_}.wav", number)
    rows = [f'{{"id": "q{n}", "file": "q{n}.wav", "subset": "tiny-en"}}' for n in range(3)]
    (tmp_path / "own" / "manifest.jsonl").write_text("\n".join(rows) + "\n")
    source = {"source": f"collection:{root}?speech={tmp_path / 'own'}&missing=skip"}
    before, after = keys_around(lambda: write(tmp_path / "own" / "q1.wav", 8), "en_clean", **source)
    assert before != after
    assert key("en_clean", source=f"collection:{root}") not in {before, after}


def test_what_is_left_out_is_another_source(tmp_path: Path) -> None:
    root = make_collection(tmp_path / "tiny")
    options = {"source": str(root)}
    assert key("en_clean", **options, on_bad="refuse") == key("en_clean", **options)
    assert len({key(config, **options, on_bad=on_bad) for config in TABLES for on_bad in ("refuse", "skip")}) == 6
    folder = str(tmp_path / "home" / "squtr")
    build(open_recipe(load_source(str(root)), conditions=["clean"], languages=["en"]), Path(folder))
    same = {key("en_clean"), key("en_clean", on_bad="refuse"), key("en_clean", on_bad="skip")}
    assert len(same) == 1
    skipped = load_source(str(root), on_bad="skip")
    build(open_recipe(skipped, conditions=["clean"], languages=["en"]), tmp_path / "skipped")
    assert key("en_clean", source=str(tmp_path / "skipped"), on_bad="skip")
    with pytest.raises(UsageError, match=r"was built with on_bad='skip'"):
        key("en_clean", source=str(tmp_path / "skipped"), on_bad="refuse")
    for place in ({}, options):
        with pytest.raises(UnknownNameError, match="Did you mean 'skip'"):
            key("en_clean", **place, on_bad="skipp")


def test_other_recordings_of_noise_and_rooms_are_other_banks(tmp_path: Path) -> None:
    root = str(make_collection(tmp_path / "tiny"))
    for number in range(2):
        write(tmp_path / "noise" / f"{number}.wav", number)
    rooms = make_rooms(tmp_path / "rooms", 3)
    options = {"source": root, "noise": str(tmp_path / "noise"), "rirs": str(rooms)}
    before, after = keys_around(lambda: write(tmp_path / "noise" / "1.wav", 7), "en_snr_0", **options)
    assert before != after
    before, after = keys_around(
        lambda: soundfile.write(rooms / "r01.wav", response(9, 0.4), 16_000, subtype="FLOAT"), "en_reverb", **options
    )
    assert before != after
    # What a config has nothing of is not in its key.
    before, after = keys_around(lambda: write(tmp_path / "noise" / "1.wav", 6), "en_reverb", **options)
    assert before == after


def test_a_folder_that_was_built_again_is_another(tmp_path: Path) -> None:
    root = make_collection(tmp_path / "tiny", queries=4, documents=5)
    folder = tmp_path / "home" / "squtr"

    def make(**options: Any) -> None:
        build(open_recipe(str(root), conditions=["clean"], languages=["en"], **options), folder)

    make()
    first = squtr.load_dataset("en_clean")
    keys = [key("en_clean"), key("en_clean", limit=2), key("en_clean", limit=3), key("en_clean", seed=1)]
    assert len(set(keys)) == 4
    write(root / "speech" / "en" / "q1.flac", 5)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    make()
    again = [key("en_clean"), key("en_clean", limit=2), key("en_clean", limit=3), key("en_clean", seed=1)]
    assert not set(keys) & set(again)
    assert squtr.load_dataset("en_clean")["audio"][1] != first["audio"][1]


def test_families_of_noise_are_what_is_mixed(tmp_path: Path) -> None:
    root = str(make_collection(tmp_path / "tiny", queries=4, documents=5))
    one = squtr.load_dataset("en_snr_0", source=root, noise=PINK)
    two = squtr.load_dataset("en_snr_0", source=root, noise="synthetic?family=speech_shaped")
    assert set(one["noise_family"]) == {"pink"}
    assert set(two["noise_family"]) == {"speech_shaped"}
    assert set(squtr.load_dataset("en_snr_0", source=root, noise=PINK)["noise_family"]) == {"pink"}
    by_language = {"en": PINK, "": "synthetic?family=speech_shaped"}
    assert set(squtr.load_dataset("en_snr_0", source=root, noise=by_language)["noise_family"]) == {"pink"}
    assert set(squtr.load_dataset("zh_snr_0", source=root, noise=by_language)["noise_family"]) == {"speech_shaped"}
