"""Ranks: shared where chance cannot be excluded, intervals from resampled queries, parts apart."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import DataError
from squtr.harness.results.envelope import Score
from squtr.leaderboard.entry import Coverage, Entry
from squtr.leaderboard.published import rir_mega_entries, squtr_entries
from squtr.leaderboard.ranking import Items, comparable_groups, pareto, rank, robustness

CONFIG, METRIC = "en_clean", "ndcg_at_10"


def entry(name: str, values: dict[str, dict[str, float]], *, partial: bool = False, version: str = "1") -> Entry:
    mean = float(np.mean([np.mean(list(own.values())) for own in values.values()]))
    n = sum(map(len, values.values()))
    return Entry(
        id=name,
        task="retrieval",
        benchmark="squtr",
        benchmark_version=version,
        system=name,
        kind="cascade",
        main_metric=METRIC,
        who="self-reported",
        scores={CONFIG: {METRIC: Score(value=mean, n=n), "wer": Score(value=1 - mean, n=n)}},
        coverage={CONFIG: Coverage(n, n, partial, "en", "clean", tuple(values))},
    )


def made(names: dict[str, float], *, spread: float = 0.1, n: int = 200) -> tuple[list[Entry], Items]:
    """Systems with these means on two subsets of different sizes; queries are hard or easy for all."""
    generator = np.random.default_rng(5)
    hardness = {"a": generator.normal(0, 0.3, n), "b": generator.normal(0, 0.3, n // 4)}
    items = {
        name: {
            subset: {f"q{i}": float(mean + h + generator.normal(0, spread)) for i, h in enumerate(own)}
            for subset, own in hardness.items()
        }
        for name, mean in names.items()
    }
    return [entry(name, values) for name, values in items.items()], items


def test_clear_differences_give_clear_ranks() -> None:
    entries, items = made({"weak": 0.2, "strong": 0.8, "middle": 0.5})
    table = rank(entries, items, config=CONFIG, metric=METRIC)
    assert [(r.entry.system, r.position, r.rank, r.low, r.high) for r in table.rows] == [
        ("strong", 1, 1, 1, 1),
        ("middle", 2, 2, 2, 2),
        ("weak", 3, 3, 3, 3),
    ]
    assert table.n == 250
    errors = {
        name: {subset: {id_: 1 - value for id_, value in values.items()} for subset, values in own.items()}
        for name, own in items.items()
    }
    turned = rank(entries, errors, config=CONFIG, metric="wer")
    assert [(r.entry.system, r.rank) for r in turned.rows] == [("strong", 1), ("middle", 2), ("weak", 3)]


def test_systems_that_cannot_be_told_apart_share_a_rank() -> None:
    entries, items = made({"one": 0.5, "two": 0.501, "low": 0.2}, spread=0.3)
    table = rank(entries, items, config=CONFIG, metric=METRIC)
    ranks = {r.entry.system: (r.rank, r.low, r.high) for r in table.rows}
    assert ranks["one"][0] == ranks["two"][0] == 1
    assert ranks["one"][1:] == ranks["two"][1:] == (1, 2)
    assert ranks["low"] == (3, 3, 3)


def test_the_same_system_twice_shares_its_rank_exactly() -> None:
    entries, items = made({"one": 0.5, "low": 0.2})
    twin = entry("twin", dict(items["one"]))
    table = rank([*entries, twin], {**items, "twin": items["one"]}, config=CONFIG, metric=METRIC)
    assert {r.entry.system: r.rank for r in table.rows} == {"one": 1, "twin": 1, "low": 3}


def test_pairing_tells_apart_what_intervals_alone_do_not() -> None:
    entries, items = made({"one": 0.50, "two": 0.53}, spread=0.02, n=120)
    table = rank(entries, items, config=CONFIG, metric=METRIC)
    assert [r.rank for r in table.rows] == [1, 2]


def test_partial_entries_are_listed_separately_and_other_versions_are_refused() -> None:
    entries, items = made({"one": 0.5, "two": 0.4})
    part = entry("part", {"a": {"q0": 0.9}}, partial=True)
    table = rank([*entries, part], items, config=CONFIG, metric=METRIC)
    assert [r.entry.system for r in table.partial] == ["part"]
    assert len(table.rows) == 2
    other = entry("other", dict(items["one"]), version="2")
    with pytest.raises(DataError, match="cannot share a table"):
        rank([*entries, other], items, config=CONFIG, metric=METRIC)
    assert [[e.system for e in group] for group in comparable_groups([*entries, other, part])] == [
        ["one", "two", "part"],
        ["other"],
    ]


def test_published_systems_have_a_position_only() -> None:
    published = squtr_entries()
    groups = comparable_groups([*published, *rir_mega_entries()])
    assert [len(group) for group in groups] == [len(published), 3, 4]
    table = rank(groups[0], {}, config="en_clean", metric=METRIC)
    values = [row.value for row in table.rows]
    assert values == sorted(values, reverse=True)
    assert all(row.rank is None and row.position == i for i, row in enumerate(table.rows, 1))
    losses = robustness(published, config="en_high_noise", metric=METRIC)
    assert [row.lost for row in losses] == sorted(row.lost for row in losses)
    assert all(row.before - row.lost <= 1 for row in losses)


def test_ranks_agree_with_a_brute_force_bootstrap() -> None:
    entries, items = made({"one": 0.5, "two": 0.52, "three": 0.49, "four": 0.55}, spread=0.3, n=60)
    table = rank(entries, items, config=CONFIG, metric=METRIC, resamples=4000)
    generator = np.random.default_rng(99)
    ranks: dict[str, list[int]] = {name: [] for name in items}
    for _ in range(1500):
        means = dict.fromkeys(items, 0.0)
        for subset in ("a", "b"):
            ids = list(items["one"][subset])
            drawn = generator.integers(0, len(ids), len(ids))
            for name in items:
                means[name] += float(np.mean([items[name][subset][ids[i]] for i in drawn])) / 2
        for name in items:
            ranks[name].append(1 + sum(other > means[name] for other in means.values()))
    for row in table.rows:
        own = ranks[row.entry.system]
        assert row.mean == pytest.approx(np.mean(own), abs=0.12)
        assert row.low is not None
        assert row.high is not None
        assert abs(row.low - np.quantile(own, 0.025)) <= 1
        assert abs(row.high - np.quantile(own, 0.975)) <= 1


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=2), st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1)
)
def test_pareto_keeps_what_nothing_beats(points: dict[str, tuple[int, int]]) -> None:
    kept = pareto({k: (float(a), float(b)) for k, (a, b) in points.items()})

    def beaten(id_: str) -> bool:
        speed, score = points[id_]
        return any(a >= speed and b >= score and (a, b) != (speed, score) for a, b in points.values())

    assert sorted(kept) == sorted(id_ for id_ in points if not beaten(id_))
    assert all(points[a][0] >= points[b][0] for a, b in itertools.pairwise(kept))


def test_many_systems_are_ranked_quickly() -> None:
    entries, items = made({f"s{i}": 0.3 + i / 400 for i in range(100)}, n=300)
    table = rank(entries, items, config=CONFIG, metric=METRIC)
    assert [r.position for r in table.rows] == list(range(1, 101))
    assert all(r.low is not None and r.high is not None and r.low <= r.high for r in table.rows)
