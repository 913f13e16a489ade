"""Rates, losses, intervals, tests, bins, change point: what the first release gave for the same clips."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squtr.harness.results.envelope import Loss, Result, Score
from squtr.harness.systems import System
from squtr.harness.tasks.recognition.details import RecognitionDetails
from squtr.loaders.build import build
from squtr.loaders.data import BuiltData
from squtr.loaders.recipe import open_recipe

from .recognition_runs_for_tests import Halver, TableTranscriber, by_config, evaluate, key_of, rows_of, with_errors

GOLDEN: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "recognition.json").read_text(encoding="utf-8")
)["systems"]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Result]]:
    """By system and config."""
    folder = tmp_path_factory.mktemp("golden")
    opened = open_recipe(
        "mini",
        conditions=["clean", "reverb"],
        languages=["en"],
        rirs="simulated",
        sample_rate=16_000,
        stratify="rt60",
        rirs_per_utterance=2,
        utterances=30,
        splits=True,
        benchmark="rir_mega",
    )
    build(opened, folder)
    data = BuiltData(folder)
    table = {}
    for row, samples in rows_of(data):
        rate = 0.05 + min(0.6, 0.8 * max(0.0, row.rt60_s - 0.4)) if row.rir_id else 0.05
        name = f"{row.utterance_id}@{row.rir_id}" if row.rir_id else row.utterance_id
        table[key_of(samples)] = with_errors(row.text, name, rate)
        table[key_of(samples * np.float32(0.5))] = with_errors(row.text, name, rate / 2)
    transcriber = TableTranscriber(table)
    systems = [System(transcriber=transcriber), System(transcriber=transcriber, front_end=Halver())]
    records = evaluate(systems, data, normalizer="whisper", resamples=1000, permutations=10_000).records
    return {
        system.name: {config: record.result for config, record in by_config(records, system.name).items()}
        for system in systems
    }


def score(found: Score, wanted: list[float | None]) -> None:
    values = [found.value, found.low, found.high, found.n][: len(wanted)]
    assert [value is None for value in values] == [value is None for value in wanted]
    known = [value for value in wanted if value is not None]
    assert [value for value in values if value is not None] == pytest.approx(known, rel=1e-9, abs=1e-12)


def loss(found: Loss, wanted: Mapping[str, Any], *, n: bool = True) -> None:
    places = 4 if n else 3
    score(found.absolute, wanted["absolute"][:places])
    score(found.relative, wanted["relative"][:places])
    assert found.p_value == pytest.approx(wanted["p"])


@pytest.mark.parametrize("name", list(GOLDEN))
def test_rates_and_losses(results: Mapping[str, Mapping[str, Result]], name: str) -> None:
    clean, reverb, wanted = results[name]["en_clean"], results[name]["en_reverb"], GOLDEN[name]
    details = RecognitionDetails.model_validate(reverb.details)
    for metric, rates in wanted["rates"].items():
        # An utterance counts once here, and counted once for each of its two RIRs there.
        score(clean.scores[metric], rates["clean"])
        score(reverb.scores[metric], rates["reverb"])
        loss(reverb.losses["clean"][metric], rates["loss"])
    for metric, rates in wanted["raw"].items():
        raw = details.other_normalizers["raw"][metric]
        score(raw.rate, rates["reverb"])
        assert raw.loss is not None
        loss(raw.loss, rates["loss"])
    for unit, kinds in wanted["kinds"].items():
        for kind, rates in kinds.items():
            found = details.kinds[unit][kind]
            score(found.rate, rates["reverb"])
            assert found.change is not None
            score(found.change, rates["change"])


@pytest.mark.parametrize("name", list(GOLDEN))
def test_groups_map_spread_and_change_point(results: Mapping[str, Mapping[str, Result]], name: str) -> None:
    reverb, wanted = results[name]["en_reverb"], GOLDEN[name]
    details = RecognitionDetails.model_validate(reverb.details)
    for column, bins in wanted["groups"].items():
        assert len(reverb.by_group[column]) == len(bins)
        for group, own in zip(reverb.by_group[column], bins, strict=True):
            counts = (group.low, group.high, group.n, group.clusters, group.counts["rirs"])
            assert counts == (own["low"], own["high"], own["n"], own["utterances"], own["rirs"])
            assert group.losses["clean"]["wer"].p_holm == pytest.approx(own["p_holm"])
            for metric, rates in own["rates"].items():
                score(group.scores[metric], rates["reverb"])
                loss(group.losses["clean"][metric], rates["loss"])
    for group, own in zip(reverb.by_group["rt60_s|drr_db"], wanted["map"], strict=True):
        assert group.n == own["n"]
        score(group.scores["wer"], own["reverb"])
        loss(group.losses["clean"]["wer"], own["loss"])
    assert details.spread is not None
    spread = (details.spread.within_utterances, details.spread.between_rirs, details.spread.rir_component)
    for found, values in zip(spread, wanted["spread"], strict=True):
        score(found, values)
    assert details.change_point is not None
    assert details.change_point.model_dump() == wanted["change_point"]


def test_what_a_front_end_changes(results: Mapping[str, Mapping[str, Result]]) -> None:
    name = "halver | table"
    clean, reverb, wanted = results[name]["en_clean"], results[name]["en_reverb"], GOLDEN[name]["front_end"]
    details = RecognitionDetails.model_validate(reverb.details)
    for metric in ("wer", "cer"):
        loss(clean.losses["no-front-end"][metric], wanted["clean"][metric], n=False)
        loss(reverb.losses["no-front-end"][metric], wanted["reverb"][metric])
        loss(details.loss_change[metric], wanted["loss_change"][metric])
    for column in ("rt60_s", "drr_db"):
        for group, own in zip(reverb.by_group[column], wanted[column], strict=True):
            loss(group.losses["no-front-end"]["wer"], own)
