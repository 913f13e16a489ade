"""The published release: from folder, zip and Hub alike, with its defects counted and its own noisy sound."""

from __future__ import annotations

import io
import json
import math
import multiprocessing
import pickle
import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import soundfile

from squtr.errors import AudioError, DataError, UnknownNameError, UsageError
from squtr.harness.systems import System
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData, SpeechData
from squtr.loaders.left_out import LeftOut, left_out_of
from squtr.loaders.recipe import open_recipe
from squtr.loaders.records import Document, Qrel
from squtr.loaders.sources import load_source
from squtr.loaders.sources.release import REVISION, ReleaseSource, parse_noise_id
from squtr.loaders.sources.release_data import ReleaseData

from ..harness.evaluate_runs_for_tests import evaluate_records
from ..harness.fakes import LookupTranscriber, WordRetriever, sound_key
from .collections_for_tests import write_jsonl
from .sources_for_tests import make_release, zip_folder

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(tmp_path_factory.mktemp("published") / "SQuTR")


@pytest.fixture
def root(published: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    shutil.copytree(published, tmp_path / "SQuTR")
    return tmp_path / "SQuTR"


def opened(place: Path) -> ReleaseSource:
    source = load_source(f"release:{place}")
    assert isinstance(source, ReleaseSource)
    return source


def rewrite(path: Path, change: Any) -> None:
    write_jsonl(path, [change(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()])


def test_texts(published: Path) -> None:
    source = opened(published)
    assert dict(source.subsets) == {"fiqa": "en", "duretrieval": "zh"}
    assert source.license == "CC-BY-SA-4.0"
    assert [q.text for q in source.queries("fiqa")] == ["What is debt?", "Why save?", "Is tax fair?"]
    documents = list(source.documents("fiqa"))
    assert len(documents) == 5, "the empty one counts"
    assert documents[4] == Document("d4", "", "")
    for subset in source.subsets:
        assert source.qrels(subset) == [Qrel(f"q{i}", f"d{i}", 1) for i in range(3)]
    with pytest.raises(UnknownNameError, match="Did you mean 'duretrieval'"):
        source.queries("DuRetrieval")


@pytest.mark.parametrize("prefix", ["", "SQuTR/"])
def test_zip_and_folder_are_the_same(published: Path, tmp_path: Path, prefix: str) -> None:
    folder, archive = opened(published), opened(zip_folder(published, tmp_path / "SQuTR.zip", prefix))
    assert archive.version == folder.version
    assert dict(archive.subsets) == dict(folder.subsets)
    for subset in folder.subsets:
        assert archive.queries(subset) == folder.queries(subset)
        assert list(archive.documents(subset)) == list(folder.documents(subset))
        assert archive.qrels(subset) == folder.qrels(subset)
        for query in folder.queries(subset):
            assert np.array_equal(archive.speech(query).samples, folder.speech(query).samples)
        for condition in ReleaseData(folder).conditions:
            one, two = (list(ReleaseData(s).spoken(subset, condition)) for s in (folder, archive))
            assert [row.audio for row in one] == [row.audio for row in two]
    assert str(archive.report("fiqa")) == str(folder.report("fiqa")).replace("source_data", f"{prefix}source_data")
    assert [p.name for p in tmp_path.iterdir()] == ["SQuTR.zip"], "nothing is unpacked"


def test_the_inner_folder_will_do(published: Path) -> None:
    assert opened(published / "source_data").version == opened(published).version


def test_not_a_release(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"not the SQuTR release.*source_data"):
        _ = opened(tmp_path).subsets
    (tmp_path / "x.zip").write_bytes(b"not a zip")
    with pytest.raises(DataError, match=r"x\.zip is no usable zip"):
        _ = opened(tmp_path / "x.zip").subsets


def test_the_version_follows_texts_and_clean_speech(root: Path) -> None:
    first = opened(root).version
    data = ReleaseData(opened(root)).revision
    noisy = root / "source_data/en/fiqa/audio_noise_snr_0/noise_snr0_q0.wav"
    noisy.write_bytes(noisy.read_bytes()[:-2] + b"\1\1")
    assert opened(root).version == first, "built data does not use the published noise"
    assert ReleaseData(opened(root)).revision != data
    clean = root / "source_data/en/fiqa/audio_clean/q0.wav"
    clean.write_bytes(clean.read_bytes()[:-2] + b"\1\1")
    second = opened(root).version
    assert second != first
    with (root / "source_data/zh/DuRetrieval/corpus.jsonl").open("a") as file:
        file.write('{"_id": "new", "title": "", "text": "new"}\n')
    assert opened(root).version != second


def test_the_report_counts_the_known_defects(published: Path) -> None:
    source = opened(published)
    report = source.report("fiqa")
    assert (report.queries, report.documents, report.qrels) == (3, 5, 3)
    assert {kind: (d.count, d.examples) for kind, d in report.defects.items()} == {
        "empty_document": (1, ("d4",)),
        "grade_is_text": (3, ("q0 d0", "q1 d1", "q2 d2")),
        "text_differs": (1, ("noise_snr_0 q1",)),
    }
    assert "grade is text: 3 (q0 d0, q1 d1, q2 d2)" in str(report)
    chinese = source.report("duretrieval")
    assert set(chinese.defects) == {"metadata_is_beside_the_audio"}
    assert chinese.defects["metadata_is_beside_the_audio"].count == 4
    assert json.loads(json.dumps(report.as_dict()))["defects"]["empty_document"] == {"count": 1, "examples": ["d4"]}


def test_the_report_counts_the_others(root: Path) -> None:
    base = root / "source_data/en/fiqa"
    (base / "audio_clean/q2.wav").unlink()
    write_jsonl(base / "audio_noise_snr_20/queries_with_audio_noise_snr_20.jsonl", [])
    rewrite(
        base / "queries_with_audio_noise_snr_10.jsonl", lambda row: row | {"snr_db": 11 if row["_id"] == "q0" else 10}
    )
    rewrite(base / "queries_with_audio_noise_snr_0.jsonl", lambda row: row | {"_id": row["_id"].replace("q0", "q9")})
    rewrite(
        base / "qrels/test.jsonl",
        lambda row: row | ({"query-id": "q0", "corpus-id": "d99"} if row["query-id"] == "q2" else {}),
    )
    found = {kind: d.examples for kind, d in opened(root).report("fiqa").defects.items()}
    expected = {
        "judged_document_is_missing": ("d99",),
        "level_differs": ("noise_snr_10 q0 11.0",),
        "metadata_is_there_twice_and_differs": (
            "source_data/en/fiqa/audio_noise_snr_20/queries_with_audio_noise_snr_20.jsonl",
        ),
        "query_has_no_recording": ("noise_snr_0 q0",),
        "query_is_not_judged": ("q2",),
        "recording_is_missing": ("clean q2 q2.wav",),
        "recording_of_unknown_query": ("noise_snr_0 q9",),
    }
    assert {kind: found.get(kind) for kind in expected} == expected


def test_many_defects_give_few_examples(root: Path) -> None:
    write_jsonl(
        root / "source_data/en/fiqa/corpus.jsonl", [{"_id": f"d{i}", "title": None, "text": ""} for i in range(9)]
    )
    report = opened(root).report("fiqa")
    assert report.defects["empty_document"].count == 9
    assert report.defects["empty_document"].examples == ("d0", "d1", "d2", "d3", "d4")
    assert "empty document: 9 (d0, d1, d2, d3, d4, …)" in str(report)


@pytest.mark.parametrize(
    ("table", "row", "said"),
    [
        ("queries.jsonl", {"_id": "q1", "text": "again"}, "line 4: the query id 'q1' occurs twice"),
        ("qrels/test.jsonl", {"query-id": "q1", "corpus-id": "d1", "score": 2}, "line 4: query 'q1' and document 'd1'"),
        ("qrels/test.jsonl", {"query-id": "q7", "corpus-id": "d1", "score": 2}, "line 4: the query 'q7' is not in"),
        ("corpus.jsonl", {"_id": "d1", "title": "", "text": ""}, "line 6: the document id 'd1' occurs twice"),
        ("queries_with_audio_clean.jsonl", {"_id": "q1", "text": "", "audio": "q1.wav"}, "line 4: the query id 'q1'"),
    ],
)
def test_what_could_mean_two_things_is_an_error(root: Path, table: str, row: dict[str, object], said: str) -> None:
    with (root / "source_data/en/fiqa" / table).open("a") as file:
        file.write(json.dumps(row) + "\n")
    with pytest.raises(DataError) as caught:
        opened(root).report("fiqa")
    assert said in str(caught.value)
    assert table in str(caught.value)


def test_missing_and_broken_clean_speech(root: Path) -> None:
    base = root / "source_data/en/fiqa/audio_clean"
    (base / "q0.wav").unlink()
    (base / "q1.wav").write_bytes(b"RIFF")
    soundfile.write(base / "q2.wav", np.zeros(100), 24_000)
    source = opened(root)
    for query, said in zip(source.queries("fiqa"), ("does not exist", "cannot be read", "is silent"), strict=True):
        with pytest.raises(AudioError, match=rf"q{query.id[1]}\.wav.*{said}"):
            source.speech(query)


@pytest.mark.parametrize("audio", ["../audio_clean/q0.wav", "/etc/passwd", "../../../../x.wav"])
def test_audio_that_leads_elsewhere_is_not_followed(root: Path, audio: str) -> None:
    rewrite(root / "source_data/en/fiqa/queries_with_audio_clean.jsonl", lambda row: row | {"audio": audio})
    source = opened(root)
    with pytest.raises(AudioError, match="does not exist"):
        source.speech(source.queries("fiqa")[0])


def test_built_from_the_zip_with_other_noise(published: Path, tmp_path: Path) -> None:
    archive = zip_folder(published, tmp_path / "SQuTR.zip")
    build(open_recipe(f"release:{archive}", conditions=["clean", "reverb"]), tmp_path / "out")
    data = BuiltData(tmp_path / "out")
    assert len(list(data.spoken("duretrieval", "reverb"))) == 3
    source = opened(published)
    for query, row in zip(source.queries("fiqa"), data.spoken("fiqa", "clean"), strict=True):
        built, _ = soundfile.read(io.BytesIO(row.audio), dtype="float32")
        assert np.array_equal(built, source.speech(query).samples)


def test_what_it_has_no_query_for_is_told_by_what_is_built_of_it(root: Path, tmp_path: Path) -> None:
    metadata = root / "source_data/en/fiqa/queries_with_audio_clean.jsonl"
    with metadata.open("a") as file:
        file.write('{"_id": "q7", "text": "Who?", "audio": "q7.wav"}\n')
    unused = (LeftOut("recordings without a query", 1, ("q7.wav",)),)
    assert opened(root).left_out == unused
    assert opened(root).split == "test"
    build(open_recipe(f"release:{root}", conditions=["clean"], subsets=["fiqa"]), tmp_path / "out")
    again = load_source(f"built:{tmp_path / 'out'}")
    assert left_out_of(again) == unused
    assert getattr(again, "split", "") == "test"


def test_as_published(published: Path) -> None:
    data: SpeechData = ReleaseData(opened(published))
    assert tuple(data.conditions) == ("clean", "low_noise", "medium_noise", "high_noise")
    assert [bank["name"] for bank in data.recipe["noise"]] == ["as published"]
    rows = list(data.spoken("fiqa", "high_noise"))
    assert [(r.id, r.text, r.snr_db) for r in rows] == [
        ("q0", "What is debt?", 0.0), ("q1", "Why save?", 0.0), ("q2", "Is tax fair?", 0.0)
    ]  # fmt: skip
    assert [(r.noise_id, r.noise_family) for r in rows] == [
        ("demand_SCAFE_ch01", "SCAFE"), ("demand_SCAFE_ch02", "SCAFE"), ("babble", "babble")
    ]  # fmt: skip
    for row in rows:
        pcm, rate = soundfile.read(io.BytesIO(row.audio), dtype="int16")
        wav = published / f"source_data/en/fiqa/audio_noise_snr_0/noise_snr0_{row.id}.wav"
        assert np.array_equal(pcm, soundfile.read(wav, dtype="int16")[0]), "not a bit is changed"
        assert soundfile.info(io.BytesIO(row.audio)).format == "FLAC"
        assert (rate, row.duration_s) == (24_000, 0.3)
    clean = next(data.spoken("duretrieval", "clean"))
    assert math.isnan(clean.snr_db)
    assert clean.noise_id == clean.noise_family == ""
    assert data.qrels("fiqa")["q1"] == {"d1": 1}
    assert len(data.documents("fiqa")) == 5
    with pytest.raises(UnknownNameError, match="Did you mean 'high_noise'"):
        next(data.spoken("fiqa", "hihg_noise"))


def test_published_sound_of_other_kinds(root: Path) -> None:
    base = root / "source_data/en/fiqa/audio_clean"
    t = np.arange(16_000) / 16_000
    loud = (1.5 * np.sin(2 * np.pi * 200 * t)).astype(np.float32)
    soundfile.write(base / "q0.wav", loud, 16_000, subtype="FLOAT")
    soundfile.write(base / "q1.wav", np.array([-32768, 32767, 0] * 100, dtype=np.int16), 24_000)
    soundfile.write(base / "q2.wav", np.zeros((100, 2)), 24_000)
    rows = list(ReleaseData(opened(root)).spoken("fiqa", "clean"))
    assert rows[0].duration_s == 1.0
    assert rows[0].gain_db == pytest.approx(-20 * math.log10(1.5), abs=0.01)
    assert soundfile.info(io.BytesIO(rows[0].audio)).samplerate == 24_000
    assert rows[1].gain_db == 0.0
    assert set(soundfile.read(io.BytesIO(rows[1].audio), dtype="int16")[0].tolist()) == {-32768, 32767, 0}
    assert rows[2].duration_s == 0.0
    assert rows[2].audio == (base / "q2.wav").read_bytes(), "as it is: the harness says why it cannot be used"


def test_a_part_of_it(published: Path) -> None:
    source = opened(published)
    part = ReleaseData(source, languages=["zh"], limit=2, seed=3)
    assert dict(part.subsets) == {"duretrieval": "zh"}
    ids = [q.id for q in part.queries("duretrieval")]
    assert len(ids) == 2
    assert [q.id for q in part.spoken("duretrieval", "clean")] == ids == list(part.qrels("duretrieval"))
    assert part.revision != ReleaseData(source, languages=["zh"], limit=1, seed=3).revision
    with pytest.raises(UnknownNameError):
        part.queries("fiqa")
    with pytest.raises(UsageError):
        ReleaseData(source, limit=-1)


def test_conditions_are_those_of_all_subsets(root: Path) -> None:
    (root / "source_data/en/fiqa/queries_with_audio_noise_snr_10.jsonl").unlink()
    base = root / "source_data/zh/DuRetrieval/audio_noise_snr_0"
    (base / "queries_with_audio_noise_snr_0.jsonl").rename(base / "queries_with_audio_noise_snr_-5.jsonl")
    base.rename(base.with_name("audio_noise_snr_-5"))
    assert ReleaseData(opened(root)).conditions == ("clean", "low_noise")
    assert ReleaseData(opened(root), subsets=["duretrieval"]).conditions == (
        "clean", "low_noise", "medium_noise", "snr_-5"
    )  # fmt: skip


def test_evaluated_as_published_with_a_clip_missing(root: Path) -> None:
    (root / "source_data/en/fiqa/audio_noise_snr_0/noise_snr0_q1.wav").unlink()
    (root / "source_data/en/fiqa/audio_noise_snr_10/noise_snr10_q2.wav").write_bytes(b"RIFF")
    data = ReleaseData(opened(root), languages=["en"])
    heard = {
        sound_key(soundfile.read(io.BytesIO(row.audio), dtype="float32")[0]): row.text
        for condition in data.conditions
        for row in data.spoken("fiqa", condition)
        if row.duration_s
    }
    records = evaluate_records([System(transcriber=LookupTranscriber(heard), retriever=WordRetriever())], data).records
    results = {record.result.data.config: record.result for record in records}
    assert set(results) == {"en_text", "en_clean", "en_low_noise", "en_medium_noise", "en_high_noise"}
    assert results["en_clean"].scores["wer"].value == 0
    assert results["en_high_noise"].failures["failed"] == results["en_medium_noise"].failures["failed"] == 1
    assert results["en_clean"].failures["failed"] == 0
    assert results["en_high_noise"].data.n == 3


@pytest.mark.parametrize(
    ("noise_id", "family", "channel"),
    [
        ("demand_SCAFE_ch07", "SCAFE", 7),
        ("demand_NRIVER_ch13", "NRIVER", 13),
        ("demand_NPARK_ch16", "NPARK", 16),
        ("demand_NPARK_ch17", "demand_NPARK_ch17", None),
        ("demand_NPARK_ch00", "demand_NPARK_ch00", None),
        ("noisex_babble", "noisex_babble", None),
        ("", "", None),
    ],
)
def test_noise_ids(noise_id: str, family: str, channel: int | None) -> None:
    parsed = parse_noise_id(noise_id)
    assert (parsed.family, parsed.channel) == (family, channel)


def _first_sample(source: ReleaseSource, results: Any) -> None:
    results.put([float(source.speech(q).samples[5000]) for q in source.queries("fiqa")])


def test_shared_with_other_processes(published: Path, tmp_path: Path) -> None:
    source = opened(zip_folder(published, tmp_path / "SQuTR.zip"))
    expected = [float(source.speech(q).samples[5000]) for q in source.queries("fiqa")]
    assert [
        float(pickle.loads(pickle.dumps(source)).speech(q).samples[5000]) for q in source.queries("fiqa")
    ] == expected
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    children = [context.Process(target=_first_sample, args=(source, results)) for _ in range(2)]
    for child in children:
        child.start()
    assert [results.get(timeout=60) for _ in children] == [expected, expected]
    for child in children:
        child.join()


class FakeHub:
    """Answers for one repository with some files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, files: dict[str, Path]) -> None:
        self.files = files
        self.calls: list[tuple[str, str, str | None]] = []
        monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", self._list)
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", self._download)

    def _list(self, repository: str, *, repo_type: str, revision: str) -> list[str]:
        assert repo_type == "dataset"
        self.calls.append((repository, revision, None))
        return list(self.files)

    def _download(self, repository: str, file: str, *, repo_type: str, revision: str) -> str:
        assert repo_type == "dataset"
        self.calls.append((repository, revision, file))
        return str(self.files[file])


def test_from_the_hub(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = zip_folder(published, tmp_path / "a.zip")
    hub = FakeHub(monkeypatch, {"README.md": archive, "SQuTR.zip": archive})
    source = load_source(f"release:SLLMCommunity/SQuTR@{COMMIT}")
    assert hub.calls == [], "nothing is asked before it is needed"
    assert source.version == opened(published).version
    assert len(source.queries("fiqa")) == 3
    assert hub.calls == [("SLLMCommunity/SQuTR", COMMIT, None), ("SLLMCommunity/SQuTR", COMMIT, "SQuTR.zip")]
    assert load_source(f"release:org/copy@{COMMIT}?file=SQuTR.zip").version == source.version
    assert hub.calls[2:] == [("org/copy", COMMIT, "SQuTR.zip")]


def test_from_the_hub_with_several_zips_or_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hub = FakeHub(monkeypatch, {"a.zip": tmp_path, "b.zip": tmp_path})
    with pytest.raises(UsageError, match=r"2 zip files: a\.zip, b\.zip.*\?file="):
        _ = load_source(f"release:org/name@{COMMIT}").subsets
    hub.files = {}
    with pytest.raises(UsageError, match="0 zip files"):
        _ = load_source(f"release:org/name@{COMMIT}").subsets


def test_the_published_commit_is_pinned(published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = FakeHub(monkeypatch, {"source_data.zip": zip_folder(published, tmp_path / "a.zip")})
    assert len(load_source("release").queries("fiqa")) == 3
    assert len(load_source("release:SLLMCommunity/SQuTR").queries("fiqa")) == 3
    assert {(repository, revision) for repository, revision, _ in hub.calls} == {("SLLMCommunity/SQuTR", REVISION)}
    assert len(REVISION) == 40


def test_another_repository_needs_a_commit() -> None:
    with pytest.raises(UsageError, match=r"release:org/name@<commit>"):
        load_source("release:org/name")


def test_a_hub_out_of_reach() -> None:
    with pytest.raises(DataError, match=r"cannot be downloaded.*download the zip by hand"):
        _ = load_source(f"release:SLLMCommunity/SQuTR@{COMMIT}").subsets
