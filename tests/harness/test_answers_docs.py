"""docs/understanding.md: its examples run, and its tables are what the code says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from squtr.harness.cli import main
from squtr.harness.score_files import read_aif_items, read_mcqa_items, read_replies
from squtr.harness.tasks.understanding.answers.accuracy import summarize_mcqa
from squtr.harness.tasks.understanding.answers.following import summarize_aif
from squtr.harness.tasks.understanding.answers.labels import DURATION_EDGES_S, PERCEPTION, REASONING
from squtr.harness.tasks.understanding.answers.verifiers.registry import IFEVAL_NAMES, VERIFIERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "understanding.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="only in a checkout")


def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page(), re.MULTILINE | re.DOTALL)


def rows_of(first: str) -> list[list[str]]:
    """The cells of the table whose first column has this name."""
    (body,) = re.findall(rf"^\| {re.escape(first)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", page(), re.MULTILINE)
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in body.splitlines()]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the page's files."""
    names = ("items.jsonl", "replies.jsonl", "tasks.jsonl", "answers.jsonl")
    for name, block in zip(names, blocks("jsonl"), strict=True):
        (tmp_path / name).write_text(block, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [line for block in blocks("console") for line in block.splitlines() if line.startswith("squtr score ")]
    assert len(commands) == 3
    for line in commands:
        program, *words = line.split()
        assert program == "squtr"
        assert main(words) == 0, capsys.readouterr().err
    capsys.readouterr()
    rows = [json.loads(line) for line in (folder / "per_item.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["id"]: (row["parsed"], row["correct"]) for row in rows} == {
        "q1": ("B B", 1),
        "q2": (None, 0),
        "q3": (None, None),
        "q1-spoken": ("B", 1),
    }


def test_the_code_runs() -> None:
    codes = blocks("python")
    assert len(codes) == 3
    for code in codes:
        exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})


def test_the_verifiers_are_all_there() -> None:
    rows = rows_of("id")
    assert [row[0].strip("`") for row in rows] == list(VERIFIERS)
    for (_, summary, arguments), spec in zip(rows, VERIFIERS.values(), strict=True):
        fields = spec.arguments.model_fields
        assert re.findall(r"`(\w+)`", arguments) == list(fields)
        assert re.findall(r"`(\w+)`\?", arguments) == [name for name, each in fields.items() if not each.is_required()]
        assert summary.casefold() == spec.summary.rstrip(".").casefold()


def test_ifeval_names_are_all_there() -> None:
    found = {row[0].strip("`"): row for row in rows_of("IFEval's id")}
    assert list(found) == list(IFEVAL_NAMES)
    for name, (_, id_, arguments, note) in found.items():
        assert id_.strip("`") == IFEVAL_NAMES[name].id
        assert dict(re.findall(r"`(\w+)` is `(\w+)`", arguments)) == IFEVAL_NAMES[name].renamed
        assert note == IFEVAL_NAMES[name].note


def test_the_scores_and_labels_are_all_there(folder: Path) -> None:
    items = read_mcqa_items(folder / "items.jsonl")
    scores = summarize_mcqa(items, read_replies(folder / "replies.jsonl", items), resamples=10).scores
    named = {name for row in rows_of("score") for name in re.findall(r"`([\w|\\]+)`", " ".join(row[:2]))}
    versions = {"parser_version", "seed", "resamples", "n", "n_orders"}
    assert set(scores) - versions <= named
    assert {name.replace("|", "\\|") for name in scores["breakdowns"]} <= named
    for label in (*PERCEPTION, *REASONING):
        assert f"`{label}`" in page()
    assert "30, 60, 300 and 1200 s" in page()
    assert DURATION_EDGES_S == (30, 60, 300, 1200)
    tasks = read_aif_items(folder / "tasks.jsonl")
    found = summarize_aif(tasks, read_replies(folder / "answers.jsonl", tasks), resamples=10).scores
    assert (found["prompt_strict"], found["prompt_loose"], found["instruction_strict"]) == (0.5, 1.0, 0.5)
