"""Every kind of system through the evaluation: what it scores, and that no work is done twice."""

from __future__ import annotations

import io
import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import soundfile

from squtr.errors import ModelError
from squtr.harness.components.encoders.cache import DirectoryEmbeddingCache
from squtr.harness.components.retrievers.dense import DenseRetriever
from squtr.harness.components.retrievers.fusion import reciprocal_rank_fusion, score_fusion, softmax
from squtr.harness.components.retrievers.hybrid import HybridRetriever
from squtr.harness.components.retrievers.trec_run import TrecRun
from squtr.harness.components.transcribers.files import TranscriptsFile
from squtr.harness.evaluation import shards
from squtr.harness.evaluation.options import Options
from squtr.harness.evaluation.plan import SpeechPlan
from squtr.harness.evaluation.run import Evaluation, EvaluationFailed
from squtr.harness.metrics.ranking import score_ranking
from squtr.harness.protocols import ComponentSpec, Hit, Transcript
from squtr.harness.systems.system import System
from squtr.harness.tasks.retrieval import search
from squtr.harness.tasks.retrieval.search_requests import SearchRequest
from squtr.loaders.data import BuiltData
from squtr.loaders.records import SpokenQuery

from .encoders_for_tests import HashedWordsEncoder
from .evaluate_runs_for_tests import evaluate_records, evaluate_runs
from .evaluation_for_tests import Backwards, NBest, Negative, Toy, built, by_config, truth_of
from .fakes import LookupTranscriber, WordRetriever, sound_key
from .groups_for_tests import Crew

CONDITIONS = ("clean", "high_noise", "reverb")
SPOKEN = 2 * 5 * len(CONDITIONS)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> BuiltData:
    return built(tmp_path_factory.mktemp("systems"), *CONDITIONS)


@pytest.fixture(scope="module")
def truth(data: BuiltData) -> dict[str, SpokenQuery]:
    return truth_of(data)


@pytest.fixture
def perfect(truth: Mapping[str, SpokenQuery]) -> LookupTranscriber:
    return LookupTranscriber({key: query.text for key, query in truth.items()})


def sound_of(truth: Mapping[str, SpokenQuery], subset: str, id_: str, condition: str) -> str:
    return next(k for k, q in truth.items() if (q.subset, q.id, q.condition) == (subset, id_, condition))


# Front ends


def upside_down(truth: Mapping[str, SpokenQuery], data: BuiltData) -> dict[str, str]:
    """The texts of all sounds turned upside down."""
    table = {}
    for subset in data.subsets:
        for condition in CONDITIONS:
            for query in data.spoken(subset, condition):
                samples, _ = soundfile.read(io.BytesIO(query.audio), dtype="float32")
                table[sound_key(-samples)] = query.text
    return table


def test_a_front_end_works_before_the_recognizer(
    data: BuiltData, truth: Mapping[str, SpokenQuery], perfect: LookupTranscriber, tmp_path: Path
) -> None:
    behind = LookupTranscriber(upside_down(truth, data))
    front = Negative()
    systems = [
        System(transcriber=behind, retriever=WordRetriever(), front_end=front),
        System(transcriber=perfect, retriever=WordRetriever()),
    ]
    records = evaluate_runs(systems, data, cache=tmp_path)
    assert front.clips == SPOKEN
    # One fingerprint, two front ends: what was heard behind one is not what was heard behind none.
    assert behind.calls == perfect.calls == SPOKEN
    with_front, without = (by_config(records, s.name) for s in systems)
    assert systems[0].name == "negative | lookup + words"
    for config, record in with_front.items():
        assert record.items.column("documents").equals(without[config].items.column("documents"))
        result = record.result
        if result.data.condition == "text":
            assert "front_end" not in result.system.components
            continue
        assert result.scores["cer"].value == 0
        assert "front_end" in result.system.components
        assert result.system.components["front_end"]["name"] == "negative"
        assert result.timing.stages["front_end"] > 0
        assert "front_end" not in without[config].result.timing.stages
    evaluate_runs(systems, data, cache=tmp_path)
    assert (front.clips, behind.calls) == (SPOKEN, SPOKEN)


def test_clips_that_a_front_end_refuses_are_failed_ones(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    refused, broken = (sound_of(truth, "tiny-en", id_, "clean") for id_ in ("q1", "q2"))
    front = Negative(refused=[refused], broken=[broken])
    behind = LookupTranscriber(upside_down(truth, data))
    records = evaluate_runs(
        [System(transcriber=behind, retriever=WordRetriever(), front_end=front)], data, configs=["en_clean"]
    )
    run = by_config(records)["en_clean"]
    errors = dict(zip(run.items["id"].to_pylist(), run.items["error"].to_pylist(), strict=True))
    assert "there is no negative of this sound" in errors["q1"]
    assert "not finite" in errors["q2"]
    assert [errors[id_] for id_ in ("q0", "q3", "q4")] == [""] * 3
    assert run.result.failures["failed"] == 2
    assert run.result.scores["wer"].n == 3
    assert run.items["ndcg_at_10"].to_pylist()[1:3] == [0, 0]


class Longer(Negative):
    def enhance(self, clips: list[np.ndarray]) -> list[np.ndarray]:  # type: ignore[override]
        return [np.append(clip, np.float32(0)) for clip in clips]


class Crashing(Negative):
    def enhance(self, clips: list[np.ndarray]) -> list[np.ndarray]:  # type: ignore[override]
        raise ZeroDivisionError("no filter")


@pytest.mark.parametrize(
    ("front", "message"),
    [
        (Longer(), r"negative\) gave \(28801,\) samples for the \(28800,\) of query"),
        (Crashing(), r"negative\) on 5 clips failed: ZeroDivisionError: no filter \(test_evaluation_systems.py, line"),
    ],
)
def test_a_broken_front_end_is_a_sentence(
    data: BuiltData, perfect: LookupTranscriber, front: Negative, message: str
) -> None:
    with pytest.raises(EvaluationFailed, match=message) as caught:
        evaluate_runs(
            [System(transcriber=perfect, retriever=WordRetriever(), front_end=front)], data, configs=["en_clean"]
        )
    assert [r.data.config for r in caught.value.results] == ["en_text"]


# N-best

TOLD = {
    ("tiny-en", "q0"): [("lamp", -0.5), ("river", -0.7), ("river stone", -3.0)],
    ("tiny-en", "q1"): [("stoned", -0.1), ("stone", -2.0)],
    ("tiny-zh", "q3"): [("花園", -0.2), ("大橋", -0.9), ("花园 大桥", -4.0)],
}


@pytest.mark.parametrize("method", ["rrf", "score"])
def test_n_best_rankings_are_those_fused_by_hand(
    data: BuiltData, truth: Mapping[str, SpokenQuery], method: str
) -> None:
    transcriber = NBest(truth, TOLD)
    system = System(transcriber=transcriber, retriever=WordRetriever(), n_best=3, n_best_fusion=method)
    records = evaluate_runs(
        [system, System(transcriber=transcriber, retriever=WordRetriever())], data, configs=["en_clean", "zh_clean"]
    )
    assert system.name == "n-best + words (3-best)"
    simplified = {"花園": "花园", "大橋": "大桥"}
    for subset in data.subsets:
        words = WordRetriever()
        words.index(data.documents(subset), language=data.subsets[subset])
        rows = by_config(records, system.name)[f"{data.subsets[subset]}_clean"].items.to_pylist()
        best_alone = by_config(records, "n-best + words")[f"{data.subsets[subset]}_clean"].items.to_pylist()
        for query, row, alone in zip(data.queries(subset), rows, best_alone, strict=True):
            told = TOLD.get((subset, query.id), [(query.text, 0.0)])
            texts = [simplified.get(text, text) for text, _ in told]
            rankings = words.search(texts, k=100)
            weights = softmax([score for _, score in told])
            fused = (
                reciprocal_rank_fusion(rankings, weights=weights)
                if method == "rrf"
                else score_fusion(rankings, weights)
            )
            # A single hypothesis is not fused: its ranking is the retriever's own.
            expected = fused if len(told) > 1 else rankings[0]
            assert row["documents"] == [hit.document_id for hit in expected[:10]]
            assert row["scores"] == pytest.approx([hit.score for hit in expected[:10]], abs=1e-12)
            assert row["transcript"] == texts[0]
            assert alone["documents"] == [hit.document_id for hit in rankings[0][:10]]
    run = by_config(records, system.name)["en_clean"].result
    assert (run.system.settings["n_best"], run.system.settings["n_best_fusion"]) == (3, method)
    assert by_config(records, system.name)["en_text"].result.system.settings["n_best"] == 1
    # The error rate is that of the best alone.
    assert run.scores["wer"].value == pytest.approx(2 / 5)


def test_n_best_is_kept_with_all_hypotheses(data: BuiltData, truth: Mapping[str, SpokenQuery], tmp_path: Path) -> None:
    systems = [System(transcriber=NBest(truth, TOLD), retriever=WordRetriever(), n_best=3)]
    first = evaluate_runs(systems, data, configs=["en_clean"], cache=tmp_path)
    deaf = NBest({}, {})
    again = evaluate_runs(
        [System(transcriber=deaf, retriever=WordRetriever(), n_best=3)], data, configs=["en_clean"], cache=tmp_path
    )
    assert [r.items.to_pylist()[0]["documents"] for r in first] == [r.items.to_pylist()[0]["documents"] for r in again]
    assert first[1].result.inputs_sha256 == again[1].result.inputs_sha256


def test_a_log_probability_of_nan_is_a_sentence(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    told = {("tiny-en", "q0"): [("lamp", math.nan), ("river", -1.0)]}
    with pytest.raises(
        EvaluationFailed,
        match="'lamp', one of the n best of query 'q0' of tiny-en under clean, the log-probability nan",
    ):
        evaluate_runs(
            [System(transcriber=NBest(truth, told), retriever=WordRetriever(), n_best=2)], data, configs=["en_clean"]
        )


# Hybrids and rerankers


def test_parts_are_searched_once_whoever_uses_them(data: BuiltData, perfect: LookupTranscriber, tmp_path: Path) -> None:
    words, encoder = WordRetriever(), HashedWordsEncoder()
    dense = DenseRetriever(encoder=encoder)
    hybrid = HybridRetriever(parts=[words, dense], depth=100)
    backwards = Backwards(hybrid)
    systems: list[System] = [System(transcriber=perfect, retriever=r) for r in (backwards, hybrid, words, dense)]
    records = evaluate_runs(systems, data, cache=tmp_path)
    texts = 2 * 5
    assert (words.searched, words.indexed) == (texts, 2)
    documents = Counter(text for role, text in encoder.encoded if role == "document")
    assert sum(documents.values()) == 2 * 12
    assert sum(role == "query" for role, _ in encoder.encoded) == texts
    assert backwards.asked == texts
    # The same as each alone.
    for subset, language in data.subsets.items():
        alone = {}
        for retriever in (WordRetriever(), DenseRetriever(encoder=HashedWordsEncoder())):
            retriever.index(data.documents(subset), language=language)
            alone[type(retriever)] = retriever
        for row in by_config(records, f"lookup + {hybrid.spec.name}")[f"{language}_clean"].items.to_pylist():
            fused = reciprocal_rank_fusion([r.search([row["text"]], k=100)[0] for r in alone.values()])
            assert row["documents"] == [hit.document_id for hit in fused]
            assert row["scores"] == pytest.approx([hit.score for hit in fused])
    reranked = by_config(records, f"lookup + {backwards.spec.name}")["en_clean"].items.to_pylist()
    fused_rows = by_config(records, f"lookup + {hybrid.spec.name}")["en_clean"].items.to_pylist()
    assert [r["documents"] for r in reranked] == [r["documents"][:5][::-1] for r in fused_rows]


def test_a_composite_is_the_same_in_any_number_of_processes(
    data: BuiltData, truth: Mapping[str, SpokenQuery], tmp_path: Path
) -> None:
    def evaluated(size: int, folder: Path) -> tuple[list[object], int]:
        words = WordRetriever()
        backwards = Backwards(HybridRetriever(parts=[words, DenseRetriever(encoder=HashedWordsEncoder())]))

        def work(member: object) -> Evaluation:
            heard = LookupTranscriber({key: query.text for key, query in truth.items()})
            return evaluate_records(
                [System(transcriber=heard, retriever=backwards)], data, cache=folder, processes=member
            )  # type: ignore[arg-type]

        found = Crew(size).run(work)[0]
        assert not found.failures
        return [r.items.to_pylist() for r in found.records], backwards.asked

    results = [evaluated(size, tmp_path / str(size)) for size in (1, 2, 3)]
    assert str(results[0][0]) == str(results[1][0]) == str(results[2][0])
    assert [asked for _, asked in results] == [10, 10, 10]


def test_a_part_that_fails_fails_what_is_made_of_it_only(data: BuiltData, perfect: LookupTranscriber) -> None:
    class English(WordRetriever):
        def index(self, documents: object, *, language: str) -> None:
            if language == "zh":
                raise RuntimeError("out of characters")
            super().index(documents, language=language)  # type: ignore[arg-type]

    words, broken = WordRetriever(), English("english")
    systems = [
        System(transcriber=perfect, retriever=HybridRetriever(parts=[words, broken])),
        System(transcriber=perfect, retriever=words),
    ]
    done = evaluate_records(systems, data, configs=["en_clean", "zh_clean"])
    assert {(f.system, f.config) for f in done.failures} == {
        (systems[0].name, "zh_text"),
        (systems[0].name, "zh_clean"),
    }
    assert (
        "English.index (english) on tiny-zh failed: RuntimeError: out of characters (test_evaluation_systems.py, line "
        in str(done.failures[0].error)
    )
    assert len(done.records) == 2 + 4


# Ready transcripts and runs


def write_transcripts(folder: Path, data: BuiltData) -> Path:
    """Right transcripts, but q1 has none and q2 failed."""
    for subset in data.subsets:
        for condition in CONDITIONS:
            path = folder / subset / f"{condition}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            rows: list[dict[str, str]] = [{"id": q.id, "text": q.text} for q in data.queries(subset) if q.id != "q1"]
            rows = [r if r["id"] != "q2" else {"id": "q2", "error": "timed out"} for r in rows]
            path.write_text("\n".join(json.dumps(r, ensure_ascii=False) for r in rows), encoding="utf-8")
    return folder / "{subset}" / "{condition}.jsonl"


def write_run_files(folder: Path, data: BuiltData, conditions: tuple[str, ...]) -> Path:
    """Rankings that find the right document second, but nothing for q4."""
    for subset in data.subsets:
        for condition in conditions:
            path = folder / subset / f"{condition}.trec"
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = [
                f"{q.id} Q0 {document} {rank} {3 - rank} mine"
                for q in data.queries(subset)
                if q.id != "q4"
                for rank, document in enumerate(("d11", q.id.replace("q", "d")), start=1)
            ]
            path.write_text("\n".join(lines) + "\n")
    return folder / "{subset}" / "{condition}.trec"


def test_ready_transcripts_with_a_retriever(data: BuiltData, tmp_path: Path) -> None:
    ready = TranscriptsFile(write_transcripts(tmp_path / "mine", data), missing="count")
    words = WordRetriever()
    records = evaluate_runs(
        [System(transcriber=ready, retriever=words)], data, out=tmp_path / "run", cache=tmp_path / "cache"
    )
    runs = by_config(records)
    assert set(runs) == {f"{lang}_{c}" for lang in ("en", "zh") for c in ("text", *CONDITIONS)}
    for config in ("en_clean", "zh_reverb"):
        run = runs[config]
        assert run.result.failures["failed"] == 2
        assert run.result.scores["cer"].n == 3
        assert run.result.scores["cer"].value == 0
        rows = {row["id"]: row for row in run.items.to_pylist()}
        assert "timed out" in rows["q2"]["error"]
        assert rows["q1"]["ndcg_at_10"] == rows["q2"]["ndcg_at_10"] == 0
        assert rows["q1"]["documents"] == []
        assert rows["q0"]["ndcg_at_10"] > 0
        assert run.result.timing.rtfx is run.result.timing.waiting_share is None
        assert set(run.result.timing.stages) == {"index", "search"}
        assert run.seconds is None
    # Texts that repeat under every condition are searched once.
    assert words.searched == 2 * 5
    assert len(list((tmp_path / "run" / "samples").rglob("*.flac"))) == 2 * 2 * len(CONDITIONS)


def test_ready_transcripts_with_a_ready_run(data: BuiltData, tmp_path: Path) -> None:
    ready = TranscriptsFile(write_transcripts(tmp_path / "mine", data), missing="count")
    run = TrecRun(write_run_files(tmp_path / "runs", data, ("text", *CONDITIONS)), missing="count")
    records = evaluate_runs([System(transcriber=ready, retriever=run)], data, configs=["en_clean"])
    spoken = by_config(records)["en_clean"]
    # Typed queries are not asked of a ready run unless the user says so.
    assert set(by_config(records)) == {"en_clean"}
    assert spoken.result.scores["wer"].value == 0
    assert spoken.result.scores["wer"].n == 3
    assert spoken.items["first_relevant_rank"].to_pylist() == [2, 2, 2, 2, 0]
    assert spoken.result.failures["missing"] == 1


def test_a_ready_run_alone_has_rankings_and_no_words(data: BuiltData, tmp_path: Path) -> None:
    system = System(retriever=TrecRun(write_run_files(tmp_path, data, ("text", *CONDITIONS)), missing="count"))
    records = evaluate_runs([system], data, configs=["en_*", "zh_*", "en_text", "zh_text"])
    assert len(records) == 2 * 4
    for record in records:
        result = record.result
        assert result.system.kind == "run"
        assert set(result.scores) == {"ndcg_at_10", "mrr_at_10", "recall_at_10"}
        assert result.scores["mrr_at_10"].value == pytest.approx(4 / 5 / 2)
        assert "transcriber" not in result.system.components
        assert "retriever" in result.system.components
        assert result.system.components["retriever"]["backend"] == "trec"
        assert all(math.isnan(v) for v in record.items["word_substitutions"].to_pylist())
        run = {i["id"]: list(zip(i["documents"], i["scores"], strict=True)) for i in record.items.to_pylist()}
        again = score_ranking(data.qrels(f"tiny-{result.data.language}"), run, metrics=("ndcg_at_10",))
        assert result.scores["ndcg_at_10"].value == pytest.approx(again.mean["ndcg_at_10"])
    assert by_config(records)["en_clean"].result.losses["text"]["ndcg_at_10"].absolute.value == 0


def test_a_condition_that_a_ready_run_lacks_fails_alone(data: BuiltData, tmp_path: Path) -> None:
    system = System(retriever=TrecRun(write_run_files(tmp_path, data, ("text", "clean")), missing="count"))
    done = evaluate_records([system], data, configs=["en_clean", "en_reverb"])
    assert set(by_config(done)) == {"en_clean"}
    assert [f.config for f in done.failures] == ["en_reverb"]
    assert "reverb" in str(done.failures[0].error)


def test_ready_components_that_give_too_little_are_a_sentence(data: BuiltData) -> None:
    class Short:
        spec = WordRetriever("short").spec

        def supports(self, language: str) -> bool:
            return True

        def hits(self, subset: str, condition: str, ids: list[str], *, k: int) -> list[list[Hit]]:
            return []

        def transcripts(self, subset: str, condition: str, ids: list[str]) -> list[Transcript]:
            return [Transcript("")]

    class Hits:
        spec, supports, hits = Short.spec, Short.supports, Short.hits

    class Transcripts:
        spec, supports, transcripts = Short.spec, Short.supports, Short.transcripts

    with pytest.raises(ModelError, match=r"Hits.hits \(short\) gave 0 outputs for 5 items"):
        evaluate_runs([System(retriever=Hits())], data, configs=["en_clean"])
    with pytest.raises(EvaluationFailed, match=r"Transcripts.transcripts .short. gave 1 outputs for 5 items"):
        evaluate_runs([System(transcriber=Transcripts(), retriever=WordRetriever())], data, configs=["en_clean"])


# End to end


def test_an_end_to_end_encoder_finds_without_words(data: BuiltData, truth: Mapping[str, SpokenQuery]) -> None:
    toy = Toy(truth, failed=[("q3", "reverb")])
    records = evaluate_runs([System(encoder=toy)], data)
    runs = by_config(records)
    for config, run in runs.items():
        assert set(run.result.scores) == {"ndcg_at_10", "mrr_at_10", "recall_at_10"}, "an encoder has no error rate"
        assert run.result.system.kind == "end-to-end"
        assert "encoder" in run.result.system.components
        if run.result.data.condition == "text":
            assert run.result.scores["ndcg_at_10"].value > 0.9
            assert "encode" not in run.result.timing.stages
        else:
            assert (run.result.timing.rtfx or 0) > 0
            upper = runs[f"{config.split('_')[0]}_text"].items["documents"].to_pylist()
            failed = config.endswith("reverb")
            expected = [[] if failed and i == 3 else documents for i, documents in enumerate(upper)]
            assert run.items["documents"].to_pylist() == expected
    reverb = runs["en_reverb"]
    assert reverb.result.failures["failed"] == reverb.result.failures["missing"] == 1
    row = reverb.items.to_pylist()[3]
    assert row["ndcg_at_10"] == 0
    assert "no finite vector" in row["error"]
    assert reverb.result.scores["ndcg_at_10"].n == 5
    # Without any cache, the corpora are still encoded once, for typed and spoken queries together.
    documents = Counter(text for role, text in toy.words.encoded if role == "document")
    assert set(documents.values()) == {1}
    assert sum(documents.values()) == 2 * 12


def test_vectors_of_sounds_are_kept(data: BuiltData, truth: Mapping[str, SpokenQuery], tmp_path: Path) -> None:
    first, again = Toy(truth), Toy(truth)
    one = evaluate_runs([System(encoder=first)], data, cache=tmp_path)
    two = evaluate_runs([System(encoder=again)], data, cache=tmp_path)
    assert sum(first.heard.values()) == SPOKEN
    assert not again.heard
    assert not again.words.encoded
    assert str([r.items.to_pylist() for r in one]) == str([r.items.to_pylist() for r in two])
    # Rankings that are gone are made again from the vectors, which are not encoded again.
    with sqlite3.connect(tmp_path / "evaluations.sqlite") as store:
        store.execute("DELETE FROM rankings")
    third = Toy(truth)
    three = evaluate_runs([System(encoder=third)], data, cache=tmp_path)
    assert not third.heard
    assert not third.words.encoded
    assert str([r.items.to_pylist() for r in three]) == str([r.items.to_pylist() for r in one])


def test_failed_vectors_are_tried_again(data: BuiltData, truth: Mapping[str, SpokenQuery], tmp_path: Path) -> None:
    evaluate_runs([System(encoder=Toy(truth, failed=[("q3", "clean")]))], data, configs=["en_clean"], cache=tmp_path)
    mended = Toy(truth)
    records = evaluate_runs([System(encoder=mended)], data, configs=["en_clean"], cache=tmp_path)
    assert sum(mended.heard.values()) == 1
    assert by_config(records)["en_clean"].result.failures["failed"] == 0


@pytest.mark.parametrize("size", [2, 3])
def test_end_to_end_in_several_processes(
    data: BuiltData, truth: Mapping[str, SpokenQuery], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(shards, "SHARD_CLIPS", 2)
    monkeypatch.setattr(shards, "WINDOW_SHARDS", 2)
    monkeypatch.setattr(search, "LEAST_UNIT", 3)
    alone = evaluate_runs([System(encoder=Toy(truth))], data, cache=tmp_path / "1")
    toys = [Toy(truth) for _ in range(size)]

    def work(member: object) -> Evaluation:
        system = System(encoder=toys[member.rank])  # type: ignore[attr-defined]
        return evaluate_records([system], data, cache=tmp_path / "n", processes=member)  # type: ignore[arg-type]

    found = Crew(size).run(work)
    assert not found[0].failures
    assert all(toy.heard for toy in toys)
    assert set(sum((toy.heard for toy in toys), Counter()).values()) == {1}
    assert str([r.items.to_pylist() for r in found[0].records]) == str([r.items.to_pylist() for r in alone])
    assert [r.result.scores for r in found[0].records] == [r.result.scores for r in alone]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda clips: np.ones(len(clips), dtype=np.float32), r"shape \(5,\)"),
        (lambda clips: [[1.0, 0.0], [1.0]] * 3, "gave list"),
        (lambda clips: np.ones((2, 16), dtype=np.float32) / 4, "shape .2, 16. for 5 items"),
        (lambda clips: np.ones((len(clips), 16), dtype=np.float32), "length 4 instead of 1"),
        (lambda clips: np.eye(len(clips), 3, dtype=np.float32) + np.eye(5, 3, -3), "3.*16|16.*3"),
    ],
)
def test_vectors_that_cannot_be_used_are_a_sentence(
    data: BuiltData, truth: Mapping[str, SpokenQuery], answer: object, message: str
) -> None:
    class Wrong(Toy):
        def encode_audio(self, clips: list[np.ndarray], *, language: str) -> np.ndarray:  # type: ignore[override]
            return answer(clips)  # type: ignore[operator,no-any-return]

    done = evaluate_records([System(encoder=Wrong(truth))], data, configs=["en_clean"])
    assert [f.config for f in done.failures] == ["en_clean"]
    assert re.search(message, str(done.failures[0].error))
    assert set(by_config(done)) == {"en_text"}


# Grids


def test_a_grid_hears_and_embeds_no_more_than_it_must(tmp_path: Path) -> None:
    grid = built(tmp_path / "grid", "clean", "low_noise", "high_noise", "reverb", "snr_-5", queries=4)
    heard = {key: query.text for key, query in truth_of(grid).items()}

    def systems() -> tuple[list[LookupTranscriber], list[HashedWordsEncoder], list[System]]:
        transcribers = [LookupTranscriber(heard, name=f"asr{i}") for i in range(3)]
        encoders = [HashedWordsEncoder(name=f"encoder{i}", width=12 + i) for i in range(4)]
        made = [
            DenseRetriever(encoder=e, cache=DirectoryEmbeddingCache(tmp_path / "cache/embeddings")) for e in encoders
        ]
        return transcribers, encoders, [System(transcriber=t, retriever=r) for t in transcribers for r in made]

    transcribers, encoders, cells = systems()
    few = Options(resamples=20)
    done = evaluate_records(cells, grid, cache=tmp_path / "cache", out=tmp_path / "run", options=few)
    assert not done.failures
    assert len(done.records) == 3 * 4 * 2 * (5 + 1)
    assert [t.calls for t in transcribers] == [5 * 2 * 4] * 3
    for encoder in encoders:
        documents = Counter(text for role, text in encoder.encoded if role == "document")
        assert set(documents.values()) == {1}
        assert sum(documents.values()) == 2 * 12, "each corpus is embedded once"
        assert sum(role == "query" for role, _ in encoder.encoded) == 2 * 4, "each text is embedded once"
    transcribers, encoders, cells = systems()
    again = evaluate_records(cells, grid, cache=tmp_path / "cache", out=tmp_path / "run", options=few)
    assert [t.calls for t in transcribers] == [0] * 3
    assert not any(encoder.encoded for encoder in encoders)
    assert [r.result for r in again.records] == [r.result for r in done.records]


def test_without_a_cache_a_grid_embeds_no_more_either(data: BuiltData, perfect: LookupTranscriber) -> None:
    encoders = [HashedWordsEncoder(name=f"encoder{i}", width=12 + i) for i in range(2)]
    other = LookupTranscriber(perfect.table, name="other")
    retrievers = [DenseRetriever(encoder=encoder) for encoder in encoders]
    evaluate_records([System(transcriber=t, retriever=r) for t in (perfect, other) for r in retrievers], data)
    assert perfect.calls == other.calls == SPOKEN
    for encoder in encoders:
        assert sum(role == "document" for role, _ in encoder.encoded) == 2 * 12


class Own(LookupTranscriber):
    """A user's class that says no more of itself than its name."""

    def __init__(self, table: Mapping[str, str], name: str) -> None:
        super().__init__(table)
        self.spec = ComponentSpec("transcriber", "class", name)


def test_two_classes_of_a_user_are_not_taken_for_one(
    data: BuiltData, perfect: LookupTranscriber, tmp_path: Path
) -> None:
    one, other = Own(perfect.table, "one"), Own(dict.fromkeys(perfect.table, "lump"), "other")  # type: ignore[arg-type]
    records = evaluate_runs(
        [System(transcriber=one, retriever=WordRetriever()), System(transcriber=other, retriever=WordRetriever())],
        data,
        cache=tmp_path,
    )
    assert by_config(records, "one + words")["en_clean"].result.scores["wer"].value == 0
    assert by_config(records, "other + words")["en_clean"].result.scores["wer"].value == 1


# Units


class Remembering(WordRetriever):
    """Remembers which texts were searched with together."""

    def __init__(self) -> None:
        super().__init__()
        self.units: list[tuple[str, ...]] = []

    def prepare(self, documents: object, *, language: str, rank: int, size: int) -> None:
        pass

    def search(self, queries: list[str], *, k: int) -> list[list[Hit]]:  # type: ignore[override]
        self.units.append(tuple(queries))
        return super().search(queries, k=k)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_what_is_searched_together_does_not_depend_on_processes_or_kills(
    data: BuiltData, truth: Mapping[str, SpokenQuery], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(search, "LEAST_UNIT", 4)
    heard = {k: f"{q.text} {q.condition}" for k, q in truth.items()}
    shared = Remembering()

    def work(member: object) -> Evaluation:
        cascade = System(transcriber=LookupTranscriber(heard), retriever=shared)
        return evaluate_records([cascade], data, cache=tmp_path, processes=member)  # type: ignore[arg-type]

    Crew(size).run(work)
    texts = [q.text for q in data.queries("tiny-en")]
    all_texts = texts + [f"{t} {c}" for c in CONDITIONS for t in texts]
    expected = {tuple(all_texts[i : i + 4]) for i in range(0, len(all_texts), 4)}
    assert {unit for unit in shared.units if unit[0][0].isascii()} == expected
    assert len(shared.units) == 2 * len(expected)


def test_units_grow_with_the_corpus_they_go_through() -> None:
    class Long:
        def __init__(self, n: int) -> None:
            self.n = n

        def __len__(self) -> int:
            return self.n

    for documents, unit in ((12, 256), (1_000_000, 976), (5_233_329, 4096)):
        plan = SpeechPlan(None, None, {}, {}, _corpora={"s": Long(documents)})  # type: ignore[arg-type,dict-item]
        request = SearchRequest(WordRetriever(), 10)
        assert search.Place(plan, "s", request, search.SearchResults()).unit == unit


def test_parts_of_data_lie_apart_by_what_they_are() -> None:
    assert Options(limit=3).part == "partial-first-3"
    assert Options(limit=3, fraction=0.25, seed=7).part == "partial-first-3-share-0.25-seed-7"
    assert Options(seed=7).part == ""
