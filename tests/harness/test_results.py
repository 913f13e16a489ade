"""The result file: written and read by the same model, never half written."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from squtr.errors import DataError, StorageError
from squtr.harness.results.envelope import SECONDS_SCHEMA, Score, read_record, read_result, read_runs, write_run
from squtr.harness.results.files import file_name, write_atomically

from .report_runs_for_tests import Example, example_records, imported_records


def test_round_trip(tmp_path: Path) -> None:
    records = example_records()
    for record in records:
        path = write_run(tmp_path, record)
        assert read_result(path) == record.result
    assert len(read_runs(tmp_path)) == len(records)
    assert not list(tmp_path.rglob(".*"))
    assert {p.stat().st_mode & 0o777 for p in tmp_path.rglob("*") if p.is_file()} == {0o644}


def test_schema_version_comes_first(tmp_path: Path) -> None:
    path = write_run(tmp_path, example_records()[0])
    assert next(iter(json.loads(path.read_text()))) == "schema_version"
    assert path.read_text().find("NaN") == -1


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_score_is_finite_or_null(value: float) -> None:
    with pytest.raises(ValidationError):
        Score(value=value, n=3)
    assert Score(value=None, n=0).value is None


def test_broken_results_name_file_and_field(tmp_path: Path) -> None:
    path = write_run(tmp_path, example_records()[0])
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"schema_version": "99"}))
    with pytest.raises(DataError, match=rf"{path.name} is not a result: schema_version"):
        read_result(path)
    del content["scores"]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="scores"):
        read_runs(tmp_path)


def test_missing_table(tmp_path: Path) -> None:
    path = write_run(tmp_path, example_records()[0])
    table = path.with_suffix(".items.parquet")
    kept = pq.read_table(table)
    pq.write_table(kept.slice(1), table)
    with pytest.raises(DataError, match="do not fit"):
        read_runs(tmp_path)
    table.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        read_runs(tmp_path)


def test_seconds_are_in_a_table_of_their_own(tmp_path: Path) -> None:
    records = {r.result.data.condition: r for r in example_records() if r.result.data.language == "en"}
    assert "seconds" not in records["clean"].items.schema.names
    table = pq.read_table(write_run(tmp_path, records["clean"]).with_suffix(".seconds.parquet"))
    assert table.schema.equals(SECONDS_SCHEMA)
    assert table.column("id").to_pylist() == records["clean"].items.column("id").to_pylist()
    # No audio, or nobody knows how long it took.
    assert not write_run(tmp_path, records["text"]).with_suffix(".seconds.parquet").exists()


def test_imported_results_have_no_records(tmp_path: Path) -> None:
    record = imported_records(Example(languages=("en",), conditions=("clean",), n=4))[0]
    path = write_run(tmp_path, record)
    assert read_record(path).items.num_rows == 0
    # A measured result must have them.
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"origin": "measured"}))
    with pytest.raises(DataError, match="do not fit"):
        read_record(path)


def test_results_of_the_first_form_are_refused(tmp_path: Path) -> None:
    path = write_run(tmp_path, example_records()[0])
    content = json.loads(path.read_text())
    content["schema_version"] = "1"
    for name in ("n_total", "partial"):
        del content["data"][name]
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match="schema_version"):
        read_result(path)


@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_no_results(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no results"):
        read_runs(tmp_path / folder)


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder is needed")
    with pytest.raises(StorageError, match="cannot write"):
        write_atomically(tmp_path / "taken" / "x.json", b"1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").mkdir()
    with pytest.raises(StorageError):
        write_atomically(tmp_path / "folder" / "inner", b"a folder cannot be replaced")
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["inner"]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "wh isper + BM25 / x", "质量 + 检索"])
def test_file_names_stay_in_their_folder(name: str) -> None:
    assert "/" not in file_name(name)
    assert file_name(name).strip(".")
