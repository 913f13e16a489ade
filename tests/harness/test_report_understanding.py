"""The understanding task's part of the report: what stands on it, and that nothing in a reply acts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from squtr.errors import DataError, UsageError
from squtr.harness.benchmarks import benchmark
from squtr.harness.cli import main
from squtr.harness.evaluation.options import Options
from squtr.harness.evaluation.run import run_evaluation
from squtr.harness.report import summary_table, write_report
from squtr.harness.report.formats import percent
from squtr.harness.report.tables import display_width
from squtr.harness.results.envelope import read_runs
from squtr.harness.systems import System
from squtr.harness.tasks.understanding.samples import chosen
from squtr.harness.tasks.understanding.task import UnderstandingTask
from squtr.loaders.questions.data import QuestionData

from .questions_for_tests import Knows, Marks, reset, write_questions
from .test_report import Page

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reset()
    folder = tmp_path_factory.mktemp("questions")
    data = QuestionData(write_questions(folder / "data"))
    done = run_evaluation(
        UnderstandingTask(),
        benchmark("understanding"),
        [
            System(answerer=Knows()),
            System(answerer=Marks(name="hostile", reply=HOSTILE), text_only=True, display_name="hostile"),
        ],
        data,
        out=folder / "runs",
        options=Options(baselines=("text-only", "shuffled"), option_orders=2, resamples=50, self_check=False),
        judges=[System(answerer=Marks(), display_name="judge")],
    )
    assert not done.failures
    return folder / "runs"


@pytest.fixture(scope="module")
def content(runs: Path) -> str:
    return write_report(runs, runs / "report.html").read_text(encoding="utf-8")


def test_the_page_is_one_file_with_everything(content: str) -> None:
    page = Page(content)
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for attributes in page.all("a")} <= set(ids)
    assert "http://" not in content and "https://" not in content
    text = " ".join("".join(page.text).split())
    for words in (
        "Perception × reasoning",
        "audio against text only",
        "own order of options against another",
        "spoken question against the written one",
        "text-only baseline",
        "missing audio: missing 1",
        "Accuracy by category",
        "Option orders",
        "Open-ended replies, by judges",
        "chance",
    ):
        assert words in text, words
    assert 'class="map"' in content
    assert content.count("<audio") >= 6 and "data:audio/flac;base64," in content
    assert "Content-Security-Policy" in content
    for word in ("nan", "None", "inf", "null"):
        assert not re.search(rf"\b{word}\b", text), word


def test_replies_cannot_act(content: str) -> None:
    assert "<img" not in content and "&lt;script&gt;" in content
    assert content.count("<script>") == 1
    assert not re.search(r"<[a-z][^>]* style=", content)


def test_every_accuracy_is_shown(runs: Path, content: str) -> None:
    table = summary_table(read_runs(runs))
    assert max(map(display_width, table.splitlines())) <= 110
    for record in read_runs(runs):
        for metric in ("mcqa_accuracy_wilson", "mcqa_chance", "aif_prompt_strict_wilson"):
            shown = percent(record.result.scores[metric].value)
            assert shown in content
            assert shown.replace("\u202f", " ") in table


def test_the_same_results_give_the_same_bytes_and_the_limit_holds(runs: Path, tmp_path: Path) -> None:
    first = write_report(runs, tmp_path / "a.html").read_bytes()
    assert first == write_report(runs, tmp_path / "b.html").read_bytes()
    small = write_report(runs, tmp_path / "c.html", max_audio_bytes=0).read_text(encoding="utf-8")
    assert "<audio" not in small and "would make this file too large" in small
    with pytest.raises(UsageError):
        write_report(runs, tmp_path / "d.html", max_audio_bytes=-1)


def test_squtr_report_finds_out_what_the_results_are_of(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(runs), "--out", str(runs / "told.html"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tasks"] == ["understanding"]


def test_results_about_other_questions_share_no_table(runs: Path, tmp_path: Path) -> None:
    copied = tmp_path / "runs" / "results"
    for path in sorted((runs / "results").glob("*/*")):
        target = copied / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    changed = copied / "knows" / "all.json"
    value = json.loads(changed.read_text(encoding="utf-8"))
    value["data"]["revision"] = "0" * 12
    changed.write_text(json.dumps(value), encoding="utf-8")
    page = Page(write_report(copied.parent, tmp_path / "page.html").read_text(encoding="utf-8"))
    headings = [a["id"] for a in page.all("section") if a.get("class") == "language"]
    assert len(headings) == 2
    assert "data's revision 000000000000" in "".join(page.text)


def test_a_damaged_result_is_named(runs: Path, tmp_path: Path) -> None:
    path = tmp_path / "results" / "knows" / "all.json"
    path.parent.mkdir(parents=True)
    value = json.loads((runs / "results" / "knows" / "all.json").read_text(encoding="utf-8"))
    value["scores"]["accuracy"]["value"] = "much"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(DataError, match=r"all\.json is not a result: scores\.accuracy\.value"):
        write_report(tmp_path, tmp_path / "r.html")


def test_samples_show_every_label_first() -> None:
    questions = QuestionData("mini").questions()
    few = chosen(questions, 12)
    assert len(few) == 12
    assert {label for question in chosen(questions, 60) for label in question.perception} == {
        label for question in questions for label in question.perception
    }
