"""The evaluation: shared work, right scores, counted failures, continued after a kill."""

from __future__ import annotations

import io
import math
from pathlib import Path

import pytest
import soundfile

import squtr
from squtr.errors import DataError, UnknownNameError, UsageError
from squtr.harness.metrics.ranking import score_ranking
from squtr.harness.protocols import Transcript
from squtr.harness.results.envelope import RunRecord, read_runs
from squtr.harness.systems import System, load_system
from squtr.loaders.data import LiveData
from squtr.loaders.recipe import open_recipe

from ..loaders.collections_for_tests import make_collection
from .evaluate_runs_for_tests import evaluate_runs
from .fakes import LookupTranscriber, WordRetriever, sound_key

CONDITIONS = ("clean", "high_noise", "reverb")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> LiveData:
    root = make_collection(tmp_path_factory.mktemp("pipeline") / "tiny")
    return LiveData(open_recipe(str(root), conditions=CONDITIONS))


@pytest.fixture(scope="module")
def truth(data: LiveData) -> dict[str, str]:
    """A perfect transcript for every sound."""
    table = {}
    for subset in data.subsets:
        for condition in CONDITIONS:
            for query in data.spoken(subset, condition):
                samples, _ = soundfile.read(io.BytesIO(query.audio), dtype="float32")
                table[sound_key(samples)] = query.text
    return table


def by_config(records: list[RunRecord], system: str) -> dict[str, RunRecord]:
    return {r.result.data.config: r for r in records if r.result.system.name == system}


def noisy_table(data: LiveData, truth: dict[str, str], heard: dict[tuple[str, str], str | Transcript]) -> dict:
    """The truth, but `heard[query id, condition]` for the English queries named there."""
    table: dict[str, str | Transcript] = dict(truth)
    for condition in CONDITIONS:
        for query in data.spoken("tiny-en", condition):
            if (query.id, condition) in heard:
                samples, _ = soundfile.read(io.BytesIO(query.audio), dtype="float32")
                table[sound_key(samples)] = heard[query.id, condition]
    return table


def test_a_perfect_recognizer_loses_nothing(data: LiveData, truth: dict[str, str]) -> None:
    records = evaluate_runs([System(transcriber=LookupTranscriber(truth), retriever=WordRetriever())], data)
    assert [r.result.data.config for r in records] == [
        f"{language}_{c}" for language in ("en", "zh") for c in ("text", *CONDITIONS)
    ]
    for record in records:
        result = record.result
        assert result.data.n == 5
        for loss in result.losses.values():
            assert loss["ndcg_at_10"].absolute.value == 0
        if result.data.condition == "text":
            assert "wer" not in result.scores
            assert "transcriber" not in result.system.components
        else:
            assert result.scores["cer"].value == 0
            assert ("wer" in result.scores) == (result.data.language == "en")
            assert set(result.losses) == {"text"} | ({"clean"} if result.data.condition != "clean" else set())
            assert result.timing.stages["transcribe"] == pytest.approx(5 * 0.25)


def test_losses_and_scores_are_right(data: LiveData, truth: dict[str, str]) -> None:
    # Query 1 ("stone") is heard as another word that another document answers; query 2 as nothing that exists.
    table = noisy_table(data, truth, {("q1", "high_noise"): "winter", ("q2", "high_noise"): "lump"})
    records = evaluate_runs(
        [System(transcriber=LookupTranscriber(table), retriever=WordRetriever())], data, configs=["en_high_noise"]
    )
    runs = by_config(records, "lookup + words")
    assert set(runs) == {"en_text", "en_high_noise"}
    noisy, text = runs["en_high_noise"].result, runs["en_text"].result
    assert noisy.scores["wer"].value == pytest.approx(2 / 5)
    assert noisy.scores["wer_macro"].value == pytest.approx(2 / 5)
    per_query = runs["en_high_noise"].items.column("ndcg_at_10").to_pylist()
    upper = runs["en_text"].items.column("ndcg_at_10").to_pylist()
    assert per_query[1] == per_query[2] == 0
    assert noisy.scores["ndcg_at_10"].value == pytest.approx(sum(per_query) / 5)
    assert text.scores["ndcg_at_10"].value == pytest.approx(sum(upper) / 5)
    lost = noisy.losses["text"]["ndcg_at_10"]
    assert lost.absolute.value == pytest.approx((sum(upper) - sum(per_query)) / 5)
    assert lost.relative.value == pytest.approx(1 - sum(per_query) / sum(upper))
    assert lost.absolute.low is not None
    assert lost.absolute.low <= lost.absolute.value <= lost.absolute.high
    assert runs["en_high_noise"].items.column("first_relevant_rank").to_pylist()[2] == 0
    assert noisy.failures["missing"] == 1  # "lump" found nothing


def test_items_agree_with_a_recomputation(data: LiveData, truth: dict[str, str]) -> None:
    table = noisy_table(data, truth, {("q0", "reverb"): "river lamp"})
    records = evaluate_runs(
        [System(transcriber=LookupTranscriber(table), retriever=WordRetriever())], data, configs=["en_reverb"]
    )
    items = by_config(records, "lookup + words")["en_reverb"].items.to_pylist()
    run = {i["id"]: list(zip(i["documents"], i["scores"], strict=True)) for i in items if i["documents"]}
    again = score_ranking(data.qrels("tiny-en"), run, metrics=("ndcg_at_10", "mrr_at_10", "recall_at_10"))
    for item in items:
        for metric in again.per_query:
            assert item[metric] == pytest.approx(again.per_query[metric][item["id"]], abs=1e-12)


def test_work_is_shared(data: LiveData, truth: dict[str, str]) -> None:
    transcriber, other = LookupTranscriber(truth), LookupTranscriber(truth, name="other")
    words, more = WordRetriever(), WordRetriever("more")
    systems = [System(transcriber=t, retriever=r) for t in (transcriber, other) for r in (words, more)]
    evaluate_runs(systems, data)
    assert transcriber.calls == other.calls == 2 * 5 * len(CONDITIONS)
    assert words.indexed == more.indexed == 2
    assert words.searched == 2 * 5  # the distinct texts


def test_languages_that_a_system_was_not_made_for_are_left_out(data: LiveData, truth: dict[str, str]) -> None:
    english = System(transcriber=LookupTranscriber(truth), retriever=WordRetriever(languages="en"))
    records = evaluate_runs([english], data)
    assert {r.result.data.language for r in records} == {"en"}
    with pytest.raises(DataError, match="no system supports"):
        evaluate_runs([english], data, configs=["zh_clean"])


def test_failures_are_counted_never_words(data: LiveData, truth: dict[str, str]) -> None:
    texts = {query.id: query.text for query in data.spoken("tiny-en", "clean")}
    table = noisy_table(
        data,
        truth,
        {
            ("q0", "clean"): Transcript("", error="cannot decode"),
            ("q1", "clean"): Transcript("stone stone stone stone", loop=True, truncated=True),
            ("q2", "clean"): Transcript(""),
            ("q3", "clean"): Transcript(f"{texts['q3']} \ufffd"),
        },
    )
    records = evaluate_runs(
        [System(transcriber=LookupTranscriber(table), retriever=WordRetriever())], data, configs=["en_clean"]
    )
    run = by_config(records, "lookup + words")["en_clean"]
    failures = run.result.failures
    assert (failures["failed"], failures["loop"], failures["truncated"], failures["empty"]) == (1, 1, 1, 1)
    assert (failures["invalid_text"], failures["hallucination"]) == (1, 0)
    assert [flags for flags in run.items.column("flags").to_pylist() if "invalid_text" in flags] == [["invalid_text"]]
    assert run.result.scores["wer"].n == 4  # the failed one has no words
    assert run.result.scores["wer"].value == pytest.approx((3 + 1) / 4)
    assert run.result.scores["ndcg_at_10"].n == 5  # but its query found nothing and counts
    assert run.items.column("ndcg_at_10").to_pylist()[0] == 0
    assert math.isnan(run.items.column("word_substitutions").to_pylist()[0])


def test_traditional_characters_are_folded_before_retrieval(data: LiveData, truth: dict[str, str]) -> None:
    table = {key: {"花园": "花園", "大桥": "大橋"}.get(text, text) for key, text in truth.items()}
    folded = evaluate_runs(
        [System(transcriber=LookupTranscriber(table), retriever=WordRetriever())], data, configs=["zh_clean"]
    )
    kept = evaluate_runs(
        [System(transcriber=LookupTranscriber(table), retriever=WordRetriever(), script="none")],
        data,
        configs=["zh_clean"],
    )
    assert folded[1].result.system.settings["script_folding"] == "simplified"
    assert folded[1].items.column("transcript").to_pylist()[3] == "花园"
    assert kept[1].items.column("transcript").to_pylist()[3] == "花園"
    assert folded[1].result.scores["ndcg_at_10"].value > kept[1].result.scores["ndcg_at_10"].value
    assert folded[1].result.scores["cer"].value == kept[1].result.scores["cer"].value == 0


def test_killed_and_continued(data: LiveData, truth: dict[str, str], tmp_path: Path) -> None:
    killed = LookupTranscriber(truth)
    killed.fail_after = 12
    with pytest.raises(KeyboardInterrupt):
        evaluate_runs(
            [System(transcriber=killed, retriever=WordRetriever())],
            data,
            cache=tmp_path / "cache",
            out=tmp_path / "run",
        )
    assert not (tmp_path / "run" / "results").exists()
    again = LookupTranscriber(truth)
    records = evaluate_runs(
        [System(transcriber=again, retriever=WordRetriever())], data, cache=tmp_path / "cache", out=tmp_path / "run"
    )
    assert killed.calls == 10
    assert again.calls == 2 * 5 * len(CONDITIONS) - killed.calls
    third = LookupTranscriber(truth)
    repeated = evaluate_runs([System(transcriber=third, retriever=WordRetriever())], data, cache=tmp_path / "cache")
    assert third.calls == 0
    for one, two in zip(records, repeated, strict=True):
        assert str(one.items.to_pylist()) == str(two.items.to_pylist())
        assert one.result.scores == two.result.scores


def test_cache_knows_transcriber_and_language(data: LiveData, truth: dict[str, str], tmp_path: Path) -> None:
    evaluate_runs([System(transcriber=LookupTranscriber(truth), retriever=WordRetriever())], data, cache=tmp_path)
    other = LookupTranscriber(truth, name="other")
    evaluate_runs([System(transcriber=other, retriever=WordRetriever())], data, cache=tmp_path)
    assert other.calls == 2 * 5 * len(CONDITIONS)


def test_what_is_written_is_what_is_returned(data: LiveData, truth: dict[str, str], tmp_path: Path) -> None:
    records = evaluate_runs(
        [System(transcriber=LookupTranscriber(truth), retriever=WordRetriever())], data, out=tmp_path, samples=1
    )
    read = {r.result.key: r for r in read_runs(tmp_path)}
    assert set(read) == {r.result.key for r in records}
    for record in records:
        assert read[record.result.key].result == record.result
        assert str(read[record.result.key].items.to_pylist()) == str(record.items.to_pylist())
    clips = sorted(p.relative_to(tmp_path / "samples") for p in tmp_path.rglob("*.flac"))
    assert len(clips) == 2 * len(CONDITIONS)
    assert len({clip.parts[:2] for clip in clips}) == 2  # one query per subset, in every condition


def test_same_seed_same_result(data: LiveData, truth: dict[str, str]) -> None:
    one, two = (
        evaluate_runs([System(transcriber=LookupTranscriber(truth), retriever=WordRetriever())], data, seed=3)
        for _ in range(2)
    )
    assert [r.result.scores for r in one] == [r.result.scores for r in two]


def test_public_function(data: LiveData, truth: dict[str, str]) -> None:
    results = squtr.evaluate(
        squtr.System(transcriber=LookupTranscriber(truth), retriever=WordRetriever()),
        data=data,
        configs=["tiny-en_clean"],
        self_check=False,
    )
    assert [r.data.config for r in results] == ["tiny-en_text", "tiny-en_clean"]


@pytest.mark.parametrize("config", ["en_claen", "fr_clean", "en_low_noise", "en", "tiny-e_clean"])
def test_unknown_config(data: LiveData, truth: dict[str, str], config: str) -> None:
    with pytest.raises(UnknownNameError, match="unknown config"):
        evaluate_runs([System(transcriber=LookupTranscriber(truth), retriever=WordRetriever())], data, configs=[config])


def test_bad_calls(data: LiveData, truth: dict[str, str]) -> None:
    system = System(transcriber=LookupTranscriber(truth), retriever=WordRetriever())
    with pytest.raises(UsageError, match="depth is 5"):
        evaluate_runs([system], data, depth=5)
    with pytest.raises(UsageError, match="two systems are called"):
        evaluate_runs([system, system], data)
    with pytest.raises(UsageError, match="no system"):
        evaluate_runs([], data)
    with pytest.raises(UnknownNameError, match="Did you mean 'simplified'"):
        System(transcriber=LookupTranscriber(truth), retriever=WordRetriever(), script="simplifid")


@pytest.mark.parametrize("text", ["bm25", "a + b + c + d", " + bm25", ""])
def test_badly_written_system(text: str) -> None:
    with pytest.raises(UsageError, match="is not written as"):
        load_system(text)
