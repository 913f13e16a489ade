"""Fusing rankings: the formulas, order, missing documents, and what is refused."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UnknownNameError, UsageError
from squtr.harness.components.retrievers.fusion import (
    NORMALISATIONS,
    fuse,
    fuse_hypotheses,
    reciprocal_rank_fusion,
    score_fusion,
    softmax,
)
from squtr.harness.protocols import Hit

DOCUMENTS = [f"d{i}" for i in range(8)]
# Multiples of a quarter: differences stay exact, so that no rounding makes ties.
rankings_strategy = st.lists(
    st.lists(
        st.tuples(st.sampled_from(DOCUMENTS), st.integers(-40, 40).map(lambda n: n / 4)),
        max_size=8,
        unique_by=lambda pair: pair[0],
    ).map(lambda pairs: sorted((Hit(*p) for p in pairs), key=lambda h: (h.score, h.document_id), reverse=True)),
    min_size=1,
    max_size=5,
)


def in_trec_order(hits: Sequence[Hit]) -> bool:
    keys = [(hit.score, hit.document_id) for hit in hits]
    return keys == sorted(keys, reverse=True)


@given(rankings_strategy, st.data())
def test_reciprocal_rank_fusion_is_the_sum_of_reciprocal_ranks(rankings: list[list[Hit]], data: st.DataObject) -> None:
    weights = data.draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=len(rankings), max_size=len(rankings)))
    fused = reciprocal_rank_fusion(rankings, constant=7, weights=weights)
    for hit in fused:
        expected = 0.0
        for ranking, weight in zip(rankings, weights, strict=True):
            ids = [h.document_id for h in ranking]
            if hit.document_id in ids:
                expected += weight / (7 + ids.index(hit.document_id) + 1)
        assert hit.score == pytest.approx(expected)
    assert {hit.document_id for hit in fused} == {h.document_id for ranking in rankings for h in ranking}
    assert in_trec_order(fused)


@given(rankings_strategy, st.sampled_from(NORMALISATIONS))
def test_score_fusion_is_the_sum_of_normalized_scores(rankings: list[list[Hit]], normalization: str) -> None:
    fused = score_fusion(rankings, normalization=normalization)  # type: ignore[arg-type]
    for hit in fused:
        expected = 0.0
        for ranking in filter(None, rankings):
            scores = {h.document_id: h.score for h in ranking}
            low, high = min(scores.values()), max(scores.values())
            mean = sum(scores.values()) / len(scores)
            deviation = math.sqrt(sum((s - mean) ** 2 for s in scores.values()) / len(scores))
            score = scores.get(hit.document_id, 0.0 if normalization == "none" else low)
            if normalization == "min-max":
                expected += (score - low) / (high - low) if high > low else 1.0
            elif normalization == "z":
                expected += (score - mean) / deviation if high > low else 0.0
            else:
                expected += score
        assert hit.score == pytest.approx(expected, abs=1e-9)
    assert in_trec_order(fused)


@given(rankings_strategy, st.randoms(use_true_random=False), st.sampled_from(["rrf", *NORMALISATIONS]))
def test_the_order_of_the_rankings_changes_nothing(rankings: list[list[Hit]], rng: random.Random, how: str) -> None:
    weights = [rng.choice([0.0, 0.1, 0.7, 3.0]) for _ in rankings]
    weights[0] = 0.3
    places = list(range(len(rankings)))
    rng.shuffle(places)

    def fused(order: Sequence[int]) -> list[Hit]:
        own, own_weights = [rankings[i] for i in order], [weights[i] for i in order]
        if how == "rrf":
            return reciprocal_rank_fusion(own, weights=own_weights)
        return score_fusion(own, own_weights, normalization=how)  # type: ignore[arg-type]

    assert fused(places) == fused(range(len(rankings)))


@given(rankings_strategy, st.sampled_from(["rrf", *NORMALISATIONS]), st.integers(1, 9))
def test_a_single_ranking_keeps_its_order(rankings: list[list[Hit]], how: str, k: int) -> None:
    (ranking, *_) = rankings
    options = {"method": "rrf"} if how == "rrf" else {"method": "score", "normalization": how}
    fused = fuse([ranking], k=k, **options)  # type: ignore[arg-type]
    assert [hit.document_id for hit in fused] == [hit.document_id for hit in ranking][:k]


def test_a_ranking_of_weight_zero_is_as_if_absent() -> None:
    a, b = [Hit("x", 2.0), Hit("y", 1.0)], [Hit("z", 5.0)]
    assert reciprocal_rank_fusion([a, b], weights=[1, 0]) == reciprocal_rank_fusion([a])
    assert score_fusion([a, b], [1, 0]) == score_fusion([a])


def test_ties_go_to_the_larger_id_also_at_the_cut() -> None:
    rankings = [[Hit("a", 1.0)], [Hit("c", 1.0)], [Hit("b", 1.0)]]
    assert [hit.document_id for hit in reciprocal_rank_fusion(rankings, k=2)] == ["c", "b"]
    assert [hit.document_id for hit in score_fusion([[], *rankings], k=2)] == ["c", "b"]


def test_nothing_to_fuse_gives_nothing() -> None:
    assert reciprocal_rank_fusion([]) == []
    assert score_fusion([[], []]) == []
    assert fuse_hypotheses([], []) == []


def test_hypotheses_weigh_as_their_probabilities() -> None:
    a, b = [Hit("x", 3.0), Hit("y", 1.0)], [Hit("y", 3.0), Hit("z", 1.0)]
    weights = softmax([-1.0, -2.5])
    assert sum(weights) == pytest.approx(1.0)
    assert weights[0] / weights[1] == pytest.approx(math.exp(1.5))
    for method in ("rrf", "score"):
        fused = fuse_hypotheses([a, b], [-1.0, -2.5], method=method)  # type: ignore[arg-type]
        assert fused == fuse([a, b], method=method, weights=weights)  # type: ignore[arg-type]
        assert fused == fuse_hypotheses([a, b], [99.0, 97.5], method=method)  # type: ignore[arg-type]
    # One that is as good as impossible changes no place.
    assert [h.document_id for h in fuse_hypotheses([a, b], [0.0, -2000.0])] == ["x", "y"]


def test_huge_scores_do_not_overflow() -> None:
    ranking = [Hit("a", 1.7e308), Hit("b", 0.0), Hit("c", -1.7e308)]
    for normalization in ("min-max", "z"):
        fused = score_fusion([ranking], normalization=normalization)  # type: ignore[arg-type]
        assert [hit.document_id for hit in fused] == ["a", "b", "c"]
        assert all(math.isfinite(hit.score) for hit in fused)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, float("nan")], [1.0, float("inf")]])
def test_wrong_weights_are_refused(weights: list[float]) -> None:
    rankings = [[Hit("a", 1.0)], [Hit("b", 1.0)]]
    with pytest.raises(UsageError, match="weight"):
        reciprocal_rank_fusion(rankings, weights=weights)
    with pytest.raises(UsageError, match="weight"):
        score_fusion(rankings, weights)


def test_wrong_rankings_and_options_are_refused() -> None:
    for score in (float("nan"), float("inf")):
        with pytest.raises(DataError, match="'a' has the score"):
            score_fusion([[Hit("a", score)]])
    with pytest.raises(DataError, match="'a' stands twice"):
        reciprocal_rank_fusion([[Hit("a", 2.0), Hit("a", 1.0)]])
    with pytest.raises(UsageError, match="constant"):
        reciprocal_rank_fusion([[Hit("a", 1.0)]], constant=-1)
    with pytest.raises(UsageError, match="k of at least 1"):
        reciprocal_rank_fusion([[Hit("a", 1.0)]], k=0)
    with pytest.raises(UnknownNameError, match="min-max"):
        score_fusion([], normalization="minmax")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="rrf"):
        fuse([], method="sum")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="1 rankings came with 0"):
        fuse_hypotheses([[Hit("a", 1.0)]], [])
    with pytest.raises(DataError, match="log-probability"):
        fuse_hypotheses([[Hit("a", 1.0)]], [float("nan")])
