"""What `squtr compare` reads: records of any task, changes against clean speech, utterances drawn together."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from squtr.errors import DataError
from squtr.harness.cli import main
from squtr.harness.metrics.compare_items import compare_items
from squtr.harness.results.envelope import ITEM_COLUMNS, RunRecord, item_schema, write_run
from squtr.harness.results.item_numbers import item_numbers
from squtr.harness.score_files.sides import read_side

from .report_runs_for_tests import Example, example_records


def as_recognition(record: RunRecord, rirs: int) -> RunRecord:
    """Without retrieval, and every item `rirs` times as one utterance under several RIRs."""
    rows = []
    for row in record.items.select([n for n in record.items.column_names if "_at_" not in n]).to_pylist():
        id_ = row["id"]
        many = rirs if record.result.data.condition != "clean" else 1
        rows += [{**row, "id": f"{id_}@{k}" if many > 1 else id_, "cluster": id_} for k in range(many)]
    fields = [field for field in record.items.schema if "_at_" not in field.name]
    data = record.result.data.model_copy(update={"n": len(rows), "n_total": len(rows)})
    result = record.result.model_copy(update={"main_metric": "wer", "task": "recognition", "data": data})
    return RunRecord(result, pa.Table.from_pylist(rows, schema=pa.schema(fields)))


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    example = Example(
        languages=("en",), systems=(("whisper-base", "BM25"), ("whisper-small", "BM25")), conditions=("clean", "reverb")
    )
    for record in example_records(example):
        write_run(tmp_path, as_recognition(record, 3))
    return sorted((tmp_path / "results").iterdir())


def test_changes_against_clean_speech(folders: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    sides = [read_side(folder) for folder in folders]
    assert [set(side) for side in sides] == [{"en_clean", "en_reverb"}] * 2
    reverb = sides[0]["en_reverb"]
    for key, row in reverb.items.items():
        clean = sides[0]["en_clean"].items[key.partition("@")[0]]
        assert row["delta_word_errors"] == row["word_errors"] - clean["word_errors"]
    assert "delta_word_errors" not in next(iter(sides[0]["en_clean"].items.values()))
    # A single file finds the clean config beside it.
    assert read_side(folders[0] / "en_reverb.json")["en_reverb"].items == reverb.items
    assert main(["compare", *map(str, folders), "--metrics", "delta_wer", "wer", "--json"]) == 0
    rows = {(r["config"], r["metric"]): r for r in json.loads(capsys.readouterr().out)["comparisons"]}
    assert set(rows) == {("en_reverb", "delta_wer"), ("en_reverb", "wer"), ("en_clean", "wer")}
    change = rows["en_reverb", "delta_wer"]
    for side in ("a", "b"):
        expected = rows["en_reverb", "wer"][side] - rows["en_clean", "wer"][side]
        assert change[side] == pytest.approx(expected)


def test_utterances_are_drawn_together(folders: list[Path]) -> None:
    one, other = (read_side(folder)["en_reverb"] for folder in folders)
    assert one.clusters is not None
    assert len(one.items) == 3 * len(set(one.clusters.values()))
    found = compare_items(one.items, other.items, ["wer"], clusters=one.clusters)[0].comparison
    alone = compare_items(one.items, other.items, ["wer"])[0].comparison
    clean = compare_items(
        *[{k: r for k, r in side.items.items() if k.endswith("@0")} for side in (one, other)], ["wer"]
    )[0].comparison
    # Three copies of an utterance say no more than one.
    assert found.minimum_detectable == pytest.approx(clean.minimum_detectable)
    assert alone.minimum_detectable < found.minimum_detectable
    assert read_side(folders[0])["en_clean"].clusters is None


def test_records_of_any_task() -> None:
    common = {"cluster": "a", "subset": "s", "language": "en", "condition": "", "audio_sha256": "", "error": ""}
    schema = item_schema(("order", pa.string()), ("question", pa.string()), ("correct", pa.float64()))
    rows = [
        {**common, "id": "a", "flags": [], "order": order, "question": "Why?", "correct": correct}
        for order, correct in (("", 1.0), ("BA", None))
    ]
    found = item_numbers(pa.Table.from_pylist(rows, schema=schema))
    assert list(found.items) == ["s/a", "s/a/BA"]
    assert found.items["s/a"] == {"accuracy": 1.0}
    assert found.texts["s/a"] == "Why?"
    own = item_schema(("rbp_at_20", pa.float64()), ("first_relevant_rank", pa.int64()))
    assert [name for name, _ in ITEM_COLUMNS] == own.names[: len(ITEM_COLUMNS)]
    row = {**common, "id": "a", "flags": [], "rbp_at_20": 0.5, "first_relevant_rank": 1}
    assert item_numbers(pa.Table.from_pylist([row], schema=own)).items == {"s/a": {"rbp_at_20": 0.5}}


def test_imported_results_have_no_items(tmp_path: Path) -> None:
    record = example_records(Example(languages=("en",), conditions=("clean",), n=2))[0]
    result = record.result.model_copy(update={"origin": "imported"})
    write_run(tmp_path, RunRecord(result, record.items.slice(0, 0)))
    with pytest.raises(DataError, match="is imported"):
        read_side(tmp_path)
