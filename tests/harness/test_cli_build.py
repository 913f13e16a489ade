"""`squtr build --benchmark rir_mega` and `squtr doctor` on what it built: utterances clean and with several RIRs."""

import json

import pytest

from squtr.harness.cli import main

from ..loaders.rirs_for_tests import make_rooms, make_speech


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def places(tmp_path):
    speech, rirs = make_speech(tmp_path / "speech"), make_rooms(tmp_path / "rooms")
    return ["--benchmark", "rir_mega", "--source", f"recorded:{speech}", "--rirs", str(rirs), "--rt60-bins", "2"]


def test_a_benchmark_gives_the_defaults(places, home, capsys):
    assert main(["build", *places, "--rirs-per-utterance", "2"]) == 0
    out = capsys.readouterr().out
    assert "Built 30 clips" in out  # 10 utterances clean and with 2 RIRs
    assert "rt60_1: " in out and "rt60_2: " in out
    assert f'load_dataset("{home / "rir_mega"}", ' in out
    assert "squtr evaluate whisper-base --data" in out
    manifest = json.loads((home / "rir_mega" / "manifest.json").read_text())
    assert manifest["benchmark"] == "rir_mega"
    assert (manifest["recipe"]["conditions"], manifest["recipe"]["sample_rate"]) == (["clean", "reverb"], 16_000)
    assert main(["doctor", str(home / "rir_mega")]) == 0
    assert "30 clips" in capsys.readouterr().out


def test_what_is_given_replaces_the_defaults(places, tmp_path, capsys):
    given = ["--utterances", "5", "--conditions", "clean", "--conditions", "reverb_snr_5", "--stratify", "rt60+drr"]
    command = ["build", *places, *given, "--drr-bins", "2", "--out", str(tmp_path / "out"), "--json"]
    assert main(command) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["clips"], told["splits"]) == (10, ["validation", "test"])
    assert sum(sum(stratum["pairs"].values()) for stratum in told["strata"]) == 5
    assert set(told["edges"]) == {"rt60_s", "drr_db"}
    recipe = json.loads((tmp_path / "out" / "manifest.json").read_text())["recipe"]
    assert (recipe["conditions"], recipe["noise"][0]["name"]) == (["clean", "reverb_snr_5"], "synthetic")
    assert main(["doctor", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["healthy"]
    (tmp_path / "out" / "README.md").unlink()
    assert main(["doctor", str(tmp_path / "out")]) == 1
    assert "README.md is missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--utterances", "300"], 2, "10"),
        (["--stratify", "drr"], 2, "Known: rt60, rt60+drr"),
        (["--rirs", "rir_mega:train"], 1, "squtr fetch rirs rir_mega"),
        (["--source", "librispeech:test-claen"], 2, "Did you mean 'test-clean'"),
        (["--rirs", "elsewhere/rooms"], 1, "does not exist"),
        (["--allow-missing"], 2, "--allow-missing does not apply to"),
    ],
)
def test_mistakes_are_one_sentence(places, tmp_path, capsys, arguments, status, message):
    assert main(["build", *places, *arguments, "--out", str(tmp_path / "out")]) == status
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_one_utterance_makes_a_test_set_alone(places, tmp_path, capsys):
    command = ["build", *places, "--utterances", "1", "--out", str(tmp_path / "alone")]
    assert main(command) == 2
    assert "Or make a test set alone: --no-splits" in capsys.readouterr().err
    # What failed does not claim the folder.
    assert main([*command, "--no-splits"]) == 0
    assert json.loads((tmp_path / "alone" / "manifest.json").read_text())["recipe"]["splits"] == ["test"]
    assert main(["doctor", str(tmp_path / "alone")]) == 0
