"""`squtr fetch`: what it prints, and how it ends without a network."""

from __future__ import annotations

import io
import json
import socket
from pathlib import Path

import numpy as np
import pytest

from squtr.harness.cli import main

from ..loaders.web_for_tests import serve


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SQUTR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def no_server() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def babble() -> bytes:
    from scipy.io import savemat

    buffer = io.BytesIO()
    savemat(buffer, {"babble": np.random.default_rng(0).standard_normal((1998, 1)) * 1000})
    return buffer.getvalue()


def test_banks_are_listed_with_their_licenses(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert main(["fetch", "noise"]) == 0
    shown = capsys.readouterr().out
    for text in ("demand", "noisex", "musan", "CC-BY-SA-3.0", "https://www.openslr.org/17/", str(home / "banks")):
        assert text in shown
    assert main(["fetch", "rirs", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["license"], row["is_there"]) == ("rir_mega", "CC-BY-NC-4.0", False)


def test_a_bank_is_fetched_and_used(capsys: pytest.CaptureFixture[str], tmp_path: Path, home: Path) -> None:
    with serve() as web:
        web.files["babble.mat"] = babble()
        assert main(["fetch", "noise", "noisex", "--url", web.address, "--json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert (said["recordings"], said["families"], said["fetched_now"]) == (1, ["BABBLE"], ["babble.mat"])
        assert said["folder"] == str(home / "banks" / "noisex")
        assert said["files"][0]["bytes"] == len(web.files["babble.mat"])
        assert main(["fetch", "noise", "noisex", "--url", web.address, "--to", str(tmp_path / "x")]) == 0
        captured = capsys.readouterr()
        assert f"Use: squtr build --noise noisex:{tmp_path / 'x'}" in captured.out
        assert "no checksum is published; its sha256 is" in captured.err
        web.asked.clear()
        assert main(["fetch", "noise", "noisex", "--url", web.address]) == 0
        assert web.asked == []


def test_without_a_network_it_says_what_to_get_and_where_to_put_it(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    address = no_server()
    assert main(["fetch", "noise", "demand", "--url", address]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count(f"  {address}/") == 16
    assert f"put them into {home / 'banks' / 'demand'}" in captured.err
    last = captured.err.strip().splitlines()[-1]
    assert last.startswith(f"squtr: {address}/DKITCHEN_48k.zip cannot be downloaded:")
    # The tests run with the Hub switched off.
    assert main(["fetch", "rirs", "rir_mega"]) == 1
    captured = capsys.readouterr()
    assert "Get the data set mandipgoswami/rirmega at the commit" in captured.err
    assert captured.err.strip().splitlines()[-1].startswith("squtr: mandipgoswami/rirmega cannot be fetched")


def test_wrong_names(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        (["fetch", "nosie"], "Did you mean 'noise'?"),
        (["fetch", "noise", "demnad"], "Did you mean 'demand'?"),
        (["fetch", "rirs", "demand"], "Known: rir_mega."),
        (["fetch", "noise", "synthetic"], "is part of squtr"),
        (["fetch", "noise", "demand", "--variant", "8k"], "Known: 16k, 48k."),
        (["fetch", "noise", "demand", "--url", "ftp://x"], "is no address"),
        (["build", "--noise", "demand"], "Run `squtr fetch noise demand`"),
    ):
        status = main(arguments)
        captured = capsys.readouterr()
        assert status == (1 if arguments[0] == "build" else 2)
        assert said in captured.err.splitlines()[-1]
