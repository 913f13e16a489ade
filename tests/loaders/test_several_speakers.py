"""Texts that several people speak: an utterance for each, judged and drawn together by its query."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from squtr.errors import DataError, UsageError
from squtr.harness.evaluate import evaluate
from squtr.harness.systems import load_systems
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData, LiveData
from squtr.loaders.doctor import examine
from squtr.loaders.partial import held_out
from squtr.loaders.recipe import open_recipe
from squtr.loaders.source_checks import examine_source
from squtr.loaders.sources import load_source

from .rirs_for_tests import make_speech

CONDITIONS = ["clean", "snr_5"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BEIR folder of five queries; amy speaks all of them, bob three."""
    root = tmp_path_factory.mktemp("speakers")
    texts = root / "texts"
    (texts / "qrels").mkdir(parents=True)
    queries = [{"_id": f"q{n}", "text": f"query number {n}"} for n in range(5)]
    documents = [{"_id": f"d{n}", "title": "", "text": f"about query number {n}"} for n in range(5)]
    for name, rows in (("queries", queries), ("corpus", documents)):
        (texts / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (texts / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\td{n}\t1\n" for n in range(5))
    )
    for name, count in (("amy", 5), ("bob", 3)):
        folder = make_speech(root / name, count, rate=16_000)
        rows = [
            {"id": f"q{n}", "file": f"u{n:02d}.flac", "text": f"query number {n}", "speaker": name}
            for n in range(count)
        ]
        (folder / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"beir:{texts}?language=en&subset=texts&missing=skip&speech={root / 'amy'},{root / 'bob'}"


def test_every_speaker_is_an_utterance_of_the_query(source: str, tmp_path: Path) -> None:
    opened = open_recipe(source, conditions=CONDITIONS, sample_rate=16_000)
    build(opened, tmp_path / "data")
    assert examine(tmp_path / "data").findings == ()
    data = BuiltData(tmp_path / "data")
    ids = [query.id for query in data.queries("texts")]
    assert ids == ["q0~amy", "q0~bob", "q1~amy", "q1~bob", "q2~amy", "q2~bob", "q3~amy", "q4~amy"]
    rows = list(data.spoken("texts", "snr_5"))
    assert [(row.utterance_id, row.query_id, row.speaker) for row in rows[:2]] == [
        ("q0~amy", "q0", "amy"),
        ("q0~bob", "q0", "bob"),
    ]
    assert rows[0].noise_offset_s != rows[1].noise_offset_s
    for live in (data, LiveData(opened)):
        assert live.qrels("texts")["q1~bob"] == live.qrels("texts")["q1~amy"] == {"d1": 1}
        assert live.qrels("texts").keys() == set(ids)
    card = (tmp_path / "data" / "README.md").read_text(encoding="utf-8")
    assert "2 queries without a recording (q3, q4)" in card


def test_they_are_held_out_and_evaluated_together(source: str, tmp_path: Path) -> None:
    data = LiveData(open_recipe(source, conditions=CONDITIONS, sample_rate=16_000))
    scored, dev = held_out(data, 0.4, 0)
    both = [{query.cluster for query in part.queries("texts")} for part in (scored, dev)]
    assert not both[0] & both[1] and len(both[0] | both[1]) == 5
    build(open_recipe(source, conditions=CONDITIONS, sample_rate=16_000), tmp_path / "data")
    transcripts = tmp_path / "transcripts"
    transcripts.mkdir()
    for condition in CONDITIONS:
        lines = [
            {"id": query.id, "text": query.text + (" wrong" if query.id.endswith("bob") else "")}
            for query in data.queries("texts")
        ]
        (transcripts / f"{condition}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (system,) = load_systems([f"transcripts:{transcripts}/{{condition}}.jsonl + bm25"])
    results = evaluate(
        system,
        data=tmp_path / "data",
        configs=["texts_clean", "texts_snr_5"],
        metrics=["ndcg_at_10", "wer"],
        resamples=50,
    )
    for result in results:
        assert (result.data.n, result.data.clusters) == (8, 5)
        if result.data.condition != "text":
            assert result.scores["wer"].value == pytest.approx(3 / 24)


def test_the_samples_are_those_of_the_folder(source: str) -> None:
    data = LiveData(open_recipe(source, conditions=["clean"], sample_rate=16_000))
    rows = {row.id: row for row in data.spoken("texts", "clean")}
    head, _, folders = source.partition("speech=")
    alone = LiveData(open_recipe(f"{head}speech={folders.split(',')[1]}", conditions=["clean"], sample_rate=16_000))
    assert [rows[f"{row.id}~bob"].audio for row in alone.spoken("texts", "clean")] == [
        row.audio for row in alone.spoken("texts", "clean")
    ]


def test_what_cannot_be_paired_is_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'q0' has several speakers"):
        open_recipe(source, conditions=CONDITIONS, draws=2).takes("texts")
    amy = source.partition("speech=")[2].split(",")[0]
    with pytest.raises(UsageError, match="same name"):
        open_recipe(source.replace(source.partition(",")[2], amy), conditions=CONDITIONS)
    with pytest.raises(DataError, match="does not exist"):
        open_recipe(f"{source},{tmp_path / 'nobody'}", conditions=CONDITIONS)


def test_all_that_is_wrong_with_their_texts_is_told(source: str) -> None:
    qrels = Path(source.partition("beir:")[2].partition("?")[0]) / "qrels"
    lines = (qrels / "test.tsv").read_text().replace("q0\td0\t1", "q0\td0\t-1").replace("q1\td1\t1", "q1\td1\t0.5")
    (qrels / "bad.tsv").write_text(lines)
    found = examine_source(load_source(source.replace("language=en", "language=en&split=bad")))
    assert found.error_count == 2
    assert "a grade below 0" in found.errors[0] and "an integer is expected" in found.errors[1]
