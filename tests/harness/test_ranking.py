"""Ranking metrics: golden numbers, trec_eval's semantics, agreement with pytrec_eval and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, IntegrityError, UnknownNameError, UsageError
from squtr.harness.metrics.ranking import check_invariants, order_hits, score_ranking

THEIRS = {"ndcg": "ndcg_cut", "recall": "recall", "map": "map_cut", "precision": "P", "hit_rate": "success"}
CUTS = (1, 3, 5, 10, 30)
METRICS = [f"{family}_at_{k}" for family in THEIRS for k in CUTS]

DOCUMENTS = [f"d{i}" for i in range(12)]
# Scores that float32, which trec_eval uses inside, holds exactly.
SCORES = st.integers(-8, 8).map(lambda n: n / 4)
QRELS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "q4"]),
    st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(-1, 3), min_size=1),
    min_size=1,
).filter(lambda qrels: any(grade > 0 for grades in qrels.values() for grade in grades.values()))
RUNS = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "q4", "q9"]), st.dictionaries(st.sampled_from(DOCUMENTS), SCORES, min_size=1)
)


@given(QRELS, RUNS)
def test_pytrec_eval_agrees(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> None:
    ours = score_ranking(qrels, run, [*METRICS, "mrr_at_1000"])
    measures = {f"{name}.{','.join(map(str, CUTS))}" for name in THEIRS.values()} | {"recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    for family, name in THEIRS.items():
        for k in CUTS:
            for query, value in ours.per_query[f"{family}_at_{k}"].items():
                # pytrec_eval leaves out queries that are missing from the run; here they score 0.
                expected = theirs[query][f"{name}_{k}"] if query in theirs else 0.0
                assert value == pytest.approx(expected, abs=1e-9)
    for query, value in ours.per_query["mrr_at_1000"].items():
        assert value == pytest.approx(theirs[query]["recip_rank"] if query in theirs else 0.0, abs=1e-9)
    judged = [query for query, grades in qrels.items() if max(grades.values()) > 0]
    assert ours.n_queries == len(judged)
    assert ours.missing == sum(query not in run for query in judged)
    assert ours.no_relevant == len(qrels) - len(judged)
    assert ours.unknown_queries == len(run.keys() - qrels.keys())


@given(QRELS, RUNS)
def test_brute_force_agrees(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> None:
    """What pytrec_eval has not: a reciprocal rank with a cut-off, and exponential gains."""
    ours = score_ranking(qrels, run, ["mrr_at_3", "ndcg_exp_at_5"])
    for query, value in ours.per_query["mrr_at_3"].items():
        own = run.get(query, {})
        ranked = sorted(own, key=lambda document: (own[document], document), reverse=True)
        hits = [rank for rank, document in enumerate(ranked[:3], start=1) if qrels[query].get(document, 0) > 0]
        assert value == (1 / hits[0] if hits else 0.0)
        gains = [2 ** max(qrels[query].get(document, 0), 0) - 1 for document in ranked]
        best = sorted((2 ** max(grade, 0) - 1 for grade in qrels[query].values()), reverse=True)
        found, ideal = (sum(g / math.log2(i + 2) for i, g in enumerate(each[:5])) for each in (gains, best))
        assert ours.per_query["ndcg_exp_at_5"][query] == pytest.approx(found / ideal, abs=1e-12)


@given(QRELS, RUNS)
def test_values_are_shares_and_hits_order_them(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> None:
    scores = score_ranking(qrels, run, [*METRICS, "mrr_at_10"])
    for values in scores.per_query.values():
        assert all(0 <= value <= 1 + 1e-12 for value in values.values())
    for query in scores.per_query["mrr_at_10"]:
        assert scores.per_query["mrr_at_10"][query] <= scores.per_query["hit_rate_at_10"][query]
        assert scores.per_query["recall_at_3"][query] <= scores.per_query["recall_at_10"][query]


def test_golden_numbers() -> None:
    qrels = {"q": {"a": 2, "b": 1, "c": 0}}
    run = {"q": [("x", 9.0), ("a", 8.0), ("c", 7.0), ("b", 6.0)]}
    scores = score_ranking(qrels, run, ["ndcg_at_10", "ndcg_exp_at_10", "mrr_at_10", "map_at_10", "precision_at_5"])
    ideal = 2 + 1 / math.log2(3)
    assert scores.mean["ndcg_at_10"] == pytest.approx((2 / math.log2(3) + 1 / math.log2(5)) / ideal)
    assert scores.mean["ndcg_exp_at_10"] == pytest.approx(
        (3 / math.log2(3) + 1 / math.log2(5)) / (3 + 1 / math.log2(3))
    )
    assert scores.mean["mrr_at_10"] == 0.5
    assert scores.mean["map_at_10"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert scores.mean["precision_at_5"] == pytest.approx(0.4)
    assert scores.unjudged == 1


def test_the_ideal_is_made_from_all_judgements() -> None:
    # Two relevant documents, one found: a cut of 1 is perfect, a cut of 10 is not.
    qrels = {"q": {"a": 1, "b": 1}}
    scores = score_ranking(qrels, {"q": [("a", 1.0)]}, ["ndcg_at_1", "ndcg_at_10"])
    assert scores.mean["ndcg_at_1"] == 1.0
    assert scores.mean["ndcg_at_10"] == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_ties_and_duplicates() -> None:
    assert order_hits("q", [("d2", 1.0), ("d10", 1.0), ("d1", 1.0)]) == ["d2", "d10", "d1"]
    assert order_hits("q", [("a", 1.0), ("a", 5.0), ("b", 2.0)]) == ["b", "a"]
    assert order_hits("q", {"中": 1.0, "文": 1.0}) == ["文", "中"]


@given(st.lists(st.tuples(st.sampled_from(DOCUMENTS), SCORES), max_size=12))
def test_order_agrees_with_its_definition(hits: list[tuple[str, float]]) -> None:
    first: dict[str, float] = {}
    for document, score in hits:
        first.setdefault(document, score)
    expected = sorted(first, key=lambda document: (first[document], document), reverse=True)
    assert order_hits("q", hits) == expected
    falling = sorted(hits, key=lambda hit: hit[1], reverse=True)
    assert order_hits("q", dict(falling)) == order_hits("q", dict(reversed(dict(falling).items())))


def test_ids_and_grades_of_any_type() -> None:
    scores = score_ranking({0: {7: "2"}, "1": {"x": np.int64(1)}}, {"0": [("7", 1.0)], 1: {"x": 2.0}})  # type: ignore[dict-item]
    assert scores.mean["ndcg_at_10"] == 1.0
    with pytest.raises(DataError, match="same when written as text"):
        score_ranking({7: {"a": 1}, "7": {"b": 1}}, {})  # type: ignore[dict-item]


@pytest.mark.parametrize("grade", ["high", 1.5, None, "1.5"])
def test_a_grade_that_is_no_number(grade: object) -> None:
    with pytest.raises(DataError, match="grade of document 'a' for query 'q'"):
        score_ranking({"q": {"a": grade}}, {})  # type: ignore[dict-item]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite(score: float) -> None:
    with pytest.raises(DataError, match="score of document 'a' for query 'q'"):
        score_ranking({"q": {"a": 1}}, {"q": [("a", score)]})


def test_missing_and_unanswerable_queries() -> None:
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 0}}
    scores = score_ranking(qrels, {"q1": [("a", 1.0)], "q3": [("a", 1.0)]})
    assert (scores.n_queries, scores.missing, scores.no_relevant) == (2, 1, 1)
    assert scores.mean["ndcg_at_10"] == 0.5
    assert scores.per_query["ndcg_at_10"] == {"q1": 1.0, "q2": 0.0}
    with pytest.raises(DataError, match="no query has a relevant document"):
        score_ranking({"q3": {"a": 0}}, {})


def test_identical_ids() -> None:
    run = {"q": [("q", 2.0), ("a", 1.0)]}
    assert score_ranking({"q": {"a": 1}}, run).mean["mrr_at_10"] == 0.5
    assert score_ranking({"q": {"a": 1}}, run, ignore_identical_ids=True).mean["mrr_at_10"] == 1.0


def test_a_broken_invariant_is_an_error() -> None:
    check_invariants(
        {"mrr_at_10": {"q": 0.5}, "ndcg_at_10": {"q": 0.6}, "recall_at_10": {"q": 1.0}}, single_relevant={"q"}
    )
    with pytest.raises(IntegrityError, match=r"outside \[0, 1\]"):
        check_invariants({"ndcg_at_10": {"q": 1.2}}, single_relevant=())
    # The published table has Recall .2240 below nDCG .2570 with one relevant passage per query.
    with pytest.raises(IntegrityError, match="Recall"):
        check_invariants({"ndcg_at_10": {"q": 0.257}, "recall_at_10": {"q": 0.224}}, single_relevant={"q"})


def test_metrics_of_rankings_only() -> None:
    with pytest.raises(UsageError, match="no metric"):
        score_ranking({"q": {"a": 1}}, {}, [])
    with pytest.raises(UsageError, match="wer is no metric of a ranking"):
        score_ranking({"q": {"a": 1}}, {}, ["wer"])
    with pytest.raises(UnknownNameError, match="ndgc_at_10"):
        score_ranking({"q": {"a": 1}}, {}, ["ndgc_at_10"])


def test_any_cut_off_and_any_way_to_write_a_metric() -> None:
    scores = score_ranking({"q": {"a": 1}}, {"q": [("b", 3.0), ("c", 2.0), ("a", 1.0)]}, ["MRR@3", "mrr_at_2"])
    assert scores.mean == {"mrr_at_3": pytest.approx(1 / 3), "mrr_at_2": 0.0}


def test_scores_that_differ_by_less_than_float32_are_no_tie() -> None:
    run = {"q": {"a": 1.0, "b": 1.0 + 1e-12}}
    assert score_ranking({"q": {"b": 1}}, run, ["mrr_at_1"]).mean["mrr_at_1"] == 1.0
    assert score_ranking({"q": {"a": 1}}, run, ["mrr_at_1"]).mean["mrr_at_1"] == 0.0
