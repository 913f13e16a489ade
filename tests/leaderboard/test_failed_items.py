"""A system that drops its hard clips gains nothing on the board: order, ranks, paired tests, and what is shown."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from squtr.harness.results.envelope import Score, read_runs
from squtr.leaderboard.card import card_section
from squtr.leaderboard.entry import Entry, from_json, to_json
from squtr.leaderboard.ranking import rank
from squtr.leaderboard.site.build import build_site
from squtr.leaderboard.site.document import UNIT, document
from squtr.leaderboard.site.order import RecordRanker, Standing
from squtr.leaderboard.site.pairs import paired_tests, place_key
from squtr.leaderboard.site.rows import as_csv, board_table
from squtr.leaderboard.site.tables import Place, Table, groups, tables
from squtr.leaderboard.store import Store, read_store
from squtr.leaderboard.submit import prepare, send

from ..harness.failed_runs_for_tests import DROPPER, KEEPER, failed_runs, of
from .boards_for_tests import make_board
from .chromium_for_tests import chromium, find_chromium


@pytest.fixture(scope="module")
def runs() -> dict[str, Path]:
    return failed_runs()


@pytest.fixture(scope="module")
def store(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("store")
    for run in runs.values():
        send(prepare([run])[0], str(folder))
    found = read_store(folder)
    assert found.problems == ()
    assert {entry.who for entry in found.entries} == {"re-scored"}
    return found


def table_of(store: Store, task: str, metric: str, condition: str, subset: str = "") -> Table:
    found = groups(store.entries)
    return next(
        one
        for one in tables(found)
        if found[one.group].entries[0].task == task
        and (one.metric, one.place) == (metric, Place("en", subset, condition))
    )


def by_name(table: Table, ranks: Mapping[str, Standing]) -> dict[str, Standing]:
    return {row.entry.system.partition(" + ")[0]: ranks[row.entry.id] for row in table.rows}


@pytest.mark.parametrize(
    ("task", "condition"), [("retrieval", "high_noise"), ("recognition", "reverb"), ("recognition", "clean")]
)
def test_dropping_hard_clips_does_not_better_the_place(store: Store, task: str, condition: str) -> None:
    table = table_of(store, task, "wer", condition)
    values = {row.entry.system.partition(" + ")[0]: row.score for row in table.rows}
    lower, upper = values[DROPPER], values[KEEPER]
    assert lower.value is not None and upper.value is not None and upper.ordered_by is not None
    assert lower.value < upper.value <= (lower.ordered_by or 0) + 1e-12
    for records in (store.numbers, None):
        found = by_name(table, RecordRanker(records)(table, ""))
        if lower.ordered_by == upper.ordered_by:
            # What is dropped and what is all wrong is the same; they share a rank.
            assert {one.rank for one in found.values()} == ({1} if records else {None})
        else:
            assert (found[KEEPER].position, found[DROPPER].position) == (1, 2)


def test_a_place_that_failures_alone_would_win_is_lost(store: Store) -> None:
    """The records decide the ranks: 0 errors in 2 of 200 clips, the others dropped, is the last place."""
    table = table_of(store, "retrieval", "wer", "high_noise")
    entry = table.rows[0].entry
    config = table.rows[0].config

    def made(name: str, score: Score) -> Entry:
        return replace(entry, id=name, system=name, scores={config: {"wer": score}})

    entries = [
        made("honest", Score(value=0.3, n=200)),
        made("picks", Score(value=0.0, n=2, bounds=(0.0, 0.99))),
        made("bad", Score(value=0.9, n=200)),
    ]
    items = {
        "honest": {"": {f"q{i}": 1.0 if i % 10 < 3 else 0.0 for i in range(200)}},
        "picks": {"": {f"q{i}": 0.0 if i < 2 else 1.0 for i in range(200)}},
        "bad": {"": {f"q{i}": 1.0 if i % 10 < 9 else 0.0 for i in range(200)}},
    }
    for values in (items, {}):
        found = rank(entries, values, config=config, metric="wer")
        assert [row.entry.id for row in found.rows] == ["honest", "bad", "picks"]
        assert [row.value for row in found.rows] == [0.3, 0.9, 0.0]
    ranked = rank(entries, items, config=config, metric="wer")
    assert [row.rank for row in ranked.rows] == [1, 2, 3]


def test_the_order_by_loss_takes_the_largest_that_it_can_be(store: Store) -> None:
    table = table_of(store, "recognition", "wer", "reverb")
    losses = {row.entry.system: row.losses["clean"].absolute for row in table.rows}
    assert losses[DROPPER].value is not None and losses[KEEPER].value is not None
    assert losses[DROPPER].value < losses[KEEPER].value < (losses[DROPPER].ordered_by or 0)
    for records in (store.numbers, None):
        found = by_name(table, RecordRanker(records)(table, "clean"))
        assert (found[KEEPER].position, found[DROPPER].position) == (1, 2)


def test_differences_are_over_what_both_have_transcribed(store: Store) -> None:
    made = tables(groups(store.entries))
    found = paired_tests(made, store.numbers)
    for task, condition, n in (("retrieval", "high_noise", 4), ("recognition", "reverb", 34)):
        table = table_of(store, task, "wer", condition)
        (test,) = found[place_key(table)].values()
        a, b, difference = test["wer"][:3]
        # On the clips of both they say the same.
        assert a == b and difference == 0
        assert test["wer"][8] == n
        if task == "retrieval":
            assert test["ndcg_at_10"][8] == 6


def test_a_subset_has_no_loss_where_its_scores_are_of_other_items(store: Store) -> None:
    for table in (table_of(store, "retrieval", name, "high_noise", "tiny-en") for name in ("ndcg_at_10", "wer")):
        rows = {row.entry.system.partition(" + ")[0]: row for row in table.rows}
        assert rows[DROPPER].failed == 2 and rows[KEEPER].failed == 0
        assert ("clean" in rows[DROPPER].losses) == (table.metric == "ndcg_at_10")
        assert "clean" in rows[KEEPER].losses


def test_page_files_and_card_say_how_many_failed(store: Store, runs: dict[str, Path]) -> None:
    found = groups(store.entries)
    made = tables(found)
    shown: dict[str, Any] = document(found, made, ranker=RecordRanker(store.numbers))
    at = made.index(table_of(store, "retrieval", "wer", "high_noise"))
    page = shown["tables"][at]
    place = next(i for i, row in enumerate(made[at].rows) if row.failed)
    assert page["failed"][place] == 2 and page["n"][place] == 4
    assert [page[name][place] / UNIT for name in ("least", "most")] == pytest.approx([1 / 6, 1 / 2], abs=1e-5)
    assert page["most"][1 - place] is None
    reverb = shown["tables"][made.index(table_of(store, "recognition", "wer", "reverb"))]
    assert reverb["loss"]["clean"]["n"] and reverb["loss"]["clean"]["most"]
    ndcg = shown["tables"][made.index(table_of(store, "retrieval", "ndcg_at_10", "high_noise"))]
    assert sorted(ndcg["failed"]) == [0, 2] and "most" not in ndcg
    table = board_table(found, made)
    rows = [
        row for row in table.to_pylist()
        if (row["config"], row["metric"], row["subset"]) == ("en_high_noise", "wer", "") and row["failed"]
    ]  # fmt: skip
    (row,) = rows
    assert (row["n"], row["n_total"], row["failed"]) == (4, 6, 2)
    assert (row["with_failed_low"], row["with_failed_high"]) == (1 / 6, 1 / 2)
    written = list(csv.DictReader(io.StringIO(as_csv(table).decode())))
    assert {one["failed"] for one in written} >= {"0", "2", "4"}
    text = card_section([entry for entry in store.entries if entry.system == f"{DROPPER} + words"])
    result = of(read_runs(runs["retrieval"]), DROPPER, "en_high_noise").result
    assert "| failed |" in text
    line = next(line for line in text.splitlines() if line.startswith("| en_high_noise |"))
    assert line.endswith("| 6 | 2 |") and "of 4, 0.1667 to 0.5000 with the failed" in line
    assert f"{result.scores['wer'].value:.4f}" in line
    assert "Where items failed" in text
    plain = card_section([entry for entry in store.entries if entry.system == f"{KEEPER} + words"])
    assert "failed" not in plain


def test_entries_with_failures_survive_json(store: Store) -> None:
    for entry in store.entries:
        assert from_json(to_json(entry)) == entry


def test_without_failures_the_page_has_nothing_of_them() -> None:
    found = groups(make_board(3))
    # Who does not say how many failed has not said that none did.
    assert set(board_table(found, tables(found))["failed"].to_pylist()) == {None}
    shown = document(found, tables(found))
    for table in shown["tables"]:
        assert not {"failed", "least", "most"} & {
            *table,
            *(key for own in table.get("loss", {}).values() for key in own),
        }


@pytest.mark.skipif(not find_chromium(), reason="no Chromium on this machine")
def test_a_reader_sees_n_bounds_and_the_failed_column(store: Store, tmp_path: Path) -> None:
    build_site(store.entries, tmp_path, records=store.numbers)
    group = next(g for g in document(groups(store.entries), [])["groups"] if g["benchmark"] == "retrieval")["id"]
    with chromium(find_chromium()) as browser:
        browser.look(1280)
        choice = f"b={group}&lang=en&cond=high_noise&m=wer"
        browser.open(f"file://{tmp_path}/index.html#/table?{choice}")
        assert [text.partition(" ")[0] for text in browser.texts(".ranking a.system")] == [DROPPER, KEEPER]
        assert browser.texts(".ranking td.failed") == ["2", "0"]
        cell = browser.texts(".ranking td.score")[0]
        assert "0.250" in cell and "of 4; 0.167 to 0.500 with the failed" in cell
        assert "Where items failed" in browser.texts(".ranking caption")[0]
        ids = [browser.run(f"document.querySelectorAll('.ranking tbody tr')[{i}].dataset.id") for i in (0, 1)]
        browser.open(f"file://{tmp_path}/index.html#/compare/{ids[0]}/{ids[1]}?{choice}")
        row = browser.texts("tr[data-metric=wer]")[0].split("\t")
        assert row[3].startswith("0.000") and row[-1] == "4"
        # Over all conditions there is no difference of what is of other items.
        assert "–" in browser.texts("table.compare")[1]
        # Of nDCG all queries count, and nothing else is said.
        browser.open(f"file://{tmp_path}/index.html#/table?b={group}&lang=en&cond=high_noise&m=ndcg_at_10")
        assert browser.texts(".ranking td.failed") == ["2", "0"]
        assert "with the failed" not in browser.texts(".ranking")[0]
        assert browser.problems == []
