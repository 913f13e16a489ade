"""A published release from the shell: its defects counted, its own sound evaluated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from squtr.harness.cli import main
from squtr.harness.data import open_data
from squtr.harness.protocols import Transcript
from squtr.harness.systems import System

from ..loaders.sources_for_tests import make_release
from .evaluate_runs_for_tests import evaluate_records
from .fakes import LookupTranscriber, WordRetriever


class Mute(dict):  # type: ignore[type-arg]
    """Hears nothing in any sound."""

    def __missing__(self, key: str) -> Transcript:
        return Transcript("")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_release(tmp_path_factory.mktemp("release") / "SQuTR")


def test_doctor_counts_its_defects(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", f"release:{release}"]) == 0
    assert "grade is text" in capsys.readouterr().out
    assert main(["doctor", f"release:{release}", "--json"]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert any(report["defects"] for report in reports)


def test_its_own_sound_is_evaluated(release: Path) -> None:
    data = open_data(f"release:{release}")
    records = evaluate_records([System(transcriber=LookupTranscriber(Mute()), retriever=WordRetriever())], data).records
    conditions = {record.result.data.condition for record in records}
    assert {"text", "clean", "high_noise"} <= conditions
    assert all(r.result.failures["empty"] > 0 for r in records if r.result.data.condition == "clean")


def test_a_missing_release_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", "whisper-base + bm25", "--data", f"release:{tmp_path / 'no.zip'}", "--out", str(tmp_path)]
    assert main(arguments) != 0
    assert "no.zip" in capsys.readouterr().err
