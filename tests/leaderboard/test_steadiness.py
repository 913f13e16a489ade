"""σ over conditions and the SNR at a given loss, on the page."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pyarrow as pa
import pytest

from squtr.harness.results.envelope import Score
from squtr.leaderboard.entry import Entry
from squtr.leaderboard.published import squtr_entries
from squtr.leaderboard.site.document import UNIT, document
from squtr.leaderboard.site.steadiness import steadiness
from squtr.leaderboard.site.tables import groups, tables

from .boards_for_tests import ITEM_SCHEMA, make_board, make_entry, make_records

SPOKEN = ("clean", "low_noise", "medium_noise", "high_noise", "reverb")


def with_scores(values: dict[str, float]) -> list[object]:
    entry = make_entry()
    scores = {f"en_{name}": {"ndcg_at_10": Score(value=value, n=500)} for name, value in values.items()}
    found = groups([replace(entry, scores=scores, by_subset={})])
    (one,) = steadiness(found, tables(found))
    return [*one["sigma"], *one["snr"]]


def test_sigma_is_the_sample_standard_deviation_of_the_condition_means() -> None:
    entries = make_board(3)[:3]
    found = groups(entries)
    made = steadiness(found, tables(found))
    assert [(one["group"], one["language"], one["metric"]) for one in made] == [
        (0, "en", "ndcg_at_10"), (0, "zh", "ndcg_at_10"),
    ]  # fmt: skip
    by_id = {entry.id: entry for entry in entries}
    for one in made:
        for id_, (value, low, high) in zip(one["systems"], one["sigma"], strict=True):
            own = [by_id[id_].scores[f"{one['language']}_{condition}"]["ndcg_at_10"].value for condition in SPOKEN]
            assert value == pytest.approx(statistics.stdev(own))
            assert (low, high) == (None, None), "without records there is no interval"


def test_records_give_an_interval() -> None:
    entries = make_board(2)[:2]
    records = make_records(entries)
    found = groups(entries)
    for one in steadiness(found, tables(found), lambda entry, config: records.get((entry.id, config))):
        for value, low, high in one["sigma"]:
            assert low <= value <= high
            assert high - low > 0.01


@pytest.mark.parametrize(
    ("values", "snr"),
    [
        ({"clean": 0.5, "low_noise": 0.5, "medium_noise": 0.49, "high_noise": 0.4}, "5.6"),
        ({"clean": 0.5, "low_noise": 0.5, "high_noise": 0.49}, "<0"),
        ({"clean": 0.5, "low_noise": 0.3, "high_noise": 0.2}, ">20"),
        ({"clean": 0.5, "reverb": 0.1}, ""),
        ({"low_noise": 0.5, "high_noise": 0.1}, ""),
    ],
)
def test_the_snr_at_which_a_tenth_is_lost(values: dict[str, float], snr: str) -> None:
    sigma, shown = with_scores(values)
    assert shown == snr
    assert sigma[0] == pytest.approx(statistics.stdev(values.values()))


def test_one_condition_or_parts_of_a_set_have_none() -> None:
    found = groups([make_entry(scores={"en_clean": {"ndcg_at_10": Score(value=0.5, n=9)}}, by_subset={})])
    assert steadiness(found, tables(found)) == []


def test_published_numbers_and_the_page() -> None:
    found = groups(squtr_entries())
    made = tables(found)
    steady = steadiness(found, made)
    assert {one["language"] for one in steady} == {"en", "zh"}
    board = document(found, made, steady=steady)
    for one, shown in zip(steady, board["steady"], strict=True):
        assert [board["systems"][at]["id"] for at in shown["systems"]] == one["systems"]
        assert shown["sigma"][0][0] == round(one["sigma"][0][0] * UNIT)


def test_rows_of_one_utterance_count_together() -> None:
    """Under `reverb` an utterance has two rows with ids of their own: it is the utterance of the other conditions."""
    entries = make_board(2)[:2]
    records = make_records(entries)

    def twice(entry: Entry, config: str) -> pa.Table:
        rows = records[entry.id, config].to_pylist()
        if config.endswith("_reverb"):
            rows = [{**row, "id": f"{row['id']}@{rir}", "cluster": row["cluster"]} for row in rows for rir in "ab"]
        return pa.Table.from_pylist(rows, schema=ITEM_SCHEMA)

    found = groups(entries)
    once = steadiness(found, tables(found), lambda entry, config: records[entry.id, config])
    assert steadiness(found, tables(found), twice) == once
    assert all(low is not None for one in once for _, low, _ in one["sigma"])


def test_error_rates_have_intervals_too() -> None:
    entries = [replace(entry, main_metric="wer", scores={config: {"wer": own["wer"]} for config, own in
               entry.scores.items() if "wer" in own}, by_subset={}) for entry in make_board(2)[:2]]  # fmt: skip
    records = make_records(make_board(2)[:2])
    found = groups(entries)
    for one in steadiness(found, tables(found), lambda entry, config: records[entry.id, config]):
        assert one["metric"] == "wer"
        assert all(low <= value <= high for value, low, high in one["sigma"])
