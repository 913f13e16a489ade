"""The page of ESCUCHA: what stands on it, that it needs nothing else, and that nothing in it runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from squtr.errors import DataError, UsageError
from squtr.harness.cli import main
from squtr.harness.escucha.answerers import NamedAnswerer
from squtr.harness.escucha.evaluate import Options, run_evaluation
from squtr.harness.tasks.understanding.samples import chosen
from squtr.harness.report.escucha.page import write_report
from squtr.loaders.questions.data import QuestionData

from .escucha_for_tests import Knows, Marks, reset, write_questions

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reset()
    folder = tmp_path_factory.mktemp("escucha")
    data = QuestionData(write_questions(folder / "data"))
    answerers = [NamedAnswerer("knows", Knows()), NamedAnswerer("hostile", Marks(name="hostile", reply=HOSTILE))]
    run_evaluation(
        answerers,
        data,
        out=folder / "runs",
        options=Options(controls=("text-only", "shuffled"), permutations=2, resamples=50),
        judges=[NamedAnswerer("judge", Marks())],
    )
    return folder / "runs"


def test_the_page_is_one_file_with_everything(runs: Path, tmp_path: Path) -> None:
    page = write_report(runs, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "http://" not in page and "https://" not in page
    assert "Perception × reasoning" in page and 'class="map"' in page
    assert "sound, against the text alone" in page and "own order of options, against another" in page
    assert "spoken question, against the written one" in page
    assert "control: no sound" in page and "missing sound: missing 1" in page
    assert page.count("<audio") >= 6 and "data:audio/flac;base64," in page
    assert "Open-ended replies, by judges" in page
    assert "prefers-color-scheme: dark" in page and 'name="viewport"' in page
    assert "Content-Security-Policy" in page


def test_replies_cannot_act(runs: Path, tmp_path: Path) -> None:
    page = write_report(runs, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<img" not in page and "&lt;script&gt;" in page
    assert page.count("<script>") == 1
    assert not re.search(r"<[a-z][^>]* style=", page)


def test_the_same_results_give_the_same_bytes_and_the_limit_holds(runs: Path, tmp_path: Path) -> None:
    first = write_report(runs, tmp_path / "a.html").read_bytes()
    assert first == write_report(runs, tmp_path / "b.html").read_bytes()
    small = write_report(runs, tmp_path / "c.html", max_audio_bytes=0).read_text(encoding="utf-8")
    assert "<audio" not in small and "would make this file too large" in small
    with pytest.raises(UsageError):
        write_report(runs, tmp_path / "d.html", max_audio_bytes=-1)


def test_squtr_report_finds_out_whose_results_they_are(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(runs), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["benchmark"] == "escucha"


def test_results_about_other_questions_share_no_page(runs: Path, tmp_path: Path) -> None:
    copied = tmp_path / "runs" / "results"
    for path in sorted((runs / "results").glob("*/*")):
        target = copied / path.parent.name / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    changed = copied / "knows" / "all.json"
    value = json.loads(changed.read_text(encoding="utf-8"))
    value["data"]["manifest_sha256"] = "0" * 64
    changed.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(DataError, match="different questions"):
        write_report(copied.parent, tmp_path / "page.html")


def test_samples_show_every_label_first() -> None:
    questions = QuestionData("mini").questions()
    few = chosen(questions, 12)
    assert len(few) == 12
    assert {label for question in chosen(questions, 60) for label in question.perception} == {
        label for question in questions for label in question.perception
    }
