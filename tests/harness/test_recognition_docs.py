"""The examples of docs/recognition.md run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from squtr.harness.cli import main

from .recognition_runs_for_tests import build_data

PAGE = Path(__file__).parents[2] / "docs" / "recognition.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="only in a checkout")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def commands() -> list[list[str]]:
    """The squtr commands of the page."""
    lines = [line for block in blocks("console") for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("squtr ")]


@pytest.mark.slow
def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    build_data(tmp_path, count=8, benchmark="")
    (code,) = blocks("python")
    capsys.readouterr()
    exec(compile(code, str(PAGE), "exec"), {})
    clean, reverb = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (clean[0], clean[2], reverb[0]) == ("en_clean", "None", "en_reverb")
    assert float(reverb[2]) == pytest.approx(float(reverb[1]) - float(clean[1]))


def test_all_commands_of_the_page_are_well_formed(capsys: pytest.CaptureFixture[str]) -> None:
    found = commands()
    assert {c[1] for c in found} >= {"demo", "build", "evaluate", "report", "fetch"}
    for command in found:
        with pytest.raises(SystemExit) as stopped:
            main([*command[1:], "--help"])
        assert stopped.value.code == 0
    capsys.readouterr()
