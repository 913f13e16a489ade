"""Audio of mini under every condition, with and without a plan of RIRs, against what the first release built."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import pytest
import soundfile

from squtr.loaders.audio import pcm_sha256
from squtr.loaders.blocks import render_take
from squtr.loaders.conditions import STANDARD_CONDITIONS
from squtr.loaders.recipe import open_recipe

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "audio.json").read_text(encoding="utf-8"))
CONDITIONS = [*STANDARD_CONDITIONS, "snr_5", "reverb_snr_-5"]
VALUES = ("noise_id", "noise_offset_s", "rir_id", "gain_db", "onset_samples", "snr_active_db", "rt60_s")


def value(number):
    return None if isinstance(number, float) and math.isnan(number) else number


@pytest.mark.parametrize("level", ["whole", "active"])
def test_rows_of_mini_have_the_same_samples_and_values(level):
    opened = open_recipe("mini", conditions=CONDITIONS, level=level)
    checked = 0
    for subset, _ in opened.recipe.subsets:
        for take in opened.takes(subset):
            if f"{level} {subset} {take.query.id} clean" not in GOLDEN["rows"]:
                continue
            for (row,) in render_take(opened, list(opened.conditions.values()), take):
                expected = GOLDEN["rows"][f"{level} {subset} {row.id} {row.condition}"]
                assert pcm_sha256(row.audio, row.id)[:16] == expected["pcm"], row.condition
                # The encoder may change its bytes with every version.
                if soundfile.__libsndfile_version__ == GOLDEN["libsndfile"]:
                    assert hashlib.sha256(row.audio).hexdigest()[:16] == expected["flac"]
                assert {name: value(getattr(row, name)) for name in VALUES} == {name: expected[name] for name in VALUES}
                assert row.utterance_id == row.id
                checked += 1
    assert checked == len(GOLDEN["rows"]) // 2 == 90


PLANS = {
    "plain": ({"languages": ["en"], "utterances": 20, "rirs_per_utterance": 2, "seed": 3, "splits": True}, "reverb"),
    "noise": (
        {
            "languages": ["es"], "utterances": 20, "stratify": "rt60+drr", "rt60_bins": 2, "drr_bins": 2,
            "known_rirs_only": True, "splits": True,
        },
        "reverb_snr_10",
    ),
    "early": ({"languages": ["en"], "utterances": 20, "splits": True}, "early_reverb"),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_deals_the_same_rirs_and_gives_the_same_samples(name):
    options, condition = PLANS[name]
    opened = open_recipe("mini", conditions=["clean", condition], sample_rate=16_000, **options)
    expected = GOLDEN["pairs"][name]
    assert opened.plan.strata.edges == expected["edges"]
    ((subset, _),) = opened.recipe.subsets
    for split in ("validation", "test"):
        takes = opened.takes(subset, split)
        assert [[take.query.id, list(take.rir_ids)] for take in takes] == expected[split]["plan"]
        rows = iter(expected[split]["rows"])
        for take in takes[:3]:
            clean, reverb = render_take(opened, list(opened.conditions.values()), take)
            for row, there in zip(reverb, rows, strict=False):
                assert (row.id, row.utterance_id) == (there["id"], take.query.id)
                assert pcm_sha256(row.audio, row.id)[:16] == there["reverb"]
                assert pcm_sha256(clean[0].audio, row.id)[:16] == there["clean"]
                assert clean[0].gain_db == there["clean_gain_db"]
                for column in (
                    "rt60_s",
                    "c80_db",
                    "edt_s",
                    "room_id",
                    "stratum",
                    "gain_db",
                    "onset_samples",
                    "noise_id",
                ):
                    assert value(getattr(row, column)) == there[column]
                assert value(row.noise_offset_s) == there["noise_offset_s"]
        assert next(rows, None) is None
