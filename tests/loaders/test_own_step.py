"""A new kind of condition from outside the package: written, built, loaded, checked and in the rows."""

from __future__ import annotations

from dataclasses import dataclass

import datasets
import numpy as np
import pytest

from squtr.errors import UnknownNameError, UsageError
from squtr.loaders.audio import decode_audio
from squtr.loaders.build import build
from squtr.loaders.conditions import known_part
from squtr.loaders.conditions.step import DEVICE, StepKind
from squtr.loaders.data import BuiltData, LiveData
from squtr.loaders.doctor import examine
from squtr.loaders.recipe import open_recipe


@dataclass(frozen=True)
class Clipped:
    """A microphone that clips `headroom_db` below the peak."""

    headroom_db: int

    def as_dict(self):
        return {"step": "clipped", "headroom_db": self.headroom_db}

    def apply(self, signal, utterance, context):
        limit = np.float32(np.abs(signal.samples).max() * 10.0 ** (-self.headroom_db / 20.0))
        return signal.passed_on(np.clip(signal.samples, -limit, limit), {"headroom_db": float(self.headroom_db)})


def parse(text):
    return Clipped(int(text.removeprefix("clipped_")))


CLIPPED = StepKind("clipped", DEVICE, r"clipped_\d+", parse, columns={"headroom_db": "float64"})
CONDITIONS = ["clean", "clipped_6", "reverb_snr_5_clipped_6"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("own") / "data"
    build(open_recipe("mini", conditions=CONDITIONS, languages=["en"], limit=3, steps=[CLIPPED]), out)
    return out


def test_it_is_in_the_rows(built, tmp_path):
    data = BuiltData(built)
    assert list(data.conditions) == CONDITIONS
    for row in data.spoken("mini-en", "reverb_snr_5_clipped_6"):
        samples, _ = decode_audio(row.audio, row.id)
        # Clipped: many samples lie at the limit.
        assert np.mean(np.abs(samples) > 0.999 * np.abs(samples).max()) > 1e-4
        assert (row.extra, row.snr_db, bool(row.rir_id)) == ({"headroom_db": 6.0}, 5.0, True)
    loaded = datasets.load_dataset(str(built), "en_clipped_6", split="test", cache_dir=str(tmp_path / "cache"))
    assert loaded["headroom_db"][:] == [6.0] * 3
    assert data.recipe["steps"]["clipped_6"] == [{"step": "clipped", "headroom_db": 6}]
    assert np.isnan(next(data.spoken("mini-en", "clean")).extra["headroom_db"])


def test_the_same_rows_on_the_fly_and_a_healthy_folder(built):
    live = LiveData(open_recipe("mini", conditions=CONDITIONS, languages=["en"], limit=3, steps=[CLIPPED]))
    for condition in CONDITIONS[1:]:
        rows, there = (list(data.spoken("mini-en", condition)) for data in (live, BuiltData(built)))
        assert list(map(repr, rows)) == list(map(repr, there))
    assert examine(built).findings == ()


def test_names_are_checked():
    for conditions, steps in ((["clipped_6"], []), (["clipped_six"], [CLIPPED]), (["clipped_6_reverb"], [CLIPPED])):
        with pytest.raises(UnknownNameError, match="condition"):
            open_recipe("mini", conditions=conditions, steps=steps)
    with pytest.raises(UsageError, match="two kinds of steps are called 'clipped'"):
        open_recipe("mini", conditions=["clean"], steps=[CLIPPED, CLIPPED])
    assert known_part("snr_5_clipped_6").snr_db == 5.0
    assert not known_part("clipped_6").reverb
