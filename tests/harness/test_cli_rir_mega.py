"""`squtr build rir_mega` and `squtr doctor` on what it built."""

import json

import pytest

from squtr.harness.cli import main

from ..loaders.rir_mega_for_tests import make_rooms, make_speech


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def places(tmp_path):
    speech, rooms = make_speech(tmp_path / "speech"), make_rooms(tmp_path / "rooms")
    return ["--speech", f"recorded:{speech}", "--rooms", str(rooms), "--rt60-bins", "2"]


def test_build_and_doctor(places, home, capsys):
    assert main(["build", "rir_mega", *places, "--rooms-per-utterance", "2"]) == 0
    out = capsys.readouterr().out
    assert "Built 20 pairs (4 validation, 16 test;" in out
    assert "rt60_1 10, rt60_2 10" in out
    assert f'load_dataset("{home / "rir_mega"}", "paired", split="test")' in out
    assert main(["doctor", str(home / "rir_mega")]) == 0
    assert "20 pairs, 12 of them decoded" in capsys.readouterr().out


def test_json(places, tmp_path, capsys):
    arguments = ["--pairs", "5", "--noise-snr", "5", "--early-only", "--stratify", "rt60+drr", "--drr-bins", "2"]
    assert main(["build", "rir_mega", *places, *arguments, "--out", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["pairs"], told["splits"]["validation"]["pairs"], told["shards"]) == (5, 1, 4)
    assert sum(stratum["pairs"] for stratum in told["strata"]) == 5
    assert set(told["edges"]) == {"rt60_s", "drr_db"}
    recipe = json.loads((tmp_path / "out" / "manifest.json").read_text())["recipe"]
    assert (recipe["snr_db"], recipe["early_only"], recipe["noise"]) == (5.0, True, "synthetic")
    assert main(["doctor", str(tmp_path / "out"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["healthy"], told["pairs"]) == (True, 5)
    (tmp_path / "out" / "README.md").unlink()
    assert main(["doctor", str(tmp_path / "out")]) == 1
    assert "README.md is missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--pairs", "300"], 2, "there are 10"),
        (["--stratify", "drr"], 2, "Known: rt60, rt60+drr"),
        (["--rooms", "rir_mega:train"], 1, "squtr fetch rooms rir_mega"),
        (["--speech", "librispeech:test-claen"], 2, "Did you mean 'test-clean'"),
        (["--rooms", "elsewhere/rooms"], 1, "does not exist"),
    ],
)
def test_mistakes_are_one_sentence(places, tmp_path, capsys, arguments, status, message):
    assert main(["build", "rir_mega", *places, *arguments, "--out", str(tmp_path / "out")]) == status
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_the_other_build_is_what_it_was(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["build", "rir_meag"])
    assert stop.value.code == 2
    assert "unrecognized arguments: rir_meag" in capsys.readouterr().err
    for arguments in (["build", "--help"], ["build", "rir_mega", "--help"]):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "usage: squtr build rir_mega" in out
    assert "--source" in out
    assert main(["--help"]) == 0
    assert "build rir_mega" in capsys.readouterr().out
