"""What a room costs: golden values, agreement with brute force, properties."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError
from squtr.harness.metrics.comparison import holm
from squtr.harness.metrics.paired_arms import (
    Arms,
    Draws,
    arm_rates,
    delta_change,
    error_kinds,
    rates_by_bin,
    room_spread,
    significant_from,
)

QUICK = Draws(resamples=200, permutations=500)


@st.composite
def some_arms(draw: st.DrawFn, least: int = 1) -> Arms:
    """Pairs of a few utterances, some in several rooms; an utterance has one clean count."""
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
    return Arms(np.array(clean_rows), np.array(reverb_rows), labels)


def test_golden() -> None:
    # 2 + 1 errors clean, 4 + 4 in the room, over 20 words.
    arms = Arms(np.array([[1, 1, 0, 10], [0, 0, 1, 10]]), np.array([[2, 1, 1, 10], [3, 1, 0, 10]]), ("a", "b"))
    found = arm_rates(arms, draws=QUICK)
    assert (found.clean.value, found.reverb.value) == (0.15, 0.4)
    assert found.delta.absolute.value == pytest.approx(0.25)
    assert found.delta.relative.value == pytest.approx(5 / 3)
    # Both got worse: of four sign patterns two are as extreme.
    assert (found.delta.p_value, found.delta.exact) == (0.5, True)
    kinds = error_kinds(arms, draws=QUICK)
    assert [round(kinds[k].change.value, 6) for k in kinds] == [0.2, 0.05, 0.0]


@given(some_arms())
def test_rates_are_what_their_definitions_say(arms: Arms) -> None:
    found, macro = arm_rates(arms, draws=QUICK), arm_rates(arms, macro=True, draws=QUICK)
    clean = [sum(row[:3]) for row in arms.clean.tolist()]
    reverb = [sum(row[:3]) for row in arms.reverb.tolist()]
    length = arms.clean[:, 3].tolist()
    assert found.delta.absolute.value == pytest.approx((sum(reverb) - sum(clean)) / sum(length))
    assert found.delta.absolute.value == pytest.approx(found.reverb.value - found.clean.value)
    if sum(clean):
        assert found.delta.relative.value == pytest.approx(found.delta.absolute.value / found.clean.value)
    else:
        assert math.isnan(found.delta.relative.value)
    rates = [(r - c) / n for c, r, n in zip(clean, reverb, length, strict=True)]
    assert macro.delta.absolute.value == pytest.approx(statistics.fmean(rates))
    kinds = error_kinds(arms, draws=QUICK)
    assert sum(k.change.value for k in kinds.values()) == pytest.approx(found.delta.absolute.value)


@given(some_arms(least=2))
def test_the_test_tries_every_way_to_exchange_the_arms_of_utterances(arms: Arms) -> None:
    clean, reverb = arms.errors
    by_utterance: dict[object, float] = {}
    for label, change in zip(arms.utterances, (reverb - clean).tolist(), strict=True):
        by_utterance[label] = by_utterance.get(label, 0.0) + change
    changes = list(by_utterance.values())
    patterns = [
        abs(sum(s * c for s, c in zip(p, changes, strict=True)))
        for p in itertools.product((-1, 1), repeat=len(changes))
    ]
    extreme = sum(total >= abs(sum(changes)) - 1e-9 for total in patterns) / len(patterns)
    assert arm_rates(arms, draws=QUICK).delta.p_value == pytest.approx(extreme)


@given(some_arms(least=2))
def test_exchanged_arms_turn_every_sign(arms: Arms) -> None:
    there = arm_rates(arms, draws=QUICK).delta
    back = arm_rates(Arms(arms.reverb, arms.clean, arms.utterances), draws=QUICK).delta
    assert there.absolute.value == pytest.approx(-back.absolute.value)
    assert there.p_value == back.p_value
    if math.isfinite(there.absolute.interval.low):
        assert there.absolute.interval.low == pytest.approx(-back.absolute.interval.high)


def test_an_interval_draws_utterances_not_pairs() -> None:
    # One utterance in 50 rooms is one draw: the interval is that of two utterances.
    many = Arms(np.array([[0, 0, 0, 10]] * 51), np.array([[5, 0, 0, 10]] * 50 + [[0, 0, 0, 10]]), ("a",) * 50 + ("b",))
    apart = Arms(many.clean, many.reverb, tuple(range(51)))
    assert arm_rates(many).delta.absolute.interval.low == 0.0
    assert arm_rates(apart).delta.absolute.interval.low > 0.4
    assert arm_rates(many).delta.p_value > 0.4
    assert arm_rates(apart).delta.p_value < 0.001


def test_bootstrap_agrees_with_a_plain_one() -> None:
    rng = np.random.default_rng(5)
    clean = np.column_stack([rng.integers(0, 3, (40, 3)), np.full(40, 12)])
    reverb = clean + np.column_stack([rng.integers(0, 3, (40, 3)), np.zeros(40, dtype=int)])
    labels = [f"u{i // 2}" for i in range(40)]
    found = arm_rates(Arms(clean, reverb, tuple(labels)), draws=Draws(resamples=4000)).delta.absolute.interval
    change = (reverb[:, :3] - clean[:, :3]).sum(axis=1)
    drawn = []
    for _ in range(4000):
        picked = rng.integers(0, 20, 20)
        rows = np.concatenate([[2 * u, 2 * u + 1] for u in picked])
        drawn.append(change[rows].sum() / clean[rows, 3].sum())
    assert [found.low, found.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.01)


def test_empty_references_count_in_the_corpus_rate_alone() -> None:
    arms = Arms(np.array([[0, 0, 0, 4], [0, 0, 0, 0]]), np.array([[1, 0, 0, 4], [0, 0, 3, 0]]), ("a", "b"))
    assert arm_rates(arms, draws=QUICK).reverb.value == 1.0
    assert arm_rates(arms, macro=True, draws=QUICK).reverb.value == 0.25
    nothing = arm_rates(arms.take([]), draws=QUICK)
    assert math.isnan(nothing.clean.value)
    assert math.isnan(nothing.delta.p_value)
    assert nothing.clean.n == 0


def test_arms_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="pair 0 has 4 tokens clean and 5"):
        Arms(np.array([[0, 0, 0, 4]]), np.array([[0, 0, 0, 5]]), ("a",))
    one = Arms(np.array([[0, 0, 0, 4]]), np.array([[0, 0, 0, 4]]), ("a",))
    with pytest.raises(DataError, match="2 labels"):
        Arms(one.clean, one.reverb, ("a", "b"))
    with pytest.raises(DataError, match="other pairs"):
        delta_change(one, Arms(one.clean, one.reverb, ("b",)))


@given(some_arms(least=2))
def test_a_change_of_deltas_is_their_difference(arms: Arms) -> None:
    rng = np.random.default_rng(0)
    extra = np.column_stack(
        [np.zeros((len(arms), 2), dtype=int), rng.integers(0, 4, len(arms)), np.zeros(len(arms), dtype=int)]
    )
    changed = Arms(arms.clean, arms.reverb + extra, arms.utterances)
    found = delta_change(changed, arms, draws=QUICK)
    both = [arm_rates(one, draws=QUICK).delta.absolute.value for one in (changed, arms)]
    assert found.absolute.value == pytest.approx(both[0] - both[1])


def test_spread_over_rooms() -> None:
    # Two utterances of ten words in the same two rooms: 1 and 3, 0 and 4 errors.
    clean = np.zeros((4, 4), dtype=int)
    clean[:, 3] = 10
    reverb = clean.copy()
    reverb[:, 0] = [1, 3, 0, 4]
    found = room_spread(Arms(clean, reverb, ("a", "a", "b", "b")), ("r", "s", "r", "s"), draws=QUICK)
    assert found.within_utterances.value == pytest.approx(
        math.sqrt((statistics.variance([0.1, 0.3]) + statistics.variance([0.0, 0.4])) / 2)
    )
    assert found.between_rooms.value == pytest.approx(statistics.stdev([0.05, 0.35]))
    # One-way analysis of variance by hand: means 0.05 and 0.35, MSB 0.09, MSW 0.005, two pairs per room.
    assert found.room_component.value == pytest.approx(math.sqrt((0.09 - 0.005) / 2))
    assert (found.within_utterances.n, found.between_rooms.n) == (2, 2)


def test_spread_is_unknown_where_nothing_repeats() -> None:
    clean = np.array([[0, 0, 0, 10]] * 3)
    reverb = np.array([[1, 0, 0, 10], [2, 0, 0, 10], [6, 0, 0, 10]])
    found = room_spread(Arms(clean, reverb, ("a", "b", "c")), ("r", "s", "t"), draws=QUICK)
    assert math.isnan(found.within_utterances.value)
    assert math.isnan(found.room_component.value)
    assert found.between_rooms.value == pytest.approx(statistics.stdev([0.1, 0.2, 0.6]))


def test_the_room_component_takes_chance_away() -> None:
    rng = np.random.default_rng(3)
    rooms = np.repeat(np.arange(40), 10)
    length = np.full(400, 20)
    alike, different = (rng.binomial(20, p, 400) for p in (0.2, 0.1 + 0.2 * (np.arange(40) % 2)[rooms]))
    components = []
    for errors in (alike, different):
        reverb = np.column_stack([errors, np.zeros((400, 2), dtype=int), length])
        clean = np.column_stack([np.zeros((400, 3), dtype=int), length])
        found = room_spread(Arms(clean, reverb, tuple(range(400))), rooms.tolist(), draws=QUICK)
        assert found.room_component.value < found.between_rooms.value
        components.append(found.room_component.value)
    assert components[0] < 0.02
    assert components[1] == pytest.approx(0.1, abs=0.02)


@given(some_arms(least=2))
def test_bins_are_the_same_as_their_pairs_alone(arms: Arms) -> None:
    bins = [i % 2 for i in range(len(arms))]
    found = rates_by_bin({"wer": arms}, bins, [f"r{i}" for i in range(len(arms))], draws=QUICK)
    p_values = {}
    for number, own in found.items():
        rows = [i for i, b in enumerate(bins) if b == number]
        alone = arm_rates(arms.take(rows), draws=QUICK)
        assert str(own.rates["wer"]) == str(alone)
        assert (own.pairs, own.rooms) == (len(rows), len(rows))
        p_values[str(number)] = alone.delta.p_value
    assert {str(n): own.p_holm for n, own in found.items()} == pytest.approx(holm(p_values))


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
