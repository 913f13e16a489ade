"""The reverberation time from which on a recognizer loses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError
from squtr.harness.metrics.change_point import STEP, change_point, threshold_grid


def brute_force(x: np.ndarray, errors: np.ndarray, lengths: np.ndarray) -> float:
    """The threshold with the least weighted squared error, each fitted by least squares with a slope of at least 0."""
    best, least = math.nan, math.inf
    for threshold in threshold_grid(x):
        z = np.maximum(0, x - threshold)
        slope = max(0.0, float((z * errors).sum() / (lengths * z**2).sum()))
        loss = float((lengths * (errors / lengths - slope * z) ** 2).sum())
        if loss < least - 1e-12:
            best, least = threshold, loss
    return best


@given(st.integers(0, 10_000), st.floats(0.0, 0.9))
def test_it_is_the_least_squares_fit(seed: int, threshold: float) -> None:
    rng = np.random.default_rng(seed)
    x, lengths = rng.uniform(0.1, 1.2, 60), rng.integers(3, 30, 60).astype(float)
    errors = np.round(lengths * (2 * np.maximum(0, x - threshold) + rng.normal(0, 0.05, 60)))
    found = change_point(x, errors, lengths, range(60), resamples=20, permutations=99)
    if found.found:
        assert found.threshold == pytest.approx(brute_force(x, errors, lengths))


def test_a_planted_threshold_is_found_with_an_interval_around_it() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(0.1, 1.5, 600)
    lengths = rng.integers(8, 25, 600)
    clean = rng.binomial(lengths, 0.05)
    reverb = rng.binomial(lengths, np.minimum(0.9, 0.05 + 0.4 * np.maximum(0, x - 0.6)))
    found = change_point(x, reverb - clean, lengths, range(600), resamples=300, permutations=999)
    assert found.threshold == pytest.approx(0.6, abs=0.06)
    assert found.interval.low <= 0.6 <= found.interval.high
    assert found.interval.high - found.interval.low < 0.25
    assert found.slope == pytest.approx(0.4, abs=0.06)
    assert found.p_value == pytest.approx(0.001)


def test_the_interval_covers_about_as_often_as_it_says() -> None:
    covered, trials = 0, 60
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        x, lengths = rng.uniform(0.1, 1.5, 150), rng.integers(8, 25, 150)
        errors = rng.binomial(lengths, np.minimum(0.9, 0.02 + 0.5 * np.maximum(0, x - 0.5))) - rng.binomial(
            lengths, 0.02
        )
        found = change_point(x, errors, lengths, range(150), seed=seed, resamples=200, permutations=99)
        covered += found.interval.low - STEP <= 0.5 <= found.interval.high + STEP
    assert covered / trials > 0.85


def test_without_a_loss_there_is_rarely_a_change_point() -> None:
    claims, trials = 0, 100
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(5, 20, 80)
        errors = rng.binomial(lengths, 0.1) - rng.binomial(lengths, 0.1)
        found = change_point(
            rng.uniform(0.1, 1, 80), errors, lengths, range(80), seed=seed, resamples=10, permutations=199
        )
        claims += found.found
        assert found.found or (math.isnan(found.slope) and math.isnan(found.interval.low))
    # 5 % by construction; three standard errors of slack.
    assert claims <= 0.05 * trials + 3 * math.sqrt(0.05 * 0.95 * trials)


def test_a_loss_from_the_driest_room_on_has_its_threshold_at_zero() -> None:
    x = np.linspace(0.2, 1.0, 80)
    found = change_point(x, 5 * x, np.full(80, 10.0), range(80), resamples=100, permutations=199)
    assert found.threshold == 0
    assert found.slope == pytest.approx(0.5)


def test_rooms_that_help_are_no_loss() -> None:
    x = np.linspace(0.2, 1.0, 80)
    found = change_point(x, -5 * x, np.full(80, 10.0), range(80), resamples=10, permutations=99)
    assert not found.found
    assert found.p_value == 1.0


def test_pairs_of_one_utterance_are_one_observation() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(0.2, 1.0, 40)
    errors = 4 * np.maximum(0, x - 0.4)
    apart = change_point(x, errors, np.full(40, 10.0), range(40), resamples=50, permutations=999)
    together = change_point(x, errors, np.full(40, 10.0), [i % 3 for i in range(40)], resamples=50, permutations=999)
    assert apart.p_value < 0.01
    # Three utterances have eight ways to exchange their conditions.
    assert together.p_value > 0.1


def test_too_little_to_fit() -> None:
    for rows in (0, 1):
        found = change_point(np.full(rows, 0.5), np.ones(rows), np.ones(rows), range(rows))
        assert (found.n, found.found) == (rows, False)
        assert math.isnan(found.p_value)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(DataError, match="rows"):
        change_point([0.1, 0.2], [1.0], [1.0], ["a"])
    with pytest.raises(DataError, match="pair 1 holds a value"):
        change_point([0.1, math.nan], [1.0, 1.0], [1.0, 1.0], ["a", "b"])


@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=60))
def test_every_threshold_has_pairs_beyond_it(values: list[float]) -> None:
    x = np.array(values)
    for threshold in threshold_grid(x):
        assert (x > threshold).sum() >= max(1, math.ceil(0.05 * len(x)))
