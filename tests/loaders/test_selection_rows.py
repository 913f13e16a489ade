"""How a synthetic clip was selected stands in its rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from squtr.errors import DataError
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.recipe import open_recipe
from squtr.loaders.sources import load_source

from .rirs_for_tests import make_speech


def source(folder: Path, **columns: object) -> str:
    root = make_speech(folder, 3, rate=16_000)
    table = root / "manifest.jsonl"
    rows = [json.loads(line) | columns for line in table.read_text().splitlines()]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"recorded:{root}?language=en&subset=own"


def test_rows_say_of_how_many_takes_and_by_whom(tmp_path: Path) -> None:
    name = source(tmp_path / "own", candidates=3, transcriber="whisper-base", tts_error_rate=0.1)
    build(open_recipe(name, conditions=["clean", "snr_5"], sample_rate=16_000), tmp_path / "data")
    for condition in ("clean", "snr_5"):
        for row in BuiltData(tmp_path / "data").spoken("own", condition):
            assert (row.tts_takes, row.tts_transcriber, row.tts_error_rate) == (3, "whisper-base", 0.1)
    again = load_source(f"built:{tmp_path / 'data'}")
    assert again.speech(again.queries("own")[0]).tts_takes == 3


def test_without_it_nothing_is_said(tmp_path: Path) -> None:
    opened = load_source(source(tmp_path / "own"))
    speech = opened.speech(opened.queries("own")[0])
    assert (speech.tts_takes, speech.tts_transcriber) == (0, "")


@pytest.mark.parametrize("value", ["three", -1, 2.5, True, []])
def test_a_number_of_takes_that_is_none_is_named(tmp_path: Path, value: object) -> None:
    with pytest.raises(DataError, match="candidates is"):
        load_source(source(tmp_path / "own", candidates=value)).subsets  # noqa: B018
