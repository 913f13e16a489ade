"""Losses, spread over conditions, and curves over SNR."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UsageError
from squtr.harness.metrics.curves import mean_over_snr, snr_at_loss
from squtr.harness.metrics.robustness import bin_label, loss, loss_by_group, pair_ids, sigma_pooled, sigma_within
from squtr.harness.metrics.statistics import Interval

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "squtr_robustness.json").read_text("utf-8"))
PER_QUERY = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1, width=32), min_size=1)


@pytest.mark.parametrize("system", GOLDEN["expected"])
def test_published_robustness(system: str) -> None:
    by_subset = GOLDEN["ndcg_at_10"][system]
    expected = GOLDEN["expected"][system]
    means: dict[tuple[str, str], float] = {}
    for language in ("en", "zh"):
        subsets = [scores for name, scores in by_subset.items() if name.startswith(f"{language}/")]
        assert len(subsets) == 3
        for condition in subsets[0]:
            means[language, condition] = sum(scores[condition] for scores in subsets) / 3
    means["en", "text"] = 1.0  # not a condition of the air: must not count
    assert sum(m for (_, c), m in means.items() if c != "text") / 8 == pytest.approx(expected["mean"], abs=6e-5)
    assert sigma_pooled(means) == pytest.approx(expected["sigma_pooled"], abs=6e-5)
    within = sigma_within(means)
    for language in ("en", "zh"):
        assert within[language] == pytest.approx(expected[f"sigma_{language}"], abs=6e-5)
        lost = loss({"all": means[language, "high_noise"]}, {"all": means[language, "clean"]})
        assert 100 * lost.relative == pytest.approx(expected[f"drop_{language}_percent"], abs=0.06)


@given(PER_QUERY)
def test_no_loss_against_itself(scores: dict[str, float]) -> None:
    found = loss(scores, scores)
    assert found.absolute == 0
    assert found.n == len(scores)
    if len(scores) > 1:
        assert found.interval_absolute == Interval(0, 0)
    else:
        assert math.isnan(found.interval_absolute.low)


def test_loss_is_paired_by_id_not_by_order() -> None:
    rng = np.random.default_rng(0)
    clean = {f"q{i}": float(v) for i, v in enumerate(rng.random(200))}
    noisy = {id_: value - 0.1 for id_, value in reversed(clean.items())}
    found = loss(noisy, clean)
    assert found.absolute == pytest.approx(0.1)
    # Every pair loses the same, so nothing varies; unpaired scores would vary by 0.29 per query.
    assert found.interval_absolute.low == pytest.approx(0.1)
    assert found.interval_absolute.high == pytest.approx(0.1)
    assert found.interval_relative.low < found.relative < found.interval_relative.high


def test_a_gain_is_a_negative_loss() -> None:
    found = loss({"a": 0.9, "b": 0.7}, {"a": 0.8, "b": 0.5})
    assert found.absolute == pytest.approx(-0.15)
    assert found.interval_absolute.low <= found.absolute <= found.interval_absolute.high <= 0


def test_a_baseline_of_zero_has_no_relative_loss() -> None:
    found = loss({"a": 0.0, "b": 0.0}, {"a": 0.0, "b": 0.0})
    assert math.isnan(found.relative)
    assert math.isnan(found.interval_relative.low)


def test_different_ids() -> None:
    with pytest.raises(DataError, match="'c' is in one only"):
        loss({"a": 1.0, "c": 1.0}, {"a": 1.0})
    with pytest.raises(DataError, match="'b' is in one only"):
        loss({"a": 1.0}, {"a": 1.0, "b": 1.0})
    assert loss({"a": 1.0, "c": 1.0}, {"a": 1.0, "b": 0.0}, on="intersection").n == 1
    with pytest.raises(DataError, match="no item in common"):
        loss({"a": 1.0}, {"b": 1.0}, on="intersection")
    assert pair_ids({"b": 1, "a": 1}, {"a": 1, "b": 1}) == ["b", "a"]


def test_groups_are_lost_apart() -> None:
    condition = {"a": 0.5, "b": 0.25, "c": 1.0, "d": 0.0}
    baseline = dict.fromkeys("abcd", 1.0)
    found = loss_by_group(condition, baseline, {"a": "x", "b": "x", "c": "y", "d": ""})
    assert list(found) == ["x", "y"]
    assert (found["x"].absolute, found["x"].n) == (0.625, 2)
    assert found["y"].absolute == 0.0
    with pytest.raises(DataError, match="'d' is in one only"):
        loss_by_group(condition, baseline, {"a": "x", "b": "x", "c": "y"})


@given(st.floats(-1, 2))
def test_every_value_has_one_bin(value: float) -> None:
    label = bin_label(value, (0.0, 0.5, 1.0), "s")
    expected = "<0 s" if value < 0 else "0-0.5 s" if value < 0.5 else "0.5-1 s" if value < 1 else ">=1 s"
    assert label == expected
    assert bin_label(math.nan, (0.0,)) == ""


def test_spread() -> None:
    assert sigma_within({("en", "clean"): 0.5}) == {"en": pytest.approx(math.nan, nan_ok=True)}
    assert math.isnan(sigma_pooled({}))


def test_mean_over_snr() -> None:
    # A straight line has its mean in the middle, however the levels are spaced.
    assert mean_over_snr({0.0: 0.2, 5.0: 0.3, 20.0: 0.6}) == pytest.approx(0.4)
    assert math.isnan(mean_over_snr({0.0: 0.5}))


def curve(means: dict[float, float], n: int = 50, spread: float = 0.0) -> dict[float, dict[str, float]]:
    rng = np.random.default_rng(1)
    return {
        snr: {f"q{i}": mean + spread * float(rng.standard_normal()) for i in range(n)} for snr, mean in means.items()
    }


def test_snr_at_loss_interpolates() -> None:
    clean = {f"q{i}": 1.0 for i in range(50)}
    found = snr_at_loss(curve({20.0: 1.0, 10.0: 0.95, 0.0: 0.75}), clean, share=0.1, seed=0)
    assert found.snr_db == pytest.approx(7.5)
    assert found.interval == Interval(pytest.approx(7.5), pytest.approx(7.5))
    assert found.n == 50


def test_snr_at_loss_out_of_range() -> None:
    clean = {f"q{i}": 1.0 for i in range(50)}
    never = snr_at_loss(curve({20.0: 1.0, 0.0: 0.95}), clean, share=0.1, seed=0)
    assert never.snr_db == -math.inf
    always = snr_at_loss(curve({20.0: 0.8, 0.0: 0.5}), clean, share=0.1, seed=0)
    assert always.snr_db == math.inf


def test_snr_at_loss_without_a_clean_score() -> None:
    nothing = {"a": 0.0, "b": 0.0}
    found = snr_at_loss({20.0: nothing, 0.0: nothing}, nothing, share=0.1, seed=0)
    assert math.isnan(found.snr_db)
    assert math.isnan(found.interval.low)


def test_snr_at_loss_has_an_interval() -> None:
    clean = {f"q{i}": 1.0 for i in range(50)}
    found = snr_at_loss(curve({20.0: 1.0, 10.0: 0.95, 0.0: 0.75}, spread=0.2), clean, share=0.1, seed=3)
    assert found.interval.low < found.snr_db < found.interval.high
    assert found == snr_at_loss(curve({20.0: 1.0, 10.0: 0.95, 0.0: 0.75}, spread=0.2), clean, share=0.1, seed=3)


def test_bad_curves() -> None:
    clean = {"a": 1.0, "b": 1.0}
    with pytest.raises(DataError, match="is in one only"):
        snr_at_loss({0.0: {"a": 1.0}, 10.0: clean}, clean, share=0.1, seed=0)
    with pytest.raises(UsageError, match="share"):
        snr_at_loss({0.0: clean, 10.0: clean}, clean, share=1.5, seed=0)
    with pytest.raises(UsageError, match="two levels"):
        snr_at_loss({0.0: clean}, clean, share=0.1, seed=0)


def test_clusters_widen_groups_and_crossings() -> None:
    rng = np.random.default_rng(3)
    offsets = rng.normal(0, 0.2, 8)
    clean = {str(i): 1.0 for i in range(80)}
    labels = {i: int(i) % 8 for i in clean}
    noisy = {i: float(0.6 + offsets[labels[i]] + rng.normal(0, 0.01)) for i in clean}
    groups = dict.fromkeys(clean, "babble")
    widths = []
    for clusters in (None, labels):
        bounds = loss_by_group(noisy, clean, groups, clusters=clusters)["babble"].interval_absolute
        widths.append(bounds.high - bounds.low)
    assert widths[1] > 2 * widths[0]
    spans = []
    for clusters in (None, labels):
        found = snr_at_loss({20.0: clean, 0.0: noisy}, clean, share=0.2, clusters=clusters, seed=0)
        assert found.n == 80
        spans.append(found.interval.high - found.interval.low)
    assert spans[1] > 2 * spans[0]
    alone = snr_at_loss({20.0: clean, 0.0: noisy}, clean, share=0.2, clusters=dict.fromkeys(clean, 0), seed=0)
    assert math.isnan(alone.interval.low)
