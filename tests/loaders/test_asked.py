"""After a build, every argument of `load_dataset` is honored or refused: never answered with something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest
import soundfile

import squtr
from squtr.errors import DataError, SqutrError, UnknownNameError, UsageError
from squtr.harness.data import open_data
from squtr.loaders import build as builds
from squtr.loaders import on_the_fly
from squtr.loaders.asked import differing
from squtr.loaders.audio import decode_audio
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData, LiveData
from squtr.loaders.on_the_fly import OPTIONS
from squtr.loaders.recipe import open_recipe
from squtr.loaders.sources.built import BuiltSource

from .collections_for_tests import make_collection
from .rirs_for_tests import make_rooms

NOISE = "synthetic?family=pink"
BUILT = {"noise": NOISE, "limit": 4, "sample_rate": 16_000, "seed": 2, "level": "active"}
CONDITIONS = ["clean", "high_noise", "reverb"]

HONORED: dict[str, dict[str, Any]] = {
    "seed": {"seed": 4},
    "seed of the default": {"seed": 0},
    "noise": {"noise": "synthetic?family=speech_shaped"},
    "noise of languages": {"noise": {"en": "synthetic?family=speech_shaped"}},
    "level": {"level": "whole"},
    "limit": {"limit": 2},
    "limit and seed": {"limit": 2, "seed": 5},
    "sample_rate": {"sample_rate": 8_000},
    "draws": {"draws": 2},
    "stratify": {"stratify": "rt60"},
    "rt60_bins": {"stratify": "rt60", "rt60_bins": 2},
    "drr_bins": {"stratify": "rt60+drr", "rt60_bins": 2, "drr_bins": 1},
    "rirs_per_utterance": {"rirs_per_utterance": 2, "rt60_bins": 2},
    "known_rirs_only": {"known_rirs_only": True},
    "utterances": {"utterances": 3, "stratify": "rt60", "rt60_bins": 2},
}
"""Options that ask for another mixture. `rirs` are those of the test."""

SAME: dict[str, dict[str, Any]] = {
    "all": BUILT,
    "noise": {"noise": NOISE},
    "channel": {"channel": 0},
    "limit": {"limit": 4},
    "no plan": {
        "splits": False,
        "stratify": "",
        "rirs_per_utterance": 1,
        "known_rirs_only": False,
        "utterances": 0,
        "draws": 1,
    },
    "languages": {"languages": ["en"]},
    "rirs": {"rirs": "simulated"},
}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "noise": ({"noise": "/does/not/exist"}, "does not exist"),
    "rirs": ({"rirs": "/does/not/exist"}, "does not exist"),
    "channel": ({"channel": 1, "noise": "/does/not/exist"}, "does not exist"),
    "level": ({"level": "hole"}, "Did you mean 'whole'"),
    "limit 0": ({"limit": 0}, "was built with limit=4"),
    "limit": ({"limit": 9}, "was built with limit=4"),
    "limit below": ({"limit": -1}, "the limit is -1"),
    "sample_rate": ({"sample_rate": 24_000}, "was built at 16000 Hz"),
    "languages": ({"languages": ["zh"]}, "zh"),
    "stratify": ({"stratify": "rt6"}, "Did you mean 'rt60'"),
    "rt60_bins": ({"rt60_bins": 5}, "no plan"),
    "drr_bins": ({"drr_bins": 5, "stratify": "rt60"}, "stratify='rt60'"),
    "draws": ({"draws": 0}, "drawn 0 times"),
    "rirs_per_utterance": ({"rirs_per_utterance": 0}, "0 RIRs"),
    "utterances": ({"utterances": 5, "rt60_bins": 2}, "there are 4"),
    "splits": ({"splits": True, "utterances": 9}, "there are 4"),
    "data_dir": ({"data_dir": "/data"}, "data_dir"),
    "data_files": ({"data_files": "a.parquet"}, "data_files"),
    "revision": ({"revision": "main"}, "revision"),
    "features": ({"features": datasets.Features({"id": datasets.Value("string")})}, "squtr fixes the features"),
    "token": ({"token": "secret"}, "token"),
    "storage_options": ({"storage_options": {"key": "x"}}, "storage_options"),
    "speech_channel": ({"speech_channel": 1}, "was not built with speech_channel=1"),
    "no speech_channel": ({"speech_channel": "left"}, "or mean"),
    "on_bad": ({"on_bad": "drop"}, "value of on_bad 'drop'"),
    "version": ({"version": "1.2.3"}, "unknown option 'version'"),
    "config_id": ({"config_id": "x"}, "no config_id"),
    "seed as text": ({"seed": "4"}, "seed is '4'. Give a whole number"),
    "limit as fraction": ({"limit": 2.0}, "limit is 2.0. Give a whole number"),
    "splits as text": ({"splits": "yes"}, "splits is 'yes'. Give True or False"),
    "languages as text": ({"languages": "en"}, "Give a list of languages"),
    "level as number": ({"level": 10}, "level is 10. Give text"),
    "unknown": ({"sead": 4}, "Did you mean 'seed'"),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("asked")


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    """What `squtr build` wrote into `$SQUTR_HOME` when no folder was named."""
    source = str(make_collection(root / "tiny", queries=6, documents=8))
    build(open_recipe(source, conditions=CONDITIONS, languages=["en"], **BUILT), root / "home" / "squtr")
    return root / "home" / "squtr"


@pytest.fixture(scope="module")
def rooms(root: Path) -> str:
    return str(make_rooms(root / "rooms"))


@pytest.fixture(autouse=True)
def home(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUTR_HOME", str(root / "home"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture(params=["default", "named"])
def named(request: pytest.FixtureRequest, folder: Path) -> dict[str, Any]:
    return {"source": str(folder)} if request.param == "named" else {}


@pytest.fixture(params=["map-style", "streaming"])
def streaming(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"streaming": True} if request.param == "streaming" else {}


def audio(rows: Any) -> list[bytes]:
    return [row["audio"]["bytes"] for row in rows]


def test_every_option_is_tried() -> None:
    every = [*HONORED.values(), *SAME.values(), *(options for options, _ in REFUSED.values())]
    # The others: see test_asked_splits.
    assert set(OPTIONS) - {"divided", "shared_speakers"} <= {name for options in every for name in options}


@pytest.mark.parametrize("case", HONORED)
def test_another_mixture_is_mixed_of_the_stored_speech(
    case: str, folder: Path, rooms: str, named: dict[str, Any], streaming: dict[str, Any]
) -> None:
    options = HONORED[case]
    planned = {"rt60_bins", "stratify", "known_rirs_only"} & set(options)
    config = "reverb" if planned else "high_noise"
    if planned:
        options = {**options, "rirs": rooms}
    rows = list(squtr.load_dataset(f"en_{config}", **options, **named, **streaming))
    before = list(BuiltData(folder).spoken("tiny-en", config))
    if case == "limit":
        # Fewer of the rows that were built.
        assert len(rows) == 2
        assert set(audio(rows)) < {row.audio for row in before}
        return
    kept = {"noise": NOISE, "sample_rate": 16_000, "seed": 2, "level": "active"} | options
    asked = LiveData(open_recipe(BuiltSource(folder), conditions=[config], **kept))
    expected = list(asked.spoken("tiny-en", config))
    assert audio(rows) == [row.audio for row in expected]
    assert [row["id"] for row in rows] == [row.id for row in expected]
    assert {row["seed"] for row in rows} == {kept["seed"]}
    assert audio(rows) != [row.audio for row in before]


@pytest.mark.parametrize("case", SAME)
def test_what_was_built_is_read_where_it_is_what_was_asked(
    case: str, folder: Path, named: dict[str, Any], streaming: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(on_the_fly, "open_recipe")
    rows = squtr.load_dataset("en_high_noise", **SAME[case], **named, **streaming)
    assert audio(rows) == [row.audio for row in BuiltData(folder).spoken("tiny-en", "high_noise")]


@pytest.mark.parametrize("config", ["en_high_noise", "en_clean", "tiny-en-corpus", "tiny-en-qrels"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_answered_is_refused(case: str, config: str, folder: Path) -> None:
    options, said = REFUSED[case]
    with pytest.raises((SqutrError, ValueError), match=said):
        squtr.load_dataset(config, **options)
    with pytest.raises((SqutrError, ValueError), match=said):
        datasets.load_dataset("squtr", config, source=str(folder), streaming=True, **options)


def test_a_set_on_the_hub_is_read_by_datasets(folder: Path) -> None:
    with pytest.raises(DataError, match=r'datasets\.load_dataset\("org/name", "en_clean"\)'):
        squtr.load_dataset("en_clean", source="org/name@main", seed=4)
    # The same bytes are on the Hub; datasets itself refuses what it does not know.
    for options in ({"seed": 4}, {"noise": NOISE}, {"limit": 2}):
        with pytest.raises(ValueError, match=f"doesn't have a '{next(iter(options))}' key"):
            datasets.load_dataset(str(folder), "en_clean", **options)


def test_data_that_are_evaluated_take_no_option(folder: Path) -> None:
    with pytest.raises(DataError, match=r"squtr\?seed=4 does not exist"):
        open_data(f"{folder}?seed=4")
    mixed = open_data(f"built:{folder}", configs=["en_snr_5"])
    assert "snr_5" in mixed.conditions
    with pytest.raises(UnknownNameError, match="unknown option of the source built: 'seed'"):
        open_data(f"built:{folder}?seed=4")


def test_configs_of_questions_take_no_option() -> None:
    with pytest.raises(UsageError, match="takes no option seed"):
        squtr.load_dataset("questions", source="mini", seed=0)


def test_tables_have_the_queries_that_were_asked_for(folder: Path) -> None:
    built = squtr.load_dataset("tiny-en-qrels")
    fewer = squtr.load_dataset("tiny-en-qrels", limit=2)
    mixed = squtr.load_dataset("tiny-en-qrels", limit=2, level="whole")
    ids = set(squtr.load_dataset("en_high_noise", limit=2)["id"])
    assert set(fewer["query-id"]) == set(mixed["query-id"]) == ids
    assert ids < set(built["query-id"])
    corpus = squtr.load_dataset("tiny-en-corpus")
    assert squtr.load_dataset("tiny-en-corpus", limit=2).to_list() == corpus.to_list()
    assert squtr.load_dataset("tiny-en-corpus", seed=9).to_list() == corpus.to_list()


def test_judgments_are_those_of_all_splits(root: Path, folder: Path, rooms: str) -> None:
    plan = {"source": str(root / "tiny"), "rirs": rooms, "rt60_bins": 2}
    one = squtr.load_dataset("tiny-en-qrels", **plan, stratify="rt60")
    several = squtr.load_dataset("tiny-en-qrels", **plan, splits=True)
    assert several.to_list() == one.to_list()
    # The plan decides what is judged, and so what is kept in the cache.
    fewer = squtr.load_dataset("tiny-en-qrels", **plan, utterances=2, languages=["en"])
    assert len(set(fewer["query-id"])) == 2


def test_several_processes_honor_options_too(folder: Path) -> None:
    one = squtr.load_dataset("en_high_noise", seed=4)
    two = squtr.load_dataset("en_high_noise", seed=4, num_proc=2, keep_in_memory=True)
    assert audio(one) == audio(two)
    assert squtr.load_dataset("en_high_noise", limit=3, num_proc=2).num_rows == 3


def test_fewer_rows_are_read_alone(root: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builds, "ROWS_PER_SHARD", 1)
    made = open_recipe(str(root / "tiny"), conditions=["clean"], languages=["en"])
    build(made, tmp_path / "shards")
    source = {"source": str(tmp_path / "shards")}
    every = squtr.load_dataset("en_clean", **source)
    asked: list[list[int]] = []
    read = pq.ParquetFile.iter_batches

    def spied(file: Any, *arguments: Any, **options: Any) -> Any:
        asked.append(options["row_groups"])
        return read(file, *arguments, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spied)
    (row,) = squtr.load_dataset("en_clean", **source, limit=1, streaming=True)
    # The ids of all six are read, the audio of one.
    assert len(asked) == every.num_rows + 1 == 7
    assert row["audio"]["bytes"] in audio(every)
    two = squtr.load_dataset("en_clean", **source, limit=2, num_proc=3)
    assert set(audio(two)) < set(audio(every))
    assert row["id"] in two["id"][:]
    assert squtr.load_dataset("en_clean", **source, limit=50).num_rows == 6


def test_the_stored_clip_is_taken_as_it_is(folder: Path) -> None:
    source = BuiltSource(folder)
    (query, *_), (row, *_) = source.queries("tiny-en"), BuiltData(folder).spoken("tiny-en", "clean")
    stored, rate = decode_audio(row.audio, "clip")
    assert (rate, query.id) == (16_000, row.id)
    assert (source.speech_at(query, 16_000).samples == stored).all()
    assert source.speech(query).samples.size == -(-stored.size * 3 // 2)
    mixed = squtr.load_dataset("en_clean", source=f"built:{folder}", sample_rate=16_000, seed=2)
    assert audio(mixed) == [row.audio for row in BuiltData(folder).spoken("tiny-en", "clean")]


def test_who_speaks_is_known_without_reading_audio(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = BuiltSource(folder)
    queries = source.queries("tiny-en")
    spoken = [source.speech(query) for query in queries]
    monkeypatch.setattr(BuiltData, "spoken", None)
    assert [source.speaker_of(query) for query in queries] == [speech.speaker or speech.voice for speech in spoken]
    assert {source.built_split_of(query) for query in queries} == {""}
    assert any(map(source.speaker_of, queries))


def test_a_condition_that_was_not_built_is_mixed_where_its_source_is_named(folder: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"Known: en_clean.*source='built:"):
        squtr.load_dataset("en_snr_5")
    row = squtr.load_dataset("en_snr_5", source=f"built:{folder}", noise=NOISE)[0]
    assert row["snr_db"] == 5.0
    assert squtr.load_dataset("en_snr_5", seed=3)[0]["seed"] == 3


def test_without_clean_nothing_can_be_mixed(root: Path, folder: Path, tmp_path: Path) -> None:
    made = open_recipe(str(root / "tiny"), conditions=["high_noise"], languages=["en"], limit=2, noise=NOISE)
    build(made, tmp_path / "noisy")
    with pytest.raises(DataError, match=r"built without the condition clean.*Build it with clean"):
        squtr.load_dataset("en_high_noise", source=str(tmp_path / "noisy"), seed=4)
    assert squtr.load_dataset("en_high_noise", source=str(tmp_path / "noisy"), seed=0, limit=1).num_rows == 1


def test_a_folder_of_noise_has_to_be_named_again(root: Path, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cafe").mkdir()
    noise = open_recipe("mini", conditions=["snr_0"], noise=NOISE).context.noise
    soundfile.write(tmp_path / "cafe" / "one.wav", noise.read(noise.noises()[0].id)[:48_000], 24_000)
    own = {"noise": str(tmp_path / "cafe")}
    made = open_recipe(str(root / "tiny"), conditions=["clean", "snr_0"], languages=["en"], limit=2, **own)
    build(made, tmp_path / "own")
    source = {"source": str(tmp_path / "own")}
    built = squtr.load_dataset("en_snr_0", **source)
    assert audio(squtr.load_dataset("en_snr_0", **source, **own)) == audio(built)
    with pytest.raises(UsageError, match=r"noise 'cafe' .* not known here by its name\. Say what to mix anew with"):
        squtr.load_dataset("en_snr_0", **source, seed=1)
    with pytest.raises(UsageError, match="noise 'cafe'"):
        squtr.load_dataset("en_snr_0", **source, channel=0)
    other = squtr.load_dataset("en_snr_0", **source, **own, seed=1)
    assert {row["noise_id"] for row in other} == {"one"}
    # Another recording under the same name is another noise.
    soundfile.write(tmp_path / "cafe" / "one.wav", noise.read(noise.noises()[1].id)[:48_000], 24_000)
    assert audio(squtr.load_dataset("en_snr_0", **source, **own)) != audio(built)


def test_a_planned_folder_keeps_its_plan_where_nothing_else_is_asked(
    root: Path, folder: Path, rooms: str, tmp_path: Path
) -> None:
    plan = {"rirs": rooms, "rt60_bins": 2, "rirs_per_utterance": 2}
    made = open_recipe(str(root / "tiny"), conditions=["clean", "reverb"], languages=["en"], limit=4, **plan)
    build(made, tmp_path / "planned")
    source = {"source": str(tmp_path / "planned")}
    built = squtr.load_dataset("en_reverb", **source)
    assert audio(squtr.load_dataset("en_reverb", **source, **plan)) == audio(built)
    other = squtr.load_dataset("en_reverb", **source, rirs=rooms, seed=3)
    assert other.num_rows == built.num_rows
    assert set(other["id"]) != set(built["id"])
    plain = squtr.load_dataset("en_reverb", **source, rirs=rooms, stratify="")
    assert plain["id"][:] == squtr.load_dataset("en_clean", **source)["id"][:]
    assert squtr.load_dataset("rirs", **source, rirs=rooms, seed=3).num_rows > 0


def test_published_recordings_answer_what_they_are() -> None:
    recipe = {"subsets": {"a": "en"}, "limit": 0, "splits": ["test"], "sample_rate": 24_000}
    neutral = {"splits": False, "stratify": "", "sample_rate": 24_000, "limit": 0, "languages": ("en",)}
    assert differing(recipe, neutral, ["en"]) == []
    assert differing(recipe, {"level": "whole", "seed": 0}, ["en"]) == ["level", "seed"]
