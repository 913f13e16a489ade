"""The examples in the docstrings of every module."""

from __future__ import annotations

import doctest
import importlib
import os
from pathlib import Path

import pytest

import squtr
from squtr.errors import MissingExtraError

OPTIONAL = {
    "accelerate",
    "ctranslate2",
    "espeakng_loader",
    "faster_whisper",
    "misaki",
    "mteb",
    "onnxruntime",
    "pypinyin",
    "sentence_transformers",
    "torch",
    "transformers",
}
"""Top-level modules that only an extra installs."""


def module_names() -> list[str]:
    """Every module but `__main__`, found without importing any. The rooms may be links: these are followed."""
    root = Path(squtr.__path__[0])
    names = []
    for folder, folders, files in os.walk(root, followlinks=True):
        folders[:] = [name for name in folders if (Path(folder) / name / "__init__.py").is_file()]
        package = ("squtr", *Path(folder).relative_to(root).parts)
        for file in files:
            if file.endswith(".py") and file != "__main__.py":
                names.append(".".join(package if file == "__init__.py" else (*package, file.removesuffix(".py"))))
    return sorted(names)


def test_the_modules_are_found() -> None:
    assert {"squtr", "squtr.errors", "squtr.loaders.conditions", "squtr.harness.protocols"} <= set(module_names())


@pytest.mark.parametrize("name", module_names())
def test_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except MissingExtraError as error:
        pytest.skip(str(error))
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in OPTIONAL:
            pytest.skip(f"{error.name} is not installed")
        raise
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0, f"{result.failed} of {result.attempted} examples fail; see the output above"
