"""What is imported when, and by whom. Import-linter checks the layers; this checks what it cannot see."""

from __future__ import annotations

import ast
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import squtr
from squtr.harness.cli import COMMANDS

HEAVY = {
    "accelerate",
    "bm25s",
    "ctranslate2",
    "datasets",
    "faster_whisper",
    "huggingface_hub",
    "jieba",
    "mteb",
    "numba",
    "onnxruntime",
    "pandas",
    "pyroomacoustics",
    "scipy",
    "sentence_transformers",
    "torch",
    "transformers",
}
HELP_SECONDS = 0.5

RUN_MAIN = """
from squtr.harness.cli import main
try:
    status = main({arguments!r})
except SystemExit as stop:  # how argparse ends after its help
    status = stop.code
assert not status, status
"""


def loaded_by(code: str) -> set[str]:
    """The top-level modules in `sys.modules` of a fresh interpreter that ran `code`."""
    ending = "\nimport json, sys\nprint('\\n' + json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    done = subprocess.run(
        [sys.executable, "-c", code + ending], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def source_files() -> list[tuple[str, Path]]:
    """Module name and file of all modules; links are followed.

    Folders without `__init__.py` hold no module of the package: those of `evaluate_modules` are loaded, as copies that
    lie elsewhere, by the library `evaluate` alone.
    """
    root = Path(squtr.__path__[0])
    found = []
    for folder, folders, files in os.walk(root, followlinks=True):
        folders[:] = [name for name in folders if (Path(folder) / name / "__init__.py").is_file()]
        for file in files:
            if file.endswith(".py"):
                path = Path(folder) / file
                parts = ("squtr", *path.relative_to(root).with_suffix("").parts)
                found.append((".".join(part for part in parts if part != "__init__"), path))
    return sorted(found)


def imported_names(path: Path) -> set[str]:
    """Absolute names that a file imports anywhere, also in functions: `datasets`, `datasets.load`, …"""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def under(names: set[str], *prefixes: str) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for name in names for prefix in prefixes)


def test_importing_squtr_loads_nothing_heavy() -> None:
    assert not loaded_by("import squtr") & (HEAVY | {"numpy", "pyarrow", "pydantic", "soundfile"})


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)], ids=lambda words: words[0]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    assert not loaded_by(RUN_MAIN.format(arguments=arguments)) & HEAVY


def test_help_is_quick() -> None:
    # Processor time of the quickest of five: what `squtr --help` takes on a machine that does nothing else.
    code = RUN_MAIN.format(arguments=["--help"])
    taken = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) < HELP_SECONDS


def test_scores_and_results_load_neither_torch_nor_datasets() -> None:
    modules = [
        name
        for name, _ in source_files()
        if under({name}, "squtr.harness.metrics", "squtr.harness.text", "squtr.harness.results")
    ]
    assert len(modules) > 3
    assert not loaded_by("\n".join(f"import {name}" for name in modules)) & {
        "accelerate",
        "datasets",
        "mteb",
        "sentence_transformers",
        "torch",
        "transformers",
    }


def test_modules_load_heavy_libraries_only_in_functions() -> None:
    subclassing = [name for name, path in source_files() if under(imported_at_top(path), "datasets", "mteb")]
    modules = [name for name, path in source_files() if name not in subclassing and path.name != "__main__.py"]
    assert not loaded_by("\n".join(f"import {name}" for name in modules)) & HEAVY
    # Only a module that derives from a library's class may import the library outside its functions.
    assert len(subclassing) <= 3, subclassing


def imported_at_top(path: Path) -> set[str]:
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


def named_in_code(path: Path) -> set[str]:
    """What a file imports, and whole strings, through which a module can be named too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return imported_names(path) | strings


@pytest.mark.parametrize("library", ["accelerate", "mteb"])
def test_one_module_imports(library: str) -> None:
    assert len([name for name, path in source_files() if under(imported_names(path), library)]) <= 1


def test_one_module_depends_on_the_internals_of_datasets() -> None:
    internals = ("datasets.load", "datasets.inspect", "datasets.packaged_modules", "dataset_module_factory")
    holders = [name for name, path in source_files() if under(named_in_code(path), *internals)]
    assert holders == ["squtr.loaders.hook"]


def test_rooms_import_each_other_relatively() -> None:
    absolute = {name: sorted(n for n in imported_names(path) if under({n}, "squtr")) for name, path in source_files()}
    assert not {name: names for name, names in absolute.items() if names}
    top_level = {"loaders", "harness", "leaderboard"}
    assert not [name for name, path in source_files() if under(imported_names(path), *top_level)]
