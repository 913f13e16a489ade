"""Two systems, metric by metric: rates as ratios of sums, means by subset, one family of p-values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from squtr.errors import DataError, UnknownNameError, UsageError
from squtr.harness.metrics.compare_items import compare_items, metric_names
from squtr.harness.metrics.comparison import compare, holm
from squtr.harness.metrics.error_counts import ErrorCounts
from squtr.harness.metrics.statistics import bootstrap_interval


def rates(seed: int, n: int = 60, share: float = 0.2) -> dict[str, dict[str, float]]:
    lengths = np.random.default_rng(0).integers(1, 30, n)
    errors = np.random.default_rng(seed).binomial(lengths, share)
    return {
        f"u{i}": {"word_errors": float(e), "word_reference_length": float(k)}
        for i, (e, k) in enumerate(zip(errors, lengths, strict=True))
    }


def test_a_rate_is_compared_as_a_ratio_of_sums() -> None:
    a, b = rates(1, share=0.3), rates(2)
    found = {one.metric: one for one in compare_items(a, b)}
    assert list(found) == ["wer", "wer_macro"]
    counts = [
        [ErrorCounts(int(r["word_errors"]), 0, 0, int(r["word_reference_length"])) for r in side.values()]
        for side in (a, b)
    ]
    totals = [sum(side, ErrorCounts.zero()).rate for side in counts]
    assert [found["wer"].a, found["wer"].b] == pytest.approx(totals)
    assert found["wer"].comparison.difference == pytest.approx(totals[0] - totals[1])
    assert found["wer_macro"].a == pytest.approx(np.mean([c.rate for c in counts[0]]))
    columns = [[x.errors, x.reference_length, y.errors, y.reference_length] for x, y in zip(*counts, strict=True)]
    expected = bootstrap_interval(columns, lambda s: s[..., 0] / s[..., 1] - s[..., 2] / s[..., 3], seed=0)
    bounds = found["wer"].comparison.interval
    assert [bounds.low, bounds.high] == pytest.approx([expected.low, expected.high], abs=0.02)


def test_the_detectable_difference_of_a_rate_matches_its_interval() -> None:
    one = compare_items(rates(1, 2000, 0.3), rates(2, 2000), ["wer"], resamples=2000)[0].comparison
    # The interval is 2 · 1.96 standard errors wide, the detectable difference 2.80.
    assert one.minimum_detectable == pytest.approx((one.interval.high - one.interval.low) / 3.92 * 2.80, rel=0.06)


def test_undefined_rates_are_left_out_of_the_macro_mean_only() -> None:
    a, b = rates(1, 8), rates(2, 8)
    for side, errors in ((a, 2.0), (b, 0.0)):
        side["silence"] = {"word_errors": errors, "word_reference_length": 0.0}
    corpus, macro = compare_items(a, b)
    assert (corpus.comparison.n, macro.comparison.n) == (9, 8)


def test_holm_runs_over_all_metrics() -> None:
    rng = np.random.default_rng(0)
    a = {f"q{i}": {"ndcg_at_10": float(rng.random() + 0.1), "mrr_at_10": float(rng.random())} for i in range(40)}
    b = {i: {name: float(rng.random()) for name in row} for i, row in a.items()}
    found = compare_items(a, b)
    raw = {one.metric: one.comparison.p_value for one in found}
    assert {one.metric: one.p_holm for one in found} == holm(raw)
    plain = compare({i: r["mrr_at_10"] for i, r in a.items()}, {i: r["mrr_at_10"] for i, r in b.items()})
    assert raw["mrr_at_10"] == plain.p_value


def test_subsets_weigh_equally() -> None:
    a = {f"{s}/{i}": {"ndcg_at_10": v} for s, n, v in (("x", 30, 0.9), ("y", 3, 0.1)) for i in range(n)}
    b = {i: {"ndcg_at_10": 0.0} for i in a}
    found = compare_items(a, b, subsets={i: i[0] for i in a})[0]
    assert found.a == pytest.approx(0.5)
    assert found.comparison.difference == pytest.approx(0.5)
    assert compare_items(a, b)[0].a == pytest.approx((30 * 0.9 + 3 * 0.1) / 33)


def test_ids_that_differ() -> None:
    a, b = rates(1, 5), rates(2, 6)
    with pytest.raises(DataError, match="'u5' is in one only"):
        compare_items(a, b)
    found = compare_items(a, b, on="intersection")[0]
    assert found.comparison.n == 5
    # A value that only one side has is a difference too.
    c = rates(2, 5)
    c["u3"] = dict.fromkeys(c["u3"], math.nan)
    with pytest.raises(DataError, match=r"wer: .*'u3' is in one only"):
        compare_items(a, c)
    found = compare_items(a, c, on="intersection")[0]
    assert (found.comparison.n, found.left_out) == (4, 1)


def test_what_failed_on_a_side_is_in_the_error_rate_of_neither() -> None:
    a, b = rates(1, 6), rates(2, 6)
    for number, (left, right) in enumerate(zip(a.values(), b.values(), strict=True)):
        left["ndcg_at_10"], right["ndcg_at_10"] = number / 6, 0.0
    # The hardest item of all, and one that fails on both sides.
    a["u3"]["word_errors"], b["u3"]["word_errors"] = 9.0, math.nan
    a["u4"]["word_errors"] = b["u4"]["word_errors"] = math.nan
    a["u5"]["word_errors"] = math.nan
    found = {one.metric: one for one in compare_items(a, b)}
    kept = ["u0", "u1", "u2"]
    lengths = sum(a[i]["word_reference_length"] for i in kept)
    for name, side, value in (("a", a, found["wer"].a), ("b", b, found["wer"].b)):
        assert value == pytest.approx(sum(side[i]["word_errors"] for i in kept) / lengths), name
    assert (found["wer"].comparison.n, found["wer"].left_out) == (3, 2)
    assert (found["wer_macro"].comparison.n, found["wer_macro"].left_out) == (3, 2)
    # What a failed item scores in retrieval counts: all of them are compared.
    assert (found["ndcg_at_10"].comparison.n, found["ndcg_at_10"].left_out) == (6, 0)


def test_what_cannot_be_compared() -> None:
    a, b = rates(1, 5), rates(2, 5)
    b["u2"]["word_reference_length"] += 1
    with pytest.raises(DataError, match="the reference of 'u2' has"):
        compare_items(a, b)
    with pytest.raises(UnknownNameError, match=r"unknown metric 'wr'\. Did you mean 'wer'"):
        compare_items(a, a, ["wr"])
    with pytest.raises(DataError, match="no metric in common"):
        compare_items({"a": {"x": 1.0}}, {"a": {"y": 1.0}})
    with pytest.raises(UsageError, match="all references are empty"):
        compare_items(*[{"a": {"word_errors": 1.0, "word_reference_length": 0.0}}] * 2, ["wer"])
    with pytest.raises(DataError, match="id 'u0' has no cluster"):
        compare_items(a, a, clusters={})
    with pytest.raises(DataError, match="is infinite"):
        compare_items({"a": {"x": math.inf}}, {"a": {"x": 1.0}})


def test_own_fields_are_metrics_where_nothing_else_is() -> None:
    assert metric_names({"a": {"bleu": 0.5, "length": 3}}, {"a": {"bleu": 0.1}}) == ["bleu"]
    assert metric_names({"a": {"x": 1, "ndcg_at_5": 0}}, {"a": {"x": 1, "ndcg_at_5": 0}}) == ["ndcg_at_5"]


def test_clusters_are_flipped_together() -> None:
    a = {f"q{i}": {"x": float(i % 2)} for i in range(8)}
    b = {i: {"x": 0.5} for i in a}
    alone = compare_items({i: {"x": 1.0} for i in a}, b)[0].comparison
    together = compare_items({i: {"x": 1.0} for i in a}, b, clusters={i: int(i[1]) // 4 for i in a})[0].comparison
    assert alone.p_value == pytest.approx(2 / 2**8)
    assert together.p_value == pytest.approx(2 / 2**2)
