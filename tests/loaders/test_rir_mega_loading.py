"""`load_dataset("squtr", "rir_mega", …)`: on the fly, from what was built, streaming or not."""

import math

import datasets
import pytest

import squtr
from squtr.errors import UnknownNameError, UsageError
from squtr.loaders.rir_mega.build import build_pairs
from squtr.loaders.rir_mega.recipe import open_pairs

from .rir_mega_for_tests import make_rooms, make_speech

OPTIONS = {"rt60_bins": 2, "rirs_per_utterance": 2}


def same(one, other):
    return [{k: "nan" if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in one] == [
        {k: "nan" if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()} for row in other
    ]


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    root = tmp_path_factory.mktemp("pairs")
    return {"source": f"recorded:{make_speech(root / 'speech')}", "rooms": str(make_rooms(root / "rooms"))}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "home"


@pytest.mark.parametrize("config", ["rir_mega", "rir_mega_clean", "rir_mega_reverb", "rir_mega_rooms"])
def test_on_the_fly_streaming_and_built_are_the_same(places, home, config):
    live = datasets.load_dataset("squtr", config, **places, **OPTIONS)
    assert {split: rows.num_rows for split, rows in live.items()} == (
        {"validation": 2, "test": 8} if config == "rir_mega_rooms" else {"validation": 4, "test": 16}
    )
    for split in ("validation", "test"):
        streamed = squtr.load_dataset(config, split=split, streaming=True, **places, **OPTIONS)
        assert same(streamed, live[split])
    folder = home / "rir_mega"
    build_pairs(open_pairs(places["source"], places["rooms"], **OPTIONS), folder)
    for source in (None, str(folder)):
        built = squtr.load_dataset(config, split="test", source=source)
        assert same(built, live["test"])
        assert built.features == live["test"].features
    inner = {"rir_mega": "paired"}.get(config, config.removeprefix("rir_mega_"))
    assert same(datasets.load_dataset(str(folder), inner, split="test"), live["test"])
    listed = datasets.get_dataset_config_names("squtr")
    assert config in listed
    assert "en_clean" not in listed


def test_several_processes_give_the_same(places):
    one = squtr.load_dataset("rir_mega_reverb", **places, **OPTIONS)
    two = squtr.load_dataset("rir_mega_reverb", **places, **OPTIONS, num_proc=2, keep_in_memory=True)
    assert same(one, two)


def test_options_decide_the_rows(places):
    plain = squtr.load_dataset("rir_mega", **places, rt60_bins=2)
    noisy = squtr.load_dataset("rir_mega", **places, rt60_bins=2, noise_snr=0.0, languages=["en"])
    assert plain["clean_audio"] == noisy["clean_audio"]
    assert plain["sample_id"] == noisy["sample_id"]
    assert all(one != other for one, other in zip(plain["reverb_audio"], noisy["reverb_audio"], strict=True))
    assert squtr.load_dataset("rir_mega", **places, pairs=5, split="validation").num_rows == 1


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        ("rir_mega", {"limit": 3}, "takes no option limit"),
        ("rir_mega", {"pairs": 300}, "there are 10"),
        ("rir_mega_revreb", {}, "Did you mean 'rir_mega_reverb'"),
        ("en_clean", {"noise_snr": 3.0}, "takes no option noise_snr"),
        ("rir_mega", {"rooms_per_uterance": 2}, "Did you mean 'rirs_per_utterance'"),
    ],
)
def test_wrong_calls(places, config, options, message):
    with pytest.raises(UsageError, match=message):
        squtr.load_dataset(config, **places, **options)


def test_an_unknown_split_is_said_plainly(places):
    with pytest.raises((ValueError, UnknownNameError), match="train"):
        squtr.load_dataset("rir_mega", split="train", **places)
