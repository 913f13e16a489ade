"""Ranking metrics: golden numbers, trec_eval's semantics, agreement with pytrec_eval and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, IntegrityError, UnknownNameError, UsageError
from squtr.harness.metrics.ranking import check_invariants, order_hits, parse_metric, score_ranking
from squtr.harness.metrics.ranking_arrays import ArrayJudgements, _check_invariants, order_by_score, score_arrays

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
def test_the_two_engines_agree(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]) -> None:
    metrics = [*METRICS, "mrr_at_3", "mrr_at_10", "ndcg_exp_at_5"]
    ours = score_ranking(qrels, run, metrics)
    index = {document: i for i, document in enumerate(DOCUMENTS)}
    judgments = ArrayJudgements.from_qrels(qrels, index)
    ranked = np.full((len(judgments.query_ids), 12), -1, dtype=np.int32)
    for row, query in enumerate(judgments.query_ids):
        order = order_hits(query, run.get(query, {}))
        ranked[row, : len(order)] = [index[document] for document in order]
    arrays = score_arrays(judgments, ranked, metrics)
    for name in metrics:
        assert arrays.mean[name] == pytest.approx(ours.mean[name], abs=1e-12)
        for row, query in enumerate(judgments.query_ids):
            value = arrays.per_query[name][row]
            if query in ours.per_query[name]:
                assert value == pytest.approx(ours.per_query[name][query], abs=1e-12)
            else:
                assert math.isnan(value)
    assert arrays.n_queries == ours.n_queries
    assert arrays.missing == ours.missing
    assert arrays.no_relevant == ours.no_relevant
    assert arrays.unjudged == ours.unjudged


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


def test_metric_names() -> None:
    assert parse_metric("ndcg_exp_at_5") == ("ndcg_exp", 5)
    for name in ("ndcg@10", "ndcg_at_0", "ndgc_at_10", "ndcg"):
        with pytest.raises(UnknownNameError, match="metric"):
            parse_metric(name)
    with pytest.raises(UsageError, match="no metric"):
        score_ranking({"q": {"a": 1}}, {}, [])


def test_a_broken_invariant_is_an_error() -> None:
    check_invariants(
        {"mrr_at_10": {"q": 0.5}, "ndcg_at_10": {"q": 0.6}, "recall_at_10": {"q": 1.0}}, single_relevant={"q"}
    )
    with pytest.raises(IntegrityError, match=r"outside \[0, 1\]"):
        check_invariants({"ndcg_at_10": {"q": 1.2}}, single_relevant=())
    # The published table has Recall .2240 below nDCG .2570 with one relevant passage per query.
    with pytest.raises(IntegrityError, match="Recall"):
        check_invariants({"ndcg_at_10": {"q": 0.257}, "recall_at_10": {"q": 0.224}}, single_relevant={"q"})


@given(st.lists(st.lists(SCORES, min_size=5, max_size=5), min_size=1, max_size=4))
def test_ordering_of_arrays_is_that_of_hits(rows: list[list[float]]) -> None:
    documents = np.tile(np.array([3, 11, 0, 7, 10], dtype=np.int32), (len(rows), 1))
    ordered = order_by_score(np.array(rows), documents, DOCUMENTS)
    for row, scores in enumerate(rows):
        hits = [(DOCUMENTS[d], s) for d, s in zip(documents[row], scores, strict=True)]
        assert [DOCUMENTS[d] for d in ordered[row]] == order_hits("q", hits)
    for depth in (1, 2, 4, 5, 9):
        assert (order_by_score(np.array(rows), documents, DOCUMENTS, depth) == ordered[:, :depth]).all()


def test_bad_arrays() -> None:
    with pytest.raises(UsageError, match="depth is 0"):
        order_by_score(np.array([[1.0]]), np.array([[0]]), ["a"], 0)
    judgments = ArrayJudgements.from_qrels({"q": {"a": 1}}, {"a": 0, "b": 1})
    with pytest.raises(DataError, match="twice"):
        score_arrays(judgments, np.array([[0, 0]]), ["ndcg_at_2"])
    with pytest.raises(UsageError, match="shape"):
        score_arrays(judgments, np.zeros((2, 3), dtype=np.int32), ["ndcg_at_2"])
    with pytest.raises(DataError, match="not finite"):
        order_by_score(np.array([[np.nan, 1.0]]), np.array([[0, 1]]), ["a", "b"])


def test_a_broken_invariant_of_arrays_is_an_error() -> None:
    _check_invariants(["q"], {"mrr_at_10": np.array([0.5]), "ndcg_at_10": np.array([0.6])}, np.array([True]))
    broken = {"ndcg_at_10": np.array([1.0, 0.257]), "recall_at_10": np.array([0.5, 0.224])}
    with pytest.raises(IntegrityError, match=r"query 'b' has one relevant document"):
        _check_invariants(["a", "b"], broken, np.array([False, True]))
    _check_invariants(["a", "b"], broken, np.array([True, False]) & False)


def test_judgements_of_any_type_become_arrays() -> None:
    plain = ArrayJudgements.from_qrels({"1": {"a": 2, "7": 0}, "2": {}}, {"a": 0, "7": 1})
    mixed = ArrayJudgements.from_qrels({1: {"a": "2", 7: 0.0}, 2: {}}, {"a": 0, "7": 1})  # type: ignore[dict-item]
    for found in (plain, mixed):
        assert found.query_ids == ("1", "2")
        assert [found.starts.tolist(), found.documents.tolist(), found.grades.tolist()] == [[0, 2, 2], [0, 1], [2, 0]]
    with pytest.raises(DataError, match="grade of document 'a' for query '1'"):
        ArrayJudgements.from_qrels({"1": {"a": 0.5}}, {"a": 0})  # type: ignore[dict-item]


def test_a_large_ranking_keeps_its_type() -> None:
    documents = np.array([[0, 1, 2], [2, 1, 0]], dtype=np.int32)
    ordered = order_by_score(np.array([[1.0, 3.0, 3.0], [3.0, 2.0, 1.0]], dtype=np.float32), documents, ["a", "b", "c"])
    assert ordered.dtype == np.int32
    assert ordered.tolist() == [[2, 1, 0], [2, 1, 0]]
    assert documents.tolist() == [[0, 1, 2], [2, 1, 0]]
