"""Strata, splits, and who is heard in which room."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError, UsageError
from squtr.loaders.records import Query
from squtr.loaders.rir_mega.plan import TEST, VALIDATION, make_plan
from squtr.loaders.rir_mega.strata import Strata, allocate, bin_of, quantile_edges, targets

from .rir_mega_for_tests import measured


def queries(count, subset="s"):
    return [Query(f"u{n:04d}", subset, "en", "text") for n in range(count)]


def plan_of(utterances, rooms, *, stratify="rt60", bins=5, pairs=0, each=1, seed=0):
    strata = Strata.of(rooms, stratify=stratify, rt60_bins=bins, drr_bins=bins)
    return make_plan(queries(utterances), rooms, strata, pairs=pairs, rirs_per_utterance=each, seed=seed)


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
    plan = plan_of(2620, spread(600), pairs=2000)
    assert (plan.pairs(VALIDATION), plan.pairs(TEST)) == (400, 1600)
    assert [(row["validation"], row["test"]) for row in plan.table()] == [(80, 320)] * 5
    assert [row["responses"] for row in plan.table()] == [120] * 5


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
    heard = {split: [u.id for u in plan.utterances[split]] for split in used}
    assert not set(heard[VALIDATION]) & set(heard[TEST])
    assert sorted(heard[VALIDATION] + heard[TEST]) == [q.id for q in queries(utterances)]
    assert plan.pairs(VALIDATION) == each * max(1, round(0.2 * utterances))
    for split, uses in used.items():
        for utterance in plan.utterances[split]:
            assert len(set(utterance.rir_ids)) == each
        # Within a stratum, no response is used twice more than another.
        for name in plan.strata.names():
            pool = [r for r, s in plan.stratum_of.items() if s == name and plan.split_of_room[r] == split]
            counts = [uses.get(rir_id, 0) for rir_id in pool]
            assert not counts or max(counts) - min(counts) <= 1
    known = [row["pairs"] for row in plan.table() if "unknown" not in row["name"]]
    assert max(known) - min(known) <= 2
    assert sum(row["pairs"] for row in plan.table()) == utterances * each


def test_rows_of_one_room_stay_in_one_split():
    bank = [measured(f"r{n:03d}", 0.2 + n / 100, room_id=f"room{n // 4}") for n in range(80)]
    plan = plan_of(50, bank)
    rooms = {split: {plan.rooms[r].room_id for r in plan.uses(split)} for split in (VALIDATION, TEST)}
    assert rooms[VALIDATION]
    assert not rooms[VALIDATION] & rooms[TEST]


def test_unknown_rooms_are_a_stratum_with_their_share():
    bank = spread(80) + [measured(f"x{n:02d}", math.nan) for n in range(20)]
    rows = {row["name"]: row for row in plan_of(200, bank).table()}
    assert rows["rt60_unknown"]["pairs"] == 40
    assert {rows[f"rt60_{n}"]["pairs"] for n in range(1, 6)} == {32}
    assert targets(10, {"rt60_unknown": 3}) == {"rt60_unknown": 10.0}


def test_two_way_strata():
    plan = plan_of(180, spread(300), stratify="rt60+drr", bins=3)
    assert [row["pairs"] for row in plan.table()] == [20] * 9
    row = plan.table()[4]
    assert row["name"] == "rt60_2_drr_2"
    assert row["rt60_s"] == [plan.strata.rt60_edges[0], plan.strata.rt60_edges[1]]
    assert row["drr_db"] == [plan.strata.drr_edges[0], plan.strata.drr_edges[1]]


def test_a_plan_depends_on_ids_and_seed_not_on_the_order_of_rooms():
    bank = spread(40)
    first = plan_of(30, bank)
    assert plan_of(30, bank[::-1]).utterances == first.utterances
    assert plan_of(30, bank, seed=1).utterances != first.utterances


def test_rooms_of_an_utterance_are_spread_over_the_strata():
    plan = plan_of(50, spread(100), each=5)
    for utterance in plan.utterances[TEST]:
        assert len({plan.stratum_of[rir_id] for rir_id in utterance.rir_ids}) >= 4


def test_ids_that_two_subsets_share_get_the_subset_before_them():
    strata = Strata.of(spread(20), stratify="rt60", rt60_bins=2, drr_bins=2)
    both = queries(4, "a") + queries(4, "b")
    plan = make_plan(both, spread(20), strata, pairs=0, rirs_per_utterance=1, seed=0)
    ids = {u.id for split in plan.utterances.values() for u in split}
    assert {"a:u0000", "b:u0000"} < ids
    with pytest.raises(DataError, match="'u0000' of a occurs twice"):
        make_plan(queries(1, "a") * 2, spread(20), strata, pairs=0, rirs_per_utterance=1, seed=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": 5, "each": 2}, "5 pairs cannot be divided into 2"),
        ({"pairs": 100}, "100 pairs need 100 utterances, and there are 30"),
        ({"each": 0}, "0 rooms per utterance"),
        ({"each": 6}, "the split validation has 5 responses"),
        ({"pairs": 1}, "1 utterance for two splits"),
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
    assert plan.pairs(VALIDATION) == 6
    assert len(plan.uses(VALIDATION)) == 1
