"""Results of every task: stored, checked and scored again alike, and on one page without sharing a table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squtr.harness.benchmarks import BENCHMARKS, Benchmark
from squtr.harness.results.envelope import read_result
from squtr.harness.systems import System
from squtr.leaderboard.card import card_section, model_index
from squtr.leaderboard.entry import Entry, from_result
from squtr.leaderboard.ranking import lower_is_better
from squtr.leaderboard.site.document import document
from squtr.leaderboard.site.order import RecordRanker
from squtr.leaderboard.site.pairs import paired_tests
from squtr.leaderboard.site.tables import Place, groups, tables
from squtr.leaderboard.store import Store, read_store
from squtr.leaderboard.submit import prepare, send
from squtr.leaderboard.validate import Validation, validate_file, validate_files
from squtr.loaders.questions.data import QuestionData

from ..harness.evaluate_runs_for_tests import evaluate_runs
from ..harness.questions_for_tests import Knows, write_questions
from ..harness.recognition_runs_for_tests import build_data, in_rooms, system

Edit = Callable[[dict[str, Any]], object]
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of two systems by benchmark: recognition of recordings in rooms, and questions."""
    root = tmp_path_factory.mktemp("tasks")
    data = build_data(root / "rooms", benchmark="rir_mega")
    rooms = [in_rooms(data, threshold_s=at, slope=2.0) for at in (0.3, 0.5)]
    transcribers = [system(words, name) for words, name in zip(rooms, ("lossy", "better"), strict=True)]
    evaluate_runs(transcribers, data, out=root / "rir_mega", normalizer="default", resamples=100, permutations=300)
    questions = QuestionData(write_questions(root / "questions"))
    answerers = [System(answerer=Knows()), System(answerer=Knows(name="fails", errors=True))]
    evaluate_runs(answerers, questions, out=root / "understanding", resamples=50)
    return {name: root / name for name in ("rir_mega", "understanding")}


MAIN = {"rir_mega": "lossy/en_reverb", "understanding": "knows/all"}


def copied(runs: Mapping[str, Path], name: str, folder: Path) -> Path:
    """A result that tests may change, with its table."""
    return Path(shutil.copytree(runs[name], folder / name)) / "results" / f"{MAIN[name]}.json"


def messages(validation: Validation) -> str:
    return " | ".join(f"{finding.where}: {finding.message}" for finding in validation.errors)


def stored(runs: Mapping[str, Path], names: list[str], folder: Path) -> Store:
    folder.mkdir(exist_ok=True)
    send(prepare([runs[name] for name in names])[0], str(folder))
    return read_store(folder)


@pytest.mark.parametrize("name", MAIN)
def test_they_hold_and_are_stored(runs: dict[str, Path], tmp_path: Path, name: str) -> None:
    found = validate_files(sorted((runs[name] / "results").glob("*/*.json")))
    assert [(messages(one), one.who) for one in found] == [("", "re-scored")] * len(found)
    store = stored(runs, [name], tmp_path / "store")
    assert store.problems == ()
    assert [entry.who for entry in store.entries] == ["re-scored", "re-scored"]
    assert {entry.benchmark for entry in store.entries} == {name}
    for entry in store.entries:
        for config in entry.configs:
            table = store.numbers(entry, config)
            assert table is not None and table.num_rows
    shown = card_section(store.entries[:1])
    config = MAIN[name].partition("/")[2]
    assert f"| {config} |" in shown
    assert ("```bibtex" in shown) == (name == "rir_mega")
    assert config in model_index(store.entries)


@pytest.mark.parametrize("name", MAIN)
def test_ranks_and_tests_come_from_the_records(runs: dict[str, Path], tmp_path: Path, name: str) -> None:
    store = stored(runs, [name], tmp_path / "store")
    found = groups(store.entries)
    tests = paired_tests(tables(found), store.numbers)
    assert tests
    main = store.entries[0].main_metric
    for pair in tests.values():
        for by_metric in pair.values():
            # The values are those of the results.
            a, b, difference = by_metric[main][:3]
            assert a is not None and b is not None and difference == pytest.approx(a - b, abs=1e-5)
            assert by_metric[main][8]


def test_losses_are_ranked_where_an_utterance_has_several_rows(runs: dict[str, Path], tmp_path: Path) -> None:
    store = stored(runs, ["rir_mega"], tmp_path / "store")
    names = {entry.id: entry.system for entry in store.entries}
    made = tables(groups(store.entries))
    (table,) = [one for one in made if (one.place, one.metric) == (Place("en", "", "reverb"), "wer")]
    for by in ("", "clean"):
        ranks = {names[id_]: standing.rank for id_, standing in RecordRanker(store.numbers)(table, by).items()}
        assert ranks == {"better": 1, "lossy": 2}


def change(path: Path, edit: Edit) -> Validation:
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    return validate_file(path)


def value(*keys: str, **changes: object) -> Edit:
    """Changes fields of an inner block."""

    def edit(document: dict[str, Any]) -> None:
        for key in keys:
            document = document[key]
        document.update(changes)

    return edit


WRONG: Mapping[str, list[tuple[Edit, str]]] = {
    "rir_mega": [
        (value("scores", "wer", value=0.6, high=0.9), "scores.wer: the result says 0.6, its records give"),
        (value("scores", "cer_macro", value=0.7, high=0.9), "scores.cer_macro: the result says 0.7"),
        (value("scores", "wer", value=-0.1), "is outside [0, inf]"),
        (value("scores", accuracy={"value": 7.0, "low": None, "high": None, "n": 4}), "scores.accuracy: 7 is outside"),
        (value("losses", "clean", "wer", "absolute", value=3.0), "losses.clean.wer"),
        (value("losses", "clean", "wer", p_value=1.5), "1.5 is no probability"),
        (value(benchmark="squtr"), "'squtr' is no benchmark of the task 'recognition', whose benchmarks are rir_mega"),
        (value(benchmark="mine"), "'mine' is no benchmark of the task 'recognition'"),
        (value(benchmark_version="1-0"), "rir_mega '1-0' is not taken here"),
        (value("data", config="fr_reverb"), "'fr_reverb' is not its config"),
        (value("data", config="en_clean"), "it is called en_reverb"),
        (value("data", partial=True), "partial is true"),
        (value("data", clusters=10_000), "10000 clusters"),
        (value("failures", failed=1), "failures.failed: the result says 1, its records give 0"),
        (value(extra=1), "extra: Extra inputs"),
        (value(main_metric="x"), "'x' is not among the scores"),
        (value("system", name="<b>"), "holds '<'"),
    ],
    "understanding": [
        (value("scores", "mcqa_accuracy", value=0.5, low=0.4), "scores.mcqa_accuracy: the result says 0.5"),
        (value("scores", "accuracy", value=0.9, low=0.8), "scores.accuracy: the result says 0.9"),
        (value("scores", "accuracy", n=99), "scores.accuracy: the result says n = 99"),
        (value("scores", "mcqa_accuracy_corrected", value=0.2, low=0.1), "corrected for a chance of"),
        (value("scores", "mcqa_unparsed", value=2.0), "is outside [0, 1]"),
        (value("scores", charm={"value": 1.0, "low": None, "high": None, "n": 2}), "'charm' is no metric"),
        (lambda d: d["scores"].pop("aif_prompt_strict"), "not in the result, but follows from the records"),
        (value(benchmark_version="9"), "understanding '9' is not taken here"),
        (value("data", config="en_clean"), "questions have the configs mcqa, aif"),
        (value("data", missing_audio={"lost": 900}), "data.missing_audio"),
        (value("data", n="7"), "data.n: Input should be a valid integer"),
        (value("failures", failed=2), "failures.failed: the result says 2"),
        (value("system", name="<script>"), "holds '<'"),
    ],
}


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [(name, *case) for name, cases in WRONG.items() for case in cases],
    ids=[f"{name}: {said}" for name, cases in WRONG.items() for _, said in cases],
)
def test_what_cannot_be(runs: dict[str, Path], tmp_path: Path, name: str, edit: Edit, said: str) -> None:
    found = change(copied(runs, name, tmp_path), edit)
    assert said in messages(found)
    assert found.who == "self-reported"


@pytest.mark.parametrize("orders", ["many", None, [2], -1, 10**30, {}])
def test_details_of_strangers_are_no_trace_back(runs: dict[str, Path], tmp_path: Path, orders: object) -> None:
    change(copied(runs, "understanding", tmp_path), value("details", option_orders=orders))


def first(**changes: object) -> Callable[[Rows], None]:
    return lambda rows: rows[0].update(changes)


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [
        ("rir_mega", first(word_substitutions=9.0), "more words were replaced or deleted than there are"),
        ("rir_mega", first(word_insertions=0.5), "a count is negative or no whole number"),
        ("rir_mega", first(word_insertions=5.0), "scores.wer: the result says"),
        ("rir_mega", lambda rows: rows[0].update(id=rows[1]["id"]), "an item has two records"),
        ("rir_mega", first(language="fr"), "another language"),
        ("rir_mega", first(cluster="another"), "there are more clusters than the result's"),
        ("rir_mega", first(flags=["loop"]), "failures.loop: the result says 0, its records give 1"),
        ("rir_mega", first(transcript="lost \ufffd"), "is not marked invalid_text"),
        ("rir_mega", first(transcript="", flags=["hallucination"]), "is marked as a loop or a hallucination"),
        ("rir_mega", lambda rows: rows.pop(), "the result covers"),
        ("understanding", first(kind="open"), "'open' is no kind of question"),
        ("understanding", lambda rows: rows.append(rows[0]), "was asked twice in one way"),
        ("understanding", lambda rows: [row.update(correct=0.0) for row in rows], "its records give"),
        ("understanding", lambda rows: [row.update(correct=0.5) for row in rows], "neither right nor wrong"),
    ],
)
def test_records_that_do_not_fit(
    runs: dict[str, Path], tmp_path: Path, name: str, edit: Callable[[Rows], object], said: str
) -> None:
    path = copied(runs, name, tmp_path)
    table = path.with_suffix(".items.parquet")
    found = pq.read_table(table)
    rows = found.to_pylist()
    edit(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=found.schema), table)
    assert said in messages(validate_file(path))


def test_a_loss_that_contradicts_the_clean_result(runs: dict[str, Path], tmp_path: Path) -> None:
    path = copied(runs, "rir_mega", tmp_path)
    document = json.loads(path.read_text())
    loss, score = document["losses"]["clean"]["wer"], document["scores"]["wer"]
    assert score["value"] > 0.01 and loss["absolute"]["n"] == score["n"]
    lost = score["value"] / 2
    loss["absolute"] |= {"value": lost, "low": lost, "high": lost}
    loss["relative"] |= {"value": 1.0, "low": None, "high": None}
    path.write_text(json.dumps(document))
    assert validate_file(path).ok
    found = {one.path.name: one for one in validate_files(sorted(path.parent.glob("*.json")))}
    # Each utterance has two rows in rooms and one without: the corpus rates are of other items.
    clean = read_result(path.with_name("en_clean.json")).scores["wer"]
    assert ("the scores of both conditions differ by" in messages(found[path.name])) == (clean.n == score["n"])


def test_a_new_row_of_the_table_is_all_that_a_benchmark_needs(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copied(runs, "rir_mega", tmp_path)
    renamed: Edit = value(benchmark="my_calls", benchmark_version="7")
    refused = change(path, renamed)
    assert "'my_calls' is no benchmark of the task 'recognition'" in messages(refused)
    row = Benchmark("my_calls", "7", "recognition", "My calls: recorded in a hall", metrics=("cer", "wer"))
    monkeypatch.setitem(BENCHMARKS, "my_calls", row)  # type: ignore[arg-type]
    found = validate_file(path)
    assert (messages(found), found.who) == ("", "re-scored")
    assert found.result is not None
    entry = from_result(found.result, who=found.who)
    assert card_section([entry]).startswith("## Results on My calls: lossy")
    ((group,), made) = (groups([entry]), tables(groups([entry])))
    (shown,) = document([group], made)["groups"]
    assert (shown["title"], shown["name"], group.metrics[:2]) == (row.title, "My calls", ("wer", "cer"))


def every(runs: Mapping[str, Path], run: Path) -> list[Entry]:
    """Entries of all three tasks, the recognition ones also as results of a user's own data."""
    paths = [path for folder in (*runs.values(), run) for path in (folder / "results").glob("*/*.json")]
    results = [read_result(path) for path in paths]
    own = [
        result.model_copy(update={"benchmark": "recognition"}) for result in results if result.benchmark == "rir_mega"
    ]
    return [from_result(result) for result in (*results, *own)]


@pytest.mark.parametrize("turn", range(3))
def test_all_tasks_are_on_one_page_and_share_no_table(runs: dict[str, Path], run: Path, turn: int) -> None:
    entries = every(runs, run)
    entries = entries[turn::3] + entries[: turn or None]
    entries = list({(entry.id, *entry.configs): entry for entry in entries}.values())
    found = groups(entries)
    made = tables(found)
    for group in found:
        assert len({(entry.task, entry.benchmark) for entry in group.entries}) == 1
    for table in made:
        assert len({(row.entry.task, row.entry.benchmark) for row in table.rows}) == 1
        assert all(found[table.group].benchmark == row.entry.benchmark for row in table.rows)
    page = document(found, made)
    assert [group["name"] for group in page["groups"]] == [
        "SQuTR", "Whisper-RIR-Mega", "Speech recognition", "Audio understanding",
    ]  # fmt: skip
    assert {metric for table in page["tables"] for metric in [table["metric"]]} <= {
        name for group in page["groups"] for name in group["labels"]
    }
    assert set(page["lower"]) == {table.metric for table in made if lower_is_better(table.metric)}


def test_text_only_baselines_are_shown_outside_the_ranking(runs: dict[str, Path]) -> None:
    result = read_result(runs["understanding"] / "results" / f"{MAIN['understanding']}.json")
    baseline = result.model_copy(
        update={"system": result.system.model_copy(update={"reference": True, "name": "text"})}
    )
    entries = [from_result(result), from_result(baseline)]
    assert [entry.ranked for entry in entries] == [True, False]
    (group,) = groups(entries)
    assert all(row.in_order == (row.entry.system == "knows") for table in tables([group]) for row in table.rows)
    assert replace(entries[1], ranked=True).notes == ("A text-only baseline: a reference, not ranked.",)
