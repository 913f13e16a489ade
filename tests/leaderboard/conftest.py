"""Results to store: made once by the pipeline, on a tiny collection."""

from __future__ import annotations

from pathlib import Path

import pytest

from squtr.harness.results.envelope import RunRecord, read_runs

from .runs_for_tests import make_run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two systems on six configs. Tests copy what they change."""
    return make_run(tmp_path_factory.mktemp("leaderboard"), names=("words", "other"))


@pytest.fixture(scope="session")
def records(run: Path) -> list[RunRecord]:
    return read_runs(run)
