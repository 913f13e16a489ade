"""Train, validation and test that share nothing."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from datasets import load_dataset
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UsageError
from squtr.harness.cli import main
from squtr.loaders.banks import load_noise_bank, load_rir_bank
from squtr.loaders.banks.folder import FolderNoises
from squtr.loaders.blocks import render_rows
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.doctor import examine
from squtr.loaders.manifest import file_sha256, read_manifest
from squtr.loaders.recipe import OpenedRecipe, open_recipe
from squtr.loaders.splits import SHARES, SPLITS, Division, divide, noises_of, rirs_of

from .rirs_for_tests import make_rooms, make_speech

CONDITIONS = ["clean", "high_noise", "reverb_snr_5"]
RATE = 16_000


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"recorded:{make_speech(tmp_path_factory.mktemp('splits') / 'own', 12, rate=RATE)}?language=en&subset=own"


def opened(speech: str, **options: object) -> OpenedRecipe:
    given = {"conditions": CONDITIONS, "divided": True, "sample_rate": RATE, **options}
    return open_recipe(speech, **given)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(speech: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("divided") / "data"
    build(opened(speech), out)
    return out


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(1, 50), min_size=3, max_size=40))
def test_every_split_gets_one_and_about_its_share(sizes: dict[str, int]) -> None:
    found = divide(sizes, "things")
    assert found.keys() == sizes.keys()
    assert set(found.values()) == set(SPLITS)
    assert divide(dict(reversed(sizes.items())), "things") == found
    total, largest = sum(sizes.values()), max(sizes.values())
    for split, share in SHARES.items():
        own = sum(size for name, size in sizes.items() if found[name] == split)
        assert abs(own - share * total) <= 3 * largest


def test_the_folder_is_whole_and_its_splits_share_nothing(folder: Path) -> None:
    assert examine(folder).findings == ()
    for column in ("utterance_id", "speaker", "noise_id", "room_id"):
        values = []
        for split in SPLITS:
            files = sorted((folder / "queries").rglob(f"{split}-*.parquet"))
            assert len(files) == len(CONDITIONS)
            rows = [value for file in files for value in pq.read_table(file, partitioning=None)[column].to_pylist()]
            values.append({value for value in rows if value})
        assert all(values)
        assert not values[0] & values[1] and not values[0] & values[2] and not values[1] & values[2]


def test_a_speaker_in_two_splits_is_found(folder: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    file = next((copy / "queries/en/own/clean").glob("train-*.parquet"))
    table = pq.read_table(file, partitioning=None)
    other = next((copy / "queries/en/own/clean").glob("test-*.parquet"))
    speaker = pq.read_table(other, partitioning=None)["speaker"][0].as_py()
    place = table.schema.get_field_index("speaker")
    pq.write_table(table.set_column(place, table.schema.field(place), [[speaker] * table.num_rows]), file)
    held = read_manifest(copy)
    path = file.relative_to(copy).as_posix()
    own = {"sha256": file_sha256(file), "bytes": file.stat().st_size}
    shards = [shard.model_copy(update=own) if shard.path == path else shard for shard in held.shards]
    (copy / "manifest.json").write_bytes(held.model_copy(update={"shards": shards}).to_json())
    messages = [finding.message for finding in examine(copy).findings]
    assert any(f"1 speaker ids are in train and test, first {speaker!r}" in message for message in messages)


def test_every_split_is_read(folder: Path) -> None:
    loaded = load_dataset(str(folder), "en_high_noise")
    assert list(loaded) == list(SPLITS)
    for split in SPLITS:
        data = BuiltData(folder, split)
        assert [query.id for query in data.queries("own")] == loaded[split]["utterance_id"][:]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "share no utterance, speaker, noise recording and room" in card


def test_on_the_fly_it_is_the_same(folder: Path, speech: str) -> None:
    for split in SPLITS:
        there = load_dataset(str(folder), "own_reverb_snr_5", split=split)
        here = load_dataset(
            "squtr", "own_reverb_snr_5", source=speech, divided=True, sample_rate=RATE, split=split, streaming=True
        )
        assert [row["audio"]["bytes"] for row in here] == [row["audio"]["bytes"] for row in there]


def test_another_seed_draws_anew_within_the_same_splits(speech: str) -> None:
    one, other = opened(speech), opened(speech, seed=5)
    pairs = zip(one.rows("own", "high_noise", "train"), other.rows("own", "high_noise", "train"), strict=True)
    assert all(a == b for a, b in pairs)
    drawn = [
        [
            (row.noise_id, row.noise_offset_s)
            for row in render_rows(recipe, recipe.condition("high_noise"), recipe.rows("own", "high_noise", "train"))
        ]
        for recipe in (one, other)
    ]
    assert drawn[0] != drawn[1]
    kept = {info.id for info in noises_of(load_noise_bank("synthetic"), "train").noises()}
    assert {noise for of in drawn for noise, _ in of} <= kept


def test_what_is_divided_does_not_depend_on_what_else_is_asked_for() -> None:
    both = open_recipe("mini", conditions=["clean"], languages=["en", "zh"], divided=True)
    alone = open_recipe("mini", conditions=["high_noise"], subsets=["mini-zh"], divided=True, seed=3)
    for split in SPLITS:
        assert both.queries("mini-zh", split) == alone.queries("mini-zh", split)


def test_noises_are_divided_within_families() -> None:
    bank = load_noise_bank("synthetic")
    families = [Counter(info.family for info in noises_of(bank, split).noises()) for split in SPLITS]
    assert [set(of.values()) for of in families] == [{2}, {1}, {1}]


def test_rirs_are_divided_by_room(tmp_path: Path) -> None:
    bank = load_rir_bank(make_rooms(tmp_path / "rooms", 9))
    rooms = [set(rirs_of(bank, split)) for split in SPLITS]
    assert sorted(set.union(*rooms)) == sorted(bank.rirs()) and all(rooms)


def test_it_travels(speech: str) -> None:
    recipe = opened(speech)
    again = pickle.loads(pickle.dumps(recipe))
    for split in SPLITS:
        assert again.queries("own", split) == recipe.queries("own", split)


def test_two_speakers_are_not_enough_unless_they_may_be_shared(tmp_path: Path) -> None:
    root = make_speech(tmp_path / "own", 9, rate=RATE)
    table = root / "manifest.jsonl"
    table.write_text(table.read_text().replace('"s2"', '"s1"'))
    source = f"recorded:{root}?language=en&subset=own"
    with pytest.raises(DataError, match=r"2 speakers in 'en'.*--shared-speakers"):
        opened(source).takes("own")
    shared = opened(source, shared_speakers=True)
    assert [len(shared.takes("own", split)) for split in SPLITS] == [6, 1, 2]


def test_small_banks_are_refused(tmp_path: Path) -> None:
    import numpy as np
    import soundfile

    (tmp_path / "noise").mkdir()
    for name in ("a", "b"):
        soundfile.write(tmp_path / "noise" / f"{name}.wav", 0.1 * np.random.default_rng(0).standard_normal(RATE), RATE)
    with pytest.raises(DataError, match="the noise bank noise has 2 recordings"):
        noises_of(FolderNoises(tmp_path / "noise"), "test")
    with pytest.raises(DataError, match="has 2 rooms"):
        rirs_of(load_rir_bank(make_rooms(tmp_path / "rooms", 2)), "test")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"stratify": "rt60"}, "validation and test alone"), ({"divided": False, "shared_speakers": True}, "none are")],
)
def test_what_does_not_go_together_is_refused(speech: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        opened(speech, **options)


def test_the_command_divides(speech: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "data"
    command = ["build", "--source", speech, "--conditions", "clean", "snr_5", "--divide", "--out", str(out)]
    assert main(command) == 0, capsys.readouterr().err
    manifest = read_manifest(out)
    assert manifest.splits == list(SPLITS) and manifest.recipe["divided"]


def test_an_unknown_speaker_is_not_guessed(tmp_path: Path) -> None:
    root = make_speech(tmp_path / "own", 9, rate=RATE)
    table = root / "manifest.jsonl"
    table.write_text(table.read_text().replace('"s2"', '""'))
    source = open_recipe(f"recorded:{root}?language=en&subset=own", conditions=["clean"]).source
    with pytest.raises(DataError, match="utterances whose speaker is not known"):
        Division(source).split_of(source.queries("own")[0])
