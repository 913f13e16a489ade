"""One evaluation by several processes, killed or not: the same results, nothing lost, nothing done twice."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from squtr.errors import ModelError, StorageError
from squtr.harness.evaluation import shards
from squtr.harness.evaluation.options import Options
from squtr.harness.evaluation.run import Evaluation, EvaluationFailed
from squtr.harness.evaluation.store import Store
from squtr.harness.processes import complete
from squtr.harness.protocols import ComponentSpec, Document, Hit, Transcript
from squtr.harness.systems.system import System
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.recipe import open_recipe

from .evaluate_runs_for_tests import evaluate_records, evaluate_runs
from .fakes import WordRetriever
from .groups_for_tests import Crew

CONFIGS = ["en_clean", "en_high_noise", "es_clean"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> BuiltData:
    folder = tmp_path_factory.mktemp("sharing") / "data"
    opened = open_recipe("mini", conditions=["clean", "high_noise"], languages=["en", "es"], limit=40)
    build(opened, folder)
    return BuiltData(folder)


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_CLIPS", 4)
    monkeypatch.setattr(shards, "WINDOW_SHARDS", 3)


class Recorder:
    """A transcriber that says words made from the sound, and remembers what it heard and with what beside it."""

    sample_rate = 16_000

    def __init__(self, name: str = "recorder") -> None:
        self.heard: Counter[str] = Counter()
        self.batches: set[tuple[str, ...]] = set()
        self.spec = ComponentSpec("transcriber", "recorder", name, revision=name)
        self._lock = threading.Lock()

    def supports(self, language: str) -> bool:
        return True

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        keys = [hashlib.sha256(clip.tobytes()).hexdigest() for clip in clips]
        with self._lock:
            self.heard.update(keys)
            self.batches.add(tuple(keys))
        words = "the of in and river city energy water music king".split()
        return [Transcript(" ".join(words[int(c, 16) % 10] for c in key[:4]), seconds=0.5) for key in keys]


def run(data: BuiltData, system: System, size: int, folder: Path) -> Evaluation:
    def work(member: object) -> Evaluation:
        return evaluate_records(
            [system], data, configs=CONFIGS, out=folder / "run", cache=folder / "cache", processes=member
        )

    return Crew(size).run(work)[0]


def contents(folder: Path) -> dict[str, object]:
    """What a run wrote, without what its machine took."""
    found: dict[str, object] = {}
    for path in sorted((folder / "run" / "results").rglob("*")):
        if path.suffix == ".json":
            found[path.name] = {k: v for k, v in json.loads(path.read_text()).items() if k != "timing"}
        elif path.name.endswith(".items.parquet"):
            found[path.name] = path.read_bytes()
    return found


def test_results_do_not_depend_on_how_many_processes_there_are(data: BuiltData, tmp_path: Path) -> None:
    expected: dict[str, object] = {}
    batches: set[tuple[str, ...]] = set()
    for size in (1, 2, 3, 5):
        recorder = Recorder()
        evaluation = run(
            data, System(transcriber=recorder, retriever=WordRetriever(languages="en es")), size, tmp_path / str(size)
        )
        assert not evaluation.failures
        assert len(evaluation.records) == len(CONFIGS) + 2
        assert set(recorder.heard.values()) == {1}, "a clip was heard twice"
        assert len(recorder.heard) == 3 * 40
        expected = expected or contents(tmp_path / str(size))
        batches = batches or recorder.batches
        assert contents(tmp_path / str(size)) == expected
        assert recorder.batches == batches, "what is heard together depends on the number of processes"
        assert [p.name for p in (tmp_path / str(size) / "cache").glob("*.sqlite")] == ["evaluations.sqlite"]


def test_clips_are_heard_with_others_of_their_length(data: BuiltData, tmp_path: Path) -> None:
    cell = ("mini-en", "clean")
    queries = data.queries("mini-en")
    found = list(shards.read_shards(data, cell, queries, own=lambda _: True, keep=lambda _: None))
    assert sorted(p for shard in found for p in shard.positions) == list(range(40))
    for window in range(0, len(found), 3):
        lengths = [q.duration_s for shard in found[window : window + 3] for q in shard.rows]
        assert lengths == sorted(lengths, reverse=True)


class Flaky(Recorder):
    """Fails on Spanish."""

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        if language == "es":
            raise ValueError("no Spanish today")
        return super().transcribe(clips, language=language)


@pytest.mark.parametrize("size", [1, 2])
def test_a_config_that_fails_does_not_lose_the_others(data: BuiltData, tmp_path: Path, size: int) -> None:
    evaluation = run(data, System(transcriber=Flaky(), retriever=WordRetriever(languages="en es")), size, tmp_path)
    assert [f.config for f in evaluation.failures] == ["es_clean"]
    assert "no Spanish today" in str(evaluation.failures[0].error)
    assert {r.result.data.config for r in evaluation.records} == {"en_text", "en_clean", "en_high_noise", "es_text"}


def test_the_python_call_raises_with_the_results_of_the_others(data: BuiltData) -> None:
    with pytest.raises(EvaluationFailed, match="no Spanish today") as caught:
        evaluate_runs([System(transcriber=Flaky(), retriever=WordRetriever(languages="en es"))], data, configs=CONFIGS)
    assert len(caught.value.results) == 4
    assert caught.value.failures[0].config == "es_clean"


class Short(Recorder):
    """Gives one answer too few."""

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        return super().transcribe(clips, language=language)[:-1]


def test_a_model_with_too_few_answers_is_stopped_with_a_sentence(data: BuiltData) -> None:
    with pytest.raises(EvaluationFailed, match=r"gave 3 outputs for 4 items"):
        evaluate_runs(
            [System(transcriber=Short(), retriever=WordRetriever(languages="en es"))], data, configs=["en_clean"]
        )


class NaNRetriever(WordRetriever):
    def search(self, queries: Sequence[str], *, k: int) -> list[list[Hit]]:
        return [[Hit("d1", float("nan"))] for _ in queries]


class BrokenIndex(WordRetriever):
    def index(self, documents: Sequence[Document], *, language: str) -> None:
        if language == "es":
            raise ModelError("the index broke.")
        super().index(documents, language=language)


@pytest.mark.parametrize("size", [1, 3])
def test_a_retriever_that_fails_on_one_corpus_keeps_the_others(data: BuiltData, tmp_path: Path, size: int) -> None:
    evaluation = run(data, System(transcriber=Recorder(), retriever=BrokenIndex(languages="en es")), size, tmp_path)
    assert {f.config for f in evaluation.failures} == {"es_clean", "es_text"}
    assert {r.result.data.config for r in evaluation.records} == {"en_text", "en_clean", "en_high_noise"}


def test_a_score_of_nan_is_an_error_that_names_the_document(data: BuiltData) -> None:
    with pytest.raises(ModelError, match="gave the document 'd1' the score nan"):
        evaluate_runs(
            [System(transcriber=Recorder(), retriever=NaNRetriever(languages="en es"))], data, configs=["en_clean"]
        )


class Killed(Recorder):
    """Is killed after some clips."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def transcribe(self, clips: Sequence[np.ndarray], *, language: str) -> list[Transcript]:
        if sum(self.heard.values()) + len(clips) > self.after:
            raise KeyboardInterrupt
        return super().transcribe(clips, language=language)


def test_a_killed_evaluation_continues_and_hears_nothing_twice(data: BuiltData, tmp_path: Path) -> None:
    whole, killed = Recorder(), Killed(after=50)
    run(data, System(transcriber=whole, retriever=WordRetriever(languages="en es")), 1, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(data, System(transcriber=killed, retriever=WordRetriever(languages="en es")), 1, tmp_path / "killed")
    again = Recorder()
    run(data, System(transcriber=again, retriever=WordRetriever(languages="en es")), 1, tmp_path / "killed")
    assert set((killed.heard + again.heard).values()) == {1}
    assert killed.heard + again.heard == whole.heard
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def test_a_finished_evaluation_is_read_and_its_files_stay(data: BuiltData, tmp_path: Path) -> None:
    run(data, System(transcriber=Recorder(), retriever=WordRetriever(languages="en es")), 1, tmp_path)
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    again, words = Recorder(), WordRetriever(languages="en es")
    run(data, System(transcriber=again, retriever=words), 1, tmp_path)
    assert not again.heard
    assert words.indexed == words.searched == 0
    assert {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()} == before


def test_a_full_disk_stops_with_a_sentence_and_what_is_done_is_kept(
    data: BuiltData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep, calls = Store.keep_transcripts, Counter[str]()

    def full(self: Store, *arguments: object, **named: object) -> None:
        calls["keep"] += 1
        if calls["keep"] > 5:
            raise StorageError("the store cannot be used: database or disk is full.")
        keep(self, *arguments, **named)  # type: ignore[arg-type]

    first = Recorder()
    with monkeypatch.context() as patch, pytest.raises(StorageError, match="disk is full"):
        patch.setattr(Store, "keep_transcripts", full)
        run(data, System(transcriber=first, retriever=WordRetriever(languages="en es")), 1, tmp_path)
    again = Recorder()
    run(data, System(transcriber=again, retriever=WordRetriever(languages="en es")), 1, tmp_path)
    assert len(again.heard) == 3 * 40 - 5 * 4


def test_every_item_comes_back_once() -> None:
    with pytest.raises(ModelError, match="1 of 3 clips were not done, the first at position 1"):
        complete([[(0, "a")], [(2, "c")]], 3, "clips")
    with pytest.raises(ModelError, match="item 0 of clips was done twice"):
        complete([[(0, "a")], [(0, "a")]], 1, "clips")


def test_a_part_is_marked_partial_and_lies_apart(data: BuiltData, tmp_path: Path) -> None:
    system = System(transcriber=Recorder(), retriever=WordRetriever(languages="en es"))
    full = evaluate_records([system], data, configs=CONFIGS, out=tmp_path)
    part = evaluate_records([system], data, configs=CONFIGS, out=tmp_path, options=Options(fraction=0.1))
    assert part.out == tmp_path / "partial-share-0.1"
    assert full.out == tmp_path
    for record in part.records:
        assert (record.result.data.partial, record.result.data.n, record.result.data.n_total) == (True, 4, 40)
        assert record.items.num_rows == 4
    assert all(not r.result.data.partial and r.result.data.n == r.result.data.n_total for r in full.records)
    whole = {(r["id"], r["subset"], r["condition"]): r for rec in full.records for r in rec.items.to_pylist()}
    for record in part.records:
        for row in record.items.to_pylist():
            assert row["documents"] == whole[row["id"], row["subset"], row["condition"]]["documents"]
