"""Speech with several channels."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import squtr
from squtr.errors import AudioError, UsageError
from squtr.harness.cli import main
from squtr.loaders.audio import decode_audio
from squtr.loaders.recipe import open_recipe
from squtr.loaders.records import Samples
from squtr.loaders.sources import load_source, with_channel
from squtr.loaders.sources.collection import CollectionSource

from .collections_for_tests import make_collection

RATE = 24_000


def channels(count: int = 12_000) -> Samples:
    rng = np.random.default_rng(0)
    return (rng.standard_normal((count, 2)) * [0.1, 0.02]).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "voice"
    root.mkdir()
    soundfile.write(root / "q1.wav", channels(), RATE, subtype="FLOAT")
    row = {"file": "q1.wav", "text": "one", "speaker": "s", "id": "q1"}
    (root / "manifest.jsonl").write_text(json.dumps(row) + "\n")
    return root


def first_clip(name: str) -> Samples:
    source = load_source(name)
    subset = next(iter(source.subsets))
    return source.speech(next(iter(source.queries(subset)))).samples


def test_a_channel_or_the_mean_is_taken(folder: Path) -> None:
    name = f"recorded:{folder}?language=en"
    with pytest.raises(
        AudioError, match=r"(?s)q1\.wav of query 'q1' has 2 channels.*channel=0.*--speech-channel.*to 1"
    ):
        first_clip(name)
    for channel in (0, 1):
        np.testing.assert_array_equal(first_clip(f"{name}&channel={channel}"), channels()[:, channel])
    np.testing.assert_allclose(first_clip(f"{name}&channel=mean"), channels().mean(axis=1), atol=1e-7)
    with pytest.raises(AudioError, match="none numbered 2"):
        first_clip(f"{name}&channel=2")
    for wrong in ("left", "-1", "1.5", "²"):
        with pytest.raises(UsageError, match="Write a number from 0 on, or mean"):
            load_source(f"{name}&channel={wrong}")


def test_another_channel_is_another_version_and_survives_pickling(folder: Path) -> None:
    names = [with_channel(f"recorded:{folder}?language=en", channel) for channel in (None, 0, 1, "mean")]
    sources: list[Any] = [load_source(name) for name in names]
    assert len({source.version for source in sources}) == 4
    again = pickle.loads(pickle.dumps(sources[2]))
    subset = next(iter(again.subsets))
    np.testing.assert_array_equal(again.speech_at(again.queries(subset)[0], RATE).samples, channels()[:, 1])


def test_a_collection_and_texts_with_speech_have_it_too(folder: Path, tmp_path: Path) -> None:
    root = make_collection(tmp_path / "tiny")
    source = CollectionSource(root)
    subset = next(iter(source.subsets))
    for clip in (root / "speech").rglob("*.*"):
        soundfile.write(clip.with_suffix(".wav"), channels(), RATE, subtype="FLOAT")
        if clip.suffix != ".wav":
            shutil.move(clip.with_suffix(".wav"), clip)
    name = str(root)
    with pytest.raises(AudioError, match="has 2 channels"):
        first_clip(name)
    taken = load_source(with_channel(name, 1))
    assert taken.version != source.version
    np.testing.assert_array_equal(taken.speech(taken.queries(subset)[0]).samples, channels()[:, 1])
    np.testing.assert_array_equal(first_clip(f"{name}?channel=1"), channels()[:, 1])
    query = source.queries(subset)[0]
    row = {"file": "q1.wav", "id": query.id, "subset": query.subset}
    (folder / "manifest.jsonl").write_text(json.dumps(row) + "\n")
    spoken = load_source(f"collection:{root}?speech={folder}&missing=skip&channel=0")
    np.testing.assert_array_equal(spoken.speech(query).samples, channels()[:, 0])
    with pytest.raises(UsageError, match="which channel is taken of recordings, but has none"):
        load_source("mini?channel=0")


def test_channels_that_cancel_have_no_mean(tmp_path: Path) -> None:
    left = channels()[:, 0]
    path = tmp_path / "it.wav"
    soundfile.write(path, np.stack([left, -0.9 * left], axis=1), RATE, subtype="FLOAT")
    with pytest.raises(AudioError, match=r"the channels of it cancel: their mean keeps 0\.3%"):
        decode_audio(path, "it", channel="mean")
    soundfile.write(path, np.stack([left] + [0 * left] * 15, axis=1), RATE, subtype="FLOAT")
    np.testing.assert_allclose(decode_audio(path, "it", channel="mean")[0], left / 16, atol=1e-7)


def test_it_is_an_option_of_builds_and_of_loading(folder: Path, tmp_path: Path) -> None:
    name = f"recorded:{folder}?language=en"
    opened = open_recipe(name, conditions=["clean"], speech_channel=1, sample_rate=RATE)
    assert opened.recipe.sources[0].version.endswith("-channel-1-en")
    with pytest.raises(UsageError, match="is open: no channel of its speech can be chosen"):
        open_recipe(load_source(name), conditions=["clean"], speech_channel=1)
    out = tmp_path / "built"
    command = ["build", "--source", name, "--conditions", "clean", "--out", str(out)]
    assert main(command) == 1
    assert main([*command, "--speech-channel", "mean"]) == 0
    assert main([*command, "--speech-channel", "0"]) == 1
    mixed = squtr.load_dataset("en_clean", source=name, speech_channel="mean", split="test")
    for same in (
        squtr.load_dataset("en_clean", source=str(out), split="test"),
        squtr.load_dataset("en_clean", source=str(out), speech_channel="mean", split="test"),
    ):
        assert same[0]["audio"]["bytes"] == mixed[0]["audio"]["bytes"]
    other = squtr.load_dataset("en_clean", source=name, speech_channel=0, split="test")
    assert other[0]["audio"]["bytes"] != mixed[0]["audio"]["bytes"]
    with pytest.raises(UsageError, match="was not built with speech_channel=0"):
        squtr.load_dataset("en_clean", source=str(out), speech_channel=0, split="test")
