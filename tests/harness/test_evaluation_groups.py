"""Retrieval by group, and where an utterance has several RIRs: pairs, clusters and n."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from squtr.harness.metrics.error_counts import ErrorCounts
from squtr.harness.metrics.statistics import corpus_rate_interval
from squtr.harness.results.envelope import RunRecord
from squtr.harness.systems.system import System
from squtr.loaders.audio import encode_flac
from squtr.loaders.records import Document, Query, SpokenQuery

from ..loaders.collections_for_tests import speech_like
from .evaluate_runs_for_tests import evaluate_runs
from .evaluation_for_tests import SharedSounds, by_config, truth_of
from .fakes import LookupTranscriber, WordRetriever

WORDS = ("river", "stone", "lamp", "garden")
RIRS = (("near", 0.3), ("far", 0.9))


class TwoRirs(SharedSounds):
    """Every utterance clean once, and under `reverb` with two RIRs; under the far one, `lamp` is not understood."""

    edges: Mapping[str, Sequence[float]] = MappingProxyType({"rt60_s": (0.5,)})

    def __init__(self) -> None:
        queries = [(f"q{i}", word) for i, word in enumerate(WORDS)]
        documents = [Document(f"d{i}", "", word) for i, word in enumerate(WORDS)]
        clips = [encode_flac(speech_like(i, 0.3), "test") for i in range(3 * len(WORDS))]
        relevant = {f"q{i}": {f"d{i}": 1} for i in range(len(WORDS))}
        super().__init__(queries, {"clean": clips[:4], "reverb": clips[4:]}, documents, relevant)

    def rows(self, subset: str, condition: str) -> Sequence[Query]:
        if condition == "clean":
            return self._queries
        return [replace(q, id=f"{q.id}@{rir}", utterance_id=q.id) for q in self._queries for rir, _ in RIRS]

    def spoken(self, subset: str, condition: str, *, start: int = 0, stop: int | None = None) -> Iterator[SpokenQuery]:
        rows = self.rows(subset, condition)
        for i in range(len(rows))[start:stop]:
            row, clip = rows[i], self._sounds[condition][i]
            query = SpokenQuery(row.id, "s", "en", row.text, clip, 0.3, condition, utterance_id=row.utterance)
            if condition == "reverb":
                rir, rt60_s = RIRS[i % 2]
                query = replace(query, rir_id=rir, rt60_s=rt60_s, noise_family="pink" if i < 4 else "babble")
            yield query


@pytest.fixture(scope="module")
def runs() -> dict[str, RunRecord]:
    data: Any = TwoRirs()
    table = {
        key: "lump" if query.text == "lamp" and query.rir_id == "far" else query.text
        for key, query in truth_of(data).items()
    }
    return by_config(evaluate_runs([System(transcriber=LookupTranscriber(table), retriever=WordRetriever())], data))


def test_rows_of_one_utterance_are_paired_with_it_and_drawn_together(runs: dict[str, RunRecord]) -> None:
    reverb, clean = runs["en_reverb"].result, runs["en_clean"].result
    assert (reverb.data.n, reverb.data.clusters, clean.data.n) == (8, 4, 4)
    rows = {row["id"]: row for row in runs["en_reverb"].items.to_pylist()}
    assert {row["cluster"] for row in rows.values()} == {"q0", "q1", "q2", "q3"}
    assert [rows[id_]["ndcg_at_10"] for id_ in ("q2@near", "q2@far", "q3@far")] == [1, 0, 1]
    assert reverb.scores["ndcg_at_10"].value == 7 / 8
    assert reverb.scores["wer"].value == 1 / 8
    for baseline in ("clean", "text"):
        loss = reverb.losses[baseline]["ndcg_at_10"]
        assert (loss.absolute.value, loss.absolute.n) == (1 / 8, 8)
    wer = runs["en_reverb"].result.scores["wer"]
    counts = [ErrorCounts(int(row["word_substitutions"]), 0, 0, 1) for row in rows.values()]
    utterances = [row["cluster"] for row in rows.values()]
    drawn = corpus_rate_interval(counts, utterances, seed=0, resamples=1000)
    assert (wer.low, wer.high) == (drawn.low, drawn.high)


def test_scores_and_losses_by_group_with_n(runs: dict[str, RunRecord]) -> None:
    reverb = runs["en_reverb"].result
    near, far = reverb.by_group["rt60_s"]
    assert (near.low, near.high, far.low, far.high) == (None, 0.5, 0.5, None)
    assert (near.n, near.clusters, far.n, far.clusters) == (4, 4, 4, 4)
    assert near.scores["ndcg_at_10"].value == 1
    assert far.scores["ndcg_at_10"].value == 3 / 4
    assert far.scores["wer"].value == 1 / 4
    assert far.losses["clean"]["ndcg_at_10"].absolute.value == 1 / 4
    assert far.losses["text"]["ndcg_at_10"].absolute.value == 1 / 4
    assert near.losses["clean"]["ndcg_at_10"].absolute.value == 0
    families = {group.label: group for group in reverb.by_group["noise_family"]}
    assert {label: (group.n, group.clusters) for label, group in families.items()} == {"pink": (4, 2), "babble": (4, 2)}
    assert families["babble"].scores["ndcg_at_10"].value == 3 / 4
    (subset,) = reverb.by_group["subset"]
    assert (subset.label, subset.n, subset.clusters) == ("s", 8, 4)
    assert subset.scores == reverb.scores


def test_what_says_nothing_of_the_audio_is_no_breakdown(runs: dict[str, RunRecord]) -> None:
    assert set(runs["en_text"].result.by_group) == {"subset"}
    assert set(runs["en_clean"].result.by_group) == {"subset"}
