"""Data that several test modules read, made once."""

from __future__ import annotations

from typing import Any

import pytest

from squtr.loaders.data import LiveData
from squtr.loaders.recipe import open_recipe

from ..loaders.collections_for_tests import make_collection


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> LiveData:
    """Five queries each in English and Chinese, clean and in noise."""
    root = make_collection(tmp_path_factory.mktemp("tiny-collection") / "tiny")
    return LiveData(open_recipe(str(root), conditions=("clean", "high_noise")))


@pytest.fixture(scope="session")
def tiny_tasks(tiny: LiveData) -> list[Any]:
    """The tasks of mteb on `tiny`, loaded: their sound is rendered once for all tests."""
    pytest.importorskip("mteb")
    import squtr

    tasks = squtr.mteb_tasks(data=tiny)
    for task in tasks:
        task.load_data()
    return tasks
