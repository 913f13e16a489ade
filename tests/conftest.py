"""What every test shares: no network, one thread per worker, an own home, the same examples in every run."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

# The libraries read these when they are imported, so they are set before any test module is.
os.environ.update(
    HF_DATASETS_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_HUB_DISABLE_XET="1",
    HF_HUB_OFFLINE="1",
    HF_UPDATE_DOWNLOAD_COUNTS="0",
    OMP_NUM_THREADS="1",
    TOKENIZERS_PARALLELISM="false",
)

settings.register_profile("squtr", derandomize=True, deadline=None)
settings.load_profile("squtr")

_home = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Moves `SQUTR_HOME` and `HF_HOME` into a folder that goes when the tests end.

    Weights joined from packages are large, checked by sha256 and the same for all, so their folder stays shared.
    """
    configured = os.environ.get("SQUTR_HOME", "")
    weights = (Path(configured).expanduser() if configured else Path.home() / ".cache" / "squtr") / "weights"
    weights.mkdir(parents=True, exist_ok=True)
    config.stash[_home] = folder = tempfile.TemporaryDirectory(prefix="squtr-tests-", ignore_cleanup_errors=True)
    home = Path(folder.name) / "squtr"
    home.mkdir()
    (home / "weights").symlink_to(weights.resolve(), target_is_directory=True)
    os.environ["SQUTR_HOME"] = str(home)
    os.environ["HF_HOME"] = str(Path(folder.name) / "huggingface")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with the most slow tests come first, so that no worker ends with one while the others have nothing left."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes that folder."""
    folder = config.stash.get(_home, None)
    if folder is not None:
        folder.cleanup()
