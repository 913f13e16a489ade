"""The leaderboard's page without a browser: what it holds, in which order, and that nothing in it can act."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from squtr.errors import UsageError
from squtr.harness.benchmarks import BENCHMARKS
from squtr.harness.metrics.registry import FAMILIES
from squtr.harness.results.envelope import Score
from squtr.harness.tasks import TASKS
from squtr.leaderboard import site
from squtr.leaderboard.entry import Coverage, Entry, Model
from squtr.leaderboard.site.build import CARD, FILES, PAGE, build_site, card
from squtr.leaderboard.site.document import UNIT, Origin, as_json, document, safe_link
from squtr.leaderboard.site.page import SCRIPTS, page
from squtr.leaderboard.site.rows import board_table
from squtr.leaderboard.site.strings import KEYS, STRINGS, UI_LANGUAGES
from squtr.leaderboard.site.tables import Group, Place, Table, groups, place_of, plain, tables
from squtr.loaders.conditions import STANDARD_CONDITIONS, STEPS

from .boards_for_tests import HOSTILE, make_board, make_entry, score

ASSETS = Path(site.__file__).parent / "assets"


def board(entries: list[Entry]) -> dict[str, Any]:
    found = groups(entries)
    return document(found, tables(found))


def only(made: list[Table], **wanted: str) -> Table:
    """The one table of the first group with this place and metric."""
    place = Place(wanted.get("language", "en"), wanted.get("subset", ""), wanted.get("condition", "clean"))
    metric = wanted.get("metric", "ndcg_at_10")
    (found,) = [table for table in made if (table.group, table.place, table.metric) == (0, place, metric)]
    return found


def embedded(html: str, name: str) -> Any:
    """The JSON in a script element of the page."""
    match = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', html, re.DOTALL)
    assert match
    return json.loads(match[1])


# Texts


def test_every_text_is_there_in_every_language() -> None:
    assert len(set(KEYS)) == len(KEYS), "a key is written twice"
    for language in UI_LANGUAGES:
        assert list(STRINGS[language]) == list(KEYS)
        for key, text in STRINGS[language].items():
            assert text.strip() == text != "", (language, key)
            fields = set(re.findall(r"\{(\w+)\}", text))
            assert fields == set(re.findall(r"\{(\w+)\}", STRINGS["en"][key])), (language, key)


def test_chinese_and_spanish_are_translated() -> None:
    same = {key for key in KEYS if STRINGS["zh"][key] == STRINGS["en"][key]}
    assert same <= {"rtfx", "n", "compare.p", "heat.title"}
    without_words = {"compare.p_holm", "caption", "robustness.x"}
    assert all(re.search("[\u4e00-\u9fff]", STRINGS["zh"][key]) for key in set(KEYS) - same - without_words)
    assert STRINGS["es"]["view.table"] == "Clasificación"


def test_the_scripts_say_nothing_that_is_not_in_the_table() -> None:
    code = "".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    # What ends with a point is completed by a name.
    used = {key for key in re.findall(r'\bt\("([^"]+)"', code) if not key.endswith(".")}
    assert used
    assert used <= set(KEYS), used - set(KEYS)
    said_otherwise = {"name", *re.findall(r'"([a-z][\w.]*)"', code)}
    starts = {"view.", "by.", "who.", "kind.", "role.", "fail.", "cond.", "about.", "theme.", "download.", "step."}
    starts |= {"check."}
    for key in KEYS:
        found = key in used or key in said_otherwise or any(key.startswith(start) for start in starts)
        assert found, f"{key} is never used"


def test_the_scripts_never_write_html() -> None:
    code = "".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc"):
        assert way not in code


def test_the_scripts_and_texts_name_no_benchmark_metric_or_noise_level() -> None:
    code = "".join((ASSETS / name).read_text(encoding="utf-8") for name in SCRIPTS)
    texts = " ".join(text for own in STRINGS.values() for text in (*own, *own.values()))
    for name in (*BENCHMARKS, *FAMILIES, *(name for name in STANDARD_CONDITIONS if name != "clean")):
        # Names that mean something else too: the package, a method of arrays, a word.
        if name not in {*TASKS, "squtr", "map", "chance"}:
            assert not re.search(rf"\b{re.escape(name)}\b", f"{code} {texts}", re.IGNORECASE), name


@pytest.mark.parametrize(
    ("condition", "steps"),
    [
        ("clean", []),
        ("high_noise", [{"step": "noise", "snr_db": 0.0}]),
        ("reverb_snr_-5", [{"step": "rir"}, {"step": "noise", "snr_db": -5.0}]),
        ("text", None),
        ("all", None),
        ("snr_5_clipped_6", None),
    ],
)
def test_conditions_are_described_by_their_steps(condition: str, steps: list[dict[str, Any]] | None) -> None:
    covered = {f"en_{condition}": Coverage(9, 9, False, "en", condition)}
    entry = make_entry(scores={f"en_{condition}": {"wer": score(0.4)}}, coverage=covered, by_subset={}, losses={})
    found = board([entry])
    assert found["conditions"] == [condition]
    assert found["steps"].get(condition) == steps
    used = {f"step.{step['step']}" for step in steps or ()}
    assert used <= set(KEYS)


def test_every_kind_of_step_has_words() -> None:
    for kind in STEPS:
        assert f"step.{kind.name}" in KEYS


# What names can do


@given(st.text())
def test_embedded_json_never_ends_its_element(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return
    written = as_json({text: [text]})
    assert "<" not in written
    assert json.loads(written) == {text: [text]}


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "http://plain.example", "//evil.example", "",
        "https://user@evil.example", "https://evil.example/\"onclick=", "https://evil.example/<b>", "https://", "https://[",
        " https://a.example", "https://a.example\n", "https://аpple.example", "file:///etc/passwd",
    ],
)  # fmt: skip
def test_only_plain_https_addresses_become_links(address: str) -> None:
    assert safe_link(address) == ""
    model = Model("transcriber", "x", link=address)
    (system,) = board([make_entry(models=(model,))])["systems"]
    assert system["models"][0]["link"] == ""


def test_hostile_names_are_kept_as_text() -> None:
    entries = [make_entry(name, components={"transcriber": {name: name}}) for name in HOSTILE]
    html = page(board(entries))
    assert "<img" not in html
    assert html.count("<script") == 3  # texts, data, and the page's own
    names = {system["name"] for system in embedded(html, "data")["systems"]}
    assert names == {plain(name) for name in HOSTILE}
    assert "right\ufffdleft" in names


@given(st.text())
def test_shown_text_has_no_hidden_characters(text: str) -> None:
    shown = plain(text)
    assert len(shown) <= 300
    assert not re.search("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]", shown)


def test_a_deep_or_long_setting_is_cut() -> None:
    deep: dict[str, Any] = {}
    for _ in range(50):
        deep = {"in": deep}
    parts = {"transcriber": {"deep": deep, "long": "x" * 100_000, "many": list(range(10_000)), "nan": float("nan")}}
    found = board([make_entry(components=parts)])
    assert len(json.dumps(found["parts"])) < 6000


def test_the_page_allows_nothing_but_itself() -> None:
    html = page(board(make_board(2)), '<b>"Title"</b>')
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    assert policy
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert "<title>&lt;b&gt;&#34;Title&#34;&lt;/b&gt;</title>" in html
    assert not re.search(r'(src|href)="(https?:)?//', html)


# What is beside what


def test_versions_data_and_published_numbers_never_share_a_group() -> None:
    entries = [
        make_entry("a + b"),
        make_entry("a + b", seed=1, benchmark_version="2"),
        make_entry("a + b", seed=2, aspects={"source": "other"}),
        make_entry("a + b", seed=3, who="published"),
    ]
    found = groups(entries)
    assert [len(group.entries) for group in found] == [1, 1, 1, 1]
    assert found[0].version == "2"
    assert found[-1].entries[0].who == "published"
    assert len({group["id"] for group in board(entries)["groups"]}) == 4


def test_the_metric_that_the_benchmark_is_about_comes_first() -> None:
    (group,) = groups([make_entry()])
    assert group.metrics == ("ndcg_at_10", "mrr_at_10", "recall_at_10", "wer", "cer")


def test_partial_and_contradictory_results_have_no_place_in_the_order() -> None:
    entries = make_board(3)
    table = only(tables(groups(entries)))
    by_name = {row.entry.system: row.in_order for row in table.rows}
    assert by_name["in part + BM25"] is by_name["contradictory + BM25"] is False
    assert sum(by_name.values()) == 3
    (found,) = [t for t in board(entries)["tables"] if (t["group"], t["language"], t["subset"], t["condition"],
                t["metric"]) == (0, "en", "", "clean", "ndcg_at_10")]  # fmt: skip
    assert sorted(p for p in found["position"] if p is not None) == [1, 2, 3]
    assert found["position"].count(None) == 2
    assert "rank" not in found, "without records there is no rank"


def test_numbers_survive_to_five_places() -> None:
    entry = make_entry()
    (found,) = [t for t in board([entry])["tables"] if (t["language"], t["subset"], t["condition"], t["metric"]) == (
                "en", "", "clean", "wer")]  # fmt: skip
    own = entry.scores["en_clean"]["wer"]
    assert found["value"] == [round((own.value or 0) * UNIT)]
    assert (found["low"], found["high"]) == ([round((own.low or 0) * UNIT)], [round((own.high or 0) * UNIT)])
    assert (found["n"], found["normalizer"]) == (500, "default 3")


def test_a_subset_loses_what_its_scores_say() -> None:
    entry = make_entry()
    row = only(tables(groups([entry])), subset="fiqa", condition="high_noise").rows[0]
    clean = entry.by_subset["en_clean"]["fiqa"]["ndcg_at_10"].value or 0
    noisy = entry.by_subset["en_high_noise"]["fiqa"]["ndcg_at_10"].value or 0
    assert row.losses["clean"].absolute.value == pytest.approx(clean - noisy)
    assert row.losses["clean"].relative.value == pytest.approx((clean - noisy) / clean)
    assert row.losses["clean"].absolute.low is None
    wer = only(tables(groups([entry])), subset="fiqa", condition="high_noise", metric="wer").rows[0]
    assert (wer.losses["clean"].absolute.value or 0) > 0
    assert "text" not in wer.losses


def test_a_config_of_its_own_goes_before_a_part_of_another() -> None:
    entry = make_entry()
    own = {"fiqa_clean": {"ndcg_at_10": score(0.123)}}
    covered = {"fiqa_clean": Coverage(250, 250, False, "en", "clean", ("fiqa",))}
    entry = replace(entry, scores={**entry.scores, **own}, coverage={**entry.coverage, **covered})
    assert only(tables(groups([entry])), subset="fiqa").rows[0].score.value == 0.123


def test_a_config_without_condition_is_a_place() -> None:
    assert place_of("en_test", Coverage(1, 1, False, "en", "reverb")) == Place("en", "", "en_test")
    assert place_of("es_all", Coverage(1, 1, False, "es", "")) == Place("es", "", "es_all")


def test_errata_stand_on_their_number() -> None:
    found = board(make_board(2))
    (table,) = [t for t in found["tables"] if t.get("errata")]
    assert list(table["errata"].values()) == ["The table says 0.5, the text 0.4."]
    assert (table["condition"], table["metric"]) == ("clean", "ndcg_at_10")


def test_parameters_are_known_only_if_all_are() -> None:
    known, unknown = Model("transcriber", "a", parameters=5, open_weights=True), Model("retriever", "b")
    both = board([make_entry(models=(known, replace(known, role="retriever")))])["systems"][0]
    assert (both["parameters"], both["open"]) == (10, True)
    part = board([make_entry(models=(known, unknown))])["systems"][0]
    assert (part["parameters"], part["open"]) == (None, None)
    closed = board([make_entry(models=(unknown, replace(known, open_weights=False)))])["systems"][0]
    assert closed["open"] is False


def test_shared_parts_stand_once() -> None:
    found = board([make_entry("a + BM25"), make_entry("b + BM25"), make_entry("c + BM25")])
    assert len(found["parts"]) == 4  # three recognizers and one retriever


# Files


def test_the_same_entries_give_the_same_bytes(tmp_path: Path) -> None:
    entries = make_board(4)
    build_site(entries, tmp_path / "a")
    build_site(list(reversed(entries)), tmp_path / "b")
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name


def test_nothing_at_all_is_a_page_too(tmp_path: Path) -> None:
    site = build_site([], tmp_path)
    assert (site.entries, site.tables) == (0, 0)
    assert pq.read_table(tmp_path / "leaderboard.parquet").num_rows == 0


def test_a_page_without_data_from_elsewhere_is_refused_where_it_cannot_go(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        build_site([], tmp_path / "file")
    with pytest.raises(UsageError, match="-1"):
        build_site([], tmp_path / "x", first=-1)


def test_the_table_loads_with_datasets(tmp_path: Path) -> None:
    from datasets import load_dataset

    entries = make_board(2)
    build_site(entries, tmp_path / "site")
    rows = load_dataset(
        "parquet", data_files=str(tmp_path / "site" / "leaderboard.parquet"), split="train", cache_dir=str(tmp_path)
    )
    one = rows.filter(lambda r: r["system_id"] == entries[0].id and r["config"] == "zh_reverb" and r["subset"] == "")
    by_metric = {row["metric"]: row for row in one}
    assert set(by_metric) == {"ndcg_at_10", "mrr_at_10", "recall_at_10", "wer", "cer"}
    row, own = by_metric["ndcg_at_10"], entries[0].scores["zh_reverb"]["ndcg_at_10"]
    assert (row["value"], row["low"], row["high"], row["n"]) == (own.value, own.low, own.high, 500)
    assert row["loss_clean"] == entries[0].losses["zh_reverb"]["clean"]["ndcg_at_10"].absolute.value
    assert (row["who"], row["lower_is_better"], by_metric["wer"]["lower_is_better"]) == ("self-reported", False, True)
    assert row["position"] in (1, 2)
    assert row["rank"] is None


def test_a_spreadsheet_runs_nothing(tmp_path: Path) -> None:
    entry = make_entry('=HYPERLINK("https://evil.example")', models=(Model("retriever", "@SUM(A1)"),))
    build_site([entry], tmp_path)
    lines = list(csv.DictReader(io.StringIO((tmp_path / "leaderboard.csv").read_text(encoding="utf-8"))))
    assert {line["system"] for line in lines} == {'\'=HYPERLINK("https://evil.example")'}
    assert {line["models"] for line in lines} == {"'@SUM(A1)"}


def test_the_card_makes_a_static_space() -> None:
    text = card("A: “board” #1", Origin("org/results", "https://huggingface.co/datasets/org/results"))
    _, front, body = text.split("---\n", 2)
    known = yaml.safe_load(front)
    assert (known["sdk"], known["title"], known["datasets"]) == ("static", "A: “board” #1", ["org/results"])
    assert len(known["short_description"]) <= 60
    assert "[org/results](https://huggingface.co/datasets/org/results)" in body
    assert "datasets" not in yaml.safe_load(card().split("---\n", 2)[1])


def test_the_page_and_the_table_say_the_same(tmp_path: Path) -> None:
    entries = make_board(3)
    build_site(entries, tmp_path)
    data = embedded((tmp_path / PAGE).read_text(encoding="utf-8"), "data")
    rows = pq.read_table(tmp_path / "leaderboard.parquet").to_pylist()
    assert sum(len(table["systems"]) for table in data["tables"]) == len(rows)
    found: list[Group] = groups(entries)
    assert board_table(found, tables(found)).num_rows == len(rows)
    assert (tmp_path / CARD).is_file()


def test_a_score_without_a_value_is_shown_as_none() -> None:
    entry = make_entry()
    scores = {**entry.scores, "en_clean": {"ndcg_at_10": Score(value=None, n=0)}}
    place = ("en", "", "clean", "ndcg_at_10")
    made = board([replace(entry, scores=scores)])["tables"]
    table = next(t for t in made if (t["language"], t["subset"], t["condition"], t["metric"]) == place)
    assert table["value"] == [None]
    assert "position" not in table


def test_what_is_no_merit_has_no_table() -> None:
    scores = {"es_all": {name: score(0.4) for name in ("accuracy", "accuracy_wilson", "chance", "unparsed")}}
    entry = make_entry(
        benchmark="escucha",
        scores=scores,
        coverage={"es_all": Coverage(9, 9, False, "es", "")},
        by_subset={},
        losses={},
    )
    found = board([entry])
    assert [table["metric"] for table in found["tables"]] == ["accuracy", "unparsed"]
    assert found["lower"] == ["unparsed"]
