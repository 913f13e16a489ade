"""Speech with transcripts alone: built, checked, described and loaded as what it is."""

from __future__ import annotations

import re
from pathlib import Path

import datasets
import pytest
import yaml

from squtr.harness.cli import main
from squtr.harness.data import open_data
from squtr.loaders.doctor import examine

from .rirs_for_tests import make_speech


@pytest.fixture
def built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Path, str]:
    """A folder with two conditions, and what the command printed."""
    speech, out = make_speech(tmp_path / "voices", 4), tmp_path / "data"
    arguments = ["--source", f"recorded:{speech}", "--conditions", "clean", "reverb_snr_5", "--out", str(out)]
    assert main(["build", *arguments]) == 0
    return out, capsys.readouterr().out


def test_doctor_and_data(built: tuple[Path, str]) -> None:
    folder, _ = built
    assert examine(folder).findings == ()
    assert main(["doctor", str(folder)]) == 0
    assert not (folder / "eval.yaml").exists()
    data = open_data(str(folder))
    assert (dict(data.subsets), list(data.conditions), data.benchmark) == (
        {"voices": "en"},
        ["clean", "reverb_snr_5"],
        "",
    )
    assert not data.has_corpus("voices")


def test_the_card_names_configs_that_there_are(built: tuple[Path, str], tmp_path: Path) -> None:
    folder, _ = built
    card = (folder / "README.md").read_text(encoding="utf-8")
    head = yaml.safe_load(card.split("---")[1])
    names = [config["config_name"] for config in head["configs"]]
    assert names == ["en_clean", "en_reverb_snr_5", "voices_clean", "voices_reverb_snr_5"]
    assert head["task_categories"] == ["automatic-speech-recognition"]
    for config in re.findall(r'load_dataset\("PATH OR ORG/NAME", "([^"]+)"', card):
        assert datasets.load_dataset(str(folder), config, split="test", cache_dir=str(tmp_path / "cache")).num_rows == 4
    assert "squtr evaluate 'whisper-base' --data" in card


def test_what_the_command_prints_works(
    built: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder, printed = built
    line = next(line for line in printed.splitlines() if line.startswith("Load: "))
    assert eval(line.removeprefix("Load: "), {"datasets": datasets}).num_rows == 4
    assert f"Evaluate: squtr evaluate whisper-base --data {folder}" in printed
