"""Metrics as objects: names, directions, scales, depths, and a metric from outside the package."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import UnknownNameError, UsageError
from squtr.harness.metrics.ranking import score_ranking
from squtr.harness.metrics.registry import FAMILIES, KINDS, Family, Found, Metric, depth_of, metric_of, parse_metric
from squtr.harness.metrics.summaries import summarize_ranking

RANKING = sorted(name for name, family in FAMILIES.items() if family.score is not None)


@given(st.sampled_from(sorted(FAMILIES)), st.integers(1, 10_000), st.booleans(), st.sampled_from(["", *KINDS]))
def test_every_name_parses_to_what_prints_it(name: str, cut_off: int, macro: bool, kind: str) -> None:
    family = FAMILIES[name]
    metric = Metric(family, cut_off if family.score else None, macro and family.macro, kind)
    assert parse_metric(metric.name) == metric == metric_of(metric.name) == parse_metric(metric)


@pytest.mark.parametrize(
    ("written", "name", "label", "depth"),
    [
        ("nDCG@10", "ndcg_at_10", "nDCG@10", 10),
        ("MRR@10", "mrr_at_10", "MRR@10", 10),
        ("Recall@100", "recall_at_100", "Recall@100", 100),
        ("MAP@100", "map_at_100", "MAP@100", 100),
        ("precision_at_5", "precision_at_5", "Precision@5", 5),
        ("Hit rate@1", "hit_rate_at_1", "Hit rate@1", 1),
        ("ndcg_exp_at_10", "ndcg_exp_at_10", "nDCG (exp. gain)@10", 10),
        ("CER", "cer", "CER", 0),
        ("wer_macro", "wer_macro", "WER (macro)", 0),
        ("aif_prompt_strict", "aif_prompt_strict", "Instruction prompt level, strict", 0),
    ],
)
def test_golden_names(written: str, name: str, label: str, depth: int) -> None:
    metric = parse_metric(written)
    assert (metric.name, metric.label, metric.depth) == (name, label, depth)


@pytest.mark.parametrize("name", ["ndcg@", "ndcg_at_0", "ndgc_at_10", "ndcg", "wer_at_10", "mer_macro", "mcqa_", "@10"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(UnknownNameError, match="metric"):
        parse_metric(name)
    assert metric_of(name).better == ""
    assert metric_of(name).label == name


@pytest.mark.parametrize("name", RANKING)
@pytest.mark.parametrize("depth", [1, 3, 100])
def test_a_perfect_ranking_has_the_best_score(name: str, depth: int) -> None:
    grades = {f"d{i}": 3 - i % 3 for i in range(depth)}
    run = {"q": {document: float(grade) for document, grade in grades.items()}}
    assert score_ranking({"q": grades}, run, [f"{name}_at_{depth}"]).mean == {f"{name}_at_{depth}": pytest.approx(1)}


def test_losses_are_positive_where_a_value_is_worse() -> None:
    assert parse_metric("wer").loss(0.5, 0.25) == 0.25
    assert parse_metric("ndcg_at_10").loss(0.5, 0.25) == -0.25


def test_the_depth_follows_from_the_metrics() -> None:
    assert depth_of(map(parse_metric, ["ndcg_at_10", "recall_at_100", "wer"])) == 100
    assert depth_of([]) == 0


def test_a_metric_from_outside_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def rank_biased_precision(k: int, found: Found, judged: Sequence[int]) -> float:
        return 0.2 * sum(0.8 ** (rank - 1) for rank, _ in found)

    module = types.ModuleType("metrics_of_mine")
    module.RBP = Metric(Family("rbp", "RBP", "higher", score=rank_biased_precision), 20)  # type: ignore[attr-defined]
    module.NOTHING = 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "metrics_of_mine", module)
    metric = parse_metric("metrics_of_mine:RBP")
    assert (metric.name, metric.label, metric.depth) == ("rbp_at_20", "RBP@20", 20)
    found = summarize_ranking({"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}}, ["metrics_of_mine:RBP", "mrr_at_10"])
    assert found.scores["rbp_at_20"] == pytest.approx(0.16)
    assert found.scores["mrr_at_10"] == 0.5
    with pytest.raises(UsageError, match="is int, not a Metric"):
        parse_metric("metrics_of_mine:NOTHING")
    with pytest.raises(UsageError, match="cannot be imported"):
        parse_metric("metrics_of_mine:ABSENT")
