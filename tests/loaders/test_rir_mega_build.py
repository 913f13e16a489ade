"""A built folder: the same bytes however it came about, read back, loaded, and checked."""

import io
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squtr.errors import AudioError, DataError, RecipeMismatchError, UnknownNameError
from squtr.loaders.audio import encode_flac
from squtr.loaders.manifest import benchmark_of, read_manifest
from squtr.loaders.data import BuiltData
from squtr.loaders.rir_mega import build as module
from squtr.loaders.rir_mega.build import build_pairs, count_pairs
from squtr.loaders.rir_mega.checks import causal_share, examine_pairs
from squtr.loaders.rir_mega.data import RirMegaData
from squtr.loaders.rir_mega.manifest import read_any_manifest, read_pair_manifest
from squtr.loaders.rir_mega.recipe import open_pairs
from squtr.loaders.rir_mega.rows import CONFIGS

from .rir_mega_for_tests import make_rooms, make_speech


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    root = tmp_path_factory.mktemp("pairs")
    return f"recorded:{make_speech(root / 'speech')}", str(make_rooms(root / "rooms"))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))


def kitchen_of(places, **options):
    return open_pairs(*places, **({"rt60_bins": 2, "rirs_per_utterance": 2} | options))


@pytest.fixture(scope="module")
def built(places, tmp_path_factory):
    out = tmp_path_factory.mktemp("built") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQUTR_HOME", str(out.parent / "home"))
        build_pairs(kitchen_of(places), out)
    return out


def files_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def copy_of(built: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "copy"
    for name, content in files_of(built).items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(content)
    return copy


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same_bytes(places, built, tmp_path, workers):
    told = []
    opened = kitchen_of(places)
    build_pairs(opened, tmp_path / "out", workers=workers, progress=told.append)
    assert files_of(tmp_path / "out") == files_of(built)
    assert sum(told) == count_pairs(opened) == 20


def test_a_build_that_stopped_continues_with_the_same_bytes(places, built, tmp_path, monkeypatch):
    out = tmp_path / "out"
    calls = []

    def stopping(opened, utterances, *, workers):
        calls.append(len(utterances))
        if len(calls) > 1:
            raise KeyboardInterrupt
        return original(opened, utterances, workers=workers)

    original = module.render_pairs
    monkeypatch.setattr(module, "render_pairs", stopping)
    with pytest.raises(KeyboardInterrupt):
        build_pairs(kitchen_of(places), out)
    held = set(files_of(out))
    assert held == {"manifest.json", "pairs/validation-00000-of-00001.parquet"}
    assert not read_pair_manifest(out).complete
    with pytest.raises(DataError, match="not finished"):
        RirMegaData(out)
    assert [finding.kind for finding in examine_pairs(out).findings][:1] == ["unfinished"]
    monkeypatch.setattr(module, "render_pairs", original)
    before = (out / "pairs/validation-00000-of-00001.parquet").stat().st_mtime_ns
    build_pairs(kitchen_of(places), out)
    assert files_of(out) == files_of(built)
    assert (out / "pairs/validation-00000-of-00001.parquet").stat().st_mtime_ns == before


def test_several_shards_hold_the_same_rows(places, built, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PAIRS_PER_SHARD", 6)
    out = tmp_path / "out"
    build_pairs(kitchen_of(places), out)
    assert sorted(p.name for p in (out / "pairs").iterdir())[0] == "test-00000-of-00003.parquet"
    one, other = RirMegaData(built), RirMegaData(out)
    for split in ("validation", "test"):
        assert list(map(repr, other.pairs(split))) == list(map(repr, one.pairs(split)))
        ids = one.sample_ids(split)
        for start, stop in ((0, 3), (5, 9), (7, None), (15, 20)):
            assert [pair.sample_id for pair in other.pairs(split, start, stop)] == ids[start:stop]


def test_a_folder_of_something_else_is_refused(places, built, tmp_path):
    with pytest.raises(RecipeMismatchError, match=r"seed 0 there, 1 here"):
        build_pairs(kitchen_of(places, seed=1), built)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(RecipeMismatchError, match="not empty"):
        build_pairs(kitchen_of(places), tmp_path / "out")
    with pytest.raises(RecipeMismatchError, match="is a file"):
        build_pairs(kitchen_of(places), tmp_path / "out" / "notes.txt")


def test_the_manifest_says_what_is_there(built):
    manifest = read_pair_manifest(built)
    assert manifest.benchmark == benchmark_of(built) == "rir_mega"
    assert {name: (s.pairs, s.utterances) for name, s in manifest.splits.items()} == {
        "validation": (4, 2),
        "test": (16, 8),
    }
    assert [(s.name, s.responses, s.pairs, s.validation, s.test) for s in manifest.strata] == [
        ("rt60_1", 5, 10, 2, 8),
        ("rt60_2", 5, 10, 2, 8),
    ]
    (edge,) = manifest.edges["rt60_s"]
    assert manifest.strata[0].rt60_s == (None, edge)
    assert manifest.strata[1].rt60_s == (edge, None)
    assert len(manifest.edges["drr_db"]) == 4
    assert all(len(shard.sha256) == 64 for shard in manifest.shards)
    assert read_any_manifest(built) == manifest


def test_the_readers_of_squtr_say_that_it_is_not_theirs(built, tmp_path):
    with pytest.raises(DataError, match="benchmark 'rir_mega'"):
        read_manifest(built)
    with pytest.raises(DataError, match="benchmark 'rir_mega'"):
        BuiltData(built)
    (tmp_path / "manifest.json").write_text('{"benchmark": "squtr"}')
    with pytest.raises(DataError, match="benchmark 'squtr'"):
        read_pair_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(DataError, match="Build the folder again"):
        read_pair_manifest(tmp_path)


@pytest.mark.parametrize("config", [*CONFIGS, "rooms"])
def test_datasets_loads_the_folder(built, tmp_path, config):
    import datasets

    loaded = datasets.load_dataset(str(built), config, cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"validation", "test"}
    if config == "rooms":
        room = loaded["test"][0]
        assert room["decay_db"][0] == 0.0
        assert sum(loaded["test"]["pairs"]) == 16
        return
    assert set(loaded["test"].column_names) == set(CONFIGS[config])
    data = RirMegaData(built)
    for row, pair in zip(loaded["test"], data.pairs("test"), strict=True):
        assert row["sample_id"] == pair.sample_id
        for name in ("clean_audio", "reverb_audio"):
            if name in CONFIGS[config]:
                assert row[name]["bytes"] == getattr(pair, name)


def test_a_clean_clip_is_stored_once_however_many_rooms_it_is_heard_in(built):
    with pq.ParquetFile(built / "pairs" / "test-00000-of-00001.parquet") as file:
        row_group = file.metadata.row_group(0)
        sizes = {
            column.path_in_schema: column.total_compressed_size
            for column in (row_group.column(n) for n in range(row_group.num_columns))
        }
    clips = {pair.utterance_id: len(pair.clean_audio) for pair in RirMegaData(built).pairs("test")}
    assert sum(clips.values()) <= sizes["clean_audio.bytes"] < 1.05 * sum(clips.values())


def test_the_reader(built):
    data = RirMegaData(built)
    assert data.splits == {"validation": 4, "test": 16}
    assert (data.languages, data.recipe["rirs"]) == (("en",), "rooms")
    assert len(data.manifest_sha256) == 64
    assert data.revision == data.manifest.recipe_fingerprint
    pair = next(data.pairs("test"))
    assert data.bin_of("rt60_s", pair.rt60_s) == int(pair.stratum[-1]) - 1
    assert data.bin_of("drr_db", math.nan) is None
    clean, reverb = next(data.arm("test", "clean", start=3, stop=4)), next(data.arm("test", "reverb", start=3))
    assert clean.id == reverb.id == data.sample_ids("test")[3]
    assert (clean.condition, reverb.condition) == ("clean", "reverb")
    assert (clean.rir_id, bool(reverb.rir_id), math.isnan(clean.rt60_s)) == ("", True, True)
    assert reverb.duration_s > clean.duration_s
    assert data.table("test", ["rt60_s", "stratum"]).num_rows == 16
    assert {room["rir_id"] for room in data.rooms("test")} == {p.rir_id for p in data.pairs("test")}
    for call in (
        lambda: next(data.pairs("train")),
        lambda: next(data.arm("test", "noisy")),
        lambda: data.table("test", ["clean_audio"]),
        lambda: data.bin_of("c50_db", 1.0),
    ):
        with pytest.raises(UnknownNameError):
            call()
    with pytest.raises(DataError, match="does not exist"):
        RirMegaData(built / "elsewhere")


def test_unusable_speech_is_refused_by_id(places, tmp_path):
    import soundfile

    folder = make_speech(tmp_path / "speech")
    soundfile.write(folder / "u04.flac", np.zeros(8000), 16_000)
    with pytest.raises(AudioError, match=r"u04"):
        build_pairs(open_pairs(f"recorded:{folder}", places[1]), tmp_path / "out")
    rooms = make_rooms(tmp_path / "rooms", 4)
    soundfile.write(rooms / "r02.wav", np.zeros(8000), 16_000)
    with pytest.raises(AudioError, match=r"r02\.wav is silent"):
        open_pairs(places[0], str(rooms))


def test_a_whole_folder_is_healthy(built):
    diagnosis = examine_pairs(built, sample=3)
    assert diagnosis.healthy
    assert (diagnosis.pairs, diagnosis.decoded, diagnosis.shards) == (20, 6, 4)


def rewrite(folder: Path, change) -> None:
    """Change rows of the test shard, and the manifest's checksum with them."""
    import hashlib

    path = folder / "pairs" / "test-00000-of-00001.parquet"
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    for shard in manifest["shards"]:
        if shard["path"].endswith(path.name) and shard["path"].startswith("pairs"):
            shard |= {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def swap_sound(rows):
    sounds = [row["reverb_audio"] for row in rows]
    lengths = [row["reverb_duration_s"] for row in rows]
    # By utterances, so that every clip gets another utterance's; the longest goes to the shortest only once.
    for number, row in enumerate(rows):
        other = (number + 2) % len(rows)
        row["reverb_audio"], row["reverb_duration_s"] = sounds[other], lengths[other]


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda rows: rows[1].update(sample_id=rows[0]["sample_id"]), "ids", "occurs twice"),
        (lambda rows: rows[1].update(text="other"), "pairing", "differs between its rooms"),
        (lambda rows: rows[0].update(stratum="rt60_9"), "value", "belongs into"),
        (lambda rows: rows[0].update(gain_db=1.0), "value", "gain_db 1.0"),
        (lambda rows: rows[0].update(duration_s=9.0), "value", "reverb_duration_s"),
        (lambda rows: rows[0].update(snr_db=3.0, noise_id="n"), "value", "noise 'n'"),
        (lambda rows: rows[0].update(c50_db=-99.0), "pairing", "c50_db"),
        (lambda rows: rows[0].update(onset_samples=-1), "value", "onset_samples -1"),
        (lambda rows: [rows.pop()], "rows", "the manifest says 16"),
        (
            lambda rows: rows[0].update(clean_audio={"bytes": b"fLaC", "path": None}),
            "audio",
            "cannot be read",
        ),
        (
            lambda rows: [
                row.update(clean_audio={"bytes": encode_flac(np.ones(8000, np.float32) * 0.1, "x", 8000), "path": None})
                for row in rows
            ],
            "audio",
            "at 8000 Hz",
        ),
        (swap_sound, "", "do not belong together"),
    ],
)
def test_what_the_doctor_finds(built, tmp_path, change, kind, message):
    copy = copy_of(built, tmp_path)
    rewrite(copy, change)
    findings = examine_pairs(copy, sample=100).findings
    if kind:
        assert any(finding.kind == kind and message in finding.message for finding in findings), findings
    else:
        assert any(message in f.message or "reverb_duration_s" in f.message for f in findings)


def test_rooms_and_utterances_in_both_splits_are_found(built, tmp_path):
    other = next(RirMegaData(built).pairs("validation"))
    copy = copy_of(built, tmp_path)
    rewrite(copy, lambda rows: rows[0].update(room_id=other.room_id, utterance_id=other.utterance_id))
    messages = [finding.message for finding in examine_pairs(copy).findings]
    assert any("1 rooms are in both splits" in message for message in messages)
    assert any("1 utterances are in both splits" in message for message in messages)


def test_files_that_changed_are_found(built, tmp_path):
    copy = copy_of(built, tmp_path)
    (copy / "rooms" / "extra.parquet").write_bytes(b"x")
    (copy / "README.md").unlink()
    with (copy / "pairs" / "test-00000-of-00001.parquet").open("r+b") as file:
        file.seek(100)
        file.write(b"xx")
    kinds = {finding.kind for finding in examine_pairs(copy).findings}
    assert kinds == {"missing", "changed", "extra"}


def test_a_pair_is_told_from_clips_of_two_utterances(built):
    import soundfile

    pairs = list(RirMegaData(built).pairs("test"))[::2]
    clean = [soundfile.read(io.BytesIO(pair.clean_audio), dtype="float32")[0] for pair in pairs]
    reverb = [soundfile.read(io.BytesIO(pair.reverb_audio), dtype="float32")[0] for pair in pairs]
    own = [causal_share(*both) for both in zip(clean, reverb, strict=True)]
    foreign = [causal_share(*both) for both in zip(clean, reverb[1:] + reverb[:1], strict=True)]
    assert min(own) > 0.7
    assert sum(foreign) / len(foreign) < min(own) - 0.1
