"""Rows of the leaderboard: made from results, joined by system, never mixed."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from squtr.errors import DataError
from squtr.harness.results.envelope import Result, RunRecord, Score
from squtr.leaderboard.entry import (
    Entry,
    Model,
    content_sha256,
    difference,
    from_json,
    from_result,
    hub_link,
    merge,
    same_words,
    to_json,
)


def changed(result: Result, **blocks: Any) -> Result:
    """A result with some fields of its blocks changed: `data={"revision": "x"}`."""
    content = result.model_dump(mode="json")
    for name, value in blocks.items():
        content[name] = {**content[name], **value} if isinstance(value, dict) else value
    return Result.model_validate(content)


@pytest.fixture
def results(records: list[RunRecord]) -> list[Result]:
    return [record.result for record in records]


@pytest.fixture
def words(results: list[Result]) -> list[Result]:
    """The results of one system."""
    return [result for result in results if result.system.name == "garbler + words"]


def test_a_result_becomes_an_entry(words: list[Result]) -> None:
    result = next(r for r in words if r.data.config == "en_medium_noise")
    entry = from_result(result, date="2026-01-02T03:04:05Z", path="results/x.json")
    assert (entry.system, entry.kind, entry.who, entry.benchmark) == (
        "garbler + words", "cascade", "self-reported", "squtr",
    )  # fmt: skip
    assert entry.scores == {"en_medium_noise": result.scores}
    assert entry.losses["en_medium_noise"]["clean"]["ndcg_at_10"].absolute.n == 12
    assert entry.coverage["en_medium_noise"].n == 12
    assert not entry.partial
    assert set(entry.components) == {"transcriber", "retriever"}
    assert entry.timing["en_medium_noise"]["search_s"] == result.timing.stages["search"]
    assert entry.timing["en_medium_noise"].get("rtfx") == result.timing.rtfx
    assert entry.normalizers["en_medium_noise"].startswith("default ")
    assert entry.hashes["en_medium_noise"] == content_sha256(result.model_dump(mode="json"))


def test_all_configs_of_a_system_are_one_entry(results: list[Result]) -> None:
    entries = [from_result(result) for result in results]
    random.Random(1).shuffle(entries)
    merged = merge(entries)
    assert [entry.system for entry in merged] == ["garbler + other", "garbler + words"]
    for entry in merged:
        assert entry.configs == ("en_clean", "en_medium_noise", "en_text", "zh_clean", "zh_medium_noise", "zh_text")
        assert {model.role for model in entry.models} == {"transcriber", "retriever"}
    assert merge(merged) == merged
    assert len({entry.id for entry in merged}) == 2


def test_the_id_stays_when_configs_come(words: list[Result]) -> None:
    spoken = [from_result(result) for result in words if result.data.condition != "text"]
    assert merge(spoken[:1])[0].id == merge(spoken)[0].id == merge([from_result(r) for r in words])[0].id


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ({"benchmark_version": "2"}, "benchmark is squtr"),
        ({"data": {"revision": "another"}}, "data's revision"),
        ({"data": {"source_version": "9"}}, "source version"),
        ({"data": {"partial": True, "n_total": 24}}, "covers all items"),
        ({"origin": "imported"}, "origin"),
    ],
)
def test_other_data_or_versions_are_another_entry(words: list[Result], blocks: dict[str, Any], said: str) -> None:
    other = changed(words[0], **blocks)
    a, b = from_result(words[0]), from_result(other)
    assert a.id != b.id
    assert len(merge([a, b])) == 2
    assert said in difference(a, b)
    assert difference(a, a) == ""


def test_another_transcriber_under_the_same_name_is_another_entry(words: list[Result]) -> None:
    spoken = next(r for r in words if r.data.condition == "clean")
    typed = next(r for r in words if r.data.condition == "text")
    parts = spoken.system.components
    transcriber = {**parts["transcriber"], "revision": "changed"}
    other = changed(spoken, system={"components": {**parts, "transcriber": transcriber}})
    merged = merge([from_result(r) for r in (spoken, other, typed)])
    assert len(merged) == 2
    # The typed run has no transcriber, so it belongs to both.
    assert all(typed.data.config in entry.scores for entry in merged)


def test_the_newest_counts_and_the_other_is_listed(words: list[Result]) -> None:
    old = from_result(words[0], date="2026-01-01T00:00:00Z", path="a.json")
    scores = {**words[0].scores, "ndcg_at_10": Score(value=0.123, n=12)}
    new = from_result(words[0].model_copy(update={"scores": scores}), date="2026-02-01T00:00:00+00:00", path="b.json")
    for order in ([old, new], [new, old]):
        (entry,) = merge(order)
        assert entry.scores[words[0].data.config]["ndcg_at_10"].value == 0.123
        assert entry.sources == {words[0].data.config: "b.json"}
        assert entry.superseded == ("a.json",)


def test_who_says_so_is_the_weakest(words: list[Result]) -> None:
    checked = [from_result(result, who="re-scored") for result in words]
    assert merge(checked)[0].who == "re-scored"
    assert merge([from_result(words[0]), *checked[1:]])[0].who == "self-reported"


def test_error_rates_need_the_same_normalizer(words: list[Result]) -> None:
    spoken = next(r for r in words if r.data.condition == "clean")
    typed = next(r for r in words if r.data.condition == "text")
    a, b = from_result(spoken), from_result(changed(spoken, system={"normalizer_version": "0"}))
    assert difference(a, b) == ""
    assert same_words(a, a, spoken.data.config)
    assert not same_words(a, b, spoken.data.config)
    assert not same_words(a, a, typed.data.config)


def test_entries_survive_json(results: list[Result]) -> None:
    for entry in merge(from_result(result) for result in results):
        again = from_json(json.loads(json.dumps(to_json(entry), allow_nan=False)))
        assert again == entry
        assert isinstance(again, Entry)
    with pytest.raises(DataError, match="no entry: task"):
        from_json({"id": "x"})


def test_what_the_submitter_says_of_models(words: list[Result]) -> None:
    spoken = next(r for r in words if r.data.condition == "clean")
    about = [Model("transcriber", "", link="https://example.org/m", parameters=5, open_weights=True)]
    (model,) = (m for m in from_result(spoken, about=about).models if m.role == "transcriber")
    assert (model.link, model.parameters, model.open_weights) == ("https://example.org/m", 5, True)
    assert model.name == "garbler"


def test_links_are_only_made_of_names_on_the_hub() -> None:
    assert hub_link("org/name").endswith("/org/name")
    for name in ("javascript:alert(1)", "a/b/c", "../x", "a/..", "org/na me", "org/<b>", "", "ö/x"):
        assert hub_link(name) == ""


def test_errata_and_notes_are_kept(words: list[Result]) -> None:
    one, two = (from_result(result) for result in words[:2])
    flagged = replace(
        one, errata={"en_clean/ndcg_at_10": "The paper's table 3 says 0.4."}, notes=("Read from a table.",)
    )
    (entry,) = merge([flagged, two])
    assert entry.errata == flagged.errata
    assert entry.notes == flagged.notes
    assert {entry.ranked for entry in merge([replace(one, ranked=False), two])} == {True, False}
