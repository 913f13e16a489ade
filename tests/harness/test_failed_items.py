"""A failed item is in no error rate, and says what it could make of it: bounds, in results, records and re-scoring."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from squtr.harness.evaluation import record as recording
from squtr.harness.metrics.failed_items import loss_bounds, rate_bounds
from squtr.harness.metrics.registry import parse_metric
from squtr.harness.protocols import ComponentSpec, Rewritten
from squtr.harness.report import summary_table, write_report
from squtr.harness.results.columns import Columns
from squtr.harness.results.envelope import Result, RunRecord, Score, read_runs
from squtr.harness.systems import System
from squtr.harness.tasks.recognition import verify as recognition
from squtr.harness.tasks.retrieval import verify as retrieval
from squtr.harness.tasks.retrieval.scoring import Values
from squtr.harness.tasks.retrieval.summary import Statistics
from squtr.leaderboard.entry import from_result
from squtr.leaderboard.site.rows import board_table
from squtr.leaderboard.site.tables import groups, tables
from squtr.leaderboard.validate import validate_file
from squtr.loaders.questions.data import QuestionData

from .evaluate_runs_for_tests import evaluate_runs
from .evaluation_for_tests import Toy, built, truth_of
from .failed_runs_for_tests import DROPPER, KEEPER, errors, failed_runs, of, retrieval_runs
from .fakes import LookupTranscriber, WordRetriever
from .questions_for_tests import Knows, write_questions

NAN = math.nan
ITEMS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 9)), st.one_of(st.none(), st.integers(0, 9)), st.integers(0, 6)),
    min_size=1,
    max_size=5,
)
"""Errors of two sides (None: failed), and the reference length."""


def floats(values: list[int | None]) -> list[float]:
    return [NAN if value is None else float(value) for value in values]


def rate(wrong: list[float], lengths: list[int], macro: bool) -> float | None:
    if macro:
        own = [e / n for e, n in zip(wrong, lengths, strict=True) if n]
        return math.fsum(own) / len(own) if own else None
    return math.fsum(wrong) / sum(lengths) if sum(lengths) else None


@given(ITEMS, st.booleans())
@settings(max_examples=150, deadline=None)
def test_bounds_of_a_rate_are_the_extremes_of_all_that_failed_items_could_be(
    items: list[tuple[int | None, int | None, int]], macro: bool
) -> None:
    found, lengths = [one for one, _, _ in items], [n for _, _, n in items]
    bounds = rate_bounds(floats(found), lengths, macro=macro)
    if None not in found or not sum(lengths):
        assert bounds is None
        return
    every = [
        rate([float(x) for x in filled], lengths, macro)
        for filled in itertools.product(
            *([e] if e is not None else range(n + 1) for e, n in zip(found, lengths, strict=True))
        )
    ]
    known = [value for value in every if value is not None]
    assert bounds is not None
    assert bounds == (pytest.approx(min(known)), pytest.approx(max(known)))
    kept = [(float(e), n) for e, n in zip(found, lengths, strict=True) if e is not None]
    value = rate([e for e, _ in kept], [n for _, n in kept], macro)
    if value is not None:
        assert bounds[0] <= value + 1e-12
        # All words deleted is a rate of 1: an item with many insertions is above it.
        assert value <= bounds[1] + 1e-12 or bounds[1] >= 1 - 1e-12


@given(ITEMS, st.booleans())
@settings(max_examples=100, deadline=None)
def test_bounds_of_a_loss_are_the_extremes_too(items: list[tuple[int | None, int | None, int]], macro: bool) -> None:
    here, there, lengths = [a for a, _, _ in items], [b for _, b, _ in items], [n for _, _, n in items]
    bounds = loss_bounds(floats(here), floats(there), lengths, macro=macro)
    if None not in here + there or not sum(lengths):
        assert bounds is None
        return
    ends = [
        [float(e if e is not None else n if deleted else 0) for e, n in zip(side, lengths, strict=True)]
        for side in (here, there)
        for deleted in (False, True)
    ]
    least_here, most_here, least_there, most_there = (rate(own, lengths, macro) or 0.0 for own in ends)
    assert bounds == (pytest.approx(least_here - most_there), pytest.approx(most_here - least_there))


def test_a_score_without_failed_items_is_written_as_ever() -> None:
    assert json.loads(Score(value=0.5, n=2).model_dump_json()) == {"value": 0.5, "low": None, "high": None, "n": 2}
    bounded = Score(value=0.5, n=2, bounds=(0.25, 0.75))
    assert Score.model_validate_json(bounded.model_dump_json(), strict=True) == bounded
    assert (Score(value=0.5, n=2).ordered_by, bounded.ordered_by) == (0.5, 0.75)
    for wrong in ((0.5, 0.25), (0.0, math.inf), (math.nan, 1.0)):
        with pytest.raises(ValidationError, match="smaller one first"):
            Score(value=0.5, n=2, bounds=wrong)


# Recognition


@pytest.fixture(scope="module")
def spoken() -> Path:
    return failed_runs()["recognition"]


def test_of_recognition_the_record_keeps_the_length_and_the_result_the_bounds(spoken: Path) -> None:
    records = read_runs(spoken)
    kept, fewer = (of(records, name, "en_reverb") for name in (KEEPER, DROPPER))
    rows, result = fewer.items.to_pylist(), fewer.result
    lost = [row for row in rows if row["error"]]
    heard = [row for row in rows if not row["error"]]
    assert len(lost) == result.failures["failed"] == 4
    lengths = {row["id"]: row["word_reference_length"] for row in kept.items.to_pylist()}
    assert all(row["word_reference_length"] == lengths[row["id"]] > 0 and math.isnan(errors(row)) for row in lost)
    total, wrong, gone = sum(lengths.values()), sum(map(errors, heard)), sum(lengths[row["id"]] for row in lost)
    wer = result.scores["wer"]
    assert (wer.value, wer.n) == (pytest.approx(wrong / (total - gone)), len(heard))
    assert wer.bounds == (pytest.approx(wrong / total), pytest.approx((wrong + gone) / total))
    assert kept.result.scores["wer"].bounds is None
    # It dropped what it does worst, and is better by that; what it could be holds what the other is.
    assert wer.value is not None and kept.result.scores["wer"].value is not None
    assert wer.value < kept.result.scores["wer"].value
    assert wer.bounds[0] < kept.result.scores["wer"].value
    # The loss is over what has a transcript on both sides.
    loss = result.losses["clean"]["wer"].absolute
    clean = {row["cluster"]: row for row in of(records, DROPPER, "en_clean").items.to_pylist()}
    pairs = [(row, clean[row["cluster"]]) for row in heard if not clean[row["cluster"]]["error"]]
    assert loss.n == len(pairs) < len(heard)
    assert loss.value == pytest.approx(
        sum(errors(a) - errors(b) for a, b in pairs) / sum(a["word_reference_length"] for a, _ in pairs)
    )
    assert loss.bounds is not None
    plain = of(records, KEEPER, "en_reverb").result.losses["clean"]["wer"].absolute
    assert plain.bounds is None and plain.value is not None
    assert loss.bounds[0] < plain.value


def test_of_recognition_groups_count_what_failed(spoken: Path) -> None:
    result = of(read_runs(spoken), DROPPER, "en_reverb").result
    groups = result.by_group["rt60_s"]
    assert sum(group.counts.get("failed", 0) for group in groups) == 4
    for group in groups:
        failed = group.counts.get("failed", 0)
        assert group.scores["wer"].n == group.n - failed
        assert (group.scores["wer"].bounds is None) == (not failed)


@pytest.mark.parametrize("older", [False, True])
def test_what_older_versions_wrote_is_scored_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: bool
) -> None:
    data = built(tmp_path, "clean", queries=3)
    system = System(transcriber=LookupTranscriber({key: q.text for key, q in truth_of(data).items()}),
                    retriever=WordRetriever())  # fmt: skip
    with monkeypatch.context() as patch:
        if older:
            patch.setattr(recording, "_RECORDS", 1)
        evaluate_runs([system], data, configs=["en_clean"], out=tmp_path / "run", resamples=50, samples=0)
    (path,) = (tmp_path / "run" / "results").glob("*/en_clean.json")
    before = path.stat().st_ino
    evaluate_runs([system], data, configs=["en_clean"], out=tmp_path / "run", resamples=50, samples=0)
    assert (path.stat().st_ino != before) == older


# Retrieval


@pytest.fixture(scope="module")
def searched() -> Path:
    return failed_runs()["retrieval"]


def test_of_retrieval_the_error_rate_has_bounds_and_ndcg_all_queries(searched: Path) -> None:
    records = read_runs(searched)
    result = of(records, DROPPER, "en_high_noise").result
    assert result.failures["failed"] == 2
    assert (result.scores["ndcg_at_10"].n, result.scores["ndcg_at_10"].bounds) == (6, None)
    for name in ("wer", "wer_macro", "cer", "cer_macro"):
        assert result.scores[name].n == 4
    # One word each: one of four is wrong, two more may be.
    assert result.scores["wer"].value == result.scores["wer_macro"].value == 1 / 4
    assert result.scores["wer"].bounds == result.scores["wer_macro"].bounds == (1 / 6, 3 / 6)
    (group,) = result.by_group["subset"]
    assert (group.scores["wer"], group.counts) == (result.scores["wer"], {"failed": 2})
    kept = of(records, KEEPER, "en_high_noise").result
    assert (kept.scores["wer"].value, kept.scores["wer"].bounds) == (3 / 6, None)
    chinese = of(records, DROPPER, "zh_high_noise")
    assert "wer" not in chinese.result.scores and chinese.result.scores["cer"].bounds is not None
    assert all(math.isnan(row["word_reference_length"]) for row in chinese.items.to_pylist())
    for record in records:
        if record.result.data.condition == "text":
            assert all(math.isnan(row["char_reference_length"]) for row in record.items.to_pylist())


def test_a_group_of_failed_items_leaves_everything_open() -> None:
    values = Values({}, {"word": {}}, {"q": "q"}, {"word": {"q": 3}})
    metrics = [parse_metric(name) for name in ("wer", "wer_macro", "cer")]
    found = Statistics(metrics, 0, 10).scores({"": values})
    assert found == dict.fromkeys(("wer", "wer_macro"), Score(value=None, n=0, bounds=(0.0, 1.0)))
    # Without a reference there is nothing to be wrong.
    empty = Values({}, {"word": {}}, {"q": "q"}, {"word": {"q": 0}})
    assert Statistics(metrics, 0, 10).scores({"": empty}) == {}


def test_an_end_to_end_system_counts_its_failed_vectors_and_has_no_rate(tmp_path: Path) -> None:
    data = built(tmp_path, "clean", queries=4)
    system = System(encoder=Toy(truth_of(data), [("q1", "clean"), ("q2", "clean")]))
    (record,) = [
        r for r in evaluate_runs([system], data, configs=["en_clean"], resamples=50)
        if r.result.data.condition == "clean"
    ]  # fmt: skip
    assert record.result.failures["failed"] == 2
    assert not {"wer", "cer"} & set(record.result.scores)
    assert record.result.by_group["subset"][0].counts == {"failed": 2}
    assert all(math.isnan(row["word_reference_length"]) for row in record.items.to_pylist())
    found = retrieval.recompute(record.result, Columns(record.items))
    assert list(found.problems) == [] and found.failures["failed"] == 2


# Records give the bounds again


@pytest.mark.parametrize("name", ["spoken", "searched"])
def test_results_with_failures_are_scored_again_and_hold(name: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(name)
    paths = sorted((folder / "results").glob("*/*.json"))
    found = [validate_file(path) for path in paths]
    assert [(one.path.name, one.who, one.errors) for one in found] == [(p.name, "re-scored", ()) for p in paths]
    module = recognition if name == "spoken" else retrieval
    for record in read_runs(folder):
        again = module.recompute(record.result, Columns(record.items))
        for metric, score in again.scores.items():
            own = record.result.scores.get(metric)
            if own is not None:
                assert (own.n, own.bounds) == (score.n, pytest.approx(score.bounds))


Edit = Callable[[dict[str, Any]], None]


def _without(result: dict[str, Any]) -> None:
    del result["scores"]["wer"]["bounds"]


def _smaller(result: dict[str, Any]) -> None:
    result["scores"]["wer"]["bounds"][1] -= 0.01


def _of_ndcg(result: dict[str, Any]) -> None:
    result["scores"]["ndcg_at_10"]["bounds"] = [0.0, 1.0]


def _in_a_group(result: dict[str, Any]) -> None:
    result["by_group"]["subset"][0]["scores"]["wer"]["bounds"] = [0.0, 1.0]


def _fewer_in_a_group(result: dict[str, Any]) -> None:
    result["by_group"]["subset"][0]["counts"] = {}


@pytest.mark.parametrize("records", [True, False])
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_without, "2 of 6 items are not in the rate, and there are no bounds"),
        (_smaller, "0.166667 to 0.49 with the failed items, its records give 0.166667 to 0.5"),
        (_of_ndcg, "only error rates that leave failed items out have bounds"),
        (_in_a_group, "0 to 1 with the failed items, its records give 0.166667 to 0.5"),
        (_fewer_in_a_group, "the groups count 0 failed items, the result 2"),
    ],
)
def test_wrong_bounds_are_refused(searched: Path, tmp_path: Path, edit: Edit, message: str, records: bool) -> None:
    path = copied(searched, tmp_path)
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    found = validate_file(path, records=records)
    told = " | ".join(f"{one.where}: {one.message}" for one in found.errors)
    if records or "records" not in message:
        assert message in told


def test_a_failed_record_without_its_reference_length_is_refused(searched: Path, tmp_path: Path) -> None:
    path = copied(searched, tmp_path)
    table = path.with_suffix(".items.parquet")
    rows = pq.read_table(table)
    schema = rows.schema
    for change, message in (
        (lambda row: {"word_reference_length": NAN} if row["error"] else {}, "a failed item has no reference length"),
        (lambda row: {"error": ""}, "a record has no error counts and did not fail"),
        (lambda row: {"word_deletions": 1.0} if row["error"] else {}, "has some counts and lacks others"),
    ):
        changed = [{**row, **change(row)} for row in rows.to_pylist()]
        pq.write_table(pa.Table.from_pylist(changed, schema=schema), table)
        assert message in " | ".join(one.message for one in validate_file(path).errors)


def copied(run: Path, folder: Path) -> Path:
    """A result with its records, to be changed."""
    (source,) = (p for p in (run / "results").glob("*/en_high_noise.json") if DROPPER in p.parent.name)
    for path in source.parent.glob("en_high_noise.*"):
        (folder / path.name).write_bytes(path.read_bytes())
    return folder / source.name


def test_systems_are_ranked_with_failed_items_as_deleted(searched: Path) -> None:
    records: list[RunRecord] = read_runs(searched)
    table = of(records, DROPPER, "en_high_noise").items
    values = retrieval.item_values(table, "wer", "")[""]
    assert sorted(values.values()) == [0, 0, 0, 1, 1, 1]
    assert sum(retrieval.item_values(table, "wer", "", lenient=True)[""].values()) == 1
    result: Result = of(records, DROPPER, "en_high_noise").result
    assert sum(values.values()) / 6 == result.scores["wer"].ordered_by


class _Mending:
    """A rewriter that fails on what is wrong."""

    spec = ComponentSpec("rewriter", "test", "mending", revision="1")

    def supports(self, language: str) -> bool:
        return True

    def rewrite(self, queries: Sequence[Sequence[str]], *, language: str) -> list[Rewritten]:
        return [Rewritten("", error="it could not") if best[0] == "blur" else Rewritten(best[0]) for best in queries]


def test_what_a_rewriter_failed_on_bounds_the_rate_of_its_texts(tmp_path: Path) -> None:
    records = retrieval_runs(tmp_path, rewriter=_Mending())
    fewer = of(records, DROPPER, "en_high_noise")
    # Two have no transcript, and of the other four the rewriter failed on the wrong one.
    assert fewer.result.failures["failed"] == 3
    assert fewer.result.scores["wer"].bounds == (1 / 6, 3 / 6)
    score = fewer.result.scores["wer_rewritten"]
    assert (score.value, score.n, score.bounds) == (0, 3, (0, 3 / 6))
    found = retrieval.recompute(fewer.result, Columns(fewer.items))
    assert found.scores["wer_rewritten"].bounds == score.bounds and list(found.problems) == []
    for row in fewer.items.to_pylist():
        assert row["rewritten_word_reference_length"] == 1
    text = summary_table([fewer])
    assert "3 of 6 failed; WER 25.0 % of 4 (16.7 to 50.0 % with the failed)" in text
    assert "0.0 % of 3" in text


def test_failed_replies_and_vectors_are_counted_wherever_results_are_shown(tmp_path: Path) -> None:
    data = built(tmp_path / "search", "clean", queries=4)
    searching = System(encoder=Toy(truth_of(data), [("q1", "clean")]))
    questions = QuestionData(write_questions(tmp_path / "questions"))
    records = [
        *evaluate_runs([searching], data, configs=["en_clean"], resamples=50, samples=0, out=tmp_path / "search-run"),
        *evaluate_runs([System(answerer=Knows(name="fails", errors=True))], questions, resamples=50),
    ]
    shown = {r.result.data.config: r for r in records}
    assert shown["en_clean"].result.failures["failed"] == 1
    lines = summary_table([shown["en_clean"]]).splitlines()
    assert any("clean: 1 of 4 failed" in line for line in lines)
    assert any(line.split()[:3] == ["clean", "4", "1"] for line in lines)
    page = write_report(tmp_path / "search-run", tmp_path / "report.html").read_text()
    assert "A query that failed retrieves nothing and scores 0" in page and ">Failed<" in page
    replied = shown["all"].result
    assert replied.failures["failed"] > 0
    assert str(replied.failures["failed"]) in summary_table([shown["all"]])
    entries = [from_result(record.result) for record in records]
    rows = board_table(groups(entries), tables(groups(entries))).to_pylist()
    for config, task in (("en_clean", "ndcg_at_10"), ("all", "accuracy")):
        (row,) = [r for r in rows if (r["config"], r["metric"], r["subset"]) == (config, task, "")]
        assert row["failed"] == shown[config].result.failures["failed"]
