"""docs/systems.md: its tables are what the constructors say, and its examples run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import squtr
from squtr.harness.systems import System, check_systems, load_system, load_systems
from squtr.harness.systems.building import constructors_of, options_of
from squtr.harness.systems.entries import ComponentEntry
from squtr.harness.systems.option_table import option_tables, with_tables
from squtr.harness.systems.short_form import TABLES, parse_short_form
from squtr.harness.systems.spec_file import read_entries

PAGE = Path(__file__).resolve().parents[2] / "docs" / "systems.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="only in a checkout")


def read_systems(path: Path, **options: Any) -> list[System]:
    return load_systems([str(path)], **options)


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


AUTHORS_CODE = """
import numpy as np


class Model:
    def encode_speech(self, clip):
        return np.array([len(clip), 1.0 + abs(clip).max(), 1.0])

    def encode_text(self, text):
        return np.array([len(text), text.count(" "), 1.0])


def load(checkpoint):
    assert checkpoint == "clsr.pt"
    return Model()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with what the page's examples name."""
    for code in modules():
        (tmp_path / code.partition("\n")[0].removeprefix("# ")).write_text(code, encoding="utf-8")
    (tmp_path / "authors_code.py").write_text(AUTHORS_CODE, encoding="utf-8")
    (tmp_path / "clsr.pt").write_bytes(b"weights")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in ("my_module", "bi_encoder", "authors_code"):
        sys.modules.pop(name, None)


def modules() -> list[str]:
    """The blocks that are files of a user's own."""
    return [code for code in blocks("python") if re.match(r"# \w+\.py\n", code)]


def test_the_tables_are_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page, "run scripts/write_option_tables.py"


def test_every_backend_has_its_section() -> None:
    tables = option_tables()
    for table in TABLES.values():
        for row in table.values():
            assert re.search(rf"^#### `{row.name}(:<model>)?`$", tables, re.MULTILINE)


@pytest.mark.parametrize(("role", "backend"), [(role, name) for role, table in TABLES.items() for name in table])
def test_no_option_is_called_like_a_field(role: str, backend: str) -> None:
    options = options_of(constructors_of(role, backend))  # type: ignore[arg-type]
    taken = set(ComponentEntry.__dataclass_fields__) - {"parts"}
    assert not set(options) & taken, "such an option cannot be written in a spec file"


def test_the_short_forms_can_be_read(folder: Path) -> None:
    lines = [line for block in blocks("text") for line in block.splitlines()]
    assert len(lines) > 8
    for line in lines:
        parse_short_form(line)
    for line in lines:
        if line.startswith(("class", "whisper-base", "clap")):
            assert load_system(line).kind in ("cascade", "end-to-end", "transcriber", "answerer")


def test_the_spec_files_can_be_read(folder: Path) -> None:
    examples = blocks("yaml")
    assert len(examples) > 6
    path = folder / "example.yaml"
    for example in examples:
        path.write_text(example, encoding="utf-8")
        systems = read_systems(path)
        assert len(systems) == len(read_entries(path)) >= 1
        if not any(backend in example for backend in ("rerank", "clap", "transcripts", "trec", "server")):
            check_systems(systems)


def test_the_fields_are_all_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| field \| what it is \| default \|\n(.*?)\n\n", page, re.MULTILINE | re.DOTALL)
    from squtr.harness.systems.spec_file import _System

    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(_System.model_fields)


def test_the_code_runs(folder: Path) -> None:
    codes = [code for code in blocks("python") if code not in modules()]
    assert codes
    for code in codes:
        exec(compile(code, str(PAGE), "exec"), {"__name__": "example"})
    (example,) = [text for text in blocks("yaml") if "my_module" in text]
    (folder / "own.yaml").write_text(example, encoding="utf-8")
    (system,) = read_systems(folder / "own.yaml")
    (heard,) = system.transcriber.transcribe([None], language="en")  # type: ignore[union-attr]
    assert heard.text == "hey"


def test_a_bi_encoder_of_ones_own_is_evaluated(folder: Path) -> None:
    (example,) = [text for text in blocks("yaml") if "bi_encoder" in text]
    (folder / "own.yaml").write_text(example, encoding="utf-8")
    results = squtr.evaluate("own.yaml", data="mini", configs=["en_clean"], limit=3, self_check=False)
    assert [(r.data.config, r.system.kind, r.failures["failed"]) for r in results] == [
        ("en_text", "end-to-end", 0),
        ("en_clean", "end-to-end", 0),
    ]
    (spec,) = results[0].system.components.values()
    assert spec["settings"] == {} and len(spec["revision"]) == 64
