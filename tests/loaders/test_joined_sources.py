"""Several sources as one set, and noise that differs between its subsets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from squtr.errors import DataError, UnknownNameError, UsageError
from squtr.loaders.blocks import render_rows
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.origins import Origin, joined, licenses, origins
from squtr.loaders.recipe import OpenedRecipe, open_recipe
from squtr.loaders.sources import load_source
from squtr.loaders.sources.joined import JoinedSource

from .rirs_for_tests import make_speech

NOISE = {"en": "synthetic?family=babble", "": "synthetic?family=traffic,pink"}


def rows(opened: OpenedRecipe, subset: str, condition: str) -> list[bytes]:
    rendered = render_rows(opened, opened.condition(condition), opened.rows(subset, condition))
    return [row.audio for row in rendered]


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"recorded:{make_speech(tmp_path_factory.mktemp('sources') / 'own', 3)}?language=en&subset=own"


def test_every_row_is_the_one_of_its_own_source(speech: str) -> None:
    both = open_recipe(["mini", speech], conditions=["clean", "snr_5"], languages=["en"], limit=3, sample_rate=16_000)
    assert dict(both.recipe.subsets) == {"mini-en": "en", "own": "en"}
    assert [origin.subsets for origin in both.recipe.sources] == [("mini-en",), ("own",)]
    for source, subset in (("mini", "mini-en"), (speech, "own")):
        alone = open_recipe(source, conditions=["snr_5"], subsets=[subset], limit=3, sample_rate=16_000)
        assert rows(alone, subset, "snr_5") == rows(both, subset, "snr_5")
        assert list(alone.source.qrels(subset)) == list(both.source.qrels(subset))
        assert list(alone.source.documents(subset)) == list(both.source.documents(subset))


def test_the_folder_of_several_sources(speech: str, tmp_path: Path) -> None:
    build(open_recipe(["mini", speech], conditions=["clean"], languages=["en"], limit=2), tmp_path / "data")
    data = BuiltData(tmp_path / "data")
    assert [data.has_corpus(subset) for subset in ("mini-en", "own")] == [True, False]
    assert [origin.name for origin in origins(data.recipe, subsets=["own"])] == ["recorded:own"]
    card = (tmp_path / "data" / "README.md").read_text(encoding="utf-8")
    assert "Spoken queries from `mini` + `recorded:own`" in card
    assert "| source `recorded:own` (own) | unknown | – |" in card


def test_a_subset_of_two_sources_is_refused() -> None:
    with pytest.raises(DataError, match="'mini-en' is in both mini and mini"):
        open_recipe(["mini", load_source("mini")], conditions=["clean"])
    with pytest.raises(UsageError, match="no source"):
        JoinedSource([])


def test_every_subset_has_its_own_noise() -> None:
    opened = open_recipe("mini", conditions=["high_noise"], languages=["en", "zh"], noise=NOISE, limit=6)
    found = {
        subset: {
            row.noise_family
            for row in render_rows(opened, opened.condition("high_noise"), opened.rows(subset, "high_noise"))
        }
        for subset in ("mini-en", "mini-zh")
    }
    assert found["mini-en"] == {"babble"} and found["mini-zh"] <= {"traffic", "pink"}
    assert [(bank.name, bank.subsets) for bank in opened.recipe.noise] == [
        ("synthetic?family=babble", ("mini-en",)),
        ("synthetic?family=pink,traffic", ("mini-zh",)),
    ]
    alone = open_recipe("mini", conditions=["high_noise"], languages=["en"], noise=NOISE["en"], limit=6)
    assert rows(alone, "mini-en", "high_noise") == rows(opened, "mini-en", "high_noise")


@pytest.mark.parametrize("divided", [False, True])
def test_two_folders_of_one_name_are_two_banks(divided: bool, tmp_path: Path) -> None:
    """With equal ids as well, at a rate to which noises are resampled, and kept."""
    for place, seed in (("one", 1), ("two", 2)):
        (tmp_path / place / "noise").mkdir(parents=True)
        for name in "abc":
            samples = 0.1 * np.random.default_rng([seed, ord(name)]).standard_normal(8 * 16_000)
            soundfile.write(tmp_path / place / "noise" / f"{name}.wav", samples, 16_000)
    noise = {"en": str(tmp_path / "one" / "noise"), "zh": str(tmp_path / "two" / "noise")}
    given = {"conditions": ["snr_5"], "sample_rate": 16_000, "limit": 4, "divided": divided}
    both = open_recipe("mini", languages=["en", "zh"], noise=noise, **given)  # type: ignore[arg-type]
    for language, folder in noise.items():
        alone = open_recipe("mini", languages=[language], noise=folder, **given)  # type: ignore[arg-type]
        for split in both.recipe.splits:
            found = [
                [
                    row.audio
                    for row in render_rows(recipe, recipe.condition("snr_5"), recipe.rows(subset, "snr_5", split))
                ]
                for recipe in (both, alone)
                for subset in [f"mini-{language}"]
            ]
            assert found[0] == found[1]


def test_wrong_places_of_noise_are_named() -> None:
    with pytest.raises(UnknownNameError, match="'mini-fr'"):
        open_recipe("mini", conditions=["snr_5"], noise={"mini-fr": "synthetic", "": "synthetic"})
    with pytest.raises(UsageError, match="'mini-zh' has no noise"):
        open_recipe("mini", conditions=["snr_5"], noise={"en": "synthetic"})


def test_what_is_said_of_origins() -> None:
    recipe = open_recipe("mini", conditions=["snr_5"], noise=NOISE, limit=1).recipe.as_dict()
    assert licenses(recipe) == licenses({**recipe, "rirs": [{"name": "a", "license": "CC0-1.0"}]})
    assert [origin.name for origin in origins(recipe, "noise", ["mini-es"])] == ["synthetic?family=pink,traffic"]
    assert origins({}) == [] and joined([]) == ""
    assert Origin("a") == Origin("a", "", "", ())
