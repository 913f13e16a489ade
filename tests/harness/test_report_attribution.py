"""Loss attribution, in the page and as JSON: the parts make the whole, and errors are told apart."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from squtr.errors import UnknownNameError
from squtr.harness.cli import main
from squtr.harness.report import make_report
from squtr.harness.report.sections import sections
from squtr.harness.results.envelope import RunRecord, items_table
from squtr.harness.tasks.retrieval.report.attribution import TITLE, attributions, classes_table, parts_table
from squtr.harness.text.normalizers import recorded_normalizer

from .report_runs_for_tests import SCHEMA, Example, example_records, write_example

ONE = (("whisper-base", "BM25"),)
SMALL = Example(languages=("en",), systems=ONE, conditions=("text", "clean", "high_noise"), n=6)


def with_columns(record: RunRecord, **columns: list[Any]) -> RunRecord:
    rows = [
        row | {name: values[place] for name, values in columns.items()}
        for place, row in enumerate(record.items.to_pylist())
    ]
    return RunRecord(record.result, items_table(rows, SCHEMA))


def known() -> list[RunRecord]:
    """Six queries: a name, a number and another word wrong, nothing wrong twice, one not decoded."""
    texts = ["Is Marie Curie here?", "pay 15 euros", "the red cat", "the old dog", "the new car", "lost words"]
    transcripts = ["is marie query here", "pay fifty euros", "the read cat", "the old dog", "the new car", ""]
    typed = [1.0, 1.0, 0.8, 0.0, 0.6, 1.0]
    spoken = [0.0, 0.5, 0.8, 0.0, 0.6, 0.0]
    errors, lengths = [1.0, 1.0, 1.0, 0.0, 0.0, math.nan], [4.0, 3.0, 3.0, 3.0, 3.0, math.nan]
    text, clean, _ = example_records(SMALL)
    return [
        with_columns(text, text=texts, transcript=texts, ndcg_at_10=typed),
        with_columns(
            clean,
            text=texts,
            transcript=transcripts,
            ndcg_at_10=spoken,
            word_substitutions=errors,
            word_deletions=[0.0] * 6,
            word_insertions=[0.0] * 6,
            word_reference_length=lengths,
            error=[""] * 5 + ["cannot be read"],
        ),
    ]


def test_known_queries() -> None:
    (section,) = sections(known())
    (one,) = attributions(section)
    found, classes = one.found, one.classes
    assert found.n == 6
    assert found.shortfall.value == pytest.approx(1 - 1.9 / 6)
    assert found.retriever.value == pytest.approx(1 - 4.4 / 6)
    assert found.asr.value == pytest.approx(2.5 / 6)
    assert found.asr_share == pytest.approx(2.5 / 4.1)
    # A perfect transcript still fails (the dog), a bad one still succeeds (the cat); the undecoded one is neither.
    assert (found.perfect.n, found.perfect_fails) == (2, 0.5)
    assert (found.imperfect.n, found.imperfect_succeeds) == (3, pytest.approx(1 / 3))
    assert classes is not None
    assert (classes.key.n, classes.key.value) == (2, pytest.approx(0.75))
    assert (classes.other.n, classes.other.value) == (1, pytest.approx(0.0))
    assert (classes.none.n, classes.none.value) == (2, pytest.approx(0.0))


def test_the_parts_make_the_loss_of_the_table(tmp_path: Path) -> None:
    records = write_example(tmp_path)
    report = make_report(tmp_path, tmp_path / "report.html")
    losses = {r.result.key: r.result.losses.get("text", {}).get("ndcg_at_10") for r in records}
    objects = report.facts["attribution"]
    assert len(objects) == sum(r.result.data.condition != "text" for r in records)
    for entry in objects:
        assert entry["shortfall"]["value"] == pytest.approx(entry["retriever"]["value"] + entry["asr"]["value"])
        lost = losses[entry["system"], entry["config"]]
        assert lost is not None
        assert entry["asr"]["value"] == pytest.approx(lost.absolute.value)
        assert entry["asr"]["interval"]["low"] <= entry["asr"]["value"]
        assert sum(entry["loss_by_error"][kind]["n"] for kind in ("key", "other", "none")) <= entry["n"]


def test_several_subsets_weigh_as_in_the_scores() -> None:
    records = [
        with_columns(record, subset=["large"] * 5 + ["small"], ndcg_at_10=[value] * 5 + [value / 2])
        for record, value in zip(example_records(SMALL), (1.0, 0.8, 0.4), strict=True)
    ]
    (section,) = sections(records)
    clean, noisy = attributions(section)
    assert clean.found.asr.value == pytest.approx((0.2 + 0.1) / 2)
    assert noisy.found.shortfall.value == pytest.approx((0.6 + 0.8) / 2)


def test_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_example(tmp_path, SMALL)
    assert main(["report", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [entry["config"] for entry in told["attribution"]] == ["en_clean", "en_high_noise"]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert TITLE in page
    assert "Errors in names and numbers" in page


def test_without_a_typed_run_there_is_none() -> None:
    (section,) = sections(example_records(Example(languages=("en",), systems=ONE, conditions=("clean",), n=6)))
    assert attributions(section) == []
    assert not parts_table(section, [])


def test_an_absent_normalizer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import squtr.harness.tasks.retrieval.report.attribution as module
    from squtr.errors import missing_extra

    def absent(name: str, language: str) -> None:
        raise missing_extra("tn", "compat")

    monkeypatch.setattr(module, "recorded_normalizer", absent)
    (section,) = sections(known())
    found = attributions(section)
    assert found[0].classes is None
    assert parts_table(section, found)
    assert not classes_table(section, found)
    assert found[0].as_json()["loss_by_error"] is None


def test_recorded_names_give_their_normalizer() -> None:
    for name in ("default", "raw", "default(script=strict)", "default(erhua=drop,interjections=drop)"):
        assert recorded_normalizer(name, "zh").name == name
    with pytest.raises(UnknownNameError, match="option of a normalizer 'color'"):
        recorded_normalizer("default(color=red)", "zh")
