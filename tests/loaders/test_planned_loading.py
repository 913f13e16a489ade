"""`load_dataset("squtr", …)` with a plan of RIRs: on the fly, from what was built, streaming or not."""

import functools
import math

import datasets
import pytest

import squtr
from squtr.errors import UnknownNameError, UsageError
from squtr.loaders.build import build
from squtr.loaders.recipe import open_recipe

from .rirs_for_tests import make_rooms, make_speech

OPTIONS = {"rt60_bins": 2, "rirs_per_utterance": 2, "sample_rate": 16_000, "splits": True}
SIZES = {"en_clean": (2, 8), "en_reverb": (4, 16), "en_reverb_snr_10": (4, 16), "rirs": (2, 8)}


def same(one, other):
    return [{k: "nan" if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in one] == [
        {k: "nan" if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in other
    ]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    root = tmp_path_factory.mktemp("pairs")
    return {"source": f"recorded:{make_speech(root / 'speech')}", "rirs": str(make_rooms(root / "rooms"))}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "home"


@pytest.mark.parametrize("config", SIZES)
def test_on_the_fly_streaming_and_built_are_the_same(places, home, config):
    live = datasets.load_dataset("squtr", config, **places, **OPTIONS)
    assert (live["validation"].num_rows, live["test"].num_rows) == SIZES[config]
    for split in ("validation", "test"):
        streamed = squtr.load_dataset(config, split=split, streaming=True, **places, **OPTIONS)
        assert same(streamed, live[split])
    folder = home / "squtr"
    build(open_recipe(conditions=["clean", "reverb", "reverb_snr_10"], **places, **OPTIONS), folder)
    for source in (None, str(folder)):
        built = squtr.load_dataset(config, split="test", source=source)
        assert same(built, live["test"])
        assert built.features == live["test"].features
    assert same(datasets.load_dataset(str(folder), config, split="test"), live["test"])
    listed = datasets.get_dataset_config_names("squtr")
    assert config in listed
    assert "en_high_noise" not in listed


def test_several_processes_give_the_same(places):
    one = squtr.load_dataset("en_reverb", **places, **OPTIONS)
    two = squtr.load_dataset("en_reverb", **places, **OPTIONS, num_proc=2, keep_in_memory=True)
    assert same(one, two)


def test_options_decide_the_rows(places):
    plain = squtr.load_dataset("en_reverb", **places, stratify="rt60", rt60_bins=2)
    noisy = squtr.load_dataset("en_reverb_snr_0", **places, stratify="rt60", rt60_bins=2, languages=["en"])
    assert plain["id"][:] == noisy["id"][:]
    assert all(one != other for one, other in zip(plain["audio"], noisy["audio"], strict=True))
    assert squtr.load_dataset("en_reverb", **places, utterances=5, splits=True, split="validation").num_rows == 1


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        ("en_reverb", {"utterances": 300}, "there are 10"),
        ("en_revreb", {"stratify": "rt60"}, "Did you mean 'reverb'"),
        ("en_reverb", {"rooms_per_uterance": 2}, "unknown option"),
        ("en_reverb", {"stratify": "rt6"}, "Did you mean 'rt60'"),
        ("rirs", {}, "where a plan deals them"),
    ],
)
def test_wrong_calls(places, config, options, message):
    with pytest.raises(UsageError, match=message):
        squtr.load_dataset(config, **places, **options)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("split", ["dev", "training", "test+dev", "dev[:10%]", ["test", "dev"]])
def test_an_unknown_split_says_how_to_get_splits(places, home, split, streaming):
    if streaming and not isinstance(split, str):
        return
    for load in (squtr.load_dataset, functools.partial(datasets.load_dataset, "squtr")):
        with pytest.raises(UnknownNameError, match=r"unknown split '(dev|training)'.*Give divided=True \(squtr build"):
            load("en_clean", split=split, streaming=streaming, **places)
    build(open_recipe(conditions=["clean"], source=places["source"]), home / "squtr")
    with pytest.raises(UnknownNameError, match=r"Known: test\. Give divided=True"):
        squtr.load_dataset("en_clean", split=split, streaming=streaming)
    # Where there are splits, they are listed.
    with pytest.raises(UnknownNameError, match=r"Known: .*test, .*validation\.$|Known: .*validation.*\.$"):
        squtr.load_dataset("en_clean", split=split, streaming=streaming, **places, **OPTIONS)


def test_parts_of_splits_are_taken(places):
    rows = squtr.load_dataset("en_clean", split="test[:2]+validation", **places, **OPTIONS)
    assert rows.num_rows == 4
    assert squtr.load_dataset("en_clean", split="all", **places, **OPTIONS).num_rows == 10
    both = squtr.load_dataset("en_clean", split="validation+test", streaming=True, **places, **OPTIONS)
    assert len(list(both)) == 10
