"""docs/reproduce.md: its numbers are those that are computed, and every command plans what its section is about."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from squtr.harness.cli import COMMANDS, main, parser_of
from squtr.harness.systems.papers import PAPERS
from squtr.harness.systems.papers.sizes import STAND_INS
from squtr.leaderboard.published import squtr_values

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="only in a checkout")
PAGE = "docs/reproduce.md"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = ROOT / "scripts" / "write_reproduce_tables.py"
    spec = importlib.util.spec_from_file_location("write_reproduce_tables", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page() -> str:
    return (ROOT / PAGE).read_text(encoding="utf-8")


def sections() -> Iterator[tuple[str, str]]:
    """Headings of the third level with what stands below them."""
    yield from re.findall(r"^### (.*?)\n(.*?)(?=^##|\Z)", page(), re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[list[str]]:
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("squtr ")]


def test_the_numbers_are_those_that_are_computed(script: ModuleType) -> None:
    assert script.with_numbers(page()) == page(), "run scripts/write_reproduce_tables.py"
    assert page().count("<!-- computed -->\n|") == len(
        re.findall(r"^squtr evaluate --system paper:\w+ .*--out", page().replace("\\\n", " "), re.MULTILINE)
    )


def test_every_command_is_well_formed_and_plans(capsys: pytest.CaptureFixture[str]) -> None:
    found = commands(page())
    assert len(found) > 10
    for name, *words in found:
        if name != "evaluate":
            parser_of(COMMANDS[name]).parse_args(words)
            continue
        planned = []
        if "--dry-run" not in words:
            paper = next(word for word in words if word.startswith("paper:")).partition(":")[2]
            planned = ["--data", f"stand-in:{paper}", "--dry-run"]
        assert main(["evaluate", *words, *planned]) == 0, (words, capsys.readouterr().err)
        assert "Nothing was evaluated or downloaded." in capsys.readouterr().out


def test_a_command_has_the_systems_of_its_tables(script: ModuleType) -> None:
    """Every system that a published table lists is evaluated by its section's command, in the table's language."""
    published: dict[int, set[tuple[str, str]]] = {}
    for value in squtr_values():
        end_to_end = value.retriever.startswith("Omni")
        system = value.retriever if end_to_end else f"{value.transcriber} + {value.retriever}"
        published.setdefault(int(value.table), set()).add((system, value.language))
    checked = 0
    for title, text in sections():
        tables = re.match(r"Tables (\d+) to (\d+): (English|Chinese)", title)
        if tables is None:
            continue
        (words,) = [command[1:] for command in commands(text) if command[0] == "evaluate"]
        plan = script.plan_of(words)
        language = {"English": "en", "Chinese": "zh"}[tables[3]]
        wanted = [one for table in range(int(tables[1]), int(tables[2]) + 1) for one in published[table]]
        assert {system for system, _ in wanted} <= set(plan.systems), title
        assert {code for _, code in wanted} == {language}
        assert {f"{language}_clean", f"{language}_high_noise", f"{language}_text"} <= set(plan.configs)
        subsets = [name for name, size in STAND_INS["squtr"].subsets.items() if size.language == language]  # type: ignore[union-attr]
        assert {f"{subset}_clean" for subset in subsets} <= set(plan.configs)
        checked += 1
    assert checked == 4


def test_every_paper_has_a_section_with_what_cannot_be_reproduced() -> None:
    for paper in PAPERS:
        assert f"--system paper:{paper} " in page().replace("\\\n", " ")
    assert len(re.findall("^### What cannot be reproduced", page(), re.MULTILINE)) == len(PAPERS)


def test_the_python_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", page(), re.DOTALL)
    exec(compile(code, PAGE, "exec"), {})
    assert capsys.readouterr().out.split(maxsplit=1) == ["12", "Whisper-Large-v3 + BM25\n"]
