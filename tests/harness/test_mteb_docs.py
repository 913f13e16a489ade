"""The examples of docs/mteb.md run as they stand; only the model that they get from the Hub is another."""

from __future__ import annotations

import re
from pathlib import Path

import mteb
import pytest

from .mteb_for_tests import SpyEncoder

PAGE = Path(__file__).parents[2] / "docs" / "mteb.md"


def sections() -> dict[str, str]:
    """The Python of each section, by its heading."""
    found = {}
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        code = re.search(r"```python\n(.*?)```", section, flags=re.DOTALL)
        if code:
            found[section.partition("\n")[0]] = code[1]
    return found


def run(code: str) -> None:
    exec(compile(code, str(PAGE), "exec"), {})


def test_the_first_example_is_short() -> None:
    code = sections()["Evaluate my mteb model on spoken queries"]
    assert len(code.splitlines()) < 15
    assert len(sections()) == 4


@pytest.mark.slow
def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
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
    for column in ("org/spy", "Mean (Task)", "Condition::clean", "Condition::0 dB", "Condition::text", "eng-Latn"):
        assert column in said
    run(examples["A model of mteb as a part of squtr"])
    assert "mini-en_clean" in capsys.readouterr().out
    assert set(asked) == {"laion/clap-htsat-unfused"}


@pytest.mark.slow
def test_a_real_cascade(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("faster_whisper")
    monkeypatch.chdir(tmp_path)
    run(sections()["My system of squtr as a model"])
    name, score = capsys.readouterr().out.split()[-2:]
    assert name == "squtr/whisper-base+BM25"
    assert float(score) > 0.4
    assert (tmp_path / "cache" / "evaluations.sqlite").is_file()
