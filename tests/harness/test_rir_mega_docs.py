"""The examples of docs/rir_mega.md run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from squtr.harness.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "rir_mega.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="only in a checkout")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def commands() -> list[list[str]]:
    """The squtr commands of the page."""
    lines = [line for block in blocks("console") for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("squtr ")]


@pytest.mark.slow
def test_the_page_builds_and_evaluates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (build,) = (c for c in commands() if c[1:3] == ["build", "rir_mega"] and "mini" in c)
    assert main([*build[1:], "--pairs", "20"]) == 0
    (code,) = blocks("python")
    capsys.readouterr()
    exec(compile(code, str(PAGE), "exec"), {})
    (line,) = capsys.readouterr().out.splitlines()
    name, clean, reverb, delta = line.split()
    assert name == "en_test"
    # It hears "word" once a second: wrong everywhere, and longer clips in rooms add words.
    assert 0 < float(clean) <= float(reverb)
    assert float(delta) == pytest.approx(float(reverb) - float(clean))


def test_all_commands_of_the_page_are_well_formed(capsys: pytest.CaptureFixture[str]) -> None:
    found = commands()
    assert {c[1] for c in found} >= {"demo", "build", "evaluate", "report", "compare", "fetch"}
    for command in found:
        with pytest.raises(SystemExit) as stopped:
            main([*command[1:], "--help"])
        assert stopped.value.code == 0
    capsys.readouterr()
