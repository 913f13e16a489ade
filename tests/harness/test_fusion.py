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
            values = {
                id_: ((s - low) / (high - low) if high > low else 1.0)
                if normalization == "min-max"
                else ((s - mean) / deviation if high > low else 0.0)
                if normalization == "z"
                else s
                for id_, s in scores.items()
            }
            least, most = min(values.values()), max(values.values())
            absent = least - ((most - least) / len(values) if most > least else 1.0)
            if normalization == "none" and least > 0:
                absent = 0.0
            expected += values.get(hit.document_id, absent)
        assert hit.score == pytest.approx(expected, abs=1e-9)
    assert in_trec_order(fused)


any_rankings = st.lists(
    st.dictionaries(st.sampled_from(DOCUMENTS), st.floats(-1e300, 1e300), max_size=8).map(
        lambda scores: sorted((Hit(*p) for p in scores.items()), key=lambda h: (h.score, h.document_id), reverse=True)
    ),
    min_size=1,
    max_size=4,
)


@given(any_rankings, st.sampled_from(["rrf", *NORMALISATIONS]), st.floats(1e-3, 1e3))
def test_what_a_part_lacks_gets_less_from_it_than_what_it_has(
    rankings: list[list[Hit]], how: str, weight: float
) -> None:
    for ranking in filter(None, rankings):
        if how == "rrf":
            # What is lacking adds nothing.
            assert all(hit.score > 0 for hit in reciprocal_rank_fusion([ranking], weights=[weight]))
            continue
        # A ranking in which all are equal brings a document into the fusion that the other lacks.
        equal = [Hit(id_, 0.0) for id_ in ("stranger", *(hit.document_id for hit in ranking))]
        fused = {
            hit.document_id: hit.score
            for hit in score_fusion([ranking, equal], [weight, 1.0], normalization=how)  # type: ignore[arg-type]
        }
        assert all(fused[hit.document_id] > fused["stranger"] for hit in ranking)


def test_one_hit_counts() -> None:
    """By hand: BM25 finds x alone, which dense search has second. x: 1 + 0.5, y: 0 + 1, z: 0 + 0."""
    words, vectors = [Hit("x", 7.0)], [Hit("y", 0.9), Hit("x", 0.7), Hit("z", 0.5)]
    fused = score_fusion([words, vectors])
    assert [(h.document_id, h.score) for h in fused] == [("x", pytest.approx(1.5)), ("y", 1.0), ("z", 0.0)]
    # With z, x has 0 in its ranking, y and z one less; the other has x at its mean.
    z = {h.document_id: h.score for h in score_fusion([words, vectors], normalization="z")}
    assert z == {
        "x": pytest.approx(0, abs=1e-9),
        "y": pytest.approx(0.5**0.5 * 3**0.5 - 1),
        "z": pytest.approx(-(1.5**0.5) - 1),
    }
    # Raw scores may be below 0: what is lacking is below them.
    raw = {h.document_id: h.score for h in score_fusion([[Hit("x", -3.0)], [Hit("y", 0.5)]], normalization="none")}
    assert raw == {"x": -3.0, "y": -3.5}
    ranked = [h.document_id for h in fuse_hypotheses([words, vectors], [0.0, 0.0], method="score")]
    assert ranked == ["x", "y", "z"]


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
