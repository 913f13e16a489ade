"""Losses between conditions of the same utterances: golden values, agreement with brute force, properties."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError
from squtr.harness.metrics.paired_conditions import (
    Draws,
    PairedCounts,
    error_kinds,
    error_rate,
    kind_changes,
    loss_change,
    rate_loss,
    rir_spread,
    significant_from,
)

QUICK = Draws(resamples=200, permutations=500)


@st.composite
def some_pairs(draw: st.DrawFn, least: int = 1) -> PairedCounts:
    """Items of a few utterances, some with several RIRs; an utterance has one clean count."""
    rows = []
    for utterance in range(draw(st.integers(least, 5))):
        length = draw(st.integers(1, 12))

        def counts(length: int = length) -> tuple[int, int, int, int]:
            wrong = draw(st.integers(0, length))
            missed = draw(st.integers(0, length - wrong))
            return wrong, missed, draw(st.integers(0, 4)), length

        clean = counts()
        rows += [(clean, counts(), f"u{utterance}") for _ in range(draw(st.integers(1, 3)))]
    clean_rows, reverb_rows, labels = zip(*rows, strict=True)
    return PairedCounts(np.array(clean_rows), np.array(reverb_rows), labels)


def test_golden() -> None:
    # 2 + 1 errors clean, 4 + 4 reverberant, over 20 words.
    pairs = PairedCounts(np.array([[1, 1, 0, 10], [0, 0, 1, 10]]), np.array([[2, 1, 1, 10], [3, 1, 0, 10]]), ("a", "b"))
    found = rate_loss(pairs, draws=QUICK)
    rates = [error_rate(side, pairs.clusters, draws=QUICK).value for side in (pairs.baseline, pairs.compared)]
    assert rates == [0.15, 0.4]
    assert found.absolute.value == pytest.approx(0.25)
    assert found.relative.value == pytest.approx(5 / 3)
    # Both got worse: of four sign patterns two are as extreme.
    assert (found.p_value, found.exact) == (0.5, True)
    kinds = kind_changes(pairs, draws=QUICK)
    assert [round(kinds[k].value, 6) for k in kinds] == [0.2, 0.05, 0.0]
    assert [own.value for own in error_kinds(pairs.compared, pairs.clusters, draws=QUICK).values()] == [0.25, 0.1, 0.05]


@given(some_pairs())
def test_rates_are_what_their_definitions_say(pairs: PairedCounts) -> None:
    found, macro = rate_loss(pairs, draws=QUICK), rate_loss(pairs, macro=True, draws=QUICK)
    clean = [sum(row[:3]) for row in pairs.baseline.tolist()]
    reverb = [sum(row[:3]) for row in pairs.compared.tolist()]
    length = pairs.baseline[:, 3].tolist()
    assert found.absolute.value == pytest.approx((sum(reverb) - sum(clean)) / sum(length))
    before, after = (error_rate(side, pairs.clusters, draws=QUICK).value for side in (pairs.baseline, pairs.compared))
    assert found.absolute.value == pytest.approx(after - before)
    if sum(clean):
        assert found.relative.value == pytest.approx(found.absolute.value / before)
    else:
        assert math.isnan(found.relative.value)
    rates = [(r - c) / n for c, r, n in zip(clean, reverb, length, strict=True)]
    assert macro.absolute.value == pytest.approx(statistics.fmean(rates))
    kinds = kind_changes(pairs, draws=QUICK)
    assert sum(k.value for k in kinds.values()) == pytest.approx(found.absolute.value)


@given(some_pairs(least=2))
def test_every_way_to_exchange_the_sides_of_utterances_is_tried(pairs: PairedCounts) -> None:
    clean, reverb = pairs.errors
    by_utterance: dict[object, float] = {}
    for label, change in zip(pairs.clusters, (reverb - clean).tolist(), strict=True):
        by_utterance[label] = by_utterance.get(label, 0.0) + change
    changes = list(by_utterance.values())
    patterns = [
        abs(sum(s * c for s, c in zip(p, changes, strict=True)))
        for p in itertools.product((-1, 1), repeat=len(changes))
    ]
    extreme = sum(total >= abs(sum(changes)) - 1e-9 for total in patterns) / len(patterns)
    assert rate_loss(pairs, draws=QUICK).p_value == pytest.approx(extreme)


@given(some_pairs(least=2))
def test_exchanged_sides_turn_every_sign(pairs: PairedCounts) -> None:
    there = rate_loss(pairs, draws=QUICK)
    back = rate_loss(PairedCounts(pairs.compared, pairs.baseline, pairs.clusters), draws=QUICK)
    assert there.absolute.value == pytest.approx(-back.absolute.value)
    assert there.p_value == back.p_value
    if math.isfinite(there.absolute.interval.low):
        assert there.absolute.interval.low == pytest.approx(-back.absolute.interval.high)


def test_an_interval_draws_utterances_not_pairs() -> None:
    # One utterance with 50 RIRs is one draw: the interval is that of two utterances.
    many = PairedCounts(
        np.array([[0, 0, 0, 10]] * 51), np.array([[5, 0, 0, 10]] * 50 + [[0, 0, 0, 10]]), ("a",) * 50 + ("b",)
    )
    apart = PairedCounts(many.baseline, many.compared, tuple(range(51)))
    assert rate_loss(many).absolute.interval.low == 0.0
    assert rate_loss(apart).absolute.interval.low > 0.4
    assert rate_loss(many).p_value > 0.4
    assert rate_loss(apart).p_value < 0.001


def test_bootstrap_agrees_with_a_plain_one() -> None:
    rng = np.random.default_rng(5)
    clean = np.column_stack([rng.integers(0, 3, (40, 3)), np.full(40, 12)])
    reverb = clean + np.column_stack([rng.integers(0, 3, (40, 3)), np.zeros(40, dtype=int)])
    labels = [f"u{i // 2}" for i in range(40)]
    found = rate_loss(PairedCounts(clean, reverb, tuple(labels)), draws=Draws(resamples=4000)).absolute.interval
    change = (reverb[:, :3] - clean[:, :3]).sum(axis=1)
    drawn = []
    for _ in range(4000):
        picked = rng.integers(0, 20, 20)
        rows = np.concatenate([[2 * u, 2 * u + 1] for u in picked])
        drawn.append(change[rows].sum() / clean[rows, 3].sum())
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.01)


def test_empty_references_count_in_the_corpus_rate_alone() -> None:
    pairs = PairedCounts(np.array([[0, 0, 0, 4], [0, 0, 0, 0]]), np.array([[1, 0, 0, 4], [0, 0, 3, 0]]), ("a", "b"))
    assert error_rate(pairs.compared, pairs.clusters, draws=QUICK).value == 1.0
    assert error_rate(pairs.compared, pairs.clusters, macro=True, draws=QUICK).value == 0.25
    nothing = rate_loss(pairs.take([]), draws=QUICK)
    assert math.isnan(nothing.absolute.value)
    assert math.isnan(nothing.p_value)
    assert nothing.absolute.n == 0


def test_sides_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="item 0 has 4 reference tokens for the baseline and 5"):
        PairedCounts(np.array([[0, 0, 0, 4]]), np.array([[0, 0, 0, 5]]), ("a",))
    one = PairedCounts(np.array([[0, 0, 0, 4]]), np.array([[0, 0, 0, 4]]), ("a",))
    with pytest.raises(DataError, match="2 labels"):
        PairedCounts(one.baseline, one.compared, ("a", "b"))
    with pytest.raises(DataError, match="different items"):
        loss_change(one, PairedCounts(one.baseline, one.compared, ("b",)))


@given(some_pairs(least=2))
def test_a_change_of_deltas_is_their_difference(pairs: PairedCounts) -> None:
    rng = np.random.default_rng(0)
    extra = np.column_stack(
        [np.zeros((len(pairs), 2), dtype=int), rng.integers(0, 4, len(pairs)), np.zeros(len(pairs), dtype=int)]
    )
    changed = PairedCounts(pairs.baseline, pairs.compared + extra, pairs.clusters)
    found = loss_change(changed, pairs, draws=QUICK)
    both = [rate_loss(one, draws=QUICK).absolute.value for one in (changed, pairs)]
    assert found.absolute.value == pytest.approx(both[0] - both[1])


def test_spread_over_rirs() -> None:
    # Two utterances of ten words with the same two RIRs: 1 and 3, 0 and 4 errors.
    clean = np.zeros((4, 4), dtype=int)
    clean[:, 3] = 10
    reverb = clean.copy()
    reverb[:, 0] = [1, 3, 0, 4]
    found = rir_spread(PairedCounts(clean, reverb, ("a", "a", "b", "b")), ("r", "s", "r", "s"), draws=QUICK)
    assert found.within_utterances.value == pytest.approx(
        math.sqrt((statistics.variance([0.1, 0.3]) + statistics.variance([0.0, 0.4])) / 2)
    )
    assert found.between_rirs.value == pytest.approx(statistics.stdev([0.05, 0.35]))
    # One-way analysis of variance by hand: means 0.05 and 0.35, MSB 0.09, MSW 0.005, two items per RIR.
    assert found.rir_component.value == pytest.approx(math.sqrt((0.09 - 0.005) / 2))
    assert (found.within_utterances.n, found.between_rirs.n) == (2, 2)


def test_spread_is_unknown_where_nothing_repeats() -> None:
    clean = np.array([[0, 0, 0, 10]] * 3)
    reverb = np.array([[1, 0, 0, 10], [2, 0, 0, 10], [6, 0, 0, 10]])
    found = rir_spread(PairedCounts(clean, reverb, ("a", "b", "c")), ("r", "s", "t"), draws=QUICK)
    assert math.isnan(found.within_utterances.value)
    assert math.isnan(found.rir_component.value)
    assert found.between_rirs.value == pytest.approx(statistics.stdev([0.1, 0.2, 0.6]))


def test_the_rir_component_takes_chance_away() -> None:
    rng = np.random.default_rng(3)
    rirs = np.repeat(np.arange(40), 10)
    length = np.full(400, 20)
    alike, different = (rng.binomial(20, p, 400) for p in (0.2, 0.1 + 0.2 * (np.arange(40) % 2)[rirs]))
    components = []
    for errors in (alike, different):
        reverb = np.column_stack([errors, np.zeros((400, 2), dtype=int), length])
        clean = np.column_stack([np.zeros((400, 3), dtype=int), length])
        found = rir_spread(PairedCounts(clean, reverb, tuple(range(400))), rirs.tolist(), draws=QUICK)
        assert found.rir_component.value < found.between_rirs.value
        components.append(found.rir_component.value)
    assert components[0] < 0.02
    assert components[1] == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize(
    ("tests", "first"),
    [
        ([], None),
        ([(0.1, 0.04)], 0),
        ([(-0.1, 0.001)], None),
        ([(0.1, 0.001), (0.0, 0.9), (0.1, 0.01), (0.2, 0.001)], 2),
        ([(0.1, 0.001), (0.2, 0.001), (0.2, 0.06)], None),
    ],
)
def test_bins_are_tested_from_the_most_reverberant_down(tests: list[tuple[float, float]], first: int | None) -> None:
    assert significant_from(tests) == first
