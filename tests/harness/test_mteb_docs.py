"""The examples and commands of docs/mteb.md run as they stand; only the model that they get from the Hub is another.

The embedded collection is cut to a few queries, so that the page is run in seconds.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import mteb
import pytest

import squtr
from squtr.harness.cli import main
from squtr.harness.data import open_data
from squtr.harness.systems.system import System
from squtr.loaders.data import LiveData
from squtr.loaders.partial import PartialData

from .evaluate_runs_for_tests import evaluate_runs
from .fakes import WordRetriever
from .mteb_for_tests import Garbler, SpyEncoder

PAGE = Path(__file__).parents[2] / "docs" / "mteb.md"
QUERIES = 8


def sections(kind: str = "python") -> dict[str, str]:
    """The code of each section, by its heading."""
    found = {}
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        code = re.search(rf"```{kind}\n(.*?)```", section, flags=re.DOTALL)
        if code:
            found[section.partition("\n")[0]] = code[1]
    return found


def run(code: str) -> None:
    exec(compile(code, str(PAGE), "exec"), {})


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mini` with a few queries."""
    part = PartialData(open_data("mini"), limit=QUERIES)

    def cut(function: Any) -> Any:
        return lambda *given, data, **rest: function(*given, data=part if data == "mini" else data, **rest)

    for name in ("mteb_tasks", "mteb_benchmark", "evaluate"):
        monkeypatch.setattr(squtr, name, cut(getattr(squtr, name)))


def test_the_first_example_is_short() -> None:
    code = sections()["Evaluate my mteb model on spoken queries"]
    assert len(code.splitlines()) < 15
    assert len(sections()) == 4


@pytest.mark.slow
def test_examples(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = []

    def get_model(name: str) -> SpyEncoder:
        asked.append(name)
        return SpyEncoder()

    monkeypatch.setattr(mteb, "get_model", get_model)
    examples = sections()
    run(examples["Evaluate my mteb model on spoken queries"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["SQuTRMiniEn", "mini-en_clean"],
        ["SQuTRMiniEn", "mini-en_high_noise"],
        ["SQuTRMiniEnText", "mini-en_text"],
    ]
    assert (tmp_path / "results" / "results" / "org__spy" / "1" / "SQuTRMiniEn.json").is_file()
    run(examples["One table"])
    said = capsys.readouterr().out
    assert "__" not in said
    for column in ("org/spy", "Mean (Task)", "Condition::clean", "Condition::0 dB", "Condition::text", "eng-Latn"):
        assert column in said
    run(examples["A model of mteb as a part of squtr"])
    assert "mini-en_clean" in capsys.readouterr().out
    assert set(asked) == {"laion/clap-htsat-unfused"}


@pytest.mark.slow
def test_a_real_cascade(
    few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("faster_whisper")
    monkeypatch.chdir(tmp_path)
    run(sections()["My system of squtr as a model"])
    name, score = capsys.readouterr().out.split()[-2:]
    assert name == "squtr/whisper-base+BM25"
    assert float(score) > 0.4
    assert (tmp_path / "cache" / "evaluations.sqlite").is_file()


def test_commands(
    tiny: LiveData,
    tiny_tasks: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Export, import and submit, from a folder with a run and a home with results of mteb."""
    texts = {language: [q.text for q in tiny.queries(subset)] for subset, language in tiny.subsets.items()}
    evaluate_runs(
        [System(transcriber=Garbler(texts), retriever=WordRetriever())],
        tiny,
        out=tmp_path / "run",
        resamples=1,
        samples=0,
    )
    home = mteb.ResultCache(tmp_path / ".cache" / "mteb")
    mteb.evaluate(SpyEncoder(), tiny_tasks, cache=home, show_progress_bar=False, co2_tracker=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    lines = [line for heading in ("Results both ways", "Submit results") for line in sections("")[heading].splitlines()]
    assert [line.split()[1] for line in lines] == ["export", "import", "submit"]
    for line in lines:
        command = [str(Path(word).expanduser()) for word in shlex.split(line, comments=True)]
        assert main(command[1:]) == 0, line
        said = capsys.readouterr().out
        assert said.startswith(("Wrote 4 task results", "Imported 6 results", "Prepared 4 task results")), said
