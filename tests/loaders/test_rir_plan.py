"""Strata, splits, and which utterance goes with which RIR."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UsageError
from squtr.loaders.records import Query
from squtr.loaders.rirs.plan import TEST, VALIDATION, make_plan
from squtr.loaders.rirs.strata import Strata, allocate, bin_of, quantile_edges, targets

from .rirs_for_tests import measured


def queries(count, subset="s"):
    return [Query(f"u{n:04d}", subset, "en", "text") for n in range(count)]


BOTH = (VALIDATION, TEST)


def plan_of(count, rirs, *, stratify="rt60", bins=5, utterances=0, each=1, seed=0, splits=BOTH):
    strata = Strata.of(rirs, stratify=stratify, rt60_bins=bins, drr_bins=bins)
    return make_plan(
        queries(count), rirs, strata, utterances=utterances, rirs_per_utterance=each, splits=splits, seed=seed
    )


def pairs(plan, split):
    return sum(plan.uses(split).values())


def spread(count):
    return [measured(f"r{n:04d}", 0.2 + n / 1000, drr_db=(n * 37 % 101) / 10) for n in range(count)]


values = st.lists(st.one_of(st.just(math.nan), st.floats(0.1, 3.0).map(lambda v: round(v, 1))), min_size=1, max_size=60)


@given(values, st.integers(1, 8))
def test_bins_share_ties_and_none_is_empty(numbers, bins):
    edges = quantile_edges(numbers, bins)
    assert list(edges) == sorted(set(edges))
    assert len(edges) < bins
    known = [value for value in numbers if not math.isnan(value)]
    found = [bin_of(value, edges) for value in known]
    assert set(found) == (set(range(len(edges) + 1)) if known else set())
    assert all(bin_of(value, edges) is None for value in numbers if math.isnan(value))


@given(st.lists(st.floats(0.1, 3.0), min_size=40, max_size=200, unique=True), st.integers(2, 6))
def test_distinct_values_fill_bins_evenly(numbers, bins):
    edges = quantile_edges(numbers, bins)
    counts = Counter(bin_of(value, edges) for value in numbers)
    assert len(counts) == bins
    assert max(counts.values()) - min(counts.values()) <= 1


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(st.floats(0, 50), st.integers(0, 60)), min_size=1),
    st.integers(0, 100),
)
def test_shares_sum_to_the_total_and_keep_the_caps(parts, total):
    wanted, caps = {k: v[0] for k, v in parts.items()}, {k: v[1] for k, v in parts.items()}
    if sum(caps.values()) < total:
        with pytest.raises(UsageError, match="there is room for"):
            allocate(total, wanted, caps)
        return
    given_ = allocate(total, wanted, caps)
    assert sum(given_.values()) == total
    assert all(0 <= given_[name] <= caps[name] for name in caps)


def test_the_published_numbers():
    plan = plan_of(2620, spread(600), utterances=2000)
    assert (pairs(plan, VALIDATION), pairs(plan, TEST)) == (400, 1600)
    assert [(row.pairs[VALIDATION], row.pairs[TEST]) for row in plan.table()] == [(80, 320)] * 5
    assert [row.rirs for row in plan.table()] == [120] * 5


@given(
    utterances=st.integers(5, 60),
    rooms=st.integers(12, 40),
    each=st.integers(1, 2),
    bins=st.integers(1, 4),
    seed=st.integers(0, 5),
    unknown=st.integers(0, 3),
)
def test_every_plan_is_balanced_and_keeps_rooms_and_utterances_apart(utterances, rooms, each, bins, seed, unknown):
    bank = spread(rooms) + [measured(f"x{n}", math.nan) for n in range(unknown)]
    plan = plan_of(utterances, bank, bins=bins, each=each, seed=seed)
    used = {split: plan.uses(split) for split in (VALIDATION, TEST)}
    assert not used[VALIDATION].keys() & used[TEST].keys()
    taken = {split: [take.query.id for take in plan.takes[split]] for split in used}
    assert not set(taken[VALIDATION]) & set(taken[TEST])
    assert sorted(taken[VALIDATION] + taken[TEST]) == [q.id for q in queries(utterances)]
    assert pairs(plan, VALIDATION) == each * max(1, round(0.2 * utterances))
    for split, uses in used.items():
        for utterance in plan.takes[split]:
            assert len(set(utterance.rir_ids)) == each
        # Within a stratum, no response is used twice more than another.
        for name in plan.strata.names():
            pool = [r for r, s in plan.stratum_of.items() if s == name and plan.split_of_room[r] == split]
            counts = [uses.get(rir_id, 0) for rir_id in pool]
            assert not counts or max(counts) - min(counts) <= 1
    known = [sum(row.pairs.values()) for row in plan.table() if "unknown" not in row.name]
    assert max(known) - min(known) <= 2
    assert sum(sum(row.pairs.values()) for row in plan.table()) == utterances * each


def test_rows_of_one_room_stay_in_one_split():
    bank = [measured(f"r{n:03d}", 0.2 + n / 100, room_id=f"room{n // 4}") for n in range(80)]
    plan = plan_of(50, bank)
    rooms = {split: {plan.rirs[r].room_id for r in plan.uses(split)} for split in (VALIDATION, TEST)}
    assert rooms[VALIDATION]
    assert not rooms[VALIDATION] & rooms[TEST]


def test_unknown_rooms_are_a_stratum_with_their_share():
    bank = spread(80) + [measured(f"x{n:02d}", math.nan) for n in range(20)]
    rows = {row.name: sum(row.pairs.values()) for row in plan_of(200, bank).table()}
    assert rows["rt60_unknown"] == 40
    assert {rows[f"rt60_{n}"] for n in range(1, 6)} == {32}
    assert targets(10, {"rt60_unknown": 3}) == {"rt60_unknown": 10.0}


def test_two_way_strata():
    plan = plan_of(180, spread(300), stratify="rt60+drr", bins=3)
    assert [sum(row.pairs.values()) for row in plan.table()] == [20] * 9
    row = plan.table()[4]
    assert row.name == "rt60_2_drr_2"
    assert row.rt60_s == plan.strata.rt60_edges[:2]
    assert row.drr_db == plan.strata.drr_edges[:2]


def test_a_plan_depends_on_ids_and_seed_not_on_the_order_of_rooms():
    bank = spread(40)
    first = plan_of(30, bank)
    assert plan_of(30, bank[::-1]).takes == first.takes
    assert plan_of(30, bank, seed=1).takes != first.takes


def test_rooms_of_an_utterance_are_spread_over_the_strata():
    plan = plan_of(50, spread(100), each=5)
    for utterance in plan.takes[TEST]:
        assert len({plan.stratum_of[rir_id] for rir_id in utterance.rir_ids}) >= 4


def test_subsets_may_share_ids_but_none_has_one_twice():
    strata = Strata.of(spread(20), stratify="rt60", rt60_bins=2, drr_bins=2)
    options = {"utterances": 0, "rirs_per_utterance": 1, "splits": BOTH, "seed": 0}
    plan = make_plan(queries(4, "a") + queries(4, "b"), spread(20), strata, **options)
    taken = {(take.query.subset, take.query.id) for takes in plan.takes.values() for take in takes}
    assert len(taken) == 8
    with pytest.raises(DataError, match="'u0000' of a occurs 2 times"):
        make_plan(queries(1, "a") * 2, spread(20), strata, **options)


def test_without_splits_everything_is_test():
    plan = plan_of(
        30, [measured(f"r{n}", 0.2 + n / 10, room_id="one") for n in range(8)], bins=2, each=2, splits=(TEST,)
    )
    assert list(plan.takes) == [TEST]
    assert pairs(plan, TEST) == 60
    assert max(plan.uses(TEST).values()) - min(plan.uses(TEST).values()) <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"utterances": 100}, "100 utterances were asked for, and there are 30"),
        ({"each": 6}, "the split validation has 5"),
        ({"utterances": 1}, r"1 utterance for two splits.* Or make a test set alone: --no-splits"),
        ({"bins": 0}, "number of bins"),
    ],
)
def test_numbers_that_do_not_go_together(change, message):
    with pytest.raises(UsageError, match=message):
        plan_of(30, spread(24), **change)


def test_one_room_cannot_be_split():
    with pytest.raises(DataError, match="one room"):
        plan_of(30, [measured("r", 0.3, room_id="a"), measured("s", 0.4, room_id="a")])


def test_one_room_per_stratum_still_gives_both_splits():
    plan = plan_of(30, spread(5), bins=5)
    assert pairs(plan, VALIDATION) == 6
    assert len(plan.uses(VALIDATION)) == 1
