"""Ranks and paired tests of the page: from records, as the ranking and `squtr compare` compute them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from squtr.harness.metrics.compare_items import compare_items
from squtr.harness.results.envelope import Score
from squtr.leaderboard.entry import Entry
from squtr.leaderboard.site.order import RecordRanker, item_values
from squtr.leaderboard.site.pairs import paired_tests, place_key
from squtr.leaderboard.site.tables import Place, Table, groups, tables

from .boards_for_tests import CONDITIONS, ITEM_SCHEMA, LANGUAGES, NO_ERRORS, make_board, make_entry, make_records


def table_of(entries: list[Entry], metric: str = "ndcg_at_10", condition: str = "clean", subset: str = "") -> Table:
    place = Place("en", subset, condition)
    return next(t for t in tables(groups(entries)) if (t.place, t.metric, t.group) == (place, metric, 0))


def shifted(entries: list[Entry], by: dict[str, float]) -> Any:
    """Records in which a system's values are those of the first, moved by a constant."""
    base = make_records([entries[0]], queries=60)

    def records(entry: Entry, config: str) -> pa.Table | None:
        table = base.get((entries[0].id, config))
        if table is None or entry.system not in by:
            return None
        rows = table.to_pylist()
        for row in rows:
            row["ndcg_at_10"] = 0.5 + by[entry.system] + 0.001 * (int(row["id"][1:]) * len(entry.system) % 7)
        return pa.Table.from_pylist(rows, schema=ITEM_SCHEMA)

    return records


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    made = [make_entry(name, seed=1) for name in ("good + x", "middle + x", "bad + x", "silent + x")]
    values = {"good + x": 0.8, "middle + x": 0.5, "bad + x": 0.2, "silent + x": 0.6}
    return [
        replace(
            entry,
            scores={
                config: {**own, "ndcg_at_10": Score(value=values[entry.system], n=500)}
                for config, own in entry.scores.items()
            },
        )
        for entry in made
    ]


def test_ranks_come_from_records_and_positions_from_values(entries: list[Entry]) -> None:
    records = shifted(entries, {"good + x": 0.3, "middle + x": 0.0, "bad + x": -0.3})
    found = RecordRanker(records)(table_of(entries))
    by_name = {entry.system: found[entry.id] for entry in entries}
    assert [(by_name[n].position, by_name[n].rank) for n in ("good + x", "middle + x", "bad + x")] == [
        (1, 1), (3, 2), (4, 3),
    ]  # fmt: skip
    assert (by_name["silent + x"].position, by_name["silent + x"].rank) == (2, None)
    assert (by_name["good + x"].low, by_name["good + x"].high) == (1, 1)


def test_equal_systems_share_a_rank(entries: list[Entry]) -> None:
    records = make_records(entries[:2], queries=30)
    same = {config: table for (id_, config), table in records.items() if id_ == entries[0].id}
    found = RecordRanker(lambda entry, config: same.get(config))(table_of(entries[:2]))
    assert [found[entry.id].rank for entry in entries[:2]] == [1, 1]


def test_a_loss_is_ranked_by_what_is_lost(entries: list[Entry]) -> None:
    tables_by = make_records(entries[:2], queries=60)

    def records(entry: Entry, config: str) -> pa.Table | None:
        rows = tables_by[entry.id, config].to_pylist()
        # The first has more, and loses more.
        level = {"good + x": (0.9, 0.4), "middle + x": (0.5, 0.45)}[entry.system]
        for place, row in enumerate(rows):
            row["ndcg_at_10"] = level[config.endswith("high_noise")] + 0.01 * (place % 3)
        return pa.Table.from_pylist(rows, schema=ITEM_SCHEMA)

    ranker = RecordRanker(records)
    table = table_of(entries[:2], condition="high_noise")
    losses = ranker(table, "clean")
    assert [losses[entry.id].rank for entry in entries[:2]] == [2, 1]
    assert [ranker(table)[entry.id].rank for entry in entries[:2]] == [2, 1]
    assert [ranker(table_of(entries[:2]))[entry.id].rank for entry in entries[:2]] == [1, 2]


def test_rows_of_one_utterance_are_no_further_evidence(entries: list[Entry]) -> None:
    single = make_records(entries, queries=20)

    def thrice(entry: Entry, config: str) -> pa.Table:
        rows = [{**row, "id": f"{row['id']}@{n}"} for row in single[entry.id, config].to_pylist() for n in range(3)]
        return pa.Table.from_pylist(rows, schema=ITEM_SCHEMA)

    for metric in ("ndcg_at_10", "wer"):
        for by in ("", "clean"):
            table = table_of(entries, metric, "high_noise")
            alone = RecordRanker(lambda entry, config: single[entry.id, config])(table, by)
            assert RecordRanker(thrice)(table, by) == alone
            assert any(standing.rank for standing in alone.values())


def test_error_rates_are_ranked_within_a_normalizer() -> None:
    made = [make_entry(f"s{at} + x", seed=at) for at in range(4)]
    made[3] = replace(made[3], normalizers=dict.fromkeys(made[3].normalizers, "whisper 5"))
    found = RecordRanker()(table_of(made, metric="wer"))
    assert sorted(found[entry.id].position for entry in made[:3]) == [1, 2, 3]
    assert found[made[3].id].position == 1
    by_value = sorted(made[:3], key=lambda entry: entry.scores["en_clean"]["wer"].value or 0)
    assert found[by_value[0].id].position == 1, "lower is better"


def test_values_of_items() -> None:
    row = dict.fromkeys(ITEM_SCHEMA.names)
    rows = [
        {
            **row,
            "id": "1",
            "subset": "a",
            "ndcg_at_10": 0.5,
            **NO_ERRORS,
            "word_substitutions": 2.0,
            "word_reference_length": 4.0,
        },
        {**row, "id": "1", "subset": "b", "ndcg_at_10": 1.0, **NO_ERRORS, "word_reference_length": 0.0},
        {
            **row,
            "id": "2",
            "subset": "b",
            "ndcg_at_10": float("nan"),
            **NO_ERRORS,
            "word_insertions": 1.0,
            "word_reference_length": 2.0,
        },
    ]
    table = pa.Table.from_pylist(rows, schema=ITEM_SCHEMA)
    assert item_values(table, "retrieval", "ndcg_at_10") == {"a": {"a/1": 0.5}, "b": {"b/1": 1.0}}
    assert item_values(table, "retrieval", "ndcg_at_10", "b") == {"b": {"b/1": 1.0}}
    for task in ("retrieval", "recognition"):
        assert item_values(table, task, "wer") == {"": {"a/1": 2.0, "b/1": 0.0, "b/2": 1.0}}
    assert item_values(table, "retrieval", "wer_macro") == {"": {"a/1": 0.5, "b/2": 0.5}}
    assert item_values(table, "retrieval", "accuracy") == {}
    assert item_values(None, "retrieval", "wer") == {}


def test_paired_tests_are_those_of_squtr_compare() -> None:
    made = make_board(4)[:4]
    records = make_records(made, queries=20)
    found = groups(made)
    tests = paired_tests(tables(found), lambda entry, config: records.get((entry.id, config)), first=2)
    place = place_key(table_of(made))
    assert set(tests) == {f"0/{language}//{condition}" for language in LANGUAGES for condition in CONDITIONS}
    ((pair, own),) = tests[place].items()
    a, b = pair.split()
    sides = []
    for id_ in (a, b):
        rows = records[id_, "en_clean"].to_pylist()
        sides.append(
            {
                f"{r['subset']}/{r['id']}": {
                    **{name: r[name] for name in ("ndcg_at_10", "mrr_at_10", "recall_at_10")},
                    "word_errors": sum(r[name] for name in NO_ERRORS),
                    "word_reference_length": r["word_reference_length"],
                }
                for r in rows
            }
        )
    subsets = {key: key.split("/")[0] for key in sides[0]}
    expected = {one.metric: one for one in compare_items(*sides, subsets=subsets)}
    assert set(own) == set(expected)
    for metric, numbers in own.items():
        one = expected[metric]
        assert numbers[2] == pytest.approx(one.comparison.difference, rel=1e-5)
        assert numbers[5] == pytest.approx(one.comparison.p_value, rel=1e-5)
        assert numbers[6] == pytest.approx(one.p_holm, rel=1e-5)
        assert numbers[8] == 40


def test_pairs_without_the_same_queries_have_no_test() -> None:
    made = make_board(2)[:2]
    records = make_records(made, queries=10)
    half = {key: (table.slice(1) if key[0] == made[0].id else table) for key, table in records.items()}
    assert paired_tests(tables(groups(made)), lambda entry, config: half.get((entry.id, config))) == {}
    assert paired_tests(tables(groups(made)), lambda entry, config: None) == {}
