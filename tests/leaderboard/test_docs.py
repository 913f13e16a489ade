"""The documentation of the leaderboard: every command and every snippet is run, or read where it needs the Hub."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from squtr.errors import UsageError
from squtr.harness.cli import main

ROOT = Path(__file__).parents[2]
PAGES = ("docs/leaderboard.md", "docs/leaderboard_site.md", "scripts/leaderboard/results-README.md")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def folder(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a run, and two copies of a store: the older one lacks a system."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, "run")
    for place, result in (("store-before", "run/results/garbler+words"), ("store", "run")):
        assert main(["submit", result, "--to", f"./{place}", "--yes"]) == 0
    for old in Path("store-before").rglob("*.json"):
        for new in Path("store").rglob(f"*{old.stem[-16:]}.*"):
            new.unlink()
    shutil.copytree("store-before", "store", dirs_exist_ok=True)
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_every_command(
    folder: Path, page: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        main(["leaderboard", "build", "--results", "store", "--out", "site", "--no-published", "--compare", "0"]) == 0
    )

    def offline(*_: object, **__: object) -> None:
        raise UsageError("this is as far as it goes without the Hub.")

    for name in ("requests", "tree", "download", "head"):
        monkeypatch.setattr(f"squtr.loaders.hub.repository.Repository.{name}", offline)
    monkeypatch.setattr("squtr.leaderboard.site.publish.publish", offline)
    lines = [line for block in blocks(page, "console") for line in block.splitlines() if line.startswith("squtr ")]
    assert lines or page.endswith("README.md")
    for line in lines:
        words = shlex.split(line.partition(" #")[0].partition(" >>")[0])[1:]
        if words[0] == "evaluate" or (words[:2] == ["leaderboard", "watch"] and "--once" not in words):
            continue
        status = main(words)
        said = capsys.readouterr()
        stopped = "without the Hub" in said.err and any("ORG/" in word for word in words)
        assert status == 0 or stopped, (line, said.err)


@pytest.mark.parametrize("page", PAGES)
def test_every_snippet(folder: Path, page: str) -> None:
    main(["leaderboard", "build", "--results", "store", "--out", "site", "--no-published", "--compare", "0"])
    found = blocks(page, "python")
    assert found
    for code in found:
        # The tiny collection has one level of noise.
        own = code.replace("ORG/squtr-results", "store").replace("high_noise", "medium_noise")
        names: dict[str, object] = {}
        exec(own, names)
        assert set(names) & {"store", "best"}
