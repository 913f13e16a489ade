"""README.md runs as it stands: its commands in order in one folder, on two queries, then its Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import soundfile

from squtr.harness.cli import COMMANDS, main, parser_of

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="only in a checkout")

ADDED = {"build": ["--limit", "2"], "evaluate": ["--resamples", "20", "--samples", "1"]}
"""What makes a command take less time."""
ONLY_READ = {"demo": "tests of its own run it, and it takes minutes"}
"""Commands whose options are checked and that are not run."""


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[list[str]]:
    """The `squtr` commands of the page's shell blocks, without the program's name."""
    lines = [line for block in blocks(page, "bash") for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("squtr ")]


def named(page: str) -> set[str]:
    """The commands that the page names anywhere."""
    return set(re.findall(r"`squtr ([a-z]+)\b", (ROOT / page).read_text(encoding="utf-8")))


def pages() -> list[str]:
    return ["README.md", "CONTRIBUTING.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]


@pytest.mark.parametrize("page", pages())
def test_commands_links_and_files_exist(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert named(page) <= set(COMMANDS)
    for name, *words in commands(page):
        subcommands = name in {"score", "leaderboard"}
        if not any("…" in word for word in words) and not subcommands:
            parser_of(COMMANDS[name]).parse_args(words)
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (ROOT / page).parent.joinpath(target).exists(), target
    for path in re.findall(r"`((?:harness|loaders|leaderboard|dataset_cards|scripts|tests|docs|src)/[\w./-]*)`", text):
        assert (ROOT / path).exists(), path
    capsys.readouterr()


@pytest.mark.slow
def test_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    soundfile.write("cafe.wav", 0.1 * rng.normal(size=48_000), 24_000)
    soundfile.write("hall.wav", rng.normal(size=24_000) * np.exp(-6.9 * np.arange(24_000) / 12_000), 24_000)
    ran = set()
    for name, *words in commands("README.md"):
        if name not in ONLY_READ:
            assert main([name, *words, *ADDED.get(name, [])]) == 0, (name, words, capsys.readouterr().err)
            ran.add(name)
    assert {"build", "doctor", "fetch", "evaluate", "report", "compare", "submit", "leaderboard", "rir"} <= ran
    capsys.readouterr()
    for code in blocks("README.md", "python"):
        exec(compile(code, "README.md", "exec"), {"__name__": "example"})
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()][-2:] == ["en_text", "en_clean"]
    assert Path("run/report.html").is_file()
    assert Path("site/index.html").is_file()
    for page in ("tasks", "metrics", "results"):
        for code in blocks(f"docs/{page}.md", "python"):
            exec(compile(code, page, "exec"), {"__name__": "example", "folder": Path("run")})
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("noisy_mini ")
    assert printed[1:3] == ["(0.05, 0.55)", "rbp_at_20 RBP@20 ndcg_at_10"]
    assert {line.split()[0] for line in printed[3:]} == {"whisper-base"}
