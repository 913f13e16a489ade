"""A built folder with a plan of RIRs: the same bytes however it came about, read back, loaded, and checked."""

import io
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from squtr.errors import AudioError, DataError, RecipeMismatchError, UnknownNameError
from squtr.loaders import build as module
from squtr.loaders import engines
from squtr.loaders.audio import encode_flac
from squtr.loaders.build import build, count_clips
from squtr.loaders.clip_checks import causal_share
from squtr.loaders.data import BuiltData
from squtr.loaders.doctor import examine
from squtr.loaders.manifest import kind_of, read_any_manifest, read_manifest
from squtr.loaders.recipe import open_recipe

from .rirs_for_tests import make_rooms, make_speech

CONDITIONS = ["clean", "reverb", "snr_5", "reverb_snr_5"]
SUBSET = "speech"
CLEAN, REVERB = f"queries/en/{SUBSET}/clean", f"queries/en/{SUBSET}/reverb"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    root = tmp_path_factory.mktemp("pairs")
    return f"recorded:{make_speech(root / 'speech')}", str(make_rooms(root / "rooms"))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))


def open_planned(places, **options):
    defaults = {
        "conditions": CONDITIONS, "rt60_bins": 2, "rirs_per_utterance": 2, "splits": True, "sample_rate": 16_000,
        "benchmark": "mine",
    }  # fmt: skip
    return open_recipe(places[0], rirs=places[1], **(defaults | options))


@pytest.fixture(scope="module")
def built(places, tmp_path_factory):
    out = tmp_path_factory.mktemp("built") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQUTR_HOME", str(out.parent / "home"))
        build(open_planned(places), out)
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
    opened = open_planned(places)
    build(opened, tmp_path / "out", workers=workers, progress=told.append)
    assert files_of(tmp_path / "out") == files_of(built)
    # 10 utterances under 2 conditions without a RIR, and with 2 RIRs under 2 conditions.
    assert sum(told) == count_clips(opened) == 60


def test_a_build_that_stopped_continues_with_the_same_bytes(places, built, tmp_path, monkeypatch):
    out = tmp_path / "out"
    opened = open_planned(places)
    calls = []

    def stopping(*arguments):
        calls.append(arguments)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return original(*arguments)

    original = engines.rendered_take
    monkeypatch.setattr(engines, "rendered_take", stopping)
    with pytest.raises(KeyboardInterrupt):
        build(opened, out, workers=1)
    held = set(files_of(out))
    assert f"{CLEAN}/validation-00000-of-00001.parquet" in held
    assert f"{CLEAN}/test-00000-of-00001.parquet" not in held
    assert not read_manifest(out).complete
    with pytest.raises(DataError, match="not finished"):
        BuiltData(out)
    assert "unfinished" in [finding.kind for finding in examine(out).findings]
    monkeypatch.setattr(engines, "rendered_take", original)
    before = (out / f"{CLEAN}/validation-00000-of-00001.parquet").stat().st_mtime_ns
    build(open_planned(places), out)
    assert files_of(out) == files_of(built)
    assert (out / f"{CLEAN}/validation-00000-of-00001.parquet").stat().st_mtime_ns == before


def test_several_shards_hold_the_same_rows(places, built, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS_PER_SHARD", 6)
    out = tmp_path / "out"
    build(open_planned(places), out)
    assert sorted(p.name for p in (out / REVERB).iterdir())[0] == "test-00000-of-00003.parquet"
    for split in ("validation", "test"):
        one, other = BuiltData(built, split), BuiltData(out, split)
        for condition in CONDITIONS:
            assert list(map(repr, other.spoken(SUBSET, condition))) == list(map(repr, one.spoken(SUBSET, condition)))
            ids = [row.id for row in one.rows(SUBSET, condition)]
            for start, stop in ((0, 3), (5, 9), (7, None), (15, 20)):
                assert [row.id for row in other.spoken(SUBSET, condition, start=start, stop=stop)] == ids[start:stop]


def test_a_folder_of_something_else_is_refused(places, built, tmp_path):
    with pytest.raises(RecipeMismatchError, match=r"seed 0 there, 1 here"):
        build(open_planned(places, seed=1), built)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(RecipeMismatchError, match="not empty"):
        build(open_planned(places), tmp_path / "out")
    with pytest.raises(RecipeMismatchError, match="is a file"):
        build(open_planned(places), tmp_path / "out" / "notes.txt")


def test_the_manifest_says_what_is_there(built, tmp_path):
    manifest = read_manifest(built)
    assert (manifest.benchmark, kind_of(built), manifest.splits) == ("mine", "speech", ["validation", "test"])
    assert [(s.name, s.rirs, s.pairs) for s in manifest.strata] == [
        ("rt60_1", 5, {"validation": 2, "test": 8}),
        ("rt60_2", 5, {"validation": 2, "test": 8}),
    ]
    (edge,) = manifest.edges["rt60_s"]
    assert manifest.strata[0].rt60_s == (None, edge)
    assert manifest.strata[1].rt60_s == (edge, None)
    assert len(manifest.edges["drr_db"]) == 4
    assert all(len(shard.sha256) == 64 for shard in manifest.shards)
    assert manifest.recipe["steps"]["reverb_snr_5"] == [{"step": "rir"}, {"step": "noise", "snr_db": 5.0}]
    assert read_any_manifest(built) == manifest
    for content, message in (('{"kind": "questions"}', "holds questions"), ("{}", "Build the folder again")):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(DataError, match=message):
            read_manifest(tmp_path)


@pytest.mark.parametrize("config", ["en_clean", f"{SUBSET}_reverb", "rirs"])
def test_datasets_loads_the_folder(built, tmp_path, config):
    import datasets

    loaded = datasets.load_dataset(str(built), config, cache_dir=str(tmp_path / "cache"))
    assert set(loaded) == {"validation", "test"}
    if config == "rirs":
        assert loaded["test"][0]["decay_db"][0] == 0.0
        assert sum(loaded["test"]["pairs"]) == 16
        return
    condition = config.rpartition("_")[2]
    rows = BuiltData(built).spoken(SUBSET, condition)
    for loaded_row, row in zip(loaded["test"], rows, strict=True):
        assert (loaded_row["id"], loaded_row["utterance_id"]) == (row.id, row.utterance_id)
        assert loaded_row["audio"]["bytes"] == row.audio


def test_the_reader(built):
    data = BuiltData(built)
    assert (data.split, data.benchmark, dict(data.subsets)) == ("test", "mine", {SUBSET: "en"})
    assert len(data.manifest_sha256) == 64
    assert data.revision == data.manifest.recipe_fingerprint
    assert set(data.edges) == {"rt60_s", "drr_db"}
    ids = [query.id for query in data.queries(SUBSET)]
    assert len(ids) == 8
    assert [row.id for row in data.rows(SUBSET, "clean")] == [row.id for row in data.rows(SUBSET, "snr_5")] == ids
    rows = data.rows(SUBSET, "reverb")
    assert [row.utterance for row in rows] == [id_ for id_ in ids for _ in range(2)]
    clean, reverb = next(data.spoken(SUBSET, "clean", start=1)), next(data.spoken(SUBSET, "reverb", start=3))
    assert (clean.id, reverb.id) == (ids[1], f"{ids[1]}@{reverb.rir_id}")
    assert reverb.utterance_id == clean.utterance_id == ids[1]
    assert (clean.rir_id, bool(reverb.rir_id), math.isnan(clean.rt60_s)) == ("", True, True)
    assert reverb.duration_s > clean.duration_s
    assert {rir["rir_id"] for rir in data.rirs()} == {row.rir_id for row in data.spoken(SUBSET, "reverb")}
    assert not data.has_corpus(SUBSET)
    assert len(data.documents(SUBSET)) == 0
    assert not {row.utterance for row in BuiltData(built, "validation").rows(SUBSET, "reverb")} & set(ids)
    for call in (
        lambda: BuiltData(built, "train"),
        lambda: data.rows(SUBSET, "noisy"),
        lambda: data.rows("other", "clean"),
    ):
        with pytest.raises(UnknownNameError):
            call()
    with pytest.raises(DataError, match="does not exist"):
        BuiltData(built / "elsewhere")


def test_unusable_speech_is_refused_by_id(places, tmp_path):
    folder = make_speech(tmp_path / "speech")
    soundfile.write(folder / "u04.flac", np.zeros(8000), 16_000)
    with pytest.raises(AudioError, match=r"u04"):
        build(open_planned((f"recorded:{folder}", places[1])), tmp_path / "out")
    rooms = make_rooms(tmp_path / "rooms", 4)
    soundfile.write(rooms / "r02.wav", np.zeros(8000), 16_000)
    with pytest.raises(AudioError, match=r"r02\.wav is silent"):
        open_planned((places[0], str(rooms)))


def test_a_whole_folder_is_healthy(built):
    diagnosis = examine(built, sample=3)
    assert diagnosis.findings == ()
    # 2 of validation and 3 of test, under 4 conditions; those with noise are measured again.
    assert (diagnosis.clips, diagnosis.decoded, diagnosis.measured, diagnosis.unmeasured) == (60, 20, 10, 0)


def rewrite(folder: Path, place: str, change) -> None:
    """Change rows of a test shard, and the manifest's checksum with them."""
    import hashlib

    path = folder / place / "test-00000-of-00001.parquet"
    table = pq.read_table(path, partitioning=None)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    for shard in manifest["shards"]:
        if shard["path"] == f"{place}/{path.name}":
            shard |= {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def swap_audio(rows):
    clips = [(row["audio"], row["duration_s"]) for row in rows]
    # By utterances, so that every clip gets another utterance's; the longest goes to the shortest only once.
    for number, row in enumerate(rows):
        row["audio"], row["duration_s"] = clips[(number + 2) % len(rows)]


@pytest.mark.parametrize(
    ("place", "change", "kind", "message"),
    [
        (REVERB, lambda rows: rows[1].update(id=rows[0]["id"]), "ids", "occur twice"),
        (REVERB, lambda rows: rows[1].update(id="other"), "ids", "should have the id"),
        (REVERB, lambda rows: rows[2].update(text="other"), "pairing", "text"),
        (REVERB, lambda rows: rows[0].update(stratum="rt60_9"), "value", "belongs into"),
        (REVERB, lambda rows: rows[0].update(gain_db=1.0), "value", "gain_db"),
        (REVERB, lambda rows: rows[0].update(snr_db=3.0, noise_id="n"), "value", "noise_id is given"),
        (REVERB, lambda rows: rows[0].update(c50_db=-99.0), "pairing", "c50_db"),
        (REVERB, lambda rows: rows[0].update(onset_samples=-1), "value", "onset_samples is below 0"),
        (REVERB, lambda rows: [rows.pop()], "rows", "the manifest says 16"),
        (CLEAN, lambda rows: rows[0].update(duration_s=9.0), "audio", "its row says 9.000 s"),
        (CLEAN, lambda rows: rows[0].update(audio={"bytes": b"fLaC", "path": None}), "audio", "cannot be read"),
        (
            CLEAN,
            lambda rows: [
                row.update(audio={"bytes": encode_flac(np.ones(8000, np.float32) * 0.1, "x", 8000), "path": None})
                for row in rows
            ],
            "audio",
            "8000 Hz instead of 16000",
        ),
        ("rirs", lambda rows: rows[0].update(pairs=99), "pairing", "99 pairs"),
        (REVERB, swap_audio, "", "do not belong together"),
    ],
)
def test_what_the_doctor_finds(built, tmp_path, place, change, kind, message):
    copy = copy_of(built, tmp_path)
    rewrite(copy, place, change)
    findings = examine(copy, sample=100).findings
    if kind:
        assert any(finding.kind == kind and message in finding.message for finding in findings), findings
    else:
        assert any(message in f.message or "is shorter than" in f.message for f in findings)


def test_rooms_and_utterances_in_both_splits_are_found(built, tmp_path):
    other = next(BuiltData(built, "validation").spoken(SUBSET, "reverb"))
    copy = copy_of(built, tmp_path)
    rewrite(copy, REVERB, lambda rows: rows[0].update(room_id=other.room_id, utterance_id=other.utterance_id))
    messages = [finding.message for finding in examine(copy).findings]
    assert any("1 rooms are in both splits" in message for message in messages)
    assert any("1 utterances are in both splits" in message for message in messages)


def test_files_that_changed_are_found(built, tmp_path):
    copy = copy_of(built, tmp_path)
    (copy / "rirs" / "extra.parquet").write_bytes(b"x")
    (copy / "README.md").unlink()
    with (copy / CLEAN / "test-00000-of-00001.parquet").open("r+b") as file:
        file.seek(100)
        file.write(b"xx")
    assert {finding.kind for finding in examine(copy).findings} == {"missing", "changed", "extra"}


def test_a_clean_and_a_reverberant_clip_are_told_from_those_of_two_utterances(built):
    data = BuiltData(built)
    rows = list(data.spoken(SUBSET, "clean")), list(data.spoken(SUBSET, "reverb"))[::2]
    clean, reverb = ([soundfile.read(io.BytesIO(row.audio), dtype="float32")[0] for row in part] for part in rows)
    own = [causal_share(*both, 16_000) for both in zip(clean, reverb, strict=True)]
    foreign = [causal_share(*both, 16_000) for both in zip(clean, reverb[1:] + reverb[:1], strict=True)]
    assert min(own) > 0.7
    assert sum(foreign) / len(foreign) < min(own) - 0.1
