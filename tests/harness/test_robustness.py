"""Spread over conditions and the SNR at a given loss; losses between means over subsets."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UsageError
from squtr.harness.metrics.comparison import pair_ids
from squtr.harness.metrics.robustness import Item, snr_at_loss, stability
from squtr.harness.metrics.statistics import Interval
from squtr.harness.metrics.stratified import Loss, unweighted_loss

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "squtr_robustness.json").read_text("utf-8"))
PER_QUERY = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 1, width=32), min_size=1)


def loss(condition: Mapping[str, float], baseline: Mapping[str, float], **options: object) -> Loss:
    return unweighted_loss({"s": condition}, {"s": baseline}, seed=0, **options)  # type: ignore[arg-type]


def items(scores: Mapping[str, float]) -> dict[str, dict[str, Item]]:
    return {"s": {id_: (score, 1.0) for id_, score in scores.items()}}


@pytest.mark.parametrize("system", GOLDEN["expected"])
def test_published_robustness(system: str) -> None:
    """The published σ and losses follow from the published means of each subset."""
    by_subset, expected = GOLDEN["ndcg_at_10"][system], GOLDEN["expected"][system]
    scores: dict[tuple[str, str], dict[str, dict[str, Item]]] = {}
    for name, means in by_subset.items():
        for condition, mean in means.items():
            scores.setdefault((name[:2], condition), {})[name] = {"all": (mean, 1.0)}
    scores["en", "text"] = {name: {"all": (1.0, 1.0)} for name in by_subset}  # no condition: must not count
    found = stability(scores, seed=0)
    assert found.pooled.value == pytest.approx(expected["sigma_pooled"], abs=6e-5)
    assert math.isnan(found.pooled.interval.low)
    for language in ("en", "zh"):
        assert found.within[language].value == pytest.approx(expected[f"sigma_{language}"], abs=6e-5)
        noisy, clean = (
            {name: {id_: value for id_, (value, _) in own.items()} for name, own in scores[language, c].items()}
            for c in ("high_noise", "clean")
        )
        lost = unweighted_loss(noisy, clean, seed=0)
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


RATES = st.tuples(st.integers(0, 9), st.integers(1, 20)).map(lambda pair: (float(pair[0]), float(pair[1])))


@given(st.dictionaries(st.sampled_from(["en", "zh"]), st.lists(RATES, min_size=9, max_size=9), min_size=1))
def test_sigma_is_that_of_the_means(rows: dict[str, list[Item]]) -> None:
    """Of corpus rates (Σ / Σ, one subset) and of means of two subsets alike."""
    scores = {
        (language, condition): {
            subset: {f"{i}": values[(3 * place + k + i) % 9] for i in range(2)} for k, subset in enumerate(("a", "b"))
        }
        for language, values in rows.items()
        for place, condition in enumerate(("clean", "snr_10", "snr_0"))
    }
    found = stability(scores, seed=0, resamples=50)
    means = {
        language: [
            np.mean([sum(v for v, _ in own.values()) / sum(w for _, w in own.values()) for own in subsets.values()])
            for (other, _), subsets in scores.items()
            if other == language
        ]
        for language in rows
    }
    for language, own in means.items():
        assert found.within[language].value == pytest.approx(np.std(own, ddof=1))
    assert found.pooled.value == pytest.approx(np.std([mean for own in means.values() for mean in own], ddof=1))


def test_sigma_has_a_paired_interval() -> None:
    rng = np.random.default_rng(0)
    clean = {f"q{i}": float(v) for i, v in enumerate(rng.random(200))}
    noisy = {id_: value - 0.2 for id_, value in clean.items()}
    found = stability({("en", "clean"): items(clean), ("en", "snr_0"): items(noisy)}, seed=1).within["en"]
    # Every item loses the same, so σ is the same in every resample, however the items differ.
    assert [found.value, found.interval.low, found.interval.high] == pytest.approx([0.2 / math.sqrt(2)] * 3)
    other = {id_: value - 0.4 * float(rng.random()) for id_, value in clean.items()}
    found = stability({("en", "clean"): items(clean), ("en", "snr_0"): items(other)}, seed=1).within["en"]
    assert found.interval.low < found.value < found.interval.high
    assert found.n == 200


def test_sigma_needs_two_conditions_and_common_items() -> None:
    one = stability({("en", "clean"): items({"a": 0.5}), ("en", "text"): items({"a": 1.0})}, seed=0)
    assert math.isnan(one.within["en"].value)
    assert math.isnan(stability({}, seed=0).pooled.value)
    part = stability({("en", "clean"): items({"a": 0.5, "b": 0.0}), ("en", "snr_0"): items({"a": 0.3})}, seed=0)
    assert part.within["en"].n == 1
    assert part.within["en"].value == pytest.approx(0.2 / math.sqrt(2))


def curve(means: dict[float, float], n: int = 50, spread: float = 0.0) -> dict[float, dict[str, dict[str, Item]]]:
    rng = np.random.default_rng(1)
    return {
        snr: items({f"q{i}": mean + spread * float(rng.standard_normal()) for i in range(n)})
        for snr, mean in means.items()
    }


CLEAN = items({f"q{i}": 1.0 for i in range(50)})


def test_snr_at_loss_interpolates() -> None:
    found = snr_at_loss(curve({20.0: 1.0, 10.0: 0.95, 0.0: 0.75}), CLEAN, loss=0.1, seed=0)
    assert found.snr_db == pytest.approx(7.5)
    assert found.interval == Interval(pytest.approx(7.5), pytest.approx(7.5))
    assert found.n == 50


def test_snr_at_loss_out_of_range() -> None:
    assert snr_at_loss(curve({20.0: 1.0, 0.0: 0.95}), CLEAN, loss=0.1, seed=0).snr_db == -math.inf
    assert snr_at_loss(curve({20.0: 0.8, 0.0: 0.5}), CLEAN, loss=0.1, seed=0).snr_db == math.inf


def test_snr_at_loss_of_an_error_rate() -> None:
    """A corpus rate loses by rising, in points or by the clean rate."""
    rates = {20.0: {"": {"a": (1.0, 10.0), "b": (0.0, 10.0)}}, 0.0: {"": {"a": (6.0, 10.0), "b": (3.0, 10.0)}}}
    clean = {"": {"a": (1.0, 10.0), "b": (0.0, 10.0)}}
    points = snr_at_loss(rates, clean, loss=0.1, relative=False, better="lower", seed=0)
    assert points.snr_db == pytest.approx(15.0)  # 5 % to 45 % over 20 dB
    doubled = snr_at_loss(rates, clean, loss=1.0, better="lower", seed=0)
    assert doubled.snr_db == pytest.approx(17.5)
    assert points.n == 2
    never = snr_at_loss(rates, clean, loss=0.5, relative=False, better="lower", seed=0)
    assert never.snr_db == -math.inf


def test_subsets_weigh_equally_in_the_snr_at_loss() -> None:
    clean = {"large": {f"{i}": (1.0, 1.0) for i in range(90)}, "small": {f"{i}": (1.0, 1.0) for i in range(10)}}
    noisy = {"large": clean["large"], "small": {f"{i}": (0.6, 1.0) for i in range(10)}}
    assert snr_at_loss({20.0: clean, 0.0: noisy}, clean, loss=0.1, seed=0).snr_db == pytest.approx(10.0)


def test_snr_at_loss_without_a_clean_score_or_items() -> None:
    nothing = items({"a": 0.0, "b": 0.0})
    found = snr_at_loss({20.0: nothing, 0.0: nothing}, nothing, loss=0.1, seed=0)
    assert math.isnan(found.snr_db)
    assert math.isnan(found.interval.low)
    assert snr_at_loss({20.0: nothing, 0.0: nothing}, items({"c": 1.0}), loss=0.1, seed=0).n == 0


def test_snr_at_loss_has_an_interval() -> None:
    levels = curve({20.0: 1.0, 10.0: 0.95, 0.0: 0.75}, spread=0.2)
    found = snr_at_loss(levels, CLEAN, loss=0.1, seed=3)
    assert found.interval.low < found.snr_db < found.interval.high
    assert found == snr_at_loss(levels, CLEAN, loss=0.1, seed=3)
    alone = snr_at_loss({x: items({"q0": own["s"]["q0"][0]}) for x, own in levels.items()}, CLEAN, loss=0.1, seed=3)
    assert math.isnan(alone.interval.low)


def test_bad_curves() -> None:
    with pytest.raises(UsageError, match="the loss is"):
        snr_at_loss({0.0: CLEAN, 10.0: CLEAN}, CLEAN, loss=1.5, seed=0)
    with pytest.raises(UsageError, match="two levels"):
        snr_at_loss({0.0: CLEAN}, CLEAN, loss=0.1, seed=0)
