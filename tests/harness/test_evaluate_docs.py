"""The examples of docs/evaluate.md run as they stand."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from squtr.harness.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "evaluate.md").read_text(encoding="utf-8")


def test_the_transcriber_in_ten_lines(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    own = code.partition("class Constant")[2].partition("\n\n\n")[0]
    assert len([line for line in own.splitlines() if line.strip()]) <= 10
    exec(compile(code, "docs/evaluate.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["en_text", "en_clean"]
    typed, spoken = (float(line.split()[1]) for line in lines)
    assert typed > 0.5 > spoken


def commands() -> list[list[str]]:
    """The squtr commands of the page."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("squtr ")]


def test_a_dry_run_evaluates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = (c for c in commands() if "--dry-run" in c and "--computed" not in c and "--only" not in c)
    assert main([*command[1:], "--limit", "2", "--cache", "cache"]) == 0
    said = capsys.readouterr().out
    assert "whisper-base" in said
    assert "BM25" in said
    assert "Nothing was evaluated." in said
    assert not (tmp_path / "run").exists()


def test_all_commands_of_the_page_are_well_formed(capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands():
        # A wrong option ends with status 2 before anything is read; missing data with another sentence.
        with pytest.raises(SystemExit) as stopped:
            main([*command[1:], "--help"])
        assert stopped.value.code == 0
    capsys.readouterr()
